"""Who records the calls that clients make: nobody, until a program or a daemon sets `tracer`. Loads no OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol


class CallSpan(Protocol):
    """The record of one call. `headers` name it for the server: `traceparent`, and `tracestate` if there is one."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def answered(self, status: int) -> None:
        """The status of the HTTP response."""
        ...

    def end(self, error: BaseException | None = None) -> None:
        """The call is over. A second end does nothing."""
        ...


class CallTracer(Protocol):
    """Records the calls of this process."""

    def begin(self, method: str) -> CallSpan:
        """A call of this method begins. It must be ended."""
        ...

    def call(self, method: str) -> AbstractContextManager[CallSpan]:
        """The same for a block, which is the call: what it raises is its error."""
        ...

    def http_request(self, method: str, host: str, port: int) -> CallSpan:
        """An HTTP request to a server that the program itself has named begins. It must be ended."""
        ...


tracer: CallTracer | None = None
