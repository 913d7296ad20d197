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
from heda._schema import Label, Schema, schema_of, usable, usable_names


@dataclass(frozen=True)
class Known:
    """What the caller says about the table."""

    schema: Schema | str | PathLike[str] | None
    bounds: Any
    target_bounds: tuple[float, float] | None
    #: Whether the label is a number.
    number: bool
    #: Whether a guarantee is to hold, so that nothing may be read from the rows.
    private: bool = False


@dataclass(frozen=True)
class Encoded:
    """Rows, what they mean, and what they were made from."""

    rows: _heda.Rows
    schema: _heda.Schema
    table: Table
    #: ``None`` if the label is a number.
    classes: NDArray[Any] | None


def encode(X: Any, y: Any, known: Known, who: str) -> Encoded:
    """Return the rows of a table with their labels, encoded."""
    found = table(X)
    if known.schema is None:
        refuse_missing(found, "X")
    elif known.bounds is not None or known.target_bounds is not None:
        raise InputError("a schema has its own bounds; pass schema= or bounds=, not both")
    if known.number:
        return _encode_number(found, y, known, who)
    classes, codes = _target.classes_of(y, found.rows, who)
    if known.schema is not None:
        checked, names, texts = _by_schema(known, found, classes)
    else:
        checked, names, texts = _by_looking(found, classes, known, getattr(y, "name", None))
    columns = fill(found.columns, names)
    columns.add_codes(checked.label, codes, texts)
    return _encoded(columns, checked, found, classes)


def _encode_number(found: Table, y: Any, known: Known, who: str) -> Encoded:
    numbers = _target.numbers_of(y, found.rows, who)
    if found.rows == 1:
        raise InputError("1 sample is too few to train on (n_samples=1)")
    if known.schema is not None:
        given, names = _matching(known, found)
        checked = given._inner
        if checked.classes:
            raise InputError(f"the label of the schema has classes, {who} learns a number")
    else:
        names = usable_names([str(name) for name in found.names], "x")
        lower, upper = known.target_bounds or _target.seen_bounds(numbers)
        label = Label(_title(getattr(y, "name", None), names), bounds=(float(lower), float(upper)))
        checked, seen = schema_of(found, names, label, known.bounds)
        if seen or known.target_bounds is None:
            _warn_of_bounds("bounds= and target_bounds=", 5)
    columns = fill(found.columns, names)
    columns.add_numbers(checked.label, numbers)
    return _encoded(columns, checked, found, None)


def _encoded(
    columns: _heda.Columns, checked: _heda.Schema, found: Table, classes: NDArray[Any] | None
) -> Encoded:
    rows = columns.encode(checked, "X")
    for words in rows.warnings:
        warnings.warn(words, stacklevel=4)
    return Encoded(rows, checked, found, classes)


def _by_looking(
    found: Table, classes: NDArray[Any], known: Known, label: object
) -> tuple[_heda.Schema, list[str], list[str]]:
    """Return the schema of a table as it is, the names of its columns and of the classes."""
    names = usable_names([str(name) for name in found.names], "x")
    texts = usable_names([str(value) for value in classes], "class ")
    named = Label(_title(label, names), classes=texts)
    checked, seen = schema_of(found, names, named, known.bounds)
    if seen and known.private:
        raise InputError(_PRIVATE_BOUNDS)
    if seen:
        _warn_of_bounds("bounds=", 5)
    return checked, names, texts


#: The lowest and the highest value of a column are the values of two rows: a model that holds them
#: shows those rows, whatever noise its coefficients carry.
_PRIVATE_BOUNDS = (
    "privacy= guarantees nothing where bounds are read from the rows: pass publicly known ones by "
    "bounds=(lowest, highest), one pair a column or a mapping, or a schema=, in which numbers can "
    "have `typical` values as well; the means and deviations that a schema does not state are bought "
    "privately"
)


_UNCONFIRMED = (
    "privacy= guarantees nothing where a schema was read from the rows: {} of its lines are still "
    "marked CONFIRM; replace them by what is publicly known, by Schema.edited(bounds=…, confirm=True)"
)


def _title(label: object, names: list[str]) -> str:
    """Return a name for the label that no column has."""
    title = str(label) if usable(label) else "label"
    while title in names:
        title += "_"
    return title


def _warn_of_bounds(remedy: str, level: int) -> None:
    warnings.warn(
        "bounds were read from the rows; between organisations they must be publicly known: pass "
        f"{remedy} or schema=",
        BoundsWarning,
        stacklevel=level,
    )


def _by_schema(
    known: Known, found: Table, classes: NDArray[Any]
) -> tuple[_heda.Schema, list[str], list[str]]:
    """Return a schema with the names under which it knows columns and classes."""
    given, names = _matching(known, found)
    texts = [str(value) for value in classes]
    if given.classes != texts:
        raise InputError(
            f"y has the classes {texts}, the schema has {given.classes}; they must be the same, in "
            "this order"
        )
    return given._inner, names, texts


def _matching(known: Known, found: Table) -> tuple[Schema, list[str]]:
    """Return a schema with the names under which it knows the columns."""
    assert known.schema is not None
    given = known.schema if isinstance(known.schema, Schema) else Schema.load(known.schema)
    if known.private and given.unconfirmed:
        raise InputError(_UNCONFIRMED.format(given.unconfirmed))
    expected = given.columns
    if not found.named and len(expected) != len(found.columns):
        raise InputError(f"X has {len(found.columns)} features, the schema has {len(expected)}")
    names = [str(name) for name in found.names] if found.named else expected
    if names != expected:
        raise InputError(
            "columns must be those of the schema, in its order: " + ", ".join(expected)
        )
    return given, names
