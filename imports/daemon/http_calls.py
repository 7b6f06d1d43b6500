"""Calls the operations of a daemon by its gateway. Streams go on after a lost connection where their events have numbers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, final

import anyio
import msgspec
from anyio.lowlevel import current_token
from msgspec import Raw

from ...client.outbound.connection import OutboundError
from ...daemon.logs import log
from ...daemon.operations.context import LAST_EVENT_ID, LONGEST_NUMBER, Context
from ...daemon.operations.spec import ServerEvent
from ...daemon.rpc.envelope import json_failure
from ...errors.backoff import exponential_backoff
from ...errors.call_error import CallError, failure_of_call_error
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import (
    AuthenticationRequired,
    Failure,
    InsufficientPermissions,
    Internal,
    MethodNotFound,
    Overloaded,
    TimedOut,
    Unavailable,
)
from ...framing.http.retry_after import retry_after_seconds
from ...framing.http.sse import SseEvent
from ..http.faults import FaultReason, UpstreamFault, failure_of
from ..model import ImportedOperation, UpstreamError
from .carried import NOBODY, MountIdentity, carried
from .failures import raised_for_failure
from .gateway import Gateway, Refused, Reply, address_of
from .model import DaemonOperation, Url

ATTEMPTS: Final = 2
"""How often a call is made that has reached nobody, or whose connection was lost though it may be repeated."""

MAX_RECONNECTIONS: Final = 8
"""Attempts in a row to go on with a stream: with the delays between them about half a minute, time for a restart."""

RECONNECT_INITIAL: Final = 0.2
RECONNECT_CAP: Final = 8.0
"""Seconds before the second attempt, and at most."""

_UNSENT: Final = frozenset({"connect", "connect-timeout", "unresolved"})
_PASSING: Final = _UNSENT | {"lost"}
"""Reasons for which no request has left, and those that may be over soon."""

_encode: Final = msgspec.json.Encoder().encode


@final
class UrlUpstream:
    """`name` is that of the import in the log. Raises `ValueError` for an address that is none, or that is refused."""

    def __init__(self, name: str, url: Url, identity: MountIdentity = NOBODY) -> None:
        self._name = name
        self._at = address_of(url)
        self._allow_private = url.allow_private
        self._identity = identity
        self._gateways: list[tuple[object, Gateway]] = []

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """While it is open calls can be made, in this event loop."""
        mine = current_token().native_token, Gateway(self._at, allow_private=self._allow_private)
        self._gateways.append(mine)
        try:
            yield
        finally:
            self._gateways.remove(mine)
            await mine[1].aclose()

    async def call(self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context) -> Raw:
        assert isinstance(operation, DaemonOperation)
        body, headers = _encode(arguments), carried(ctx, self._name, self._identity)
        for attempt in range(ATTEMPTS):
            try:
                reply = await self._gateway.call(operation.method, body, headers, ctx.hold_memory)
            except (OutboundError, UpstreamFault) as exc:
                if attempt + 1 < ATTEMPTS and _may_repeat(operation, exc):
                    continue
                raise self._lost(operation, exc.reason) from exc
            return self._result(operation, reply)
        raise AssertionError("the last attempt returns or raises")

    async def stream(
        self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context
    ) -> AsyncGenerator[Raw | ServerEvent[Raw], None]:
        assert isinstance(operation, DaemonOperation)
        body, headers = _encode(arguments), carried(ctx, self._name, self._identity)
        last = ctx.last_event_id if operation.numbered else None
        begun = False
        failures = reconnections = 0
        while True:
            asked = headers if last is None else {**headers, LAST_EVENT_ID: str(last)}
            lost: FaultReason = "lost"
            try:
                async with aclosing(self._gateway.events(operation.method, body, asked, ctx.hold_memory)) as events:
                    async for event in events:
                        if event.type == "completed":
                            return
                        if event.type == "error":
                            failed = self._told(operation, event.data) or self._invalid(operation)
                            if last is not None and _is_passing(failed):
                                break  # it ends, and may be there again soon
                            raise failed
                        number = _number(event) if operation.numbered else None
                        begun, failures = True, 0
                        last = last if number is None else number
                        value = self._json(operation, event.data)
                        yield value if number is None else ServerEvent(value, id=number)
            except Refused as exc:
                failed = self._refused(operation, exc.reply)
                if not (begun and last is not None and _is_passing(failed)):
                    raise failed from None
            except (OutboundError, UpstreamFault) as exc:
                lost = exc.reason
            failures += 1
            may_go_on = lost in _PASSING and (last is not None or (not begun and lost in _UNSENT))
            if not may_go_on or failures > (MAX_RECONNECTIONS if begun else ATTEMPTS - 1):
                raise self._lost(operation, lost)
            await anyio.sleep(reconnect_pause(failures, reconnections))
            reconnections += 1

    # -- what comes back -----------------------------------------------------------------------------------------

    def _result(self, operation: DaemonOperation, reply: Reply) -> Raw:
        if reply.status == 204:
            return Raw(b"null")
        if reply.status != 200:
            raise self._refused(operation, reply)
        if not reply.head.value(b"content-type").lower().startswith("application/json"):
            raise self._invalid(operation)
        return self._json(operation, reply.body)

    def _json(self, operation: DaemonOperation, text: bytes) -> Raw:
        if json_failure(text) is not None:
            raise self._invalid(operation)
        return Raw(text)

    def _invalid(self, operation: DaemonOperation) -> FailureError:
        log.error("import.invalid_reply", import_=self._name, operation=operation.method, reason="no JSON")
        return FailureError(Internal())

    def _refused(self, operation: DaemonOperation, reply: Reply) -> UpstreamError | FailureError:
        """The failure in a reply. One that is not as discreet writes it comes from what stands between: it has a status only."""
        told = self._told(operation, reply.body)
        if told is not None:
            return told
        log.warning(
            "import.failed", import_=self._name, operation=operation.method, reason="status", status=reply.status
        )
        return raised_for_failure(_failure_of_status(reply), operation, self._name)

    def _told(self, operation: DaemonOperation, text: bytes) -> UpstreamError | FailureError | None:
        """The error in a text; None where there is none."""
        try:
            error = decoder_for(CallError)(text)
        except DECODE_ERRORS:
            return None
        return raised_for_failure(failure_of_call_error(error), operation, self._name)

    def _lost(self, operation: DaemonOperation, reason: FaultReason) -> FailureError:
        log.warning("import.unavailable", import_=self._name, operation=operation.method, reason=reason)
        return FailureError(failure_of(UpstreamFault(reason), repeatable=operation.repeatable))

    @property
    def _gateway(self) -> Gateway:
        here = current_token().native_token
        for loop, gateway in reversed(self._gateways):
            if loop is here:
                return gateway
        raise FailureError(Unavailable())


def reconnect_pause(failures: int, reconnections: int) -> float:
    """Seconds before a stream is taken up again. Only the first time is immediate, whatever comes in between: a server that cuts
    off each stream behind one event must not be asked without end.
    """
    return exponential_backoff(RECONNECT_INITIAL, RECONNECT_CAP, max(failures - 2, 0)) if reconnections else 0.0


def _may_repeat(operation: DaemonOperation, exc: OutboundError | UpstreamFault) -> bool:
    """Whether the call has certainly had no effect, or may have it twice."""
    repeatable = operation.kind == "query" or operation.idempotent
    return exc.reason in _UNSENT or (exc.reason == "lost" and repeatable)


def _is_passing(failed: Exception) -> bool:
    """Whether the same may succeed soon."""
    return isinstance(failed, FailureError) and isinstance(failed.failure, Unavailable | Overloaded)


def _number(event: SseEvent) -> int | None:
    text = event.id if event.has_own_id else None
    if text is None or not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER):
        return None
    return int(text)


def _failure_of_status(reply: Reply) -> Failure:
    match reply.status:
        case 401:
            return AuthenticationRequired((), "")
        case 403:
            return InsufficientPermissions()
        case 404 | 405:
            return MethodNotFound()
        case 429:
            seconds = retry_after_seconds(reply.head.value(b"retry-after"))
            return Overloaded(None if seconds is None else round(seconds * 1000))
        case 502 | 503:
            return Unavailable()
        case 408 | 504:
            return TimedOut()
        case _:
            return Internal()
