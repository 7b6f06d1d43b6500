"""How requests of MCP are answered: statuses and headers of failures, and messages as Server-Sent Events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final

from ...daemon.rpc.envelope import NULL_ID
from ...dialects.mcp.revision import is_own
from ...errors.failures import (
    AuthenticationRequired,
    DomainFailure,
    Failure,
    InsufficientPermissions,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    Overloaded,
    ParseFailure,
    Unavailable,
)
from ...lazy import anyio
from ..answers import Answer, headers_of, status_of
from ..sse import HEADERS, KEEP_ALIVE, encode_event

if TYPE_CHECKING:
    from starlette.types import Send

    from ...dialects.mcp.dialect import McpDialect
    from .messages import MessageStream

RETRY_MS: Final = 1000
"""What a client is told to wait before it asks again for a stream that was cut off."""

_ALWAYS: Final = (
    AuthenticationRequired, InsufficientPermissions, InvalidRequest, Overloaded, ParseFailure, Unavailable
)  # fmt: skip


def status_of_outcome(failure: Failure, *, modern: bool) -> int:
    """The status of the response that carries a JSON-RPC error: 200, but where HTTP's own clients must act on it, or the
    revision 2026-07-28 says otherwise.
    """
    if isinstance(failure, _ALWAYS) or (modern and isinstance(failure, MethodNotFound | InvalidParams)):
        return status_of(failure)
    return 400 if modern and isinstance(failure, DomainFailure) and is_own(failure) else 200


@final
class FailureAnswers:
    """Those to one request. `challenge` is what is added to `WWW-Authenticate`, empty where there is nothing to tell."""

    def __init__(self, dialect: McpDialect, challenge: str) -> None:
        self.call_id = NULL_ID
        self._dialect = dialect
        self._challenge = challenge

    def failure(self, failure: Failure) -> Answer:
        """For what never became a call."""
        body = self._dialect.encode_failure(self.call_id, failure)
        return Answer(status_of(failure), body, headers=self.headers(failure))

    def headers(self, failure: Failure) -> Mapping[str, str]:
        headers = dict(headers_of(failure))
        if self._challenge and isinstance(failure, AuthenticationRequired):
            headers["www-authenticate"] += self._challenge
        if self._challenge and isinstance(failure, InsufficientPermissions):
            scope = " ".join(failure.scopes)
            headers["www-authenticate"] = f'Bearer error="insufficient_scope", scope="{scope}"{self._challenge}'
        return headers


async def send_messages(
    send: Send,
    stream: MessageStream,
    *,
    keep_alive: float,
    headers: Mapping[str, str] | None = None,
    numbered: bool = False,
    primed: bool = False,
    behind: int | None = None,
) -> None:
    """Send the messages of a stream until it ends, or another response takes its place. Cancelling it leaves this one unfinished.

    With `numbered` each has an id, behind which a client may begin again. `primed` sends such an id before the first message.
    `keep_alive` is in seconds.
    """
    token = stream.begin_response(behind)
    given = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    try:
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *given]})
        if primed:
            await _send(send, b"retry: %d\n%b" % (RETRY_MS, encode_event(b"", f"{stream.number}-{stream.position}")))
        while (messages := await stream.take(token, keep_alive)) is not None:
            events = (
                encode_event(message.text, f"{stream.number}-{message.number}" if numbered else None)
                for message in messages
            )
            await _send(send, b"".join(events) or KEEP_ALIVE)
            if messages:
                stream.taken(messages)
            await anyio.lowlevel.checkpoint_if_cancelled()  # as in `sse`: the sender may never wait long enough
        await send({"type": "http.response.body", "body": b""})
    finally:
        stream.end_response(token)


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
