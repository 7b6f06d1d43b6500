"""Calls the operations of a daemon by a peer to it: to one that is started as a process, or to a gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeAlias, final

from anyio.lowlevel import current_token
from msgspec import Raw

from ...client.errors import ClientError, ConnectionFailed
from ...client.peer import Peer
from ...daemon.operations.context import LAST_EVENT_ID, LONGEST_NUMBER, Context
from ...daemon.operations.spec import ServerEvent
from ...errors.exceptions import FailureError
from ...errors.failures import Unavailable
from ..model import ImportedOperation
from .carried import NOBODY, MountIdentity, carried, hold
from .failures import raised_for
from .model import DaemonOperation

ATTEMPTS: Final = 2
"""How often a call is made that found no process, or whose process died though it may be repeated."""

WINDOW: Final = 32
"""Events of one stream that may wait here for its consumer. All streams share the connection, and nobody waits for a slow one."""

OpenPeer: TypeAlias = Callable[[], AbstractAsyncContextManager[Peer]]
"""Gives the peer for as long as the block runs. What takes time may be put off to its first call."""


@final
class PeerUpstream:
    """`name` is that of the import in the log. `by_http` is whether the peer is one to a gateway: then streams have connections
    of their own, and events may have numbers."""

    def __init__(
        self, name: str, open_peer: OpenPeer, identity: MountIdentity = NOBODY, *, by_http: bool = False
    ) -> None:
        self._name = name
        self._open_peer = open_peer
        self._identity = identity
        self._by_http = by_http
        self._peers: list[tuple[object, Peer]] = []

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """While it is open calls can be made, in this event loop."""
        async with self._open_peer() as peer:
            mine = _loop(), peer
            self._peers.append(mine)
            try:
                yield
            finally:
                self._peers.remove(mine)

    async def call(self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context) -> Raw:
        assert isinstance(operation, DaemonOperation)
        told = not self._by_http and ctx.progress_token is not None and operation.positions is None
        hold.set(ctx.hold_memory)
        params, service_params = params_of(operation, arguments), carried(ctx, self._name, self._identity)
        for attempt in range(ATTEMPTS):
            try:
                return await self._peer.call(
                    operation.method,
                    params,
                    type=Raw,
                    timeout=None,
                    service_params=service_params,
                    on_progress=ctx.progress if told else None,
                )
            except ClientError as exc:
                if attempt + 1 < ATTEMPTS and _may_repeat(operation, exc):
                    continue
                raise raised_for(exc, operation, self._name) from exc
        raise AssertionError("the last attempt returns or raises")

    async def stream(
        self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context
    ) -> AsyncGenerator[Raw | ServerEvent[Raw], None]:
        assert isinstance(operation, DaemonOperation)
        params, service_params = params_of(operation, arguments), carried(ctx, self._name, self._identity)
        if (last := ctx.service_params.get(LAST_EVENT_ID)) is not None:
            service_params[LAST_EVENT_ID] = last
        begun = False
        for attempt in range(ATTEMPTS):
            subscription = self._peer.subscribe(
                operation.method,
                params,
                type=Raw,
                service_params=service_params,
                window=None if self._by_http else WINDOW,
            )
            try:
                async with subscription:
                    async for event in subscription:
                        begun = True
                        number = _number(subscription.last_event_id) if operation.numbered else None
                        yield event if number is None else ServerEvent(event, id=number)
                return
            except ClientError as exc:
                unsent = isinstance(exc, ConnectionFailed) and not exc.sent
                if attempt + 1 < ATTEMPTS and unsent and not begun:
                    continue
                raise raised_for(exc, operation, self._name) from exc

    @property
    def _peer(self) -> Peer:
        here = _loop()
        for loop, peer in reversed(self._peers):
            if loop is here:
                return peer
        raise FailureError(Unavailable())


def _loop() -> object:
    return current_token().native_token


def params_of(operation: DaemonOperation, arguments: Mapping[str, Any]) -> Any:  # Any: JSON
    """The params as the server takes them. By position they end with the last one that is given."""
    if operation.positions is None:
        return arguments
    given = [arguments.get(name) for name in operation.positions]
    while given and operation.positions[len(given) - 1] not in arguments:
        given.pop()
    return given


def _number(event_id: str | None) -> int | None:
    if event_id is None or not (event_id.isascii() and event_id.isdecimal() and len(event_id) <= LONGEST_NUMBER):
        return None
    return int(event_id)


def _may_repeat(operation: DaemonOperation, exc: ClientError) -> bool:
    """Whether the call has certainly had no effect, or may have it twice."""
    if not isinstance(exc, ConnectionFailed):
        return False
    return not exc.sent or operation.kind == "query" or operation.idempotent
