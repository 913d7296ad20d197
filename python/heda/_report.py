"""What a job leaves besides its model."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

from heda import _heda, _html


class Report:
    """The summary of a finished job: accuracy, cost, and who learned what.

    Attributes
    ----------
    summary : dict
        All numbers, as ``heda train --json`` prints them.
    text : str
        The summary in words.
    privacy : str
        Who learned what, in plain words.
    """

    def __init__(self, summary: dict[str, Any], text: str, privacy: str, page: str) -> None:
        self.summary = summary
        self.text = text
        self.privacy = privacy
        self._page = page

    @classmethod
    def _of(cls, trained: _heda.Trained, command: str) -> Report:
        summary = json.loads(trained.to_json())
        return cls(summary, trained.text, trained.privacy, trained.to_html(command))

    @property
    def errors(self) -> dict[str, Any] | None:
        """Errors of a number on held-out rows (``rmse``, ``mae``, ``r2``); ``None`` without."""
        number = self.summary["number"]
        found: dict[str, Any] | None = None if number is None else number["errors"]
        return found

    @property
    def accuracy(self) -> float | None:
        """Accuracy on held-out rows, if any were held out."""
        value = self.summary["accuracy"]
        return None if value is None else float(value)

    def to_html(self) -> str:
        """Return the report as one page that needs no network and no scripts."""
        return self._page

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report as an HTML file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._page)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return _html.frame(self._page)
