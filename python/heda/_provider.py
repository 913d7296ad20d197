"""Whoever guards data."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from heda import _heda, _html, _logging
from heda._errors import InputError


@dataclass(frozen=True)
class Finding:
    """What was found about one part of a provider."""

    part: str
    verdict: str
    words: str


class Findings(list[Finding]):
    """All findings about a provider."""

    @property
    def good(self) -> bool:
        """Whether nothing must be put right."""
        return all(finding.verdict != "bad" for finding in self)

    def __repr__(self) -> str:
        return "\n".join(f"{f.verdict:<8} {f.part:<12} {f.words}" for f in self)

    def _repr_html_(self) -> str:
        rows = [(finding.verdict, finding.part, finding.words) for finding in self]
        return _html.table(("", "part", ""), rows)


@dataclass(frozen=True)
class Preview:
    """What a job would cost and reveal, and why it would be refused, if it would."""

    words: str
    refusal: str | None

    def __repr__(self) -> str:
        return self.words + ("" if self.refusal is None else f"\nrefused: {self.refusal}")

    def _repr_html_(self) -> str:
        return _html.lines(repr(self).splitlines())


class Provider:
    """A provider by its configuration.

    Parameters
    ----------
    config : path
        The configuration (``docs/operating.md``), such as :meth:`configure` writes.

    Examples
    --------
    ``with heda.Provider("provider.toml").serve() as provider: ...`` serves data users from a thread
    of this process until the end of the block.
    """

    def __init__(self, config: str | PathLike[str]) -> None:
        self.config = Path(config)
        self._daemon: _heda.Daemon | None = None

    @classmethod
    def configure(
        cls,
        folder: str | PathLike[str],
        *,
        name: str,
        data: str | PathLike[str],
        schema: str | PathLike[str],
        data_set: str,
        allow: dict[str, str],
        known: dict[str, str] | None = None,
        listen: str = "127.0.0.1:7443",
        rows_per_batch_min: int = 50,
        iterations_per_job: int = 200,
        iterations_per_day: int = 2000,
        known_co_providers_min: int = 1,
        revealed_per_unknown_max: float = 0.2,
        epsilon_total: float | None = None,
        privacy_epsilon_total: float | None = None,
        privacy_delta: float = 1e-6,
    ) -> Self:
        """Write the configuration and, if there is none, the identity of a provider.

        Parameters
        ----------
        folder : path
            Where ``provider.toml``, ``identity`` and ``store`` go; a configuration that is there is
            never overwritten.
        name : str
            The provider's name in its certificate.
        data, schema : path
            The rows, CSV or Parquet, and the schema that all parties agreed on.
        data_set : str
            What the data set is called; its budget in the ledger goes by this name.
        allow, known : mapping of name to fingerprint
            Data users that may ask, and other providers that are known to be real.
        listen : str
            Address and port for data users.
        rows_per_batch_min, iterations_per_job, iterations_per_day, known_co_providers_min, \
revealed_per_unknown_max, epsilon_total, privacy_epsilon_total, privacy_delta
            What jobs may use up (``heda reference``).
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        config = place / "provider.toml"
        if config.exists():
            raise InputError(
                f"{config} exists already and is never overwritten; choose another folder"
            )
        if not (place / "identity" / "key.pem").exists():
            _heda.create_identity(name, fspath(place / "identity"))
        lines = [
            'identity = "identity"\nstore = "store"',
            f"data_set = {json.dumps(data_set)}",
            f"data = {json.dumps(str(Path(data).absolute()))}",
            f"schema = {json.dumps(str(Path(schema).absolute()))}",
            f"listen = {json.dumps(listen)}",
        ]
        for title, peers in (("allow", allow), ("known_provider", known or {})):
            for peer, fingerprint in peers.items():
                lines.append(
                    f"\n[[{title}]]\nname = {json.dumps(peer)}\n"
                    f"fingerprint = {json.dumps(fingerprint)}"
                )
        lines.append(
            f"\n[limits]\nrows_per_batch_min = {int(rows_per_batch_min)}\n"
            f"iterations_per_job = {int(iterations_per_job)}\n"
            f"iterations_per_day = {int(iterations_per_day)}\n"
            f"known_co_providers_min = {int(known_co_providers_min)}\n"
            f"revealed_per_unknown_max = {float(revealed_per_unknown_max)!r}"
        )
        if epsilon_total is not None:
            lines.append(f"epsilon_total = {float(epsilon_total)!r}")
        if privacy_epsilon_total is not None:
            lines.append(f"privacy_epsilon_total = {float(privacy_epsilon_total)!r}")
            lines.append(f"privacy_delta = {float(privacy_delta)!r}")
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return cls(config)

    def check(self) -> Findings:
        """Find what is wrong with data, schema, keys, ports, clock and permissions."""
        return Findings(Finding(**found) for found in json.loads(_heda.check(fspath(self.config))))

    def preview(self, job: str | PathLike[str], peer: str) -> Preview:
        """Say what a job file would cost and reveal if this data user asked."""
        return Preview(*_heda.preview(fspath(self.config), fspath(job), peer))

    def serve(self, *, unconfirmed: bool = False) -> Self:
        """Serve data users from a thread of this process until :meth:`stop`.

        Comes back when data users can connect; ``logging`` gets what happens. If this process ends,
        so does the provider: for real work, ``heda provider serve`` is the process to supervise.
        """
        if self.is_serving:
            raise InputError("this provider serves already; call stop first")
        _logging.start()
        self._daemon = _heda.Daemon(fspath(self.config), unconfirmed)
        return self

    @property
    def address(self) -> str:
        """Where data users can connect, while it serves."""
        if self._daemon is None:
            raise InputError("this provider does not serve; call serve first")
        return self._daemon.address

    @property
    def is_serving(self) -> bool:
        """Whether it serves."""
        return self._daemon is not None and self._daemon.is_running

    def stop(self, timeout: float = 30.0) -> None:
        """End serving, after the iterations that are under way."""
        if self._daemon is not None:
            self._daemon.stop(float(timeout))
            self._daemon = None

    def wait(self) -> None:
        """Serve until Ctrl-C."""
        try:
            while self.is_serving:
                time.sleep(0.2)
        finally:
            self.stop()

    @property
    def ledger(self) -> Ledger:
        """What was asked, refused and paid for."""
        return Ledger(self.config)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = f"serving on {self.address}" if self.is_serving else "not serving"
        return f"Provider({str(self.config)!r}, {state})"


class Ledger:
    """Jobs, refusals and budget of a provider, read while it serves or not.

    Parameters
    ----------
    config : path
        The provider's configuration.
    """

    def __init__(self, config: str | PathLike[str]) -> None:
        self._config = fspath(config)

    @property
    def status(self) -> dict[str, Any]:
        """Everything that ``heda provider status --json`` prints."""
        found: dict[str, Any] = json.loads(_heda.status(self._config))
        return found

    @property
    def budget(self) -> dict[str, Any]:
        """Everything that ``heda provider budget --json`` prints."""
        found: dict[str, Any] = json.loads(_heda.budget(self._config))
        return found

    def jobs(self) -> Any:
        """Return the jobs as a pandas data frame."""
        return _frame(self.status["jobs"])

    def refusals(self) -> Any:
        """Return the refusals as a pandas data frame."""
        return _frame(self.status["refusals"])

    def releases(self) -> Any:
        """Return what was published as a pandas data frame."""
        return _frame(self.budget["releases"])

    def __repr__(self) -> str:
        budget = self.budget
        return (
            f"Ledger({len(self.status['jobs'])} jobs, epsilon {budget['epsilon_spent']} of "
            f"{budget['epsilon_total']} spent)"
        )

    def _repr_html_(self) -> str:
        jobs = self.status["jobs"]
        header = list(jobs[0]) if jobs else ["no jobs yet"]
        return _html.titled(repr(self), _html.table(header, [list(job.values()) for job in jobs]))


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        raise InputError(
            "a data frame needs pandas: run pip install pandas, or use .status and .budget"
        ) from None
    return pandas.DataFrame(rows)
