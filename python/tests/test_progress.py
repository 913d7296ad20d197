"""The bar."""

import io
import sys

import numpy as np
import pytest

import heda


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_shown_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    shown, piped = Terminal(), io.StringIO()
    for stream, verbose, expected in (
        (shown, None, True),
        (piped, None, False),
        (piped, True, True),
        (Terminal(), False, False),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        before = len(stream.getvalue())
        estimator = heda.LogisticRegression(max_iter=3, verbose=verbose)
        estimator.fit(X, X[:, 0] > 0, bounds=(-5, 5))
        said = stream.getvalue()[before:]
        assert ("training" in said and "█" in said) is expected, (verbose, said)
