"""What can go wrong with a call beside the errors that its operation declares, and what the caller is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, Literal, TypeAlias

from ...errors.exceptions import FailureError
from ...errors.failures import Failure, Internal, InvalidParams, Overloaded, TimedOut, Unavailable
from ...schemas.phrases import json_kind
from ..model import ImportedError

FaultReason: TypeAlias = Literal[
    "address", "connect", "connect-timeout", "connections", "content-type", "credential", "encoding", "json", "lost", "protocol",
    "redirect", "status", "timeout", "tls", "too-large", "unresolved",
]  # fmt: skip
"""`encoding`: a compression or a charset that can't be read. `timeout`: a stream did not begin in time. The others say it."""

_UNREACHABLE: Final = Unavailable(upstream=True)

_FAILURES: Final[Mapping[FaultReason, Failure]] = {
    "connect": _UNREACHABLE,
    "connect-timeout": _UNREACHABLE,
    "connections": Overloaded(),
    "lost": _UNREACHABLE,
    "timeout": TimedOut(),
    "unresolved": _UNREACHABLE,
}
"""All others are INTERNAL: the same call would fail again."""


UNDECLARED: Final = ImportedError(
    code="HTTP_UNDECLARED",
    http_status=HTTPStatus.BAD_GATEWAY,
    message="The server answers with a status that its document does not declare.",
    description="`status` is that of the response. `body` is its JSON, or its text; it is left out if it is neither, or large.",
    schema={
        "type": "object",
        "properties": {"status": {"type": "integer"}, "body": True},
        "required": ["status"],
    },
)
"""The error of each operation whose import shows the bodies of undeclared errors."""


class UpstreamFault(Exception):
    """The upstream, or the import's configuration, is at fault. `status` is that of the response, if there is one, and
    `retry_after_ms` how long that asks to wait.
    """

    def __init__(self, reason: FaultReason, status: int | None = None, *, retry_after_ms: int | None = None) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.status: Final = status
        self.retry_after_ms: Final = retry_after_ms


def failure_of(fault: UpstreamFault, *, repeatable: bool) -> Failure:
    """Say what the caller gets. A connection that was lost may have carried the request: only a `repeatable` one is made again.
    A status that the document does not declare has a code of its own, `HTTP_404`, or is one of the protocol's.
    """
    if fault.reason == "status":
        match fault.status:
            case HTTPStatus.TOO_MANY_REQUESTS:
                return Overloaded(fault.retry_after_ms)
            case HTTPStatus.SERVICE_UNAVAILABLE:
                return Unavailable(fault.retry_after_ms, upstream=True)
            case int(status) if status >= HTTPStatus.BAD_REQUEST:
                return Internal(code_of(status))
            case _:
                return Internal()
    if fault.reason == "lost" and not repeatable:
        return Internal()
    return _FAILURES.get(fault.reason, Internal())


def code_of(status: int | str) -> str:
    """The code of the error that a status is: `HTTP_404`, `HTTP_4XX`, `HTTP_DEFAULT`."""
    return f"HTTP_{status}".upper()


def invalid_input(param: str, expected: str, value: Any) -> FailureError:  # Any: a JSON value
    """The caller's value can't be sent."""
    return FailureError(InvalidParams(param, expected, json_kind(value)))
