"""Reference values for the feature scores, from scipy and scikit-learn.

Reads datasets/NAME.csv by the rules of datasets/NAME.CODING.toml with code of its own, and writes
crates/heda-learn/tests/reference/scores.json. The tests read that file only.

    pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1
    python tools/reference/scores.py
"""

import csv
import json
import pathlib
import tomllib

import numpy
import pandas
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import chi2
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mutual_info_score

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "crates/heda-learn/tests/reference/scores.json"

# The data sets, their codings, and whether to undo the grouping of classes into two.
CASES = [
    ("bcwd", "paper", False),
    ("adult", "paper", False),
    ("crx", "paper", False),
    ("car", "paper", False),
    ("bcwd", "natural", False),
    ("adult", "natural", False),
    ("crx", "natural", False),
    ("car", "natural", False),
    ("car", "paper", True),
    ("car", "natural", True),
]


def encode(name, coding, all_classes):
    """Returns (feature names, one matrix a feature, raw values a feature, class indices)."""
    schema = tomllib.loads((ROOT / f"datasets/{name}.{coding}.toml").read_text())
    with open(ROOT / f"datasets/{name}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    markers = set(schema.get("missing_markers", []))
    names, matrices, raws = [], [], []
    for column in schema["column"]:
        cells = [row[column["name"]] for row in rows]
        missing = column.get("missing")
        stand_in = None if missing is None else missing.get("value", missing.get("level"))
        cells = [stand_in if cell in markers else cell for cell in cells]
        assert None not in cells, column["name"]
        if column["kind"] == "numeric":
            low, high = column["bounds"]
            raw = numpy.array([float(cell) for cell in cells])
            if column.get("outside") == "clip":
                raw = raw.clip(low, high)
            matrix = ((raw - low) / (high - low))[:, None]
        else:
            levels = column["levels"]
            raw = numpy.array([levels.index(str(cell)) for cell in cells])
            default = "ordinal" if column["kind"] == "ordinal" else "onehot"
            if column.get("coding", default) == "ordinal":
                matrix = (raw / (len(levels) - 1))[:, None]
            else:
                matrix = (raw[:, None] == numpy.arange(len(levels))).astype(float)
        names.append(column["name"])
        matrices.append(matrix)
        raws.append(raw)
    label = schema["label"]
    cells = [row[label["column"]] for row in rows]
    if "positive" in label and not all_classes:
        positive = label["positive"]
        positive = {positive} if isinstance(positive, str) else set(positive)
        y = numpy.array([int(cell in positive) for cell in cells])
    else:
        y = numpy.array([label["classes"].index(cell) for cell in cells])
    return names, matrices, raws, y


def table(raw, y):
    return pandas.crosstab(raw, y).to_numpy()


def kruskal_wallis(matrix, raw, y):
    if matrix.shape[1] == 1:
        return stats.kruskal(*[matrix[y == k, 0] for k in numpy.unique(y)]).statistic
    n = len(y)
    return (n - 1) / n * stats.chi2_contingency(table(raw, y), correction=False).statistic


def correlation(matrix, y, function):
    """The best class against the rest; multiple correlation for several columns."""
    best = 0.0
    for k in numpy.unique(y):
        indicator = (y == k).astype(float)
        if matrix.shape[1] == 1:
            r = abs(function(matrix[:, 0], indicator).statistic)
        else:
            fit = LinearRegression().fit(matrix, indicator)
            r = fit.score(matrix, indicator) ** 0.5
        best = max(best, r)
    return best


def top_half(scores):
    order = numpy.argsort(-numpy.array(scores), kind="stable")
    return sorted(int(i) for i in order[: (len(scores) + 1) // 2])


def forest(matrices, y):
    whole = numpy.hstack(matrices)
    model = RandomForestClassifier(
        n_estimators=300, max_depth=10, min_samples_leaf=5, random_state=0, n_jobs=2
    )
    total = model.fit(whole, y).feature_importances_
    ends = numpy.cumsum([m.shape[1] for m in matrices])
    return [total[end - m.shape[1] : end].sum() for m, end in zip(matrices, ends)]


def grouped(raw):
    if len(numpy.unique(raw)) > (256 if raw.dtype.kind == "i" else 32):
        return pandas.qcut(stats.rankdata(raw), 10, labels=False, duplicates="drop")
    return raw


def mrmr_top_half(raws, y):
    """Greedy choice by relevance less mean redundancy, information by scikit-learn."""
    groups = [grouped(raw) for raw in raws]
    relevance = [mutual_info_score(g, y) for g in groups]
    taken = [int(numpy.argmax(numpy.round(relevance, 11)))]
    while len(taken) < (len(groups) + 1) // 2:
        left = [i for i in range(len(groups)) if i not in taken]
        redundancy = [
            numpy.mean([mutual_info_score(groups[i], groups[j]) for j in taken]) for i in left
        ]
        # Two attributes that are codes of each other tie but for rounding: the first one is taken.
        gain = [round(relevance[i] - r, 11) for i, r in zip(left, redundancy)]
        taken.append(left[int(numpy.argmax(gain))])
    return sorted(taken)


def main():
    result = {}
    for name, coding, all_classes in CASES:
        names, matrices, raws, y = encode(name, coding, all_classes)
        case = f"{name}.{coding}" + (".classes" if all_classes else "")
        print(case, flush=True)
        result[case] = {
            "rows": len(y),
            "features": names,
            "chi2": [float(chi2(m, y)[0].sum()) for m in matrices],
            "kw": [float(kruskal_wallis(m, r, y)) for m, r in zip(matrices, raws)],
            "pearson": [float(correlation(m, y, stats.pearsonr)) for m in matrices],
            "spearman": [float(correlation(m, y, stats.spearmanr)) for m in matrices],
            "forest_top_half": top_half(forest(matrices, y)),
            "mrmr_top_half": mrmr_top_half(raws, y),
        }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
