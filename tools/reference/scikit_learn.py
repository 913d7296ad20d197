"""Writes the coefficients that scikit-learn (logistic, ridge) and SciPy (squared hinge) find on the
bundled data sets, for a test that compares the clear-text oracle with them.

    python3 -m venv venv && venv/bin/pip install scikit-learn
    venv/bin/python tools/reference/scikit_learn.py > crates/heda-learn/tests/reference/scikit_learn.json

Rows are encoded here by reading the schema files anew, not by the code under test.
"""

import csv
import json
import pathlib
import sys
import tomllib

import numpy as np
import scipy
import sklearn
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge

DATASETS = pathlib.Path(__file__).resolve().parents[2] / "datasets"
CASES = ["bcwd.paper", "adult.paper", "crx.paper", "car.paper", "crx.natural", "car.natural"]


def encode(column, cell, markers):
    missing = column.get("missing", {})
    if cell in markers:
        cell = str(missing["value"]) if "value" in missing else missing["level"]
    if column["kind"] == "numeric":
        lower, upper = column["bounds"]
        return [(min(max(float(cell), lower), upper) - lower) / (upper - lower)]
    levels = column["levels"]
    place = levels.index(cell)
    default = "ordinal" if column["kind"] == "ordinal" else "onehot"
    if column.get("coding", default) == "ordinal":
        return [place / (len(levels) - 1)]
    return [float(i == place) for i in range(len(levels))]


def load(case):
    schema = tomllib.loads((DATASETS / f"{case}.toml").read_text())
    markers = schema.get("missing_markers", [])
    with open(DATASETS / f"{case.split('.')[0]}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    x = [sum((encode(c, row[c["name"]], markers) for c in schema["column"]), []) for row in rows]
    positive = schema["label"]["positive"]
    positive = [positive] if isinstance(positive, str) else positive
    y = [row[schema["label"]["column"]] in positive for row in rows]
    return np.array(x), np.array(y, dtype=float)


def squared_hinge(x, y):
    """Mean max(0, 1 - s z)^2 + 1/(2 rows) |w|^2, the bias not penalised."""
    s, design = 2 * y - 1, np.hstack([np.ones((len(x), 1)), x])

    def objective(beta):
        slack = np.maximum(0, 1 - s * (design @ beta))
        w = np.concatenate([[0], beta[1:]])
        value = np.mean(slack**2) + w @ w / (2 * len(x))
        return value, design.T @ (-2 * s * slack) / len(x) + w / len(x)

    start = np.zeros(design.shape[1])
    options = {"gtol": 1e-12, "ftol": 1e-16, "maxiter": 10000, "maxfun": 100000, "maxcor": 30}
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x


def main():
    out = {"versions": {"scikit-learn": sklearn.__version__, "scipy": scipy.__version__}, "models": []}
    for case in CASES:
        x, y = load(case)
        logistic = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(x, y)
        ridge = Ridge(alpha=1.0, solver="cholesky").fit(x, y)
        betas = {
            "logistic": [logistic.intercept_[0], *logistic.coef_[0]],
            "ridge": [ridge.intercept_, *ridge.coef_],
            "squared-hinge": squared_hinge(x, y),
        }
        for loss, beta in betas.items():
            beta = [round(float(b), 8) for b in beta]
            out["models"].append({"schema": case, "loss": loss, "rows": len(x), "beta": beta})
    models = ",\n".join("  " + json.dumps(model) for model in out["models"])
    sys.stdout.write(f'{{\n "versions": {json.dumps(out["versions"])},\n "models": [\n{models}\n ]\n}}\n')


if __name__ == "__main__":
    main()
