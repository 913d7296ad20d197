"""Hands log lines of the compiled part to ``logging``."""

import logging
import threading

from heda import _heda

_started = threading.Event()


def start() -> None:
    """Begin to hand on lines, once; loggers are called ``heda_node…`` as the modules are."""
    if _started.is_set():
        return
    _started.set()
    threading.Thread(target=_hand_on, name="heda-log", daemon=True).start()


def _hand_on() -> None:
    while True:
        line = _heda.next_line(0.5)
        if line is not None:
            level, target, words = line
            logging.getLogger(f"heda.{target}").log(level, "%s", words)
