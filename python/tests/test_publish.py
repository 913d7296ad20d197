"""Columns under differential privacy."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import heda

pandas = pytest.importorskip("pandas")


def _ward() -> tuple[Any, NDArray[np.bool_]]:
    rng = np.random.default_rng(5)
    age = rng.uniform(20, 80, 3000)
    group = rng.choice(["A", "B", "0"], 3000)
    frame = pandas.DataFrame({"age": age, "group": pandas.Categorical(group), "z": age / 80})
    return frame, age + rng.normal(0, 8, 3000) > 50


def _errors(epsilon: float) -> NDArray[np.float64]:
    frame, ill = _ward()
    bounds = {"age": (0, 100), "z": (0, 2)}
    noisy = heda.publish(frame, ill, features=["age"], epsilon=epsilon, bounds=bounds)
    published = noisy.columns["age"]
    assert published.min() >= 0
    assert published.max() <= 100
    off: NDArray[np.float64] = np.abs(published - frame["age"].to_numpy())
    return off


def test_noise_is_as_large_as_epsilon_says() -> None:
    """Laplace noise of scale range/epsilon has that mean size; the grid of 1,024 steps adds little."""
    assert _errors(20).mean() == pytest.approx(100 / 20, rel=0.1)
    assert _errors(80).mean() == pytest.approx(100 / 80, rel=0.1)


def test_levels_stay_levels_and_are_true_as_often_as_said() -> None:
    frame, ill = _ward()
    bounds = {"age": (0, 100), "z": (0, 2)}
    noisy = heda.publish(frame, ill, features=["group"], epsilon=1, bounds=bounds)
    assert set(noisy.columns["group"]) == {"A", "B", "0"}
    true = (noisy.columns["group"] == frame["group"].to_numpy()).mean()
    assert true == pytest.approx(np.e / (np.e + 2), abs=0.04)
    assert noisy.report["columns"][0]["noise"]["truth"] == pytest.approx(np.e / (np.e + 2))
    assert list(noisy.to_frame().columns) == ["group"]
    assert "Published 3000 rows" in str(noisy)
    assert "add 1 to what" in str(noisy)
    assert "<table" in noisy._repr_html_()


def test_a_preview_releases_nothing_and_repeats_itself() -> None:
    frame, ill = _ward()
    bounds = {"age": (0, 100), "z": (0, 2)}
    seen = [
        heda.publish(frame, ill, features=["z"], epsilon=1, bounds=bounds, preview=True)
        for _ in range(2)
    ]
    assert seen[0].columns == {}
    assert "Nothing was published" in str(seen[0])
    assert seen[0].report["accuracy"] == seen[1].report["accuracy"]
    assert seen[0].report["accuracy"]["all"] > 0.8


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"features": ["nose"]}, "no column"),
        ({"features": []}, "no feature"),
        ({"features": ["z", "z"]}, "twice"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"bits": 99}, "1 to 20"),
        ({"weights": [1, 2]}, "give one each"),
    ],
)
def test_what_cannot_be_published_is_bad_input(wrong: dict[str, object], words: str) -> None:
    frame, ill = _ward()
    asked: dict[str, object] = {"features": ["z"], "epsilon": 1, **wrong}
    with pytest.raises(heda.InputError, match=words):
        heda.publish(frame, ill, bounds={"age": (0, 100), "z": (0, 2)}, **asked)  # type: ignore[arg-type]
