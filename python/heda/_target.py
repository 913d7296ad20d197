"""The labels of rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heda._errors import InputError
from heda._params import column_vector_warning


def classes_of(y: Any, rows: int, estimator: str) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the classes in their order and the position of each row's class in it."""
    values = _values(y, rows, estimator)
    _refuse_what_is_no_class(values)
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            f"This solver needs samples of at least 2 classes in the data, but the data contains "
            f"only one class: {classes[0]!r}"
        )
    return classes, codes.reshape(-1).astype(np.int32)


def numbers_of(y: Any, rows: int, estimator: str) -> NDArray[np.float64]:
    """Return the number of each row."""
    values = _values(y, rows, estimator)
    if values.dtype.kind == "c":
        raise InputError(f"Complex data not supported\n{values!r}\n")
    try:
        numbers = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"Unknown label type: y must be numbers ({error})") from None
    _refuse_holes(numbers)
    return numbers


def seen_bounds(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Return the lowest and the highest number."""
    lower, upper = float(numbers.min()), float(numbers.max())
    # All are the same: any room will do until that is told.
    return (lower, upper) if lower < upper else (lower, lower + max(1.0, abs(lower)))


def _values(y: Any, rows: int, estimator: str) -> NDArray[Any]:
    if y is None:
        raise InputError(
            f"This {estimator} estimator requires y to be passed, but the target y is None."
        )
    values = _vector(y)
    if len(values) != rows:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: [{rows}, {len(values)}]"
        )
    return values


def _vector(y: Any) -> NDArray[Any]:
    if hasattr(y, "toarray") and hasattr(y, "nnz"):
        raise InputError("y should be a 1d array, got a sparse matrix; pass y.toarray().ravel()")
    values = y if isinstance(y, np.ndarray) else _array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
            "to (n_samples, ), for example using ravel().",
            column_vector_warning(),
            stacklevel=5,
        )
        values = values.ravel()
    if values.ndim != 1:
        raise InputError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
    return values


def _array(y: Any) -> NDArray[Any]:
    """Return labels of a series or a list; those of a category as their texts."""
    if hasattr(y, "to_numpy"):
        values = np.asarray(y.to_numpy())
    elif hasattr(y, "__arrow_c_stream__") and hasattr(y, "to_pylist"):
        values = np.asarray(y.to_pylist())
    else:
        values = np.asarray(y)
    return values


def _refuse_holes(values: NDArray[Any]) -> None:
    if np.isnan(values).any():
        raise InputError("Input y contains NaN; leave out rows without a label")
    if np.isinf(values).any():
        raise InputError("Input y contains infinity or a value too large for dtype('float64').")


def _refuse_what_is_no_class(values: NDArray[Any]) -> None:
    if values.dtype.kind == "c":
        raise InputError(f"Complex data not supported\n{values!r}\n")
    if values.dtype.kind == "f":
        _refuse_holes(values)
        if (values != np.floor(values)).any():
            raise InputError(
                "Unknown label type: continuous. Maybe you are trying to fit a classifier, which "
                "expects discrete classes on a regression target with continuous values."
            )
    if values.dtype.kind == "O":
        texts = [isinstance(value, str) for value in values]
        if any(texts) and not all(texts):
            raise InputError(
                "Unknown label type: unknown. Labels are partly texts; make all of them so"
            )
        if not any(texts) and not all(
            isinstance(v, int | np.integer | bool | np.bool_ | float) for v in values
        ):
            raise InputError("Unknown label type: unknown. Pass numbers or texts as labels")
