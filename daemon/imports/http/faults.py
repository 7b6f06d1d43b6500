"""What can go wrong with a call beside the errors that its operation declares, and what the caller is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from ....errors.exceptions import FailureError
from ....errors.failures import Failure, Internal, InvalidParams, Overloaded, TimedOut, Unavailable
from ...schemas.phrases import json_kind

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


class UpstreamFault(Exception):
    """The upstream, or the import's configuration, is at fault. `status` is that of the response, if there is one."""

    def __init__(self, reason: FaultReason, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.status: Final = status


def failure_of(reason: FaultReason, *, repeatable: bool) -> Failure:
    """What the caller is told. A connection that was lost may have carried the request: only a `repeatable` one is made again."""
    if reason == "lost" and not repeatable:
        return Internal()
    return _FAILURES.get(reason, Internal())


def invalid_input(param: str, expected: str, value: Any) -> FailureError:  # Any: a JSON value
    """The caller's value can't be sent."""
    return FailureError(InvalidParams(param, expected, json_kind(value)))
