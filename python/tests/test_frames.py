"""Tables of every library give the same model."""

import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import heda
from heda import _frame

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

AGES = np.array([20.0, 30.5, 41.0, 52.0, 63.0, 70.0] * 10)
WARDS = ["a", "b", "c", "a", "b", "c"] * 10
SMOKES = np.array([True, False, True, True, False, False] * 10)
ILL = np.where(AGES > 45, "yes", "no")


def in_pandas() -> Any:
    return pandas.DataFrame({"age": AGES, "ward": pandas.Categorical(WARDS), "smokes": SMOKES})


def in_polars() -> Any:
    wards = polars.Series(WARDS, dtype=polars.Categorical)
    return polars.DataFrame({"age": AGES, "ward": wards, "smokes": SMOKES})


def in_arrow() -> Any:
    wards = pyarrow.array(WARDS).dictionary_encode()
    return pyarrow.table({"age": AGES, "ward": wards, "smokes": SMOKES})


class Capsule:
    """A table that speaks Arrow and nothing else."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


@pytest.mark.filterwarnings("ignore::heda.UnprotectedWarning")
def test_every_library_gives_the_same_model() -> None:
    fits = []
    for frame in (in_pandas(), in_polars(), in_arrow(), Capsule(in_polars())):
        estimator = heda.LogisticRegression(random_state=1, max_iter=5)
        estimator.fit(frame, ILL, bounds={"age": (0, 100), "smokes": (0, 1)})
        assert estimator.feature_names_in_.tolist() == ["age", "ward", "smokes"]
        names = estimator.model_.feature_names
        assert names == ["age", "ward=a", "ward=b", "ward=c", "smokes"]
        assert estimator.coef_.shape == (1, 5)
        assert (estimator.predict(frame) == estimator.model_.predict(frame)).all()
        fits.append(estimator.coef_)
    assert all((coef == fits[0]).all() for coef in fits[1:])


def test_ordered_categories_are_one_column() -> None:
    grade = pandas.Categorical(
        ["low", "mid", "high"] * 20, categories=["low", "mid", "high"], ordered=True
    )
    frame = pandas.DataFrame({"grade": grade, "age": AGES})
    fitted = heda.LogisticRegression(max_iter=2).fit(frame, ILL, bounds={"age": (0, 100)})
    assert fitted.model_.feature_names == ["grade", "age"]


def test_columns_that_are_neither_numbers_nor_categories_are_refused() -> None:
    days = pandas.date_range("2024-01-01", periods=60)
    for column in (days, [object()] * 60, [{"a": 1}] * 60):
        frame = pandas.DataFrame({"age": AGES, "odd": column})
        with pytest.raises(heda.InputError, match="odd"):
            heda.LogisticRegression().fit(frame, ILL)
    missing = in_pandas()
    missing.loc[3, "ward"] = None
    with pytest.raises(heda.InputError, match=r"contains NaN.*ward"):
        heda.LogisticRegression().fit(missing, ILL)


def test_a_level_that_was_never_seen_is_refused() -> None:
    fitted = heda.LogisticRegression(max_iter=2).fit(in_pandas(), ILL, bounds={"age": (0, 100)})
    other = in_pandas().assign(ward=pandas.Categorical(["z"] * 60))
    with pytest.raises(heda.InputError, match=r'"?z"?'):
        fitted.predict(other)


@pytest.mark.parametrize("library", ["numpy", "polars"])
def test_a_million_rows_take_no_more_than_twice_their_own_room(library: str) -> None:
    """Counted by the system in a process of its own: what encoding adds to what was there."""
    import subprocess

    code = f"""
import numpy as np, resource, sys
from heda import _frame, _heda
from heda._schema import Label, schema_of
rows, width = 1_000_000, 10
X = np.random.default_rng(0).random((rows, width))
if {library!r} == "polars":
    import polars
    X = polars.DataFrame({{f"x{{i}}": X[:, i].copy() for i in range(width)}})
found = _frame.table(X)
schema, _ = schema_of(found, found.names, Label("label", classes=["a", "b"]), (0, 1))
codes = np.tile(np.array([0, 1], dtype=np.int32), rows // 2)
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = peak()
columns = _frame.fill(found.columns)
columns.add_codes("label", codes, ["a", "b"])
encoded = columns.encode(schema, "X")
assert len(encoded) == rows
print((peak() - before) / (rows * (width * 8 + 4)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0.9 < float(done.stdout) <= 2.02, done.stdout


def test_no_python_object_is_made_for_a_cell() -> None:
    import tracemalloc

    X: NDArray[np.float64] = np.random.default_rng(0).random((100_000, 5))
    frame = polars.DataFrame({f"x{i}": X[:, i].copy() for i in range(5)})
    for rows in (X, frame):
        tracemalloc.start()
        columns = _frame.fill(_frame.table(rows).columns)
        made = sum(trace.count for trace in tracemalloc.take_snapshot().statistics("filename"))
        tracemalloc.stop()
        assert len(columns) == 100_000
        assert made < 2000
