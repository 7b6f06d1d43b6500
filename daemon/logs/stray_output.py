"""Logs what is written to stdout and stderr past the daemon, as `<stream>.stray`.

What a handler prints is taken before it is written, so that its event names the request. All else comes through the pipes.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, final

from .bound import BOUND, bound
from .logger import log


def log_stray_output(stream: str, text: str) -> None:
    """Log what has come through a pipe. For `framing.stray_output`."""
    log.warning(f"{stream}.stray", text=text)


@final
class _Line:
    """The beginning of a line that a handler is printing. Logged when its request's context variables go, at the latest."""

    __slots__ = ("name", "origin", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = ""
        self.origin = bound()

    def log(self) -> None:
        text, self.text = self.text, ""
        if text:
            token = BOUND.set(self.origin)
            log_stray_output(self.name, text)
            BOUND.reset(token)

    def __del__(self) -> None:
        self.log()


_LINES: Final[ContextVar[dict[str, _Line] | None]] = ContextVar("discreet_printed", default=None)

MAX_LINE: Final = 8 * 1024
"""How much of a line is kept until it ends."""


@final
class PrintedTexts:
    """Takes what is printed while a request is being handled. A `stdio_guard.TextTaker`."""

    def take(self, name: str, text: str) -> bool:
        """Take a text that was printed to this stream; False where no request is known for it."""
        origin = bound()
        if origin is None:
            return False
        lines = _LINES.get()
        if lines is None:
            _LINES.set(lines := {})
        line = lines.get(name)
        if line is None or line.origin is not origin:
            line = lines[name] = _Line(name)
        line.text += text
        if "\n" in text or len(line.text) > MAX_LINE:
            line.text = line.text.rstrip("\n")
            line.log()
        return True

    def flush(self, name: str) -> None:
        """Log what was printed of a line."""
        lines = _LINES.get()
        if lines is not None and name in lines:
            lines[name].log()
