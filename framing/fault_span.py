"""Keeps account of what is being dropped, so that each loss is reported once and covers a known span."""

from __future__ import annotations

from typing import final

from ..errors.failures import InvalidRequest, ParseFailure
from .events import Fault


@final
class FaultSpan:
    """The loss that a parser is working off, or worked off last.

    `start` is the stream offset from which on nothing has been reported; `due` says that a fault must still be. After
    `report` more may be dropped for the same reason: silently, or, once `due` is set again, with a further fault.
    """

    __slots__ = ("_failure", "due", "start")

    def __init__(self) -> None:
        self._failure: InvalidRequest | ParseFailure = InvalidRequest("malformed-header")
        self.start = 0
        self.due = False

    def begin(self, failure: InvalidRequest | ParseFailure, start: int) -> None:
        """A new loss, whose first byte is at `start`."""
        self._failure = failure
        self.start = start
        self.due = True

    def report(self, end: int) -> Fault:
        """The fault that covers everything from `start` up to `end`."""
        fault = Fault(self._failure, end - self.start, self.start)
        self.start = end
        self.due = False
        return fault
