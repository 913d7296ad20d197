"""What scikit-learn expects of an estimator, without scikit-learn."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from heda import _errors
from heda._errors import InputError
from heda._frame import Table


class Parameters:
    """Parameters by name, as ``clone``, ``Pipeline`` and ``GridSearchCV`` use them."""

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        for name, value in params.items():
            if name not in self._names():
                raise InputError(
                    f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: "
                    f"{self._names()!r}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not _same(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def not_fitted(estimator: object) -> _errors.NotFittedError:
    """Return the exception of an estimator that was not fitted; scikit-learn's too, if it is there."""
    words = (
        f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate "
        "arguments before using this estimator."
    )
    exceptions = sys.modules.get("sklearn.exceptions")
    if exceptions is None:
        return _errors.NotFittedError(words)
    both: type[_errors.NotFittedError] = type(
        "NotFittedError", (_errors.NotFittedError, exceptions.NotFittedError), {}
    )
    return both(words)


def check_names(estimator: Any, found: Table) -> None:
    """Compare the columns of rows to predict with those that were fitted, as scikit-learn does."""
    name = type(estimator).__name__
    fitted = getattr(estimator, "feature_names_in_", None)
    names = _texts(found)
    if fitted is None and names is not None:
        warnings.warn(
            f"X has feature names, but {name} was fitted without feature names", stacklevel=4
        )
    elif fitted is not None and names is None:
        warnings.warn(
            f"X does not have valid feature names, but {name} was fitted with feature names",
            stacklevel=4,
        )
    elif fitted is not None and names is not None and list(fitted) != names:
        raise InputError(_different(list(fitted), names))
    if len(found.columns) != estimator.n_features_in_:
        raise InputError(
            f"X has {len(found.columns)} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def _texts(found: Table) -> list[str] | None:
    names = found.names
    if not found.named or not all(isinstance(name, str) for name in names):
        return None
    return names


def names_in(found: Table) -> NDArray[Any] | None:
    """Return what ``feature_names_in_`` is; ``None`` without names."""
    names = _texts(found)
    return None if names is None else np.array(names, dtype=object)


def _different(fitted: list[str], names: list[str]) -> str:
    words = "The feature names should match those that were passed during fit.\n"
    unseen = sorted(set(names) - set(fitted))
    missing = sorted(set(fitted) - set(names))
    for title, listed in (
        ("Feature names unseen at fit time:", unseen),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if listed:
            shown = "".join(f"- {name}\n" for name in listed[:5])
            words += f"{title}\n{shown}" + ("- ...\n" if len(listed) > 5 else "")
    if not unseen and not missing:
        words += "Feature names must be in the same order as they were in fit.\n"
    return words


def column_vector_warning() -> type[Warning]:
    """Return scikit-learn's warning about a target with two dimensions, if it is there."""
    exceptions = sys.modules.get("sklearn.exceptions")
    if exceptions is None:
        return UserWarning
    found: type[Warning] = exceptions.DataConversionWarning
    return found
