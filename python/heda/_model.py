"""Trained models."""

from __future__ import annotations

import json
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heda import _heda, _html
from heda._errors import InputError
from heda._frame import Table, fill, table
from heda._schema import Schema


class Model:
    """A trained model with the schema of its rows.

    Examples
    --------
    >>> import heda, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> estimator = heda.LogisticRegression().fit(X, X[:, 0] > 0, bounds=(-5, 5))
    >>> estimator.model_.classes
    ['False', 'True']
    >>> estimator.model_.predict(np.array([[3.0, 0.0]]))
    array(['True'], dtype=object)
    """

    def __init__(self, text: str) -> None:
        self._inner = _heda.Model.parse(text)

    @classmethod
    def _of(cls, inner: _heda.Model) -> Model:
        made = cls.__new__(cls)
        made._inner = inner
        return made

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Model:
        """Read a model file, such as ``heda train`` leaves."""
        return cls._of(_heda.Model.read(fspath(path)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file, which ``heda predict`` reads."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._inner.to_json())

    @property
    def schema(self) -> Schema:
        """What rows must look like."""
        return Schema._of(self._inner.schema)

    @property
    def loss(self) -> str:
        """What was minimised."""
        return self._inner.loss

    @property
    def classes(self) -> list[str]:
        """Names of the classes; none if a number is predicted."""
        return self._inner.classes

    @property
    def guarantee(self) -> dict[str, Any] | None:
        """The guarantee of a private model; ``None`` without one.

        It has ``epsilon``, ``delta``, ``unit``, ``charged`` and ``spent_on``.
        """
        found: dict[str, Any] | None = json.loads(self._inner.to_json())["provenance"].get(
            "privacy"
        )
        return found

    @property
    def is_number(self) -> bool:
        """Whether a number is predicted."""
        return not self.classes

    @property
    def feature_names(self) -> list[str]:
        """Names of the coefficients: a category has one for each of its levels."""
        return self._inner.schema.encoded

    @property
    def coef(self) -> NDArray[np.float64]:
        """Coefficients in the units of the table, one row a classifier."""
        return np.array([values for _, values in self._inner.coefficients], dtype=np.float64)

    @property
    def intercept(self) -> NDArray[np.float64]:
        """Intercepts in the units of the table."""
        return np.array([start for start, _ in self._inner.coefficients], dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class, or number, of every row; ``None`` or NaN where a value is missing."""
        codes, scores, _ = self._predict(self._columns(X))
        if self.is_number:
            return scores[:, 0]
        names = np.array([*self.classes, None], dtype=object)
        return names[codes]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every class; NaN where a value is missing."""
        _, _, shown = self._predict(self._columns(X))
        if shown is None:
            raise InputError(f"the loss {self.loss} models no probabilities; use decision_function")
        return shown

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of every classifier; NaN where a value is missing."""
        _, scores, _ = self._predict(self._columns(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _columns(self, X: Any) -> _heda.Columns:
        found = table(X)
        return fill(found.columns, self._names(found))

    def _names(self, found: Table) -> list[str]:
        if found.named:
            return [str(name) for name in found.names]
        expected = self.schema.columns
        if len(expected) != len(found.columns):
            raise InputError(
                f"X has {len(found.columns)} features, but the model is expecting {len(expected)} "
                "features as input."
            )
        return expected

    def _predict(
        self, columns: _heda.Columns
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64] | None]:
        rows = len(columns)
        codes, scores, shown = self._inner.predict(columns)
        return (
            np.frombuffer(codes, dtype=np.int32),
            np.frombuffer(scores, dtype=np.float64).reshape(rows, -1),
            None if shown is None else np.frombuffer(shown, dtype=np.float64).reshape(rows, -1),
        )

    def to_onnx(self, path: str | PathLike[str] | None = None) -> bytes:
        """Return the model as an ONNX file, and write it if a path is given."""
        content = self._inner.to_onnx()
        if path is not None:
            with open(path, "wb") as file:
                file.write(content)
        return content

    def to_sklearn(self) -> Any:
        """Return a fitted, plain scikit-learn object with the same coefficients.

        It expects the encoded columns (:attr:`feature_names`) in the units of the table: numbers as
        they are, an ordinal level by its position, a level of a category as 0 or 1. It knows no
        bounds: a value outside of them, which Heda takes for the bound, counts as it is, and so does one
        further from what is typical than a private model looks.
        """
        from sklearn import linear_model, svm

        if self.is_number:
            made = linear_model.Ridge()
            made.coef_ = self.coef[0]
            made.intercept_ = float(self.intercept[0])
            made.n_features_in_ = self.coef.shape[1]
            return made
        if self.loss == "squared-hinge":
            made = svm.LinearSVC()
        elif self.loss == "ridge":
            made = linear_model.RidgeClassifier()
        elif len(self.classes) > 2:
            raise InputError(
                "a plain LogisticRegression of more than two classes is softmax, and this model is one "
                "classifier a class; use to_onnx"
            )
        else:
            made = linear_model.LogisticRegression()
        made.classes_ = np.array(self.classes)
        made.coef_ = self.coef
        made.intercept_ = self.intercept
        made.n_features_in_ = self.coef.shape[1]
        made.n_iter_ = np.array([1])
        return made

    def __reduce__(self) -> tuple[type[Model], tuple[str]]:
        return (Model, (self._inner.to_json(),))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._inner.to_json() == other._inner.to_json()

    def __hash__(self) -> int:
        return hash(self._inner.to_json())

    def __repr__(self) -> str:
        return f"Model({self._what()}, coefficients={self.coef.shape[1]})"

    def _what(self) -> str:
        if self.is_number:
            return f"{self.loss}, number {self.schema.label}"
        return f"{self.loss}, classes={self.classes}"

    def _repr_html_(self) -> str:
        targets = self.classes[-1:] if len(self.coef) == 1 else self.classes
        targets = targets or [self.schema.label]
        rows = [("(intercept)", *(f"{value:.6g}" for value in self.intercept))]
        rows += [
            (name, *(f"{value:.6g}" for value in self.coef[:, index]))
            for index, name in enumerate(self.feature_names[:50])
        ]
        more = len(self.feature_names) - 50
        return _html.titled(
            f"Model: {self._what()}",
            _html.table(("column", *(f"for {name}" for name in targets)), rows),
            _html.lines([f"and {more} more"] if more > 0 else []),
        )
