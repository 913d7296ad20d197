"""Train one model on the data of several organisations, without showing data or model.

``docs/python.md`` of the project is the guide; ``heda.LogisticRegression`` the place to begin.
"""

from heda import _heda, identity
from heda._errors import (
    BoundsWarning,
    HedaBug,
    HedaError,
    InputError,
    Interrupted,
    NotFittedError,
    PeerError,
    RefusedError,
    UnprotectedWarning,
)
from heda._job import Job, Peer, Providers
from heda._linear import LinearSVC, LogisticRegression, Privacy, Ridge
from heda._model import Model
from heda._plan import Plan, plan
from heda._provider import Finding, Findings, Ledger, Preview, Provider
from heda._publish import Published, publish
from heda._report import Report
from heda._schema import Schema
from heda._score import Scored, Scores, score

__version__ = _heda.__version__

__all__ = [
    "BoundsWarning",
    "Finding",
    "Findings",
    "HedaBug",
    "HedaError",
    "InputError",
    "Interrupted",
    "Job",
    "Ledger",
    "LinearSVC",
    "LogisticRegression",
    "Model",
    "NotFittedError",
    "Peer",
    "PeerError",
    "Plan",
    "Preview",
    "Privacy",
    "Provider",
    "Providers",
    "Published",
    "RefusedError",
    "Report",
    "Ridge",
    "Schema",
    "Scored",
    "Scores",
    "UnprotectedWarning",
    "identity",
    "plan",
    "publish",
    "score",
]
