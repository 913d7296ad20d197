"""Jobs with providers on the network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from heda import _heda, _html, _progress
from heda._errors import InputError
from heda._model import Model
from heda._report import Report


class Job:
    """A job file: what is to be trained with which providers. Rows stay where they are.

    Attributes
    ----------
    path : Path
        The job file.
    data_set, loss, engine : str
        What it says.
    providers : int
        How many providers take part.
    """

    def __init__(
        self, path: str | PathLike[str], answers: str | PathLike[str] | None = None
    ) -> None:
        self.path = Path(path)
        self.answers = None if answers is None else Path(answers)
        self.data_set, self.loss, self.engine, self.providers, self.is_seeded = _heda.describe_job(
            fspath(self.path), self.answers
        )

    @classmethod
    def from_toml(
        cls, path: str | PathLike[str], *, answers: str | PathLike[str] | None = None
    ) -> Job:
        """Read and check a job file, also as ``heda invite`` wrote it.

        Parameters
        ----------
        path : path
            The file.
        answers : path, optional
            A folder with the answers of providers to an invitation; ``answers`` beside the file if
            not given. While nobody has answered, ``providers`` is 0 and the job can be planned.
        """
        return cls(path, answers)

    def train(
        self,
        out: str | PathLike[str] = "heda-result",
        *,
        resume: bool = False,
        unconfirmed: bool = False,
        patience: int | None = None,
        verbose: bool | None = None,
    ) -> tuple[Model, Report]:
        """Train, and leave model and report in a folder.

        While the job runs, its checkpoint is in the folder. Ctrl-C stops within a second; what was
        finished is kept, and ``resume=True`` goes on.

        Parameters
        ----------
        out : path
            The folder.
        resume : bool
            Whether to go on from the checkpoint in the folder.
        unconfirmed : bool
            Train by a schema that still has marks of what was read from rows.
        patience : int, optional
            Seconds to wait for providers that cannot be reached.
        verbose : bool, optional
            Whether to show a bar; in notebooks and terminals if not given.
        """
        trained = self._train(out, resume, unconfirmed, patience, verbose)
        return Model._of(trained.model), Report._of(trained, self._command(out))

    def _command(self, out: str | PathLike[str]) -> str:
        return f"heda.Job.from_toml({str(self.path)!r}).train({fspath(out)!r})"

    def _train(
        self,
        out: str | PathLike[str],
        resume: bool,
        unconfirmed: bool,
        patience: int | None,
        verbose: bool | None,
    ) -> _heda.Trained:
        return _watched(
            out,
            verbose,
            lambda watch: _heda.train(
                fspath(self.path),
                fspath(out),
                self._command(out),
                resume,
                unconfirmed,
                self.answers,
                patience,
                watch,
            ),
        )

    def __repr__(self) -> str:
        return f"Job({self.data_set!r}, {self.loss}, {self.providers} providers)"

    def _repr_html_(self) -> str:
        rows = [
            ("data set", self.data_set),
            ("loss", self.loss),
            ("engine", self.engine),
            ("providers", self.providers),
        ]
        return _html.titled(f"Job {self.path.name}", _html.table(("", ""), rows))


def _watched(
    out: str | PathLike[str],
    verbose: bool | None,
    train: Callable[[_heda.Watcher], _heda.Trained],
) -> _heda.Trained:
    """Train with a bar, and say after Ctrl-C how to go on."""
    watch = _progress.watcher(verbose)
    try:
        return train(watch)
    except KeyboardInterrupt as stopped:
        stopped.add_note(f"finished iterations are kept in {fspath(out)}; resume=True goes on")
        raise
    finally:
        watch("end", "", 0, 0, None)


@dataclass(frozen=True)
class Peer:
    """A provider on the network.

    Parameters
    ----------
    name : str
        What to call it.
    address : str
        Host and port.
    fingerprint : str
        Its fingerprint, as its ``heda.identity.create`` returned it.
    """

    name: str
    address: str
    fingerprint: str


class Providers:
    """Providers on the network, for ``fit``: the estimator says how to train.

    Parameters
    ----------
    peers : iterable of Peer
        With whom.
    identity : path
        The data user's folder, made by ``heda.identity.create``.
    schema : path
        The schema that all parties agreed on.
    data_set : str
        What the providers call their data.

    Examples
    --------
    >>> import heda
    >>> north = heda.Peer("north", "north.example:7443", "sha256:" + 64 * "a")
    >>> heda.Providers([north], identity="user", schema="schema.toml", data_set="ward")
    Providers(['north'], data_set='ward')
    """

    def __init__(
        self,
        peers: Iterable[Peer],
        *,
        identity: str | PathLike[str],
        schema: str | PathLike[str],
        data_set: str,
    ) -> None:
        self.peers = tuple(peers)
        self.identity = Path(identity).absolute()
        self.schema = Path(schema).absolute()
        self.data_set = data_set
        if not self.peers:
            raise InputError("a job needs at least one provider; pass heda.Peer(…) for each")

    def _train(
        self,
        wanted: Mapping[str, object],
        rows: int,
        seed: int | None,
        out: str | PathLike[str],
        resume: bool,
        unconfirmed: bool,
        patience: int | None,
        verbose: bool | None,
    ) -> _heda.Trained:
        parties: dict[str, object] = {
            "identity": fspath(self.identity),
            "schema": fspath(self.schema),
            "data_set": self.data_set,
            "peers": [(peer.name, peer.address, peer.fingerprint) for peer in self.peers],
            "seed": seed,
            "patience": patience,
        }
        command = f"fit({self!r}, out={fspath(out)!r})"
        return _watched(
            out,
            verbose,
            lambda watch: _heda.train_with(
                parties, wanted, rows, fspath(out), command, resume, unconfirmed, watch
            ),
        )

    def __repr__(self) -> str:
        return f"Providers({[peer.name for peer in self.peers]}, data_set={self.data_set!r})"
