"""Calls an ASGI app in the event loop of a test, and reads its streams as they come. Any event loop."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from .waits import DEADLINE_SECONDS

JSON = {"content-type": "application/json"}


class Reply:
    """A response, whose body is read with `body` or `events`. `status` is 0 where the app sent none.

    While it `stalls`, its client takes nothing of what is sent to it.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.started = anyio.Event()
        self.stalls = False
        self.unread = b""
        """The part of the chunks that `mcp_http.events` has taken and not yet given."""
        self._send, self._receive = anyio.create_memory_object_stream[bytes](math.inf)

    async def take(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            self.started.set()
        else:
            if self.stalls:
                await anyio.sleep_forever()  # until the client has gone
            if message.get("body"):
                self._send.send_nowait(message["body"])
            if not message.get("more_body"):
                self._send.close()

    def end(self) -> None:
        self.started.set()
        self._send.close()

    def close(self) -> None:
        self._receive.close()

    async def body(self) -> bytes:
        with anyio.fail_after(DEADLINE_SECONDS):
            return b"".join([chunk async for chunk in self._receive])

    async def json(self) -> Any:
        return msgspec.json.decode(await self.body())

    async def chunk(self) -> bytes:
        """What was sent in one piece."""
        with anyio.fail_after(DEADLINE_SECONDS):
            return await self._receive.receive()

    async def events(self) -> AsyncGenerator[tuple[str | None, Any]]:
        """The events as they come: id and data. Comments are left out."""
        buffered = b""
        while True:
            with anyio.fail_after(DEADLINE_SECONDS):
                try:
                    buffered += await self._receive.receive()
                except anyio.EndOfStream:
                    return
            *whole, buffered = buffered.split(b"\n\n")
            for event in whole:
                fields = [line.split(": ", 1) for line in event.decode().split("\n") if not line.startswith(":")]
                data = [value for name, value in fields if name == "data"]
                if data:
                    yield dict(fields).get("id"), msgspec.json.decode("\n".join(data))


class AsgiClient:
    """`headers` go with every request. `client` is the peer's address."""

    def __init__(self, app: Any, headers: Mapping[str, str] | None = None, *, client: str = "127.0.0.1") -> None:
        self._app = app
        self.headers = {"host": "localhost", **(headers or {})}
        self.client = client

    @asynccontextmanager
    async def open(
        self, method: str, path: str, body: bytes | None = b"", headers: Mapping[str, str] | None = None, **scope: Any
    ) -> AsyncGenerator[Reply]:
        """A request; leaving the block before its end disconnects the client, and waits for the app to notice. A `body` of None
        does not come."""
        path, _, query = path.partition("?")
        reply, gone = Reply(), anyio.Event()
        unread = [] if body is None else [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if unread:
                return unread.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def run() -> None:
            try:
                await self._app(
                    {
                        "type": "http",
                        "asgi": {"version": "3.0", "spec_version": "2.3"},
                        "http_version": "1.1",
                        "method": method,
                        "scheme": "http",
                        "path": path,
                        "raw_path": path.encode(),
                        "query_string": query.encode(),
                        "root_path": "",
                        "headers": [
                            (name.lower().encode(), value.encode())
                            for name, value in {**self.headers, **(headers or {})}.items()
                        ],
                        "client": (self.client, 50000),
                        "server": ("localhost", 80),
                        **scope,
                    },
                    receive,
                    reply.take,
                )
            finally:
                reply.end()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                try:
                    with anyio.fail_after(DEADLINE_SECONDS):
                        await reply.started.wait()
                    yield reply
                finally:
                    gone.set()
        finally:
            reply.close()

    async def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a whole response."""
        async with self.open(method, path, body, headers) as reply:
            return reply.status, reply.headers, await reply.body()

    async def call(self, method: str, params: object = None, *, call_id: object = 1, **headers: str) -> Any:
        """The JSON-RPC response to a call."""
        async with self.stream(method, params, call_id=call_id, **headers) as reply:
            return await reply.json()

    def stream(
        self, method: str, params: object = None, *, call_id: object = 1, path: str = "/", **headers: str
    ) -> Any:
        """The response to a call, as it comes. `headers` have `_` for `-`."""
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params or {}})
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.open("POST", path, body, {**JSON, **given})
