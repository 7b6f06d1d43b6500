"""Answers the server's requests, each in a task of its own. Bounds what waits meanwhile, in number and in bytes.

Never reads, and never ends the connection itself: `overrun` is told why it must end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, final

import anyio
from anyio.abc import TaskGroup

from ..errors import ConnectionFailed, ConnectionLoss
from ..messages import MAX_MESSAGE_BYTES, ServerRequest
from .handlers import Handlers

MAX_SERVER_REQUESTS: Final = 1024
"""Requests of the server that may run at once. A server that sends more is broken."""

MAX_REQUEST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of requests that may run at once. A single request may be larger."""

MAX_REPLY_BYTES: Final = MAX_MESSAGE_BYTES
"""Bytes of replies that may wait until the server reads. A single reply may be larger."""


@final
class Answers:
    """The requests of one connection that are not answered yet.

    `post` queues a message to the server; `wait_for_space` waits until it may be called. It raises `ConnectionFailed` when
    the server no longer reads.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        handlers: Handlers,
        *,
        post: Callable[[bytes], None],
        wait_for_space: Callable[[], Awaitable[None]],
        overrun: Callable[[ConnectionLoss], None],
    ) -> None:
        self._tasks = tasks
        self._handlers = handlers
        self._post = post
        self._wait_for_space = wait_for_space
        self._overrun = overrun
        self._running = 0
        self._request_bytes = 0
        self._reply_bytes = 0

    def start(self, request: ServerRequest) -> None:
        """Start the request's handler. Never waits."""
        request = self._without_needless_params(request)
        if self._running >= MAX_SERVER_REQUESTS:
            self._overrun(ConnectionLoss(f"the server sent more than {MAX_SERVER_REQUESTS} requests at once"))
        elif self._request_bytes and self._request_bytes + request.size > MAX_REQUEST_BYTES:
            self._overrun(ConnectionLoss(f"the server sent more than {MAX_REQUEST_BYTES} bytes of requests at once"))
        else:
            self._running += 1
            self._request_bytes += request.size
            self._tasks.start_soon(self._answer, request, self._handlers.register(request))

    def _without_needless_params(self, request: ServerRequest) -> ServerRequest:
        """A request without a handler is refused by its id and method alone. What else it holds is freed."""
        if request.method in self._handlers.requests:
            return request
        return ServerRequest(request.id, request.method, None, len(request.id) + len(request.method))

    async def _answer(self, request: ServerRequest, scope: anyio.CancelScope) -> None:
        try:
            await self._send(await self._handlers.answer(request, scope))
        except ConnectionFailed:
            return  # the server no longer reads
        finally:
            self._running -= 1
            self._request_bytes -= request.size

    async def _send(self, reply: bytes) -> None:
        if self._reply_bytes and self._reply_bytes + len(reply) > MAX_REPLY_BYTES:
            self._overrun(ConnectionLoss(f"the server left more than {MAX_REPLY_BYTES} bytes of replies unread"))
        self._reply_bytes += len(reply)
        try:
            await self._wait_for_space()
            self._post(reply)
        finally:
            self._reply_bytes -= len(reply)
