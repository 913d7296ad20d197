"""Tables of any library as columns of NumPy: whole columns, never a Python object a cell."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heda._errors import InputError
from heda._heda import Columns


@dataclass(frozen=True)
class Column:
    """Numbers, or codes of levels; NaN and -1 stand for what is missing."""

    name: str
    values: NDArray[Any]
    levels: tuple[str, ...] | None = None
    ordered: bool = False

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers."""
        return self.levels is None


@dataclass(frozen=True)
class Table:
    """Columns of the same length, and whether their names come from the caller."""

    columns: tuple[Column, ...]
    rows: int
    named: bool

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]


def table(X: Any, what: str = "X") -> Table:
    """Return any table as columns."""
    columns = _columns_of_frame(X)
    if columns is not None:
        found = tuple(columns)
        rows = len(found[0].values) if found else len(X)
        return _checked(Table(found, rows, named=True), what)
    matrix = _matrix(X, what)
    found = tuple(Column(f"x{index}", matrix[:, index]) for index in range(matrix.shape[1]))
    return _checked(Table(found, matrix.shape[0], named=False), what)


def fill(columns: Iterable[Column], names: Sequence[str] | None = None) -> Columns:
    """Return columns as the compiled part takes them."""
    filled = Columns()
    for index, column in enumerate(columns):
        name = column.name if names is None else names[index]
        if column.levels is None:
            filled.add_numbers(name, column.values)
        else:
            filled.add_codes(name, column.values, list(column.levels))
    return filled


def _checked(found: Table, what: str) -> Table:
    shape = (found.rows, len(found.columns))
    if found.rows == 0:
        raise InputError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required."
        )
    if not found.columns:
        raise InputError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )
    return found


def refuse_missing(found: Table, what: str) -> None:
    """Raise unless every value is there and finite."""
    for column in found.columns:
        if column.levels is not None:
            if (column.values < 0).any():
                raise InputError(
                    f"Input {what} contains NaN: a category of column {column.name!r} is missing; "
                    "fill it, or pass a schema with a rule for missing values"
                )
            continue
        # One pass and no copy: a sum is finite only if everything is, or if it overflows.
        with np.errstate(over="ignore", invalid="ignore"):
            total = column.values.sum()
        if np.isfinite(total) or np.isfinite(column.values).all():
            continue
        if np.isnan(column.values).any():
            raise InputError(
                f"Input {what} contains NaN (column {column.name!r}); fill missing values, or pass "
                "a schema with a rule for them"
            )
        raise InputError(
            f"Input {what} contains infinity or a value too large for dtype('float64') "
            f"(column {column.name!r})"
        )


def _matrix(X: Any, what: str) -> NDArray[np.float64]:
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise _SparseError(
            f"Sparse data was passed for {what}, but dense data is required. Use '.toarray()' to "
            "convert to a dense numpy array."
        )
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported\n{array!r}\n")
    if array.ndim != 2:
        raise InputError(_dimensions(array, what))
    if array.dtype.kind == "f" and array.dtype == np.float64 and array.dtype.isnative:
        return array
    if array.dtype.kind in "USMmV":
        raise InputError(
            f"dtype='numeric' is not compatible with arrays of bytes/strings or dates ({what} has "
            f"{array.dtype}); pass a data frame with category columns, or numbers"
        )
    try:
        return array.astype(np.float64)
    except ValueError as error:
        raise InputError(
            f"{what} cannot be read as numbers ({error}); pass a data frame with category columns"
        ) from None


class _SparseError(InputError, TypeError):
    """Scikit-learn raises a TypeError for sparse data, and so do we."""


def _dimensions(array: NDArray[Any], what: str) -> str:
    if array.ndim > 2:
        return f"Found array with dim {array.ndim}, while dim <= 2 is required ({what})."
    kind = "scalar array" if array.ndim == 0 else "1D array"
    return (
        f"Expected 2D array, got {kind} instead:\narray={array}.\n"
        "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
        "or array.reshape(1, -1) if it contains a single sample."
    )


def _columns_of_frame(X: Any) -> list[Column] | None:
    """Return the columns of a data frame; ``None`` for what is none."""
    if isinstance(X, np.ndarray):
        return None
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return [_pandas(pandas, name, X.iloc[:, at]) for at, name in enumerate(X.columns)]
    if polars is not None and isinstance(X, polars.DataFrame):
        return [_polars(polars, series) for series in X.get_columns()]
    if arrow is not None and isinstance(X, arrow.Table | arrow.RecordBatch):
        return [_arrow(arrow, str(name), X.column(at)) for at, name in enumerate(X.schema.names)]
    if hasattr(X, "__arrow_c_stream__"):
        return _by_arrow(X)
    return None


def _by_arrow(X: Any) -> list[Column]:
    """Return the columns of any table that speaks the Arrow PyCapsule interface."""
    try:
        import pyarrow
    except ImportError:
        raise InputError(
            "this table speaks Arrow, and pyarrow, which would read it, is not installed; run "
            "pip install pyarrow, or pass a pandas or polars data frame"
        ) from None
    found = pyarrow.table(X)
    return [
        _arrow(pyarrow, str(name), found.column(at)) for at, name in enumerate(found.schema.names)
    ]


def _pandas(pandas: Any, name: Any, series: Any) -> Column:
    kind = series.dtype
    if isinstance(kind, pandas.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.int32)
        levels = tuple(str(level) for level in kind.categories)
        return Column(name, codes, levels, bool(kind.ordered))
    types = pandas.api.types
    if types.is_bool_dtype(kind) or (
        types.is_numeric_dtype(kind) and not types.is_complex_dtype(kind)
    ):
        values = (
            series.to_numpy()
            if kind == np.float64
            else series.to_numpy(np.float64, na_value=np.nan)
        )
        return Column(name, values)
    if types.is_string_dtype(kind) and not types.is_object_dtype(kind):
        codes, levels = pandas.factorize(series, sort=True)
        return Column(name, codes.astype(np.int32), tuple(str(level) for level in levels))
    return _object(pandas, name, series)


def _object(pandas: Any, name: Any, series: Any) -> Column:
    """Return a column of Python objects, if they are all numbers or all texts."""
    inferred = pandas.api.types.infer_dtype(series, skipna=True)
    if inferred in {"integer", "floating", "mixed-integer-float", "boolean", "decimal"}:
        return Column(name, series.astype(np.float64).to_numpy())
    if inferred == "string":
        codes, levels = pandas.factorize(series, sort=True)
        return Column(name, codes.astype(np.int32), tuple(str(level) for level in levels))
    raise InputError(
        f"column {name!r} holds {inferred} ({series.dtype}), which is neither numbers nor texts; "
        "turn it into numbers, or into categories with .astype('category')"
    )


def _polars(polars: Any, series: Any) -> Column:
    kind = series.dtype
    if kind == polars.Boolean or kind.is_numeric():
        numbers = series if kind == polars.Float64 else series.cast(polars.Float64)
        if numbers.null_count():
            numbers = numbers.fill_null(float("nan"))
        return Column(series.name, numbers.to_numpy())
    if kind == polars.Enum:
        levels = kind.categories.to_list()
    elif kind in (polars.String, polars.Categorical):
        levels = series.cast(polars.String).unique().drop_nulls().sort().to_list()
    else:
        raise InputError(
            f"column {series.name!r} holds {kind}, which is neither numbers nor categories; "
            "cast it to one of them"
        )
    codes = series.cast(polars.String).cast(polars.Enum(levels)).to_physical()
    codes = codes.cast(polars.Int32).fill_null(-1)
    return Column(series.name, codes.to_numpy(), tuple(levels))


def _arrow(arrow: Any, name: str, column: Any) -> Column:
    kind = column.type
    types = arrow.types
    if types.is_boolean(kind):
        column = column.cast(arrow.int8())
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        numbers = column.cast(arrow.float64(), safe=False)
        if isinstance(numbers, arrow.ChunkedArray):
            return Column(name, numbers.to_numpy())
        return Column(name, numbers.to_numpy(zero_copy_only=False))
    if not types.is_dictionary(kind):
        texts = (types.is_string, types.is_large_string, getattr(types, "is_string_view", None))
        if not any(is_text is not None and is_text(kind) for is_text in texts):
            raise InputError(
                f"column {name!r} holds {kind}, which is neither numbers nor categories; cast it to "
                "one of them"
            )
        column = column.cast(arrow.large_string()).dictionary_encode()
    if isinstance(column, arrow.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, arrow.ChunkedArray):  # combined chunks of nothing
        column = arrow.array([], kind)
    return _sorted_levels(name, column.indices, column.dictionary)


def _sorted_levels(name: str, indices: Any, dictionary: Any) -> Column:
    """Return the levels in alphabetical order, without those that never occur."""
    codes = indices.cast("int32").fill_null(-1).to_numpy(zero_copy_only=False)
    levels = [str(level) for level in dictionary.to_pylist()]
    seen = [at for at in np.unique(codes).tolist() if at >= 0]
    order = sorted(seen, key=levels.__getitem__)
    places = np.full(len(levels) + 1, -1, dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return Column(name, places[codes], tuple(levels[at] for at in order))
