"""Which features are worth encrypting."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from typing import Any

from heda import _heda, _html
from heda._encode import Known, encode
from heda._schema import Schema


@dataclass(frozen=True)
class Scored:
    """One feature, best first in a list of them."""

    name: str
    score: float
    share: float
    columns: int
    gradient_bytes: int


class Scores(list[Scored]):
    """Features from best to worst, with what one gradient of the first so many would send."""

    def __repr__(self) -> str:
        return "\n".join(
            f"{at:>3} {f.name:<24} {f.score:>12.5g} {f.gradient_bytes / 1e3:>10.0f} kB"
            for at, f in enumerate(self, 1)
        )

    def _repr_html_(self) -> str:
        rows = [
            (at, f.name, f"{f.score:.5g}", f"{f.gradient_bytes / 1e3:.0f} kB")
            for at, f in enumerate(self, 1)
        ]
        return _html.table(("encrypt=", "feature", "score", "bytes a gradient"), rows)


def score(
    X: Any,
    y: Any,
    *,
    method: str = "kw",
    schema: Schema | str | PathLike[str] | None = None,
    bounds: Any = None,
    random_state: int = 1,
) -> Scores:
    """Score the features of a table, as ``heda score`` does.

    Parameters
    ----------
    X, y : table and labels
        As for :meth:`LogisticRegression.fit`.
    method : {"kw", "chi2", "pearson", "spearman", "forest", "mrmr"}
        How to score.
    schema, bounds
        As for :meth:`LogisticRegression.fit`.
    random_state : int
        Fixes the random forest.

    Examples
    --------
    >>> import heda, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> heda.score(X, X[:, 2] > 0, bounds=(-6, 6))[0].name
    'x2'
    """
    encoded = encode(X, y, Known(schema, bounds, None, False), "score")
    found = json.loads(_heda.score(encoded.rows, "X", method, random_state))
    return Scores(
        Scored(**feature, gradient_bytes=prefix["gradient_bytes"])
        for feature, prefix in zip(found["features"], found["prefixes"], strict=True)
    )
