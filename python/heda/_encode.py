"""From a table and its labels to rows that a schema has encoded."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from os import PathLike
from typing import Any

from numpy.typing import NDArray

from heda import _heda, _target
from heda._errors import BoundsWarning, InputError
from heda._frame import Table, fill, refuse_missing, table
from heda._schema import Schema, schema_of, usable, usable_names


@dataclass(frozen=True)
class Encoded:
    """Rows, what they mean, and what they were made from."""

    rows: _heda.Rows
    schema: _heda.Schema
    table: Table
    classes: NDArray[Any]


def encode(
    X: Any, y: Any, schema: Schema | str | PathLike[str] | None, bounds: Any, who: str
) -> Encoded:
    """Return the rows of a table with their labels, encoded."""
    found = table(X)
    if schema is None:
        refuse_missing(found, "X")
    elif bounds is not None:
        raise InputError("a schema has its own bounds; pass schema= or bounds=, not both")
    classes, codes = _target.classes_of(y, found.rows, who)
    if schema is not None:
        checked, names, texts = _by_schema(schema, found, classes)
    else:
        checked, names, texts = _by_looking(found, classes, bounds, getattr(y, "name", None))
    columns = fill(found.columns, names)
    columns.add_codes(checked.label, codes, texts)
    rows = columns.encode(checked, "X")
    for words in rows.warnings:
        warnings.warn(words, stacklevel=3)
    return Encoded(rows, checked, found, classes)


def _by_looking(
    found: Table, classes: NDArray[Any], bounds: Any, label: object
) -> tuple[_heda.Schema, list[str], list[str]]:
    """Return the schema of a table as it is, the names of its columns and of the classes."""
    names = usable_names([str(name) for name in found.names], "x")
    texts = usable_names([str(value) for value in classes], "class ")
    title = str(label) if usable(label) else "label"
    while title in names:
        title += "_"
    checked, seen = schema_of(found, names, title, texts, bounds)
    if seen:
        warnings.warn(
            "bounds were read from the rows; between organisations they must be publicly known: pass "
            "bounds= or schema=",
            BoundsWarning,
            stacklevel=4,
        )
    return checked, names, texts


def _by_schema(
    schema: Schema | str | PathLike[str], found: Table, classes: NDArray[Any]
) -> tuple[_heda.Schema, list[str], list[str]]:
    """Return a schema with the names under which it knows columns and classes."""
    given = schema if isinstance(schema, Schema) else Schema.load(schema)
    expected = given.columns
    if not found.named and len(expected) != len(found.columns):
        raise InputError(f"X has {len(found.columns)} features, the schema has {len(expected)}")
    names = [str(name) for name in found.names] if found.named else expected
    if names != expected:
        raise InputError(
            "columns must be those of the schema, in its order: " + ", ".join(expected)
        )
    texts = [str(value) for value in classes]
    if given.classes != texts:
        raise InputError(
            f"y has the classes {texts}, the schema has {given.classes}; they must be the same, in "
            "this order"
        )
    return given._inner, names, texts
