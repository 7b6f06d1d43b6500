"""Calls the operations of a daemon by a peer to it, such as one that is started as a process. One connection for all calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeAlias, final

from anyio.lowlevel import current_token
from msgspec import Raw

from ...client.errors import ClientError, ConnectionFailed
from ...client.peer import Peer
from ...daemon.operations.context import LAST_EVENT_ID, Context
from ...errors.exceptions import FailureError
from ...errors.failures import Unavailable
from ..model import ImportedOperation
from .carried import NOBODY, MountIdentity, carried
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
    """`name` is that of the import in the log."""

    def __init__(self, name: str, open_peer: OpenPeer, identity: MountIdentity = NOBODY) -> None:
        self._name = name
        self._open_peer = open_peer
        self._identity = identity
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
        on_progress = None if ctx.progress_token is None or operation.positions is not None else ctx.progress
        params, service_params = params_of(operation, arguments), carried(ctx, self._name, self._identity)
        for attempt in range(ATTEMPTS):
            try:
                return await self._peer.call(
                    operation.method,
                    params,
                    type=Raw,
                    timeout=None,
                    service_params=service_params,
                    on_progress=on_progress,
                )
            except ClientError as exc:
                if attempt + 1 < ATTEMPTS and _may_repeat(operation, exc):
                    continue
                raise raised_for(exc, operation, self._name) from exc
        raise AssertionError("the last attempt returns or raises")

    async def stream(
        self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context
    ) -> AsyncGenerator[Raw, None]:
        assert isinstance(operation, DaemonOperation)
        params, service_params = params_of(operation, arguments), carried(ctx, self._name, self._identity)
        if (last := ctx.service_params.get(LAST_EVENT_ID)) is not None:
            service_params[LAST_EVENT_ID] = last
        begun = False
        for attempt in range(ATTEMPTS):
            subscription = self._peer.subscribe(
                operation.method, params, type=Raw, service_params=service_params, window=WINDOW
            )
            try:
                async with subscription:
                    async for event in subscription:
                        begun = True
                        yield event
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


def _may_repeat(operation: DaemonOperation, exc: ClientError) -> bool:
    """Whether the call has certainly had no effect, or may have it twice."""
    if not isinstance(exc, ConnectionFailed):
        return False
    return not exc.sent or operation.kind == "query" or operation.idempotent
