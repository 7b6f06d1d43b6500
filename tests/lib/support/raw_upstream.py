"""A server on loopback that says on its sockets what a test likes, and what calls it."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream
from msgspec import Raw

from discreet.daemon.operations.context import Context
from discreet.imports.http.model import Body, HttpImport, HttpOperation, Param, Reply, SecurityScheme
from discreet.imports.http.upstream import HttpUpstream

from .waits import DEADLINE_SECONDS

LOST = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError)


class Received(NamedTuple):
    """A request as it came. Names of headers are in lower case."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def values(self, name: str) -> list[str]:
        return [value for known, value in self.headers if known == name]


class Conversation:
    """One connection, from the server's end."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self.stream = stream
        self._received = BufferedByteReceiveStream(stream)

    async def request(self) -> Received:
        head = (await self._received.receive_until(b"\r\n\r\n", 1 << 20)).decode("latin-1")
        first, *lines = head.split("\r\n")
        headers = [(name.lower(), value) for name, value in (line.split(": ", 1) for line in lines)]
        length = int(dict(headers).get("content-length", "0"))
        body = await self._received.receive_exactly(length) if length else b""
        method, target, version = first.split(" ")
        assert version == "HTTP/1.1"
        return Received(method, target, headers, body)

    async def send(self, data: bytes) -> None:
        await self.stream.send(data)

    async def reset(self) -> None:
        """End the connection with a reset instead of an end."""
        raw = self.stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.stream.aclose()

    async def deserted(self) -> None:
        """Until the other end has gone."""
        try:
            while True:
                await self._received.receive()
        except LOST:
            pass


Handle = Callable[[Conversation], Awaitable[None]]


class RawServer:
    """Counts what is open. `requests` and `answers` are those of `answering`."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = self.open = 0
        self.requests: list[Received] = []
        self.answers: list[bytes] = []
        self._news = anyio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def deserted(self) -> None:
        """Until nobody is connected."""
        while self.open:
            await self._news.wait()


@asynccontextmanager
async def serving(handle: Handle) -> AsyncIterator[RawServer]:
    """Each connection is handled by `handle`, and closed when that returns."""
    server = RawServer()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server.port = listener.extra(anyio.abc.SocketAttribute.local_port)

    async def converse(stream: anyio.abc.SocketStream) -> None:
        server.connections += 1
        server.open += 1
        try:
            async with stream:
                await handle(Conversation(stream))
        except LOST:
            pass
        finally:
            server.open -= 1
            server.tell()

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, converse)
        with anyio.fail_after(DEADLINE_SECONDS):
            yield server
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[RawServer]:
    """Answers each request with the next of these, and the last one for ever, on one connection as long as it lasts."""

    async def handle(conversation: Conversation) -> None:
        while True:
            server.requests.append(await conversation.request())
            await conversation.send(server.answers.pop(0) if len(server.answers) > 1 else server.answers[0])

    async with serving(handle) as server:
        server.answers = list(answers)
        yield server


def response(body: bytes = b"", *fields: str, status: int = 200, content_type: str = "application/json") -> bytes:
    lines = [
        f"HTTP/1.1 {status} Something",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        *fields,
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


JSON = {"application/json": "json"}
OK = (Reply("200", cast(Any, JSON)),)


def operation(method: str = "GET", path: str = "/x", **fields: Any) -> HttpOperation:
    fields = {"kind": "query", "input": {"type": "object"}, "replies": OK, "name": "op", **fields}
    return HttpOperation(method=method, path=path, **fields)


def upstream_of(
    *operations: HttpOperation, url: str = "", schemes: Mapping[str, SecurityScheme] = {}, **options: Any
) -> HttpUpstream:
    imported = HttpImport(title="shop", operations=operations, security_schemes=schemes)
    return HttpUpstream(imported, base_url=url, allow_private=options.pop("allow_private", True), **options)


def context(hold_memory: Callable[[int], None] = lambda _: None, **credentials: str) -> Context:
    """All that an upstream asks of a context."""
    return cast(Context, SimpleNamespace(credentials=credentials, hold_memory=hold_memory))


@asynccontextmanager
async def opened(*operations: HttpOperation, url: str, **options: Any) -> AsyncGenerator[HttpUpstream]:
    upstream = upstream_of(*operations, url=url, **options)
    async with upstream.opened():
        yield upstream


async def called(
    url: str, described: HttpOperation | None = None, arguments: dict[str, Any] | None = None, **options: Any
) -> Raw:
    """The result of one call of an upstream of its own."""
    described = described or operation()
    async with opened(described, url=url, **options) as upstream:
        return await upstream.call(described, arguments or {}, context())


__all__ = [
    "Body", "Conversation", "HttpImport", "HttpOperation", "Param", "RawServer", "Received", "Reply", "SecurityScheme", "answering",
    "called", "context", "opened", "operation", "response", "serving", "upstream_of",
]  # fmt: skip
