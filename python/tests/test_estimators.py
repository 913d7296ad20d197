"""Estimators as scikit-learn's users expect them."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import heda

from .expected_failures import EXPECTED

Blobs = tuple[NDArray[np.float64], NDArray[np.str_]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [heda.LogisticRegression, heda.LinearSVC])
def test_every_check_of_scikit_learn_passes_or_is_listed(estimator: Any) -> None:
    made = estimator(max_iter=20)
    results = check_estimator(made, expected_failed_checks=EXPECTED, on_skip=None, on_fail=None)
    failed = [r for r in results if r["status"] == "failed"]
    assert not failed, "\n".join(f"{r['check_name']}: {r['exception']!r}" for r in failed)
    # A list that is longer than it must be is no list of what fails.
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(EXPECTED)
    assert len(EXPECTED) <= 5
    assert sum(r["status"] == "passed" for r in results) >= 50


def test_coefficients_are_near_those_in_clear(blobs: Blobs) -> None:
    X, y = blobs
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = heda.LogisticRegression().fit(X, y, bounds=(-5, 5))
    plain = Plain().fit(X, y)
    assert ours.classes_.tolist() == plain.classes_.tolist()
    assert np.abs(ours.coef_ - plain.coef_).max() < 0.15 * np.abs(plain.coef_).max()
    assert ours.coef_.shape == (1, 4)
    assert ours.intercept_.shape == (1,)
    assert ours.n_features_in_ == 4
    assert ours.n_iter_ >= 1
    scores = X @ ours.coef_[0] + ours.intercept_[0]
    np.testing.assert_allclose(ours.decision_function(X), scores, atol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X)[:, 1], 1 / (1 + np.exp(-scores)), atol=1e-9)
    assert (ours.predict(X) == ours.classes_[(scores > 0).astype(int)]).all()


def test_three_classes_have_a_classifier_each() -> None:
    rng = np.random.default_rng(3)
    y = np.repeat([10, 20, 30], 40)
    X = rng.normal(size=(120, 2)) + np.array([[4, 0], [-4, 0], [0, 5]])[y // 10 - 1]
    ours = heda.LogisticRegression(max_iter=20).fit(X, y, bounds=(-9, 9))
    assert ours.coef_.shape == (3, 2)
    assert ours.decision_function(X).shape == (120, 3)
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1)
    assert ours.score(X, y) > 0.95


def test_a_seed_repeats_a_run_and_says_what_that_means(blobs: Blobs) -> None:
    X, y = blobs
    with pytest.warns(heda.UnprotectedWarning, match="protects nothing"):
        first = heda.LogisticRegression(random_state=5, max_iter=5).fit(X, y, bounds=(-9, 9))
    with pytest.warns(heda.UnprotectedWarning):
        second = heda.LogisticRegression(random_state=5, max_iter=5).fit(X, y, bounds=(-9, 9))
    with pytest.warns(heda.UnprotectedWarning):
        other = heda.LogisticRegression(random_state=6, max_iter=5).fit(X, y, bounds=(-9, 9))
    assert (first.coef_ == second.coef_).all()
    assert (first.coef_ != other.coef_).any()


def test_bounds_from_rows_are_warned_of(blobs: Blobs) -> None:
    X, y = blobs
    with pytest.warns(heda.BoundsWarning, match="publicly known"):
        heda.LogisticRegression(max_iter=2).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heda.LogisticRegression(max_iter=2).fit(X, y, bounds=(-9, 9))


def test_bounds_come_for_all_for_each_or_by_name(blobs: Blobs) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = blobs
    fit = heda.LogisticRegression(max_iter=2).fit
    assert fit(X, y, bounds=(-9, 9)).schema_.bounds("x3") == (-9, 9)
    each = np.array([[-9, 9], [-8, 9], [-7, 9], [-6, 9]])
    assert fit(X, y, bounds=each).schema_.bounds("x2") == (-7, 9)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    by_name = dict.fromkeys("abcd", (-9, 9)) | {"c": (-5, 5)}
    assert fit(frame, y, bounds=by_name).schema_.bounds("c") == (-5, 5)
    with pytest.raises(heda.InputError, match="lowest first"):
        fit(X, y, bounds=(1, 1))
    with pytest.raises(heda.InputError, match="shape"):
        fit(X, y, bounds=[1, 2, 3])
    with pytest.raises(heda.InputError, match="does not have"):
        fit(frame, y, bounds={"z": (0, 1)})


def test_it_goes_through_pipelines_searches_clones_and_pickles(blobs: Blobs) -> None:
    X, y = blobs
    estimator = heda.LogisticRegression(max_iter=5, C=2.0)
    assert is_classifier(estimator)
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert copy is not estimator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", heda.BoundsWarning)
        scores = cross_val_score(make_pipeline(StandardScaler(), estimator), X, y, cv=3)
        assert scores.mean() > 0.9
        search = GridSearchCV(estimator, {"C": [0.01, 1.0]}, cv=2).fit(X, y, providers=2)
    assert search.best_params_["C"] in {0.01, 1.0}
    best = search.best_estimator_
    again = pickle.loads(pickle.dumps(best))
    assert (again.predict(X) == best.predict(X)).all()
    assert again.report_.text == best.report_.text


def test_a_private_model_keeps_its_promise_in_the_report(blobs: Blobs) -> None:
    X, y = blobs
    X, y = np.tile(X, (10, 1)), np.tile(y, 10)
    private = heda.LogisticRegression(privacy=heda.Privacy(epsilon=2)).fit(X, y, bounds=(-9, 9))
    promise = private.report_.summary["privacy"]
    assert promise["epsilon"] == 2
    assert 0 < promise["delta"] <= 1e-5
    assert promise["unit"] == "row"
    assert 0 < promise["charged"] <= 2
    # The model says it too, wherever it goes.
    kept = pickle.loads(pickle.dumps(private.model_)).guarantee
    for key in ("epsilon", "delta", "unit", "charged"):
        assert kept[key] == promise[key]
    onnx = private.model_.to_onnx()
    assert b'"epsilon":2.0' in onnx
    assert b'"charged":' in onnx
    exact = heda.LogisticRegression(max_iter=2).fit(X, y, bounds=(-9, 9))
    assert exact.model_.guarantee is None
    assert private.score(X, y) > 0.8
    too_much = heda.Privacy(epsilon=1, delta=0.1)
    with pytest.raises(heda.InputError, match="no protection"):
        heda.LogisticRegression(privacy=too_much).fit(X, y, bounds=(-9, 9))


def test_a_promise_is_refused_where_bounds_would_be_read_from_rows(blobs: Blobs) -> None:
    X, y = blobs
    private = heda.LogisticRegression(privacy=heda.Privacy(epsilon=1))
    for remedy in ("bounds=", "schema=", "typical"):
        with pytest.raises(heda.InputError, match=remedy):
            private.fit(X, y)
    assert not hasattr(private, "model_")
    named = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(heda.InputError, match="guarantees nothing"):
        private.fit(named, y, bounds={"a": (-9, 9)})


def test_a_promise_is_refused_with_a_schema_that_was_read_from_rows(blobs: Blobs) -> None:
    X, y = blobs
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y)
    read = heda.Schema.infer(frame, "label")
    private = heda.LogisticRegression(privacy=heda.Privacy(epsilon=2))
    with pytest.raises(heda.InputError, match="marked CONFIRM"):
        private.fit(frame[list("abcd")], y, schema=read)
    assert not hasattr(private, "model_")
    X, y = np.tile(X, (10, 1)), np.tile(y, 10)
    public = read.edited(bounds=dict.fromkeys("abcd", (-9, 9)), confirm=True)
    private.fit(pd.DataFrame(X, columns=list("abcd")), y, schema=public)
    assert private.report_.summary["guarantee"]


def test_what_was_counted_in_clear_says_that_nobody_would_see_it(blobs: Blobs) -> None:
    X, y = blobs
    X, y = np.tile(X, (10, 1)), np.tile(y, 10)
    promise = heda.Privacy(epsilon=2)
    for holdout in (0.0, 0.2):
        private = heda.LogisticRegression(privacy=promise, holdout=holdout)
        text = " ".join(private.fit(X, y, bounds=(-9, 9)).report_.text.split())
        assert "epsilon 2" in text
        assert ("in clear" in text) == ("nobody in a real job would see it" in text)


def test_only_phases_that_happen_are_announced(
    blobs: Blobs, caplog: pytest.LogCaptureFixture
) -> None:
    X, y = blobs
    with caplog.at_level("INFO", "heda.job"):
        heda.LogisticRegression(max_iter=2).fit(X, y, bounds=(-9, 9))
    told = caplog.messages
    assert "phase train" in told
    assert "phase publish" not in told
    assert "phase evaluate" not in told


def test_rows_can_be_held_out_for_the_report(blobs: Blobs) -> None:
    X, y = blobs
    fitted = heda.LogisticRegression(holdout=0.25, max_iter=10).fit(X, y, bounds=(-9, 9))
    assert fitted.report_.summary["held_out"] == 30
    assert fitted.report_.accuracy is not None
    assert fitted.report_.accuracy > 0.8
    none = heda.LogisticRegression(max_iter=2).fit(X, y, bounds=(-9, 9))
    assert none.report_.accuracy is None


def test_providers_become_fewer_when_rows_are_few(blobs: Blobs) -> None:
    X, y = blobs
    fit = heda.LogisticRegression(max_iter=2).fit
    assert fit(X, y, providers=5, bounds=(-9, 9)).report_.summary["providers"] == 5
    few = fit(X[:25], y[:25], providers=5, bounds=(-9, 9))
    assert few.report_.summary["providers"] == 2


def test_unfitted_and_wrong_inputs_raise_what_users_expect(blobs: Blobs) -> None:
    X, y = blobs
    fresh = heda.LogisticRegression()
    with pytest.raises(NotFittedError) as caught:
        fresh.predict(X)
    assert isinstance(caught.value, heda.NotFittedError)
    assert isinstance(caught.value, heda.InputError)
    from scipy.sparse import csr_matrix

    holes = X.copy()
    holes[3, 1] = np.nan
    large = X.copy()
    large[3, 1] = np.inf
    texts = X.astype(object)
    texts[0, 0] = "high"
    cases: list[tuple[Any, Any, str]] = [
        (holes, y, "contains NaN"),
        (large, y, "contains infinity"),
        (X.astype(complex), y, "Complex data not supported"),
        (csr_matrix(X), y, "Sparse data was passed"),
        (X[:0], y[:0], "0 sample"),
        (X[:, :0], y, "0 feature"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X, np.full(len(y), "ill"), "one class"),
        (X, None, "requires y to be passed"),
        (X, X[:, 0], "Unknown label type"),
        (X[:, 0], y, "Expected 2D array"),
        (texts, y, "category columns"),
    ]
    for rows, labels, words in cases:
        with pytest.raises(ValueError, match=words) as raised:
            fresh.fit(rows, labels)
        assert isinstance(raised.value, heda.InputError), words
    for wrong in (
        {"C": 0},
        {"C": "best"},
        {"C": "auto", "penalty": None},
        {"C": "auto", "holdout": 0.0},
        {"C": "auto", "holdout": 0.2, "privacy": heda.Privacy(epsilon=1)},
        {"penalty": "l1"},
        {"holdout": 1.0},
        {"engine": "magic"},
        {"privacy": 1},
    ):
        with pytest.raises(heda.InputError):
            heda.LogisticRegression(**wrong).fit(X, y, bounds=(-9, 9))
    with pytest.raises(heda.InputError, match="Invalid parameter 'c'"):
        fresh.set_params(c=1)


def test_a_panic_is_an_exception_with_a_remedy() -> None:
    for on_a_thread in (False, True):
        with pytest.raises(heda.HedaBug, match=r"asked to panic.*report it"):
            heda._heda.danger_panic(on_a_thread)
