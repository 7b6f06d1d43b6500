"""An HTTP server on loopback that answers as a test wants, on the event loop of the test. Not even its SSE is discreet's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
import anyio.abc
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from .waits import DEADLINE_SECONDS


class HttpRequest:
    """A request that has come, and the ways to answer it."""

    def __init__(
        self, stream: anyio.abc.SocketStream, connection: int, head: bytes, body: bytes, server: HttpServer
    ) -> None:
        line, *fields = head.decode("latin-1").split("\r\n")
        self.verb, self.path, _ = line.split(" ")
        self.connection = connection
        self.headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        self.message: Any = msgspec.json.decode(body) if body else None
        self._stream = stream
        self._server = server

    async def answer(self, status: int, body: bytes, **headers: str) -> None:
        """A whole response. `content_type` is a header."""
        lines = [f"HTTP/1.1 {status} Something", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self._stream.send("\r\n".join([*lines, "", ""]).encode() + body)

    async def json(self, value: object, status: int = 200, **headers: str) -> None:
        await self.answer(status, msgspec.json.encode(value), content_type="application/json", **headers)

    async def result(self, value: object) -> None:
        await self.json({"jsonrpc": "2.0", "id": self.message["id"], "result": value})

    async def error(self, error: Mapping[str, object], status: int = 200, **headers: str) -> None:
        await self.json({"jsonrpc": "2.0", "id": self.message["id"], "error": error}, status, **headers)

    async def begin_events(self) -> None:
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        await self._stream.send(head.encode())

    async def raw(self, data: bytes) -> None:
        """A piece of an event stream."""
        await self._stream.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def event(self, result: object, number: int | str | None = None) -> None:
        await self.event_of({"jsonrpc": "2.0", "id": self.message["id"], "result": result}, number)

    async def event_of(self, message: object, number: int | str | None = None) -> None:
        line = b"" if number is None else f"id: {number}\n".encode()
        await self.raw(b"%bdata: %b\n\n" % (line, msgspec.json.encode(message)))

    async def end_events(self) -> None:
        await self._stream.send(b"0\r\n\r\n")

    async def cut(self) -> None:
        """Close the connection, whatever is missing."""
        await self._stream.aclose()

    async def until_gone(self) -> None:
        """Wait until the client has closed the connection."""
        try:
            while True:
                await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._server.gone.set()


Answer: TypeAlias = Callable[[HttpRequest], Awaitable[None]]


class HttpServer:
    """`requests` are those that have come. `gone` is set when a client has left a request that waited for that."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[HttpRequest] = []
        self.gone = anyio.Event()
        self.connections = 0

    @property
    def methods(self) -> list[str]:
        return [each.message["method"] for each in self.requests]


@asynccontextmanager
async def http_server(*script: Answer) -> AsyncIterator[HttpServer]:
    """Each request is answered by the next function of the script; the last one answers all further ones."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server = HttpServer(f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/")

    async def serve(stream: anyio.abc.SocketStream) -> None:
        server.connections += 1
        connection = server.connections
        async with stream:
            buffered = BufferedByteReceiveStream(stream)
            try:
                while True:
                    head = await buffered.receive_until(b"\r\n\r\n", 65536)
                    length = next(
                        (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")),
                        0,
                    )
                    body = await buffered.receive_exactly(length) if length else b""
                    request = HttpRequest(stream, connection, head, body, server)
                    server.requests.append(request)
                    await script[min(len(server.requests), len(script)) - 1](request)
            except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                return

    with anyio.fail_after(DEADLINE_SECONDS):
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, serve)
            yield server
            tasks.cancel_scope.cancel()
