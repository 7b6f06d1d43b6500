"""The progress of a call as one line on a terminal, which is gone when the call ends. Never used where stderr is no terminal."""

import os
import sys
import unicodedata
from collections.abc import Iterator
from typing import Any, final

import msgspec

from ...errors.printable import cut, printable
from ..output import MAX_LINE_CHARACTERS


def is_terminal() -> bool:
    """Whether stderr is a terminal that can return to the start of a line."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@final
class ProgressLine:
    """Shows one message at a time. The cursor rests at the start of the line, so that whatever else is written covers it."""

    def __init__(self, method: str) -> None:
        self._method = method
        self._shown = 0

    def show(self, value: Any) -> None:  # Any: JSON
        """Show what the server tells in the place of what it told before. Never raises."""
        text, columns = _fitting(f"{self._method}: {describe(value)}", _columns() - 1)
        self._write(f"{text}{' ' * (self._shown - columns)}\r")
        self._shown = columns

    def close(self) -> None:
        """Leave the line empty. Never raises."""
        if self._shown:
            self._write(f"{' ' * self._shown}\r")
            self._shown = 0

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, UnicodeError):  # nobody looks at it, or not in these characters
            pass


def describe(value: Any) -> str:  # Any: JSON
    """What a person reads of one message: `2/3`, `50%` and its text where it has them, else its JSON."""
    match value:
        case [int() | float() as done, int() | float() as total]:
            text = f"{done:g}/{total:g}"
        case {"progress": int() | float()} | {"kind": "begin" | "report" | "end"}:
            text = " ".join(_words(value))
        case str():
            text = value
        case _:
            text = msgspec.json.encode(value).decode()
    return printable(cut(text, MAX_LINE_CHARACTERS))


def _words(members: dict[str, Any]) -> Iterator[str]:
    """What the progress of MCP and LSP says: how far, and the texts."""
    match members:
        case {"progress": int() | float() as done, "total": int() | float() as total}:
            yield f"{done:g}/{total:g}"
        case {"progress": int() | float() as done} | {"percentage": int() | float() as done}:
            yield f"{done:g}{'%' if 'percentage' in members else ''}"
        case _:
            pass
    for name in ("title", "message"):
        if isinstance(text := members.get(name), str):
            yield text


def _fitting(text: str, columns: int) -> tuple[str, int]:
    """As much of the text as fits, and how many columns that takes."""
    taken = 0
    for at, character in enumerate(text):
        width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if taken + width > columns:
            return text[:at], taken
        taken += width
    return text, taken


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
