"""Keeps the losses of a parser until they may be reported: one fault for each. Never drops anything itself."""

from __future__ import annotations

from typing import final

from ..errors.failures import InvalidRequest, ParseFailure
from .events import Fault


@final
class Losses:
    """The losses that are not reported, in the order of the stream.

    While the last one is `open`, what is dropped next belongs to it. `due` is true while there is any.
    """

    __slots__ = ("_ended", "_failure", "_start", "due", "open")

    def __init__(self) -> None:
        self._failure: InvalidRequest | ParseFailure = InvalidRequest("malformed-header")
        self._start = 0
        self._ended: list[Fault] = []
        self.open = self.due = False

    def begin(self, failure: InvalidRequest | ParseFailure, start: int) -> None:
        """A new loss begins at this offset of the stream; one that is open ends there."""
        self.end(start)
        self._failure = failure
        self._start = start
        self.open = self.due = True

    def resume(self) -> None:
        """More is lost for the reason of the last loss, which was reported: a further loss, where that one ended."""
        self.open = self.due = True

    def end(self, end: int) -> None:
        """The open loss, if there is one, ends at this offset."""
        if self.open:
            self._ended.append(Fault(self._failure, end - self._start, self._start))
            self._start = end
            self.open = False

    def report(self, end: int) -> Fault:
        """Take the first fault that is due. An open loss ends at `end`."""
        self.end(end)
        fault = self._ended.pop(0)
        self.due = bool(self._ended)
        return fault
