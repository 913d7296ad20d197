"""What tests share."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture
def blobs() -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Two clouds of points that a line divides."""
    rng = np.random.default_rng(7)
    y = np.repeat(["ill", "well"], 60)
    X = rng.normal(size=(120, 4)) + np.where(y == "ill", 1.5, -1.5)[:, None]
    order = rng.permutation(120)
    return X[order], y[order]


def program() -> str:
    """Return the command line of the same build, or skip loudly."""
    root = Path(os.environ.get("HEDA_ROOT", Path(__file__).resolve().parents[2]))
    built = [root / "target" / kind / "heda" for kind in ("debug", "release")]
    for path in built:
        if path.exists():
            return str(path)
    found = shutil.which("heda")
    if found is None:
        pytest.skip("no program `heda` to compare with: run cargo build first")
    return found


@pytest.fixture
def heda_program() -> str:
    return program()
