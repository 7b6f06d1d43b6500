"""A client of MCP's Streamable HTTP, in the event loop of a test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Final

import anyio
import msgspec

from discreet.daemon.memory import MemoryBudget

from .asgi_client import AsgiClient, Reply
from .waits import DEADLINE_SECONDS

MODERN: Final = "2026-07-28"
BOTH: Final = "application/json, text/event-stream"
META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
_NAMING: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Answer(msgspec.Struct):
    """A whole response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def result(self) -> Any:
        return self.json["result"]

    @property
    def code(self) -> int:
        code: int = self.json["error"]["code"]
        return code


class McpHttp:
    """`revision` is what it says it speaks. Until `begin` it has no session. `headers` go with every request, None for none."""

    def __init__(self, client: AsgiClient, revision: str = "2025-11-25", **headers: str) -> None:
        self.client = client
        self.revision = revision
        self.session = ""
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    async def begin(self, **capabilities: Any) -> Answer:
        """The handshake of legacy revisions; what `initialize` was answered with."""
        hello = {"name": "test", "version": "1"}
        params = {"protocolVersion": self.revision, "capabilities": capabilities, "clientInfo": hello}
        answer = await self.post("initialize", params, 0)
        if answer.status == 200:
            self.session = answer.headers["mcp-session-id"]
            assert (await self.note("notifications/initialized")).status == 202
        return answer

    def message(self, method: str, params: Any = None, call_id: object = 1) -> dict[str, Any]:
        given = dict(params or {})
        if self.revision == MODERN:
            given["_meta"] = META | given.get("_meta", {})
        told = {} if call_id is None else {"id": call_id}
        return {"jsonrpc": "2.0", **told, "method": method, "params": given}

    def _headers(self, message: Any, more: Mapping[str, str | None]) -> dict[str, str]:
        headers: dict[str, str | None] = {"accept": BOTH, "content-type": "application/json", **self.headers}
        if self.session:
            headers |= {"mcp-session-id": self.session, "mcp-protocol-version": self.revision}
        if self.revision == MODERN and isinstance(message, dict):
            method, params = message["method"], message["params"]
            headers |= {"mcp-protocol-version": MODERN, "mcp-method": method}
            if method in _NAMING:
                headers["mcp-name"] = params.get(_NAMING[method])
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        return {name: value for name, value in headers.items() if value is not None}

    def open(
        self, method: str, params: Any = None, call_id: object = 1, **headers: str | None
    ) -> AbstractAsyncContextManager[Reply]:
        """The response to a request as it comes. `headers` have `_` for `-`; None leaves one out."""
        return self.open_body(self.message(method, params, call_id), **headers)

    def open_body(self, message: Any, **headers: str | None) -> AbstractAsyncContextManager[Reply]:
        body = message if isinstance(message, bytes) else msgspec.json.encode(message)
        return self.client.open("POST", "/mcp", body, self._headers(message, headers))

    async def send(self, message: Any, **headers: str | None) -> Answer:
        """The whole response to a body: JSON of this value, or these bytes."""
        async with self.open_body(message, **headers) as reply:
            return Answer(reply.status, reply.headers, await reply.body())

    async def post(self, method: str, params: Any = None, call_id: object = 1, **headers: str | None) -> Answer:
        return await self.send(self.message(method, params, call_id), **headers)

    async def call(self, tool: str, call_id: object = 1, **arguments: Any) -> Answer:
        return await self.post("tools/call", {"name": tool, "arguments": arguments}, call_id)

    async def note(self, method: str, params: Any = None) -> Answer:
        return await self.post(method, params, None)

    async def reply(self, call_id: object, result: Any) -> Answer:
        """Answer a request of the server."""
        return await self.send({"jsonrpc": "2.0", "id": call_id, "result": result})

    def listen(self, **headers: str | None) -> AbstractAsyncContextManager[Reply]:
        """The stream that belongs to no request; with `last_event_id` one that was cut off."""
        return self.client.open("GET", "/mcp", b"", self._headers(None, headers))

    async def get(self, **headers: str | None) -> Answer:
        async with self.listen(**headers) as reply:
            return Answer(reply.status, reply.headers, await reply.body())

    async def delete(self, **headers: str | None) -> Answer:
        return Answer(*await self.client.request("DELETE", "/mcp", b"", self._headers(None, headers)))


async def events(reply: Reply) -> AsyncGenerator[tuple[str | None, Any]]:
    """The events of a stream as they come: id, and message; None for the message where there is none."""
    assert reply.headers["content-type"].startswith("text/event-stream")
    while True:
        while b"\n\n" in reply.unread:
            event, _, reply.unread = reply.unread.partition(b"\n\n")
            fields = dict(line.split(":", 1) for line in event.decode().split("\n") if not line.startswith(":"))
            if "data" in fields:
                data = fields["data"].strip()
                yield fields.get("id", "").strip() or None, msgspec.json.decode(data) if data else None
        try:
            reply.unread += await reply.chunk()
        except anyio.EndOfStream:
            return


async def messages(reply: Reply) -> list[Any]:
    """All messages until the end of the stream."""
    return [message async for _, message in events(reply) if message is not None]


async def first(reply: Reply, count: int = 1) -> list[tuple[str | None, Any]]:
    """So many messages of a stream that goes on, with their ids."""
    found: list[tuple[str | None, Any]] = []
    async with aclosing(events(reply)) as coming:
        async for number, message in coming:
            if message is not None:
                found.append((number, message))
            if len(found) == count:
                return found
    raise AssertionError(f"the stream has ended after {found}")


async def begun(client: AsgiClient, revision: str = "2025-11-25", **capabilities: Any) -> McpHttp:
    """A client with a session."""
    found = McpHttp(client, revision)
    with anyio.fail_after(DEADLINE_SECONDS):
        assert (await found.begin(**capabilities)).status == 200
    return found


def budget(client: AsgiClient) -> MemoryBudget:
    """The memory budget of the daemon behind it."""
    found: MemoryBudget = client._app._gateway._host.memory
    return found
