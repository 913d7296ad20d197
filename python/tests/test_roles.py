"""Schemas, models, identities, and jobs between a data user and providers on this machine."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import heda

pandas = pytest.importorskip("pandas")

SCHEMA = """
format = 1
name = "ward"

[label]
column = "ill"
classes = ["no", "yes"]
positive = "yes"
"""
COLUMN = '\n[[column]]\nname = "x{}"\nkind = "numeric"\nbounds = [-8, 8]\noutside = "clip"\n'


def rows(seed: int, count: int = 200) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 4))
    return X, np.where(X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=count) > 0, "yes", "no")


class Network:
    """A data user and two providers with rows of their own."""

    def __init__(self, folder: Path, *, seed: int | None, iterations: int) -> None:
        self.folder = folder
        self.schema = folder / "schema.toml"
        self.schema.write_text(SCHEMA + "".join(COLUMN.format(i) for i in range(4)))
        user = heda.identity.create("user", folder / "user")
        names = ("north", "south")
        prints = {n: heda.identity.create(n, folder / n / "identity") for n in names}
        self.providers = []
        for at, name in enumerate(names):
            X, y = rows(at)
            frame = pandas.DataFrame(X, columns=[f"x{i}" for i in range(4)]).assign(ill=y)
            frame.to_csv(folder / name / "rows.csv", index=False)
            provider = heda.Provider.configure(
                folder / name,
                name=name,
                data=folder / name / "rows.csv",
                schema=self.schema,
                data_set="ward-2026",
                allow={"user": user},
                known={other: prints[other] for other in names if other != name},
                listen="127.0.0.1:0",
                iterations_per_job=5000,
                iterations_per_day=50000,
                revealed_per_unknown_max=1000,
                privacy_epsilon_total=8,
            )
            if seed is not None:
                with provider.config.open("a") as file:
                    file.write(f'\n[reproducible]\nseed = {seed}\nparty = "provider {at}"\n')
            self.providers.append(provider.serve())
        self.job = folder / "job.toml"
        seeded = "" if seed is None else f"seed = {seed}\n"
        entries = "".join(
            f'\n[[provider]]\nname = "{name}"\naddress = "{provider.address}"\n'
            f'fingerprint = "{prints[name]}"\n'
            for name, provider in zip(names, self.providers, strict=True)
        )
        self.job.write_text(
            f'identity = "user"\nschema = "schema.toml"\ndata_set = "ward-2026"\n{seeded}'
            f"iterations = {iterations}\ntolerance = 0\n{entries}"
        )

    def stop(self) -> None:
        for provider in self.providers:
            provider.stop()


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    made = Network(tmp_path, seed=3, iterations=6)
    yield made
    made.stop()


def test_a_job_through_python_is_the_job_of_the_program(
    network: Network, tmp_path: Path, heda_program: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="heda"):
        job = heda.Job.from_toml(network.job)
        assert (job.data_set, job.providers, job.loss) == ("ward-2026", 2, "logistic")
        out = network.folder / "python"
        estimator = heda.LogisticRegression().fit(job, out=out)
    assert "phase train" in caplog.text
    X, _ = rows(9)
    frame = pandas.DataFrame(X, columns=[f"x{i}" for i in range(4)])
    assert set(estimator.predict(frame)) <= {"no", "yes"}
    assert (out / "report.html").exists()
    assert oct((out / "model.json").stat().st_mode)[-3:] == "600"
    ours = json.loads((out / "model.json").read_text())
    assert ours["classifiers"] == by_program(tmp_path / "other", heda_program)
    assert heda.Model.load(out / "model.json") == estimator.model_
    ledger = network.providers[0].ledger
    assert len(ledger.jobs()) == 1
    assert "1 jobs" in repr(ledger)


def by_program(folder: Path, program: str) -> Any:
    """What `heda train` makes of the same job, with providers that have not seen it."""
    folder.mkdir()
    network = Network(folder, seed=3, iterations=6)
    try:
        command = [program, "train", str(network.job), "--out", str(folder / "out")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        network.stop()
    return json.loads((folder / "out" / "model.json").read_text())["classifiers"]


def test_providers_alone_are_enough(tmp_path: Path) -> None:
    network = Network(tmp_path, seed=None, iterations=1)
    entries = tomllib.loads(network.job.read_text())["provider"]
    peers = [heda.Peer(**entry) for entry in entries]
    where: dict[str, Any] = {
        "identity": tmp_path / "user",
        "schema": network.schema,
        "data_set": "ward-2026",
    }
    providers = heda.Providers(peers, **where)
    try:
        estimator = heda.LogisticRegression(max_iter=8, holdout=0.2)
        estimator.fit(providers, out=tmp_path / "out")
        promise = heda.Privacy(epsilon=4, rows=400)
        private = heda.LogisticRegression(privacy=promise).fit(providers, out=tmp_path / "private")
        assert private.report_.summary["privacy"]["epsilon"] == 4
        spent = network.providers[0].ledger.budget["private"]["epsilon_spent"]
        # The ledger counts at its own delta, which is smaller than the one of the job.
        assert 4 < spent < 8
    finally:
        network.stop()
    assert estimator.report_.accuracy is not None
    assert estimator.report_.summary["held_out"] == 80
    assert estimator.report_.summary["providers"] == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "model.json",
        "report.html",
    ]
    with pytest.raises(heda.InputError, match="rows="):
        heda.LogisticRegression(privacy=heda.Privacy(1)).fit(providers, out=tmp_path / "no")
    with pytest.raises(heda.InputError, match="at least one"):
        heda.Providers([], **where)


def test_what_a_provider_refuses_is_an_exception_of_its_own(network: Network) -> None:
    text = network.job.read_text().replace("iterations = 6", "iterations = 100000")
    network.job.write_text(text)
    with pytest.raises(heda.RefusedError, match="iterations"):
        heda.Job.from_toml(network.job).train(network.folder / "out")
    preview = network.providers[0].preview(network.job, "user")
    assert preview.refusal is not None
    assert "iterations" in preview.refusal
    assert len(network.providers[0].ledger.refusals()) == 1


def test_a_provider_that_is_not_there_and_a_job_of_another_kind(network: Network) -> None:
    job = heda.Job.from_toml(network.job)
    with pytest.raises(heda.InputError, match="take the estimator that fits"):
        heda.LinearSVC().fit(job)
    with pytest.raises(heda.InputError, match="labels stay"):
        heda.LogisticRegression().fit(job, [1, 2])
    network.stop()
    with pytest.raises((heda.PeerError, heda.Interrupted)):
        job.train(network.folder / "out", patience=1)


INTERRUPTED = """
import sys, heda
try:
    heda.Job.from_toml(sys.argv[1]).train(sys.argv[2], resume=sys.argv[3] == "resume")
    print("finished")
except KeyboardInterrupt as stopped:
    print("stopped", *stopped.__notes__)
"""


def test_ctrl_c_ends_a_job_within_a_second_and_resume_goes_on(tmp_path: Path) -> None:
    network = Network(tmp_path, seed=4, iterations=400)
    out = tmp_path / "out"
    try:
        command = [sys.executable, "-c", INTERRUPTED, str(network.job), str(out)]
        running = subprocess.Popen([*command, "begin"], stdout=subprocess.PIPE, text=True)
        checkpoint = out / "checkpoint.json"
        while not (checkpoint.exists() and '"iteration":' in checkpoint.read_text()):
            assert running.poll() is None, "the job ended before it could be interrupted"
            time.sleep(0.02)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=60)
        took = time.monotonic() - began
        assert said.startswith("stopped")
        assert "resume=True goes on" in said
        assert took < 3, "a second, and room for the end of a process on a busy machine"
        assert checkpoint.exists()
        with pytest.raises(heda.InputError, match="resume=True"):
            heda.Job.from_toml(network.job).train(out)
        whole = subprocess.run([*command, "resume"], capture_output=True, text=True, check=True)
        assert whole.stdout.strip() == "finished"
    finally:
        network.stop()
    (tmp_path / "whole").mkdir()
    network = Network(tmp_path / "whole", seed=4, iterations=400)
    try:
        model, _ = heda.Job.from_toml(network.job).train(tmp_path / "at-once")
    finally:
        network.stop()
    resumed = heda.Model.load(out / "model.json")
    assert (resumed.coef == model.coef).all()


def test_ctrl_c_ends_a_simulation_within_a_second() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    timer = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    estimator = heda.LogisticRegression(max_iter=5000, tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, X[:, 0] + rng.normal(size=20_000) > 0, bounds=(-8, 8))
    assert time.monotonic() - began < 1.5 + 1.0 + 1.0
    assert not hasattr(estimator, "model_")


def test_a_provider_says_what_is_wrong_with_it(network: Network) -> None:
    findings = network.providers[0].check()
    assert {"clock", "identity"} <= {finding.part for finding in findings}
    assert "<table" in findings._repr_html_()
    (network.folder / "north" / "rows.csv").unlink()
    assert not network.providers[0].check().good
    with pytest.raises(heda.InputError, match="serves already"):
        network.providers[0].serve()
    with pytest.raises(heda.InputError, match="never overwritten"):
        heda.Provider.configure(
            network.folder / "north", name="north", data="a", schema="b", data_set="c", allow={}
        )
    with pytest.raises(heda.InputError, match="never overwritten"):
        heda.identity.create("user", network.folder / "user")


def test_schemas_are_proposed_edited_and_saved(tmp_path: Path) -> None:
    X, y = rows(0)
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(ill=y)
    schema = heda.Schema.infer(frame, "ill", name="ward")
    assert schema.unconfirmed > 0
    assert any("label: ill" in line for line in schema.assumptions)
    assert schema.columns == list("abcd")
    public = schema.edited(bounds=dict.fromkeys("abcd", (-8, 8)), confirm=True)
    assert public.unconfirmed == 0
    assert public.bounds("b") == (-8, 8)
    public.save(tmp_path / "ward.toml")
    assert heda.Schema.load(tmp_path / "ward.toml") == public
    assert public != schema
    fitted = heda.LogisticRegression(max_iter=3).fit(frame[list("abcd")], y, schema=public)
    assert fitted.schema_ == public
    with pytest.raises(heda.InputError, match="no column"):
        schema.bounds("z")
    with pytest.raises(heda.InputError):
        heda.Schema("format = 2")


def test_models_leave_for_other_programs(tmp_path: Path) -> None:
    X, y = rows(0)
    fitted = heda.LogisticRegression().fit(X, y, bounds=(-8, 8))
    fitted.model_.save(tmp_path / "model.json")
    again = heda.Model.load(tmp_path / "model.json")
    assert (again.predict(X) == fitted.predict(X)).all()
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    plain = again.to_sklearn()
    assert (plain.predict(X) == fitted.predict(X)).all()
    np.testing.assert_allclose(plain.predict_proba(X), fitted.predict_proba(X), atol=1e-9)
    onnx = again.to_onnx(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == onnx
    assert len(onnx) > 100
    with pytest.raises(heda.InputError):
        heda.Model("{}")


def test_things_show_themselves_in_notebooks() -> None:
    X, y = rows(0)
    frame = pandas.DataFrame(X, columns=["<b>", "b", "c", "d"])
    fitted = heda.LogisticRegression(max_iter=3, holdout=0.2).fit(frame, y, bounds=(-8, 8))
    shown: list[Any] = [fitted, fitted.model_, fitted.report_, fitted.schema_]
    for thing in [*shown, heda.score(frame, y, bounds=(-8, 8))]:
        html = thing._repr_html_()
        assert "<script" not in html
        assert "http:" not in html.replace("http://www.w3.org", "")
        assert "<b>b</b>" not in html
        assert "lt;b&" in html
    assert "<svg" in fitted.report_.to_html()


def test_a_plan_says_what_a_job_will_take(network: Network) -> None:
    by_job = heda.plan(heda.Job.from_toml(network.job), rows=600)
    assert by_job.numbers["providers"] == 2
    by_schema = heda.plan(network.schema, rows=600, providers=2, iterations=6)
    assert by_schema.numbers["iterations"] == 6
    low, high = by_schema.numbers["seconds_range"]
    assert 0 < low < by_schema.numbers["seconds"] < high
    assert "600 rows of 2 providers" in str(by_schema)
    assert "<table" in by_schema._repr_html_()
    promise = heda.Privacy(epsilon=1)
    private = heda.plan(network.schema, rows=600, providers=2, privacy=promise)
    assert private.numbers["private"]["epsilon"] == 1
    # As `heda invite` writes it: nobody has answered yet, and a private job states its rows.
    early = network.job.with_name("early.toml")
    head = network.job.read_text().split("[[provider]]")[0]
    lines = [
        line for line in head.splitlines() if line.startswith(("identity", "schema", "data_set"))
    ]
    early.write_text("\n".join(lines) + "\n[privacy]\nepsilon = 1\nrows = 480\n")
    job = heda.Job.from_toml(early)
    assert job.providers == 0
    assert "600 rows of 4 providers" in str(heda.plan(job, providers=4))
    with pytest.raises(heda.InputError, match="answered"):
        job.train(network.job.parent / "early")
    with pytest.raises(heda.InputError, match="rows="):
        heda.plan(network.schema)
    with pytest.raises(heda.InputError, match="ten or more"):
        heda.plan(network.schema, rows=3)
    with pytest.raises(heda.InputError, match="iota"):
        heda.plan(heda.Schema.load(network.schema), rows=600, encrypt=99)


def test_a_simulation_through_python_is_that_of_the_program(
    tmp_path: Path, heda_program: str
) -> None:
    X, y = rows(4, 300)
    names = [f"x{i}" for i in range(4)]
    frame = pandas.DataFrame(X, columns=names)
    frame.assign(ill=y).to_csv(tmp_path / "rows.csv", index=False)
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA + "".join(COLUMN.format(i) for i in range(4)))
    command = f"{heda_program} simulate --data rows.csv --schema schema.toml --seed 5 --out out"
    subprocess.run(command.split(), cwd=tmp_path, capture_output=True, check=True)
    with pytest.warns(heda.UnprotectedWarning):
        fitted = heda.LogisticRegression(holdout=0.2, random_state=5).fit(
            frame, y, providers=3, schema=schema
        )
    theirs = json.loads((tmp_path / "out" / "model.json").read_text())
    fitted.model_.save(tmp_path / "model.json")
    ours = json.loads((tmp_path / "model.json").read_text())
    assert ours["classifiers"] == theirs["classifiers"]
