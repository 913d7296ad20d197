"""What a job will cost, before it runs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

from heda import _heda, _html
from heda._errors import InputError
from heda._job import Job
from heda._linear import Privacy
from heda._schema import Schema


@dataclass(frozen=True, eq=False)
class Plan:
    """What a job will take and reveal.

    Attributes
    ----------
    numbers : dict
        Everything, as ``heda plan --json``: ``seconds``, ``seconds_range``, ``peak_memory_bytes``,
        ``bytes_user_to_providers``, ``bytes_providers_to_user``, ``round_trips_per_provider``,
        ``gradient_numbers`` and, of a private job, ``private``.
    """

    numbers: dict[str, Any]
    _words: str = field(repr=False)

    def __str__(self) -> str:
        return self._words

    def _repr_html_(self) -> str:
        first, *lines = self._words.splitlines()
        rows = [(line[:10].strip(), line[10:].strip()) for line in lines]
        return _html.titled(f"Plan: {first}", _html.table(("", ""), rows))


def plan(
    what: Job | Schema | str | PathLike[str],
    *,
    rows: int | None = None,
    providers: int = 3,
    encrypt: int | None = None,
    iterations: int = 30,
    privacy: Privacy | None = None,
) -> Plan:
    """Tell time, memory and traffic of a job before it runs, as ``heda plan`` does.

    The job's protocol runs on random rows of the same shape, all parties on this machine, for a few
    iterations. No row of anybody is looked at.

    Parameters
    ----------
    what : Job, Schema or path of a schema
        What is planned. A job says everything but the rows itself.
    rows : int, optional
        Rows of all providers together; a private job states them.
    providers : int
        How many providers; of a job, while nobody has answered.
    encrypt : int, optional
        How many features are encrypted; all if not given.
    iterations : int
        Gradients.
    privacy : Privacy, optional
        Plan a private job of the schema; its promise decides how many gradients there are.

    Examples
    --------
    >>> import heda
    >>> schema = heda.Schema('''
    ... format = 1
    ... name = "ward"
    ... [label]
    ... column = "ill"
    ... classes = ["no", "yes"]
    ... positive = "yes"
    ... [[column]]
    ... name = "age"
    ... kind = "numeric"
    ... bounds = [0, 120]
    ... ''')
    >>> heda.plan(schema, rows=600, iterations=4).numbers["iterations"]
    4
    """
    if isinstance(what, Job):
        answers = None if what.answers is None else fspath(what.answers)
        told, words = _heda.plan_job(fspath(what.path), answers, rows, providers)
        return Plan(json.loads(told), words)
    if rows is None:
        raise InputError("a schema does not say how many rows there are; pass rows=")
    schema = what if isinstance(what, Schema) else Schema.load(what)
    private = None if privacy is None else (float(privacy.epsilon), privacy.delta)
    told, words = _heda.plan_schema(schema._inner, rows, providers, encrypt, iterations, private)
    return Plan(json.loads(told), words)
