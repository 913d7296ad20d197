"""Numbers instead of classes, and classes that count more than others."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.linear_model import Ridge as Plain
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import heda

Numbers = tuple[NDArray[np.float64], NDArray[np.float64]]


@pytest.fixture
def numbers() -> Numbers:
    """A plane with noise, in units that differ."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(240, 4)) * [1, 10, 0.1, 5] + [0, 50, 0, -3]
    y = 200 + X @ [30, -2, 100, 4] + rng.normal(scale=15, size=240)
    return X, y


def fitted(numbers: Numbers, **parameters: Any) -> heda.Ridge:
    X, y = numbers
    bounds = np.array([[-9, 9], [0, 120], [-1, 1], [-30, 30]])
    return heda.Ridge(**parameters).fit(X, y, bounds=bounds, target_bounds=(-500, 1000))


@pytest.mark.filterwarnings("ignore")
def test_every_check_of_scikit_learn_passes() -> None:
    results = check_estimator(heda.Ridge(max_iter=20), on_skip=None, on_fail=None)
    failed = [r for r in results if r["status"] == "failed"]
    assert not failed, "\n".join(f"{r['check_name']}: {r['exception']!r}" for r in failed)
    assert sum(r["status"] == "passed" for r in results) >= 40


def test_coefficients_are_those_of_ridge_on_standardised_columns(numbers: Numbers) -> None:
    X, y = numbers
    for alpha in (1.0, 50.0):
        ours = fitted(numbers, alpha=alpha)
        plain = make_pipeline(StandardScaler(), Plain(alpha=alpha)).fit(X, y)
        exact = plain[-1].coef_ / plain[0].scale_
        assert ours.coef_.shape == (4,)
        assert isinstance(ours.intercept_, float)
        np.testing.assert_allclose(ours.coef_ * X.std(axis=0), exact * X.std(axis=0), atol=1.0)
        np.testing.assert_allclose(ours.predict(X), X @ ours.coef_ + ours.intercept_, atol=1e-6)
        assert abs(ours.score(X, y) - plain.score(X, y)) < 0.005
    assert fitted(numbers, alpha=0).score(X, y) > 0.8


def test_a_penalty_is_chosen_by_held_out_rows(numbers: Numbers) -> None:
    # Nearly no noise, so that a strong penalty spoils the plane whichever rows are held out.
    X, _ = numbers
    plane = 200 + X @ [30, -2, 100, 4] + np.random.default_rng(12).normal(scale=2, size=len(X))
    chosen = fitted((X, plane), alpha="auto", holdout=0.3)
    assert chosen.alpha_ <= 10
    choice = chosen.report_.summary["chosen_penalty"]
    assert [tried["c"] for tried in choice["tried"]] == [0.01, 0.1, 1, 10, 100]
    errors = [tried["rmse"] for tried in choice["tried"]]
    assert errors[choice["chosen"]] == min(errors) < 0.5 * errors[0]
    assert choice["rows"] == 36
    assert chosen.report_.errors is not None
    assert chosen.report_.errors["rows"] == 36
    assert "Choice of the penalty" in chosen.report_.to_html()
    assert not hasattr(fitted(numbers), "alpha_")
    with pytest.raises(heda.InputError, match="rows held out to choose by"):
        fitted(numbers, alpha="auto")
    with pytest.raises(heda.InputError, match="'auto'"):
        fitted(numbers, alpha="best", holdout=0.3)


def test_errors_on_held_out_rows_are_in_the_report(numbers: Numbers) -> None:
    kept = fitted(numbers, holdout=0.25)
    errors = kept.report_.errors
    assert errors is not None
    assert errors["rows"] == 60
    assert 11 < errors["rmse"] < 20
    assert errors["mae"] < errors["rmse"]
    assert errors["r2"] > 0.8
    assert kept.report_.accuracy is None
    assert fitted(numbers, max_iter=2).report_.errors is None
    assert "predicts" in kept.report_.to_html()


def test_a_regression_goes_through_pipelines_searches_clones_and_pickles(numbers: Numbers) -> None:
    X, y = numbers
    estimator = heda.Ridge(alpha=2.0, max_iter=8)
    assert is_regressor(estimator)
    assert clone(estimator).get_params() == estimator.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", heda.BoundsWarning)
        assert cross_val_score(make_pipeline(StandardScaler(), estimator), X, y, cv=3).mean() > 0.8
        search = GridSearchCV(estimator, {"alpha": [1.0, 1e4]}, cv=2).fit(X, y, providers=2)
    assert search.best_params_ == {"alpha": 1.0}
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert (again.predict(X) == search.best_estimator_.predict(X)).all()


def test_a_model_of_a_number_is_saved_loaded_and_exported(numbers: Numbers, tmp_path: Any) -> None:
    X, _ = numbers
    ours = fitted(numbers)
    ours.model_.save(tmp_path / "model.json")
    loaded = heda.Model.load(tmp_path / "model.json")
    assert loaded.is_number
    assert loaded.classes == []
    np.testing.assert_array_equal(loaded.predict(X), ours.predict(X))
    np.testing.assert_allclose(loaded.to_sklearn().predict(X), ours.predict(X), atol=1e-6)
    assert b"number" in loaded.to_onnx()
    assert "number label" in repr(loaded)


def test_bounds_of_the_number_are_warned_of_and_kept(numbers: Numbers) -> None:
    X, y = numbers
    with pytest.warns(heda.BoundsWarning, match="target_bounds"):
        heda.Ridge(max_iter=2).fit(X, y)
    with pytest.raises(heda.InputError, match="target_bounds are for numbers"):
        heda.LogisticRegression().fit(X, y > 200, target_bounds=(0, 1))
    for parameters in ({"alpha": -1}, {"alpha": "much"}, {"engine": "paper"}):
        with pytest.raises(heda.InputError):
            heda.Ridge(**parameters).fit(X, y)
    with pytest.raises(heda.InputError, match="numbers"):
        heda.Ridge().fit(X, np.array(["a", "b"] * 120))


@pytest.mark.parametrize("weight", ["balanced", {"rare": 6.0, "usual": 0.5}])
def test_weights_of_classes_are_those_of_scikit_learn(weight: Any) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 2))
    rare = X[:, 0] + rng.normal(size=600) > 2
    y = np.where(rare, "rare", "usual")
    ours = heda.LogisticRegression(class_weight=weight).fit(X, y, bounds=(-5, 5))
    plain = PlainLogistic(class_weight=weight).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    assert np.abs(ours.coef_ * X.std(axis=0) - plain.coef_).max() < 0.15
    alike = heda.LogisticRegression().fit(X, y, bounds=(-5, 5))
    assert (ours.predict(X) == "rare").sum() > 2 * (alike.predict(X) == "rare").sum()


def test_weights_that_do_not_fit_are_refused() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    cases: list[tuple[Any, str]] = [
        ("equal", "choose 'balanced'"),
        ({7: 1.0}, "y has the classes"),
        ({True: 0.0}, "weight of 0"),
    ]
    for weight, words in cases:
        with pytest.raises(heda.InputError, match=words):
            heda.LogisticRegression(class_weight=weight).fit(X, X[:, 0] > 0, bounds=(-5, 5))
    svc = heda.LinearSVC(class_weight={True: 3.0}).fit(X, X[:, 0] > 0, bounds=(-5, 5))
    assert svc.score(X, X[:, 0] > 0) > 0.8
