"""Compares an exported model with `heda predict`, on all rows of a bundled data set.

    cargo build --release
    python3 -m venv venv && venv/bin/pip install onnxruntime numpy
    venv/bin/python tools/check-onnx.py target/release/heda

For each data set a model is trained by `heda demo`, exported by `heda export --onnx` and loaded by
onnxruntime. Rows are put into the input layout that `heda export --help` describes by reading the
schema inside the model file. The largest difference of scores and probabilities must be within
1e-5, and every class must be the same.
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

DATASETS = pathlib.Path(__file__).resolve().parents[1] / "datasets"
TOLERANCE = 1e-5


def heda(binary, *arguments):
    done = subprocess.run([binary, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def original_units(column, cell, markers):
    missing = column.get("missing", {})
    if cell in markers:
        cell = str(missing["value"]) if "value" in missing else missing["level"]
    if column["kind"] == "numeric":
        return [float(cell)]
    place = column["levels"].index(cell)
    default = "ordinal" if column["kind"] == "ordinal" else "onehot"
    if column.get("coding", default) == "ordinal":
        return [float(place)]
    return [float(i == place) for i in range(len(column["levels"]))]


def check(binary, dataset, coding, promise, folder):
    heda(binary, "demo", "--dataset", dataset, "--coding", coding, *promise, "--out", str(folder), "--json")
    model, exported = folder / "model.json", folder / "model.onnx"
    heda(binary, "export", "--onnx", "--model", str(model), "--out", str(exported))
    source = DATASETS / f"{dataset}.csv"
    predicted = list(csv.DictReader(heda(binary, "predict", "--model", str(model), "--data", str(source)).splitlines()))

    schema = json.loads(model.read_text())["schema"]
    markers = schema.get("missing_markers", [])
    rows = list(csv.DictReader(source.open(newline="")))
    encoded = [sum((original_units(c, row[c["name"]], markers) for c in schema["column"]), []) for row in rows]
    session = onnxruntime.InferenceSession(str(exported), providers=["CPUExecutionProvider"])
    classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    outputs = session.run(["scores", "probabilities", "class"], {"rows": np.array(encoded, dtype=np.float32)})

    assert len(predicted) == len(rows), "every row is predicted"
    positive = classes[1]
    worst = 0.0
    for name, found in zip(["score", "probability"], outputs):
        wanted = np.array([float(row[f"{name}:{positive}"]) for row in predicted])
        worst = max(worst, float(np.max(np.abs(found[:, 0] - wanted))))
    same = sum(classes[c] == row["class"] for c, row in zip(outputs[2], predicted))
    print(f"{dataset} {coding} {' '.join(promise)}: {len(rows)} rows, {same} same classes, largest difference {worst:.1e}")
    return same == len(rows) and worst <= TOLERANCE


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    good = True
    jobs = [(dataset, coding, []) for dataset in ["bcwd", "crx", "car", "adult"] for coding in ["natural", "paper"]]
    jobs += [(dataset, "natural", ["--private", "1"]) for dataset in ["bcwd", "crx"]]
    for dataset, coding, promise in jobs:
        with tempfile.TemporaryDirectory() as folder:
            good &= check(sys.argv[1], dataset, coding, promise, pathlib.Path(folder))
    sys.exit(0 if good else "predictions differ")


if __name__ == "__main__":
    main()
