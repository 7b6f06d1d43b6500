"""Holds the `tracer` of the calls that clients make; None until a program or a daemon sets it. Loads no OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol


class CallSpan(Protocol):
    """The record of one call. `headers` name it for the server: `traceparent`, and `tracestate` if there is one."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def answered(self, status: int) -> None:
        """Record the status of the HTTP response."""
        ...

    def end(self, error: BaseException | None = None) -> None:
        """End the call. A second end does nothing."""
        ...


class CallTracer(Protocol):
    """Records the calls of this process."""

    def begin(self, method: str) -> CallSpan:
        """Begin a call of this method. The caller must end it."""
        ...

    def call(self, method: str) -> AbstractContextManager[CallSpan]:
        """Record the block as one call. An exception of the block is its error."""
        ...

    def http_request(self, method: str, host: str, port: int) -> CallSpan:
        """Begin an HTTP request to a server that the program itself has named. The caller must end it."""
        ...


tracer: CallTracer | None = None
