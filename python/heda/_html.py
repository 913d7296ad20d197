"""Small pieces of HTML for notebooks: no scripts, no network, every text escaped."""

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = (
    "border-collapse:collapse;font-size:90%;margin:.3em 0",
    "text-align:left;padding:.15em .9em .15em 0;border-bottom:1px solid currentColor",
    "text-align:left;padding:.15em .9em .15em 0;vertical-align:top",
)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of texts."""
    head = "".join(f'<th style="{_STYLE[1]}">{escape(cell)}</th>' for cell in header)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_STYLE[2]}">{escape(str(cell))}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return f'<table style="{_STYLE[0]}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def titled(title: str, *parts: str) -> str:
    """Return parts under a title."""
    return f"<div><b>{escape(title)}</b>{''.join(parts)}</div>"


def lines(words: Iterable[str]) -> str:
    """Return one paragraph a line."""
    return "".join(f'<div style="margin:.2em 0">{escape(line)}</div>' for line in words)


def frame(page: str, height: int = 640) -> str:
    """Return a whole page inside of another one, which it cannot touch."""
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="" title="Heda report" loading="lazy" '
        f'style="width:100%;height:{height}px;border:1px solid #8884"></iframe>'
    )
