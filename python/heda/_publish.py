"""Columns under differential privacy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heda import _heda, _html
from heda._encode import Known, encode
from heda._schema import Schema


@dataclass(frozen=True, eq=False)
class Published:
    """Columns with noise, or what they would give away and buy.

    Attributes
    ----------
    columns : dict
        An array a column: numbers in the units of the table, or levels. Empty in a preview.
    report : dict
        What was given away, for the one who holds the rows: as ``heda publish --json``.
    """

    columns: dict[str, NDArray[Any]]
    report: dict[str, Any]
    _words: str = field(repr=False)

    def to_frame(self) -> Any:
        """Return the columns as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def __str__(self) -> str:
        return self._words.rstrip()

    def _repr_html_(self) -> str:
        rows = [
            (column["name"], column["epsilon"], _noise(column["noise"]))
            for column in self.report["columns"]
        ]
        verb = "Published" if self.columns else "Would be published"
        return _html.titled(
            f"{verb}: {self.report['rows']} rows by {self.report['mechanism']}",
            _html.table(("column", "epsilon", "noise"), rows),
            _html.lines([f"Guarantee: {self.report['guarantee']}."]),
        )


def publish(
    X: Any,
    y: Any,
    *,
    features: Sequence[str],
    epsilon: float | str,
    weights: Sequence[int] = (),
    bits: int = 10,
    preview: bool = False,
    schema: Schema | str | PathLike[str] | None = None,
    bounds: Any = None,
) -> Published:
    """Publish columns with exact noise, as ``heda publish`` does.

    No ledger is kept: add ``epsilon`` to all that these rows have released before.

    Parameters
    ----------
    X, y : table and labels
        As for :meth:`LogisticRegression.fit`. Labels are not published.
    features : sequence of str
        The columns.
    epsilon : float or str
        What one row pays for all columns together. There is no default.
    weights : sequence of int
        How epsilon is split, a whole number a column; equally if not given.
    bits : int
        Numbers are rounded to 2^bits steps between their bounds.
    preview : bool
        Publish nothing: say what would be given away, and what it would buy over leaving out.
    schema, bounds
        As for :meth:`LogisticRegression.fit`. Bounds must not come from the rows.

    Examples
    --------
    >>> import heda, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 2))
    >>> noisy = heda.publish(X, X[:, 0] > 0.5, features=["x1"], epsilon=1, bounds=(0, 1))
    >>> noisy.columns["x1"].shape, noisy.report["epsilon_total"]
    ((200,), 1.0)
    """
    encoded = encode(X, y, Known(schema, bounds, None, False), "publish")
    asked: dict[str, object] = {
        "features": list(features),
        "epsilon": str(epsilon),
        "weights": list(weights),
        "bits": bits,
    }
    if preview:
        told, words = _heda.preview_publishing(encoded.rows, encoded.schema, asked)
        return Published({}, json.loads(told), words)
    columns, told, words = _heda.publish(encoded.rows, encoded.schema, asked)
    return Published(
        {name: _values(raw, levels) for name, raw, levels in columns}, json.loads(told), words
    )


def _noise(noise: dict[str, float]) -> str:
    if "truth" in noise:
        return f"random answer, {noise['truth']:.1%} true"
    return f"Laplace, {noise['scale']:.1%} of the range"


def _values(raw: bytearray, levels: list[str] | None) -> NDArray[Any]:
    if levels is None:
        return np.frombuffer(raw, dtype=np.float64)
    return np.array(levels, dtype=object)[np.frombuffer(raw, dtype=np.int32)]
