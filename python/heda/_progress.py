"""A bar while a job runs: in a notebook, on a terminal, or nowhere."""

from __future__ import annotations

import logging
import sys
import time
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heda._heda import Watcher

_log = logging.getLogger("heda.job")

_PHASES = {
    "agree": "agreeing on the job",
    "score": "scoring features",
    "scale": "finding where the columns lie",
    "publish": "publishing columns with noise",
    "encrypt": "preparing the encrypted columns",
    "train": "training",
    "evaluate": "evaluating on held-out rows",
}
_WIDTH = 30


def watcher(wanted: bool | None) -> Watcher:
    """Return what is told of a job; ``None`` shows a bar only where somebody looks."""
    if wanted is False:
        return _silent
    display = _notebook()
    if display is not None:
        return _Bar(_NotebookLine(display))
    if wanted or sys.stderr.isatty():
        return _Bar(_TerminalLine())
    return _silent


def _notebook() -> Any:
    """Return what shows things in the notebook that we are in, if we are in one."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display


def _heard(event: str, words: str, done: int, at_most: int, norm: float | None) -> None:
    if event == "iteration":
        _log.debug("iteration %d of at most %d, gradient %s", done, at_most, norm)
    elif event in {"lost", "ledger", "left behind", "seeded", "retry"}:
        _log.warning("%s: %s", event, words)
    else:
        _log.info("%s %s", event, words)


def _silent(event: str, words: str, done: int, at_most: int, norm: float | None) -> None:
    _heard(event, words, done, at_most, norm)


class _TerminalLine:
    def show(self, words: str, share: float | None) -> None:
        full = round(_WIDTH * share) if share is not None else 0
        bar = "" if share is None else "█" * full + "░" * (_WIDTH - full) + " "
        sys.stderr.write(f"\r\x1b[K{bar}{words}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _NotebookLine:
    def __init__(self, display: Any) -> None:
        self._handle = display(self._html("", 0.0), display_id=True, raw=True)

    @staticmethod
    def _html(words: str, share: float | None) -> dict[str, str]:
        bar = f'<progress max="1" value="{share:.4f}"></progress> ' if share is not None else ""
        return {"text/html": f"<div>{bar}{escape(words)}</div>", "text/plain": words}

    def show(self, words: str, share: float | None) -> None:
        if self._handle is not None:
            self._handle.update(self._html(words, share), raw=True)

    def close(self) -> None:
        self.show("done", None)


class _Bar:
    def __init__(self, line: _TerminalLine | _NotebookLine) -> None:
        self._line = line
        self._began: tuple[float, int] | None = None
        self._shown = 0.0

    def __call__(self, event: str, words: str, done: int, at_most: int, norm: float | None) -> None:
        _heard(event, words, done, at_most, norm)
        if event == "iteration":
            self._iteration(done, at_most, norm)
        elif event == "end":
            self._line.close()
        elif event == "phase":
            self._line.show(_PHASES.get(words, words), None)
        elif words:
            self._line.show(f"{event}: {words}", None)

    def _iteration(self, done: int, at_most: int, norm: float | None) -> None:
        now = time.monotonic()
        if self._began is None:
            self._began = (now, done)
        # A terminal can be slower than a job.
        if now - self._shown < 0.05 and done < at_most:
            return
        self._shown = now
        began, first = self._began
        each = (now - began) / max(done - first, 1)
        left = round(each * max(at_most - done, 0))
        gradient = "" if norm is None else f", gradient {norm:.1e}"
        share = min(done / max(at_most, 1), 1.0)
        self._line.show(f"{done}/{at_most} at most, {left} s left{gradient}", share)
