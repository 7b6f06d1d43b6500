"""Tracks the span of bytes that a fault covers, so that each loss is reported once. Never drops anything itself."""

from __future__ import annotations

from typing import final

from ..errors.failures import InvalidRequest, ParseFailure
from .events import Fault


@final
class FaultSpan:
    """The current loss of a parser, or its last one.

    `start` is the stream offset of the first byte that no fault has covered. `unreported` is true while a fault is due.
    After `report`, more may be dropped for the same reason: silently, or with a further fault if `unreported` is set again.
    """

    __slots__ = ("_failure", "start", "unreported")

    def __init__(self) -> None:
        self._failure: InvalidRequest | ParseFailure = InvalidRequest("malformed-header")
        self.start = 0
        self.unreported = False

    def begin(self, failure: InvalidRequest | ParseFailure, start: int) -> None:
        """Begin a new loss whose first byte is at `start`."""
        self._failure = failure
        self.start = start
        self.unreported = True

    def report(self, end: int) -> Fault:
        """The fault that covers everything from `start` up to `end`."""
        fault = Fault(self._failure, end - self.start, self.start)
        self.start = end
        self.unreported = False
        return fault
