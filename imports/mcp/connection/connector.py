"""Opens conversations with a server, in the era that it speaks, and listens for what it says of its lists."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, final

import anyio
from msgspec import Struct

from ....client.errors import ConnectionFailed, ConnectionLoss, InvalidReply
from ....client.process import EndBounds
from ....client.task_group import background_tasks
from ....errors.exceptions import FailureError
from ..model import Command, Era, Target
from .conversation import Agreed, Conversation, RpcError
from .handshake import LEGACY, PROBING, discover, initialize
from .server_messages import KINDS, ServerMessages

START_SECONDS: Final = 10.0
"""How long a server may take until it has answered the handshake."""

LISTEN_AGAIN_SECONDS: Final = 5.0
"""Between two requests that listen for changes."""

BOUNDS: Final = EndBounds(eof=0.7, terminate=0.5, kill=0.5)
"""How a server is ended: within the daemon's drain window of 2 s."""


def _no_headers() -> Mapping[str, str]:
    return {}


class Endpoint(Struct, frozen=True):
    """To which server. `headers()` are those of each request by HTTP, beside those of the target."""

    target: Target
    server: ServerMessages
    headers: Callable[[], Mapping[str, str]] = _no_headers


@final
class Connector:
    """`era` is what the server spoke last, None where nobody knows: then the first conversation finds out."""

    def __init__(self, way: Endpoint, era: Era | None = None, seconds: float = START_SECONDS) -> None:
        self._way = way
        self._seconds = seconds
        self.era = era

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Conversation]:
        """A conversation that is through the handshake. Raises `ConnectionFailed`."""
        deadline = anyio.current_time() + self._seconds
        if self.era != "legacy":
            async with self._linked(PROBING) as conversation:
                if await self._begin_new(conversation, deadline):
                    async with background_tasks() as tasks:
                        tasks.start_soon(follow, conversation)
                        yield conversation
                    return
        async with self._linked(LEGACY) as conversation, background_tasks() as tasks:
            await self._initialize(conversation, deadline)
            tasks.start_soon(follow, conversation)
            yield conversation

    async def _begin_new(self, conversation: Conversation, deadline: float) -> bool:
        """Whether this conversation can be used, which begins with a question that not every server knows."""
        with anyio.CancelScope(deadline=deadline) as scope:
            probed = await discover(conversation)
            if probed == "modern":
                self.era = "modern"
                return True
            if probed == "silent" and (isinstance(self._way.target, Command) or not conversation.usable):
                return False
        if scope.cancelled_caught:
            raise ConnectionFailed(ConnectionLoss(self._late))
        await self._initialize(conversation, deadline)
        return True

    async def _initialize(self, conversation: Conversation, deadline: float) -> None:
        with anyio.CancelScope(deadline=deadline) as scope:
            await initialize(conversation)
        if scope.cancelled_caught:
            raise ConnectionFailed(ConnectionLoss(self._late))
        self.era = "legacy"

    @property
    def _late(self) -> str:
        return f"it did not answer within {self._seconds:g} s"

    def _linked(self, agreed: Agreed) -> AbstractAsyncContextManager[Conversation]:
        way = self._way
        if isinstance(way.target, Command):
            from .stdio import open_process  # late: each transport loads when it is used

            return open_process(way.target, agreed, way.server, bounds=BOUNDS)
        from .http import open_http

        own = way.target.headers
        return open_http(way.target, agreed, way.server, headers=lambda: {**own, **way.headers()})


async def follow(conversation: Conversation) -> None:
    """Listen for changes of the server's lists, until cancelled or nothing more will come."""
    agreed = conversation.agreed
    if not agreed.modern:
        await conversation.listen()
        return
    wanted = {f"{kind}ListChanged": True for kind in KINDS if agreed.changes(kind)}
    while wanted and conversation.usable:
        try:
            await conversation.request("subscriptions/listen", {"notifications": wanted})
        except RpcError:
            return  # it knows no such thing after all
        except (ConnectionFailed, InvalidReply, FailureError):
            pass  # it may be there again soon
        await anyio.sleep(LISTEN_AGAIN_SECONDS)
        conversation.server.note_gap()
