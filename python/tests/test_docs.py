"""Examples in docstrings are true, and everything that is offered has a text."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import heda

MODULES = [f"heda.{m.name}" for m in pkgutil.iter_modules(heda.__path__) if m.name != "_heda"]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_examples_are_true() -> None:
    tried = 0
    for name in MODULES:
        result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
        assert result.failed == 0, name
        tried += result.attempted
    assert tried >= 30


def test_everything_that_is_offered_has_a_text() -> None:
    for name in heda.__all__:
        offered = getattr(heda, name)
        assert inspect.getdoc(offered), name
        if inspect.isclass(offered) and not issubclass(offered, BaseException):
            for method, made in inspect.getmembers(offered, inspect.isfunction):
                if not method.startswith("_") and made.__module__.startswith("heda"):
                    assert inspect.getdoc(made), f"{name}.{method}"
