"""Estimators with scikit-learn's conventions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from heda import _heda, _html, _params, _progress
from heda._encode import Known, encode
from heda._errors import InputError, UnprotectedWarning
from heda._frame import Table, fill, refuse_missing, table
from heda._job import Job, Providers
from heda._model import Model
from heda._report import Report
from heda._schema import Schema

#: Fewest rows that a provider of a simulation is given.
_ROWS_EACH = 10


@dataclass(frozen=True)
class Privacy:
    """A promise about everything that a job reveals: (ε, δ) differential privacy.

    Parameters
    ----------
    epsilon : float
        How much one row may change what is seen; 1 is strong, 10 is weak.
    delta : float, optional
        The chance with which the promise may fail; chosen by the number of rows if not given.
    rows : int, optional
        About how many training rows all providers have together. It sets number and length of steps,
        never the guarantee; a simulation counts its rows, a job on the network needs it.

    Examples
    --------
    >>> import heda
    >>> heda.Privacy(epsilon=1)
    Privacy(epsilon=1, delta=None, rows=None)
    """

    epsilon: float
    delta: float | None = None
    rows: int | None = None


class _Linear(_params.Parameters):
    """What the estimators have in common."""

    _loss = "logistic"
    _is_number = False

    tol: float | None
    max_iter: int | None
    privacy: Privacy | None = None
    holdout: float
    encrypt: int | None = None
    publish_epsilon: float | None = None
    engine: str
    random_state: Any
    verbose: bool | None

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        providers: int = 3,
        bounds: Any = None,
        target_bounds: tuple[float, float] | None = None,
        schema: Schema | str | PathLike[str] | None = None,
        out: str | PathLike[str] = "heda-result",
        resume: bool = False,
        unconfirmed: bool = False,
        patience: int | None = None,
    ) -> Self:
        """Train under encryption.

        With rows, the whole protocol runs in this process, providers being threads of it. With a
        :class:`Job` or :class:`Providers` they are on the network, and rows stay where they are.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), Job, or Providers
            The rows: NumPy, pandas, polars, Arrow. Categories come from the types of a data frame. A
            job says itself how to train.
        y : array of shape (n_samples,)
            The class, or for a regression the number, of every row; not for a job.
        providers : int
            Among how many providers the rows are divided; fewer if each would have fewer than ten.
        bounds : (lowest, highest), array of shape (n_features, 2), or mapping, optional
            Publicly known bounds. Without them they are read from the rows, with a warning: in a
            job between organisations they would be private. With ``privacy`` they, or ``schema``,
            are needed.
        target_bounds : (lowest, highest), optional
            Publicly known bounds of the number that a regression learns; like ``bounds``.
        schema : Schema or path, optional
            What the columns mean, instead of their types and ``bounds``.
        out, resume, unconfirmed, patience
            For a job only, as in :meth:`Job.train`: the folder of the results, and whether to go on
            from the checkpoint in it.

        Returns
        -------
        self
        """
        if isinstance(X, Providers):
            return self._fit_providers(X, y, out, resume, unconfirmed, patience)
        if isinstance(X, Job):
            return self._fit_job(X, y, out, resume, unconfirmed, patience)
        if target_bounds is not None and not self._is_number:
            raise InputError("target_bounds are for numbers; a class has none")
        private = self.privacy is not None
        known = Known(schema, bounds, target_bounds, self._is_number, private)
        encoded = encode(X, y, known, type(self).__name__)
        if encoded.table.rows == 1:
            raise InputError("1 sample is too few to train on (n_samples=1)")
        self.n_features_in_ = len(encoded.table.columns)
        self._remember_names(encoded.table)
        if encoded.classes is not None:
            self.classes_ = encoded.classes
        shared = max(1, min(int(providers), encoded.table.rows // _ROWS_EACH))
        watch = _progress.watcher(self.verbose)
        try:
            trained = _heda.simulate(
                encoded.rows,
                encoded.schema,
                "X" if schema is None else encoded.schema.name,
                self._wanted() | self._weights(encoded.classes),
                shared,
                self._seed(),
                watch,
            )
        finally:
            watch("end", "", 0, 0, None)
        self._take(trained)
        return self

    def _fit_job(
        self,
        job: Job,
        y: Any,
        out: str | PathLike[str],
        resume: bool,
        unconfirmed: bool,
        patience: int | None,
    ) -> Self:
        if y is not None:
            raise InputError("a job has no y: labels stay with the providers")
        # A private logistic regression has derivatives of at most one half.
        if job.loss.removeprefix("bounded-") != self._loss:
            raise InputError(
                f"the job minimises {job.loss}, {type(self).__name__} {self._loss}; correct `loss` in "
                f"{job.path}, or take the estimator that fits"
            )
        trained = job._train(out, resume, unconfirmed, patience, self.verbose)
        return self._learned(trained, out)

    def _fit_providers(
        self,
        providers: Providers,
        y: Any,
        out: str | PathLike[str],
        resume: bool,
        unconfirmed: bool,
        patience: int | None,
    ) -> Self:
        if y is not None:
            raise InputError("a job has no y: labels stay with the providers")
        wanted = self._wanted()
        if self.privacy is not None and self.privacy.rows is None:
            raise InputError(
                "a private job on the network needs to know about how many rows there are in all: pass "
                "heda.Privacy(epsilon, rows=…)"
            )
        if wanted["c"] is None:
            raise InputError("jobs on the network have a penalty so far; give it")
        classes = _heda.Schema.read(providers.schema).classes
        trained = providers._train(
            wanted | self._weights(np.array(classes, dtype=object)),
            0 if self.privacy is None or self.privacy.rows is None else self.privacy.rows,
            self._seed(),
            out,
            resume,
            unconfirmed,
            patience,
            self.verbose,
        )
        return self._learned(trained, out)

    def _learned(self, trained: _heda.Trained, out: str | PathLike[str]) -> Self:
        """Take over what a job on the network left."""
        self._take(trained)
        if self.model_.is_number != self._is_number:
            raise InputError(
                f"the job learned {'a number' if self.model_.is_number else 'a class'}: its model is in "
                f"{fspath(out)}; take the estimator that fits"
            )
        columns = self.schema_.columns
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(columns, dtype=object)
        if not self._is_number:
            self.classes_ = np.array(self.model_.classes)
        return self

    def _remember_names(self, found: Table) -> None:
        names = _params.names_in(found)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _c(self) -> float | None:
        """Return the penalty as scikit-learn's C; ``None`` is no penalty."""
        raise NotImplementedError

    def _chooses(self) -> bool:
        """Tell whether the penalty is chosen by held-out rows."""
        raise NotImplementedError

    def _chosen_c(self) -> float | None:
        """Return the C that was chosen; nothing if it was given."""
        choice = self.report_.summary.get("chosen_penalty")
        return None if choice is None else float(choice["tried"][choice["chosen"]]["c"])

    def _weights(self, classes: NDArray[Any] | None) -> dict[str, object]:
        """Return how much rows of each class count."""
        return {"balanced": False, "weights": None}

    def _wanted(self) -> dict[str, object]:
        chooses = self._chooses()
        penalty = 1.0 if chooses else self._c()
        private = self.privacy
        if private is not None and not isinstance(private, Privacy):
            raise InputError("privacy: pass heda.Privacy(epsilon=…) or None")
        return {
            "loss": self._loss,
            "engine": self.engine,
            "c": penalty,
            "choose": chooses,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "holdout": float(self.holdout),
            "encrypt": self.encrypt,
            "publish_epsilon": self.publish_epsilon,
            "epsilon": None if private is None else float(private.epsilon),
            "delta": None if private is None else private.delta,
        }

    def _seed(self) -> int | None:
        """Return the seed of a run that can be repeated, and say what that means."""
        if self.random_state is None:
            return None
        if isinstance(self.random_state, np.random.RandomState):
            seed = int(self.random_state.randint(0, 2**31 - 1))
        elif isinstance(self.random_state, np.random.Generator):
            seed = int(self.random_state.integers(0, 2**63 - 1))
        else:
            seed = int(self.random_state)
        if seed < 0:
            raise InputError(f"random_state={seed}: choose a number from 0 upwards")
        warnings.warn(
            "random_state is given: this run can be repeated and protects nothing; leave it out for "
            "real data",
            UnprotectedWarning,
            stacklevel=4,
        )
        return seed

    def _take(self, trained: _heda.Trained) -> None:
        self.model_ = Model._of(trained.model)
        self.report_ = Report._of(trained, f"{self!r}.fit(…)")
        self.schema_ = self.model_.schema
        self.coef_: Any = self.model_.coef
        self.intercept_: Any = self.model_.intercept
        self.n_iter_ = int(self.report_.summary["iterations"])

    def _predicted(
        self, X: Any
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64] | None]:
        if not hasattr(self, "model_"):
            raise _params.not_fitted(self)
        found = table(X)
        _params.check_names(self, found)
        refuse_missing(found, "X")
        return self.model_._predict(fill(found.columns, self.schema_.columns))

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is a model."""
        return hasattr(self, "model_")

    def _repr_html_(self) -> str:
        if not hasattr(self, "model_"):
            return _html.titled(repr(self), _html.lines(["not fitted yet"]))
        return _html.titled(repr(self), self.model_._repr_html_())


class _LinearClassifier(_Linear):
    """What the classifiers have in common."""

    _estimator_type = "classifier"

    C: float | str
    penalty: str | None
    class_weight: Mapping[Any, float] | str | None

    def _chooses(self) -> bool:
        return self.penalty == "l2" and isinstance(self.C, str) and self.C == "auto"

    def _take(self, trained: _heda.Trained) -> None:
        super()._take(trained)
        chosen = self._chosen_c()
        if chosen is not None:
            self.C_ = chosen
        elif hasattr(self, "C_"):
            del self.C_

    def _c(self) -> float | None:
        if self.penalty not in {"l2", None}:
            raise InputError(f"penalty={self.penalty!r}: choose 'l2' or None")
        if not (isinstance(self.C, int | float | np.number) and 0 < float(self.C) < float("inf")):
            raise InputError(
                f"C={self.C!r}: choose a number above 0, of which a small one means a strong penalty, "
                "or 'auto' with penalty='l2'"
            )
        return None if self.penalty is None else float(self.C)

    def _given_weights(self) -> dict[Any, float]:
        """Return weights by class; none if they are balanced or all alike."""
        if self.class_weight is None or self.class_weight == "balanced":
            return {}
        if not isinstance(self.class_weight, Mapping):
            raise InputError(
                f"class_weight={self.class_weight!r}: choose 'balanced', weights by class, or None"
            )
        return {name: float(weight) for name, weight in self.class_weight.items()}

    def _weights(self, classes: NDArray[Any] | None) -> dict[str, object]:
        given = self._given_weights()
        known = [] if classes is None else classes.tolist()
        if known and all(isinstance(name, str) for name in known):
            # Classes of a schema are words, whatever they are in a table.
            given = {str(name): weight for name, weight in given.items()}
        unknown = [name for name in given if name not in known]
        if unknown:
            raise InputError(f"class_weight names {unknown}, and y has the classes {known}")
        return {
            "balanced": isinstance(self.class_weight, str),
            "weights": [given.get(name, 1.0) for name in known] if given else None,
        }

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every row.

        A value outside the bounds of the schema counts as the bound, as in ``heda predict``.
        """
        codes, _, _ = self._predicted(X)
        return self.classes_[codes]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores: of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        _, scores, _ = self._predicted(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on rows whose class is known."""
        right = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what kind of estimator this is."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            transformer_tags=None,
            classifier_tags=ClassifierTags(),
            regressor_tags=None,
            input_tags=InputTags(),
        )


class LogisticRegression(_LinearClassifier):
    """Logistic regression, trained under encryption.

    Parameters
    ----------
    C : float or "auto"
        Inverse strength of the penalty, as in scikit-learn. With ``"auto"`` several are tried, and one
        half of the held-out rows chooses: give ``holdout``. The chosen one is then in ``C_``.
    penalty : {"l2", None}
        The penalty on the coefficients.
    class_weight : "balanced" or mapping of class to number, optional
        How much rows of each class count: ``n / (classes * rows of the class)`` for ``"balanced"``, as
        in scikit-learn, with the rows counted over all providers; all alike if not given.
    tol : float, optional
        Training ends when no component of the gradient is larger.
    max_iter : int, optional
        Iterations at most, of each model.
    privacy : Privacy, optional
        Makes everything that the job reveals, the model too, differentially private.
    holdout : float
        Share of the rows that providers keep back to count the model on; the report then has its
        accuracy.
    encrypt : int, optional
        How many features are encrypted, the best by their scores; all if not given.
    publish_epsilon : float, optional
        With what ε the features that are not encrypted are published; left out if not given.
    engine : str
        How gradients are computed.
    random_state : int, RandomState, Generator, optional
        A run that can be repeated, and therefore protects nothing: for tests and public data.
    verbose : bool, optional
        Whether to show a bar; in notebooks and terminals if not given.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes.
    coef_ : array of shape (1, n_columns) or (n_classes, n_columns)
        Coefficients in the units of ``X``; a category has a column for each of its levels.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts.
    n_iter_ : int
        Iterations, over all models.
    n_features_in_ : int
        Features of ``X``.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if ``X`` had names that are all texts.
    model_ : Model
        The model, to be saved or exported.
    report_ : Report
        Cost, accuracy on held-out rows, and who learned what.
    schema_ : Schema
        What the columns were taken for.

    Examples
    --------
    >>> import heda, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(90, 3))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "ill", "well")
    >>> estimator = heda.LogisticRegression().fit(X, y, providers=2, bounds=(-4, 4))
    >>> bool(estimator.score(X, y) > 0.85)
    True
    >>> estimator.predict(np.array([[2.0, 2.0, 0.0], [-2.0, -2.0, 0.0]])).tolist()
    ['ill', 'well']
    """

    _loss = "logistic"

    def __init__(
        self,
        *,
        C: float | str = 1.0,
        penalty: str | None = "l2",
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        privacy: Privacy | None = None,
        holdout: float = 0.0,
        encrypt: int | None = None,
        publish_epsilon: float | None = None,
        engine: str = "resident",
        random_state: Any = None,
        verbose: bool | None = None,
    ) -> None:
        self.C = C
        self.penalty = penalty
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.privacy = privacy
        self.holdout = holdout
        self.encrypt = encrypt
        self.publish_epsilon = publish_epsilon
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every class."""
        _, _, shown = self._predicted(X)
        assert shown is not None, "logistic regression models probabilities"
        return shown

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the probability of every class."""
        shown: NDArray[np.float64] = np.log(self.predict_proba(X))
        return shown


class LinearSVC(_LinearClassifier):
    """Linear support vector machine with squared hinge, trained under encryption.

    Parameters
    ----------
    C : float or "auto"
        Inverse strength of the penalty, as in scikit-learn. With ``"auto"`` several are tried, and one
        half of the held-out rows chooses: give ``holdout``. The chosen one is then in ``C_``.
    penalty : {"l2", None}
        The penalty on the coefficients.
    class_weight : "balanced" or mapping of class to number, optional
        How much rows of each class count: ``n / (classes * rows of the class)`` for ``"balanced"``, as
        in scikit-learn, with the rows counted over all providers; all alike if not given.
    tol : float, optional
        Training ends when no component of the gradient is larger.
    max_iter : int, optional
        Iterations at most, of each model.
    holdout : float
        Share of the rows that providers keep back to count the model on.
    encrypt : int, optional
        How many features are encrypted, the best by their scores; all if not given.
    publish_epsilon : float, optional
        With what ε the features that are not encrypted are published; left out if not given.
    engine : str
        How gradients are computed.
    random_state : int, RandomState, Generator, optional
        A run that can be repeated, and therefore protects nothing: for tests and public data.
    verbose : bool, optional
        Whether to show a bar; in notebooks and terminals if not given.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, n_features_in_, feature_names_in_, model_, report_, schema_
        As for :class:`LogisticRegression`.

    Examples
    --------
    >>> import heda, numpy as np
    >>> rng = np.random.default_rng(2)
    >>> X = rng.normal(size=(80, 2))
    >>> estimator = heda.LinearSVC().fit(X, X[:, 0] > 0, bounds=(-6, 6))
    >>> bool(estimator.score(X, X[:, 0] > 0) > 0.9)
    True
    """

    _loss = "squared-hinge"

    def __init__(
        self,
        *,
        C: float | str = 1.0,
        penalty: str | None = "l2",
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        holdout: float = 0.0,
        encrypt: int | None = None,
        publish_epsilon: float | None = None,
        engine: str = "resident",
        random_state: Any = None,
        verbose: bool | None = None,
    ) -> None:
        self.C = C
        self.penalty = penalty
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.holdout = holdout
        self.encrypt = encrypt
        self.publish_epsilon = publish_epsilon
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose


class Ridge(_Linear):
    """Least squares with an L2 penalty on a number, trained under encryption.

    Columns are standardised inside, and the penalty applies there: the model is that of scikit-learn's
    ``StandardScaler`` and ``Ridge(alpha)``, with coefficients in the units of ``X``.

    Parameters
    ----------
    alpha : float or "auto"
        Strength of the penalty beside the *sum* of squares, as in scikit-learn; 0 is none. With
        ``"auto"`` several are tried, and one half of the held-out rows chooses: give ``holdout``. The
        chosen one is then in ``alpha_``.
    tol : float, optional
        Training ends when no component of the gradient is larger.
    max_iter : int, optional
        Iterations at most.
    holdout : float
        Share of the rows that providers keep back to measure errors on; the report then has them.
    engine : str
        How gradients are computed.
    random_state : int, RandomState, Generator, optional
        A run that can be repeated, and therefore protects nothing: for tests and public data.
    verbose : bool, optional
        Whether to show a bar; in notebooks and terminals if not given.

    Attributes
    ----------
    coef_ : array of shape (n_columns,)
        Coefficients in the units of ``X`` and ``y``; a category has one for each of its levels.
    intercept_ : float
        The intercept.
    n_iter_, n_features_in_, feature_names_in_, model_, report_, schema_
        As for :class:`LogisticRegression`.

    Examples
    --------
    >>> import heda, numpy as np
    >>> rng = np.random.default_rng(3)
    >>> X = rng.normal(size=(90, 2))
    >>> y = 10 * X[:, 0] - 5 * X[:, 1] + rng.normal(size=90)
    >>> estimator = heda.Ridge().fit(X, y, bounds=(-5, 5), target_bounds=(-60, 60))
    >>> bool(estimator.score(X, y) > 0.95)
    True
    """

    _estimator_type = "regressor"
    _loss = "ridge"
    _is_number = True

    alpha: float | str

    def __init__(
        self,
        alpha: float | str = 1.0,
        *,
        tol: float | None = None,
        max_iter: int | None = None,
        holdout: float = 0.0,
        engine: str = "resident",
        random_state: Any = None,
        verbose: bool | None = None,
    ) -> None:
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.holdout = holdout
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

    def _c(self) -> float | None:
        alpha = self.alpha
        if not (isinstance(alpha, int | float | np.number) and 0 <= float(alpha) < float("inf")):
            raise InputError(f"alpha={alpha!r}: choose a number from 0 upwards, or 'auto'")
        return None if float(alpha) == 0 else 1 / float(alpha)

    def _chooses(self) -> bool:
        return isinstance(self.alpha, str) and self.alpha == "auto"

    def _take(self, trained: _heda.Trained) -> None:
        super()._take(trained)
        chosen = self._chosen_c()
        if chosen is not None:
            self.alpha_ = 1 / chosen
        elif hasattr(self, "alpha_"):
            del self.alpha_
        self.coef_ = self.model_.coef[0]
        self.intercept_ = float(self.model_.intercept[0])

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the number of every row.

        A value outside the bounds of the schema counts as the bound, as in ``heda predict``.
        """
        _, scores, _ = self._predicted(X)
        return scores[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², the share of the variance of ``y`` that predictions explain."""
        actual = np.asarray(y, dtype=np.float64)
        errors = (actual - self.predict(X)) ** 2
        spread = (actual - np.average(actual, weights=sample_weight)) ** 2
        weights = np.ones(len(actual)) if sample_weight is None else np.asarray(sample_weight)
        whole = float((weights * spread).sum())
        left = float((weights * errors).sum())
        return 1 - left / whole if whole > 0 else float(left == 0)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what kind of estimator this is."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            transformer_tags=None,
            classifier_tags=None,
            regressor_tags=RegressorTags(),
            input_tags=InputTags(),
        )
