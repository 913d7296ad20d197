"""What the columns of a table mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from heda import _heda, _html
from heda._errors import InputError
from heda._frame import Column, Table, fill, table

_LONGEST_NAME = 256


class Schema:
    """Public knowledge about the columns of a table: bounds, levels, classes.

    Parameters
    ----------
    text : str
        The schema as TOML (``docs/schema.md`` is the reference).

    Examples
    --------
    >>> import heda
    >>> schema = heda.Schema('''
    ... format = 1
    ... name = "patients"
    ... [label]
    ... column = "ill"
    ... classes = ["no", "yes"]
    ... positive = "yes"
    ... [[column]]
    ... name = "age"
    ... kind = "numeric"
    ... bounds = [0, 120]
    ... ''')
    >>> schema.columns
    ['age']
    >>> schema.bounds("age")
    (0.0, 120.0)
    """

    def __init__(self, text: str) -> None:
        self._inner = _heda.Schema.parse(text)

    @classmethod
    def _of(cls, inner: _heda.Schema) -> Schema:
        made = cls.__new__(cls)
        made._inner = inner
        return made

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schema:
        """Read a schema file."""
        return cls._of(_heda.Schema.read(fspath(path)))

    @classmethod
    def infer(cls, data: Any, label: str | None = None, *, name: str = "table") -> Schema:
        """Propose a schema for a data frame or for the path of a CSV or Parquet file.

        What is read from rows is as private as the rows. Such lines are marked ``CONFIRM``; replace
        them by public knowledge (:meth:`edited`) before the schema leaves the house.

        Parameters
        ----------
        data : data frame or path
            The rows.
        label : str, optional
            The column to be learned; the last one, or one with a usual name, if not given.
        name : str
            What the schema is called.
        """
        if isinstance(data, str | PathLike):
            return cls._of(_heda.Schema.propose_file(fspath(data), label))
        found = table(data, "data")
        return cls._of(
            _heda.Schema.propose(fill(found.columns, [str(n) for n in found.names]), name, label)
        )

    @property
    def text(self) -> str:
        """The TOML text, with its comments."""
        return self._inner.text

    @property
    def name(self) -> str:
        """What the schema is called."""
        return self._inner.name

    @property
    def label(self) -> str:
        """The column to be learned."""
        return self._inner.label

    @property
    def classes(self) -> list[str]:
        """Names of the classes; none if the label is a number."""
        return self._inner.classes

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are learned from."""
        return [name for name, *_ in self._inner.columns]

    @property
    def unconfirmed(self) -> int:
        """Lines that still hold what was read from rows."""
        return self._inner.unconfirmed

    @property
    def assumptions(self) -> list[str]:
        """What was assumed when the schema was proposed, a sentence each."""
        return self._inner.assumptions

    @property
    def fingerprint(self) -> str:
        """What parties compare before they begin."""
        return self._inner.fingerprint

    def bounds(self, column: str) -> tuple[float, float] | None:
        """Return the bounds of a column of numbers; ``None`` for categories."""
        return self._column(column)[2]

    def levels(self, column: str) -> list[str] | None:
        """Return the levels of a category; ``None`` for numbers."""
        return self._column(column)[3]

    def _column(self, name: str) -> tuple[str, str, tuple[float, float] | None, list[str] | None]:
        for column in self._inner.columns:
            if column[0] == name:
                return column
        raise InputError(f"the schema has no column {name!r}; it has {', '.join(self.columns)}")

    def edited(
        self,
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        confirm: bool = False,
    ) -> Schema:
        """Return the schema with other bounds.

        Parameters
        ----------
        bounds : mapping of column to (lowest, highest)
            Publicly known bounds; the marks of these lines are gone.
        confirm : bool
            Whether to delete all other marks too: you say that what was read from the rows may be
            known to everybody.

        Examples
        --------
        >>> import heda, numpy as np, pandas as pd
        >>> frame = pd.DataFrame({"age": [20.5, 31.0, 64.0, 70.5], "ill": ["no", "no", "yes", "yes"]})
        >>> schema = heda.Schema.infer(frame).edited(bounds={"age": (0, 120)})
        >>> schema.bounds("age")
        (0.0, 120.0)
        """
        rest = dict(bounds or {})
        lines: list[str] = []
        current: str | None = None
        for line in self.text.splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "name" and value:
                current = _toml_string(value)
            if key.strip() == "bounds" and current in rest:
                lower, upper = rest.pop(current)
                line = f"bounds = [{float(lower)!r}, {float(upper)!r}]"
            if confirm:
                line = _without_mark(line)
            lines.append(line)
        if rest:
            raise InputError(f"no bounds to change for {', '.join(rest)}; see Schema.columns")
        return Schema("\n".join(lines) + "\n")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schema as a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[type[Schema], tuple[str]]:
        return (Schema, (self.text,))

    def __repr__(self) -> str:
        shown = ", ".join(self.columns[:6]) + (", …" if len(self.columns) > 6 else "")
        return f"Schema({self.name!r}, label={self.label!r}, columns=[{shown}])"

    def _repr_html_(self) -> str:
        rows = [
            (name, kind, f"{bounds[0]:g} to {bounds[1]:g}" if bounds else ", ".join(levels or []))
            for name, kind, bounds, levels in self._inner.columns
        ]
        head = f"label {self.label}: {', '.join(self.classes)}"
        marks = [f"{self.unconfirmed} lines were read from rows and are private"]
        return _html.titled(
            f"Schema {self.name}",
            _html.lines([head, *(marks if self.unconfirmed else []), *self.assumptions]),
            _html.table(("column", "kind", "bounds or levels"), rows),
        )


def _toml_string(value: str) -> str | None:
    import tomllib

    try:
        found = tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        return None
    return found if isinstance(found, str) else None


def _without_mark(line: str) -> str:
    before, mark, _ = line.partition("# CONFIRM:")
    return before.rstrip() if mark else line


def usable(name: object) -> bool:
    """Return whether a schema can name a column, level or class so."""
    return (
        isinstance(name, str)
        and 0 < len(name.encode()) <= _LONGEST_NAME
        and name.strip() == name
        and name.isprintable()
    )


def usable_names(names: Sequence[object], stem: str) -> list[str]:
    """Return the names if a schema can have all of them, else numbered ones."""
    if all(usable(name) for name in names) and len(set(names)) == len(names):
        return [str(name) for name in names]
    return [f"{stem}{index}" for index in range(len(names))]


@dataclass(frozen=True)
class Label:
    """What is learned: one of some classes, or a number within bounds."""

    name: str
    classes: Sequence[str] = ()
    bounds: tuple[float, float] | None = None

    def text(self) -> str:
        """Return the part of a schema that is about it."""
        head = f"\n[label]\ncolumn = {_quoted(self.name)}\n"
        if self.bounds is not None:
            lower, upper = self.bounds
            return head + f'kind = "numeric"\nbounds = [{lower!r}, {upper!r}]\noutside = "clip"\n'
        head += f"classes = [{', '.join(map(_quoted, self.classes))}]\n"
        return head + (f"positive = {_quoted(self.classes[1])}\n" if len(self.classes) == 2 else "")


def schema_of(
    found: Table, names: Sequence[str], label: Label, bounds: Any
) -> tuple[_heda.Schema, bool]:
    """Return the schema of a table, and whether some of its bounds come from the rows."""
    given = _given_bounds(bounds, found)
    parts = ['format = 1\nname = "table"\n', label.text()]
    for index, (name, column) in enumerate(zip(names, found.columns, strict=True)):
        parts.append(f"\n[[column]]\nname = {_quoted(name)}\n")
        if column.levels is not None:
            kind = "ordinal" if column.ordered else "categorical"
            levels = ", ".join(map(_quoted, _named(column)))
            parts.append(f'kind = "{kind}"\nlevels = [{levels}]\n')
            continue
        lower, upper = given[index] or _seen_bounds(column)
        parts.append(f'kind = "numeric"\nbounds = [{lower!r}, {upper!r}]\noutside = "clip"\n')
    seen = any(
        bound is None and column.is_numeric
        for bound, column in zip(given, found.columns, strict=True)
    )
    return _heda.Schema.parse("".join(parts)), seen


def _named(column: Column) -> Sequence[str]:
    levels = column.levels or ()
    for level in levels:
        if not usable(level):
            raise InputError(
                f"column {column.name!r}: {level!r} cannot name a level; rename it to a text without "
                "blanks at its ends"
            )
    if len(levels) < 2:
        raise InputError(f"column {column.name!r} has fewer than two levels; leave it out")
    return levels


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _seen_bounds(column: Column) -> tuple[float, float]:
    lower, upper = float(np.nanmin(column.values)), float(np.nanmax(column.values))
    # A column that is always the same: any room above it will do.
    return (lower, upper) if lower < upper else (lower, lower + max(1.0, abs(lower)))


def _given_bounds(bounds: Any, found: Table) -> list[tuple[float, float] | None]:
    """Return the caller's bounds, column by column."""
    if bounds is None:
        return [None] * len(found.columns)
    if isinstance(bounds, Mapping):
        unknown = set(bounds) - set(found.names)
        if unknown:
            raise InputError(f"bounds for {sorted(map(str, unknown))}, which X does not have")
        return [_pair(bounds[c.name], c) if c.name in bounds else None for c in found.columns]
    pairs = _array(bounds)
    if pairs.shape == (2,):
        return [_pair(pairs, c) if c.is_numeric else None for c in found.columns]
    if pairs.shape != (len(found.columns), 2):
        raise InputError(
            f"bounds have the shape {pairs.shape}; pass (lowest, highest) for all columns, an array "
            f"of shape ({len(found.columns)}, 2), or a mapping by column name"
        )
    return [
        _pair(pair, column) if column.is_numeric else None
        for pair, column in zip(pairs, found.columns, strict=True)
    ]


def _array(bounds: ArrayLike) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        return np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"bounds are no numbers: {error}") from None


def _pair(pair: Any, column: Column) -> tuple[float, float]:
    lower, upper = (float(bound) for bound in pair)
    if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
        raise InputError(
            f"bounds of {column.name!r}: {lower} to {upper}; give finite numbers, the lowest first"
        )
    return lower, upper
