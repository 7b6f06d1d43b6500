"""A client of MCP for tests: every message that comes is checked against the published schema of its revision, where it is
at hand."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jsonschema import Draft7Validator, Draft202012Validator

MODERN = "2026-07-28"
MCP = {"dialect": "mcp", "framing": "content-length"}
"""Settings: the framing is that of the wire."""
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


class McpClient:
    """Over a `Wire` to a daemon. `revision` is what it says it speaks. `notes` are the notifications that came."""

    def __init__(self, wire: Any, revision: str = "2025-11-25") -> None:
        self.wire = wire
        self.revision = revision
        self.notes: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []

    async def begin(self, **capabilities: Any) -> dict[str, Any]:
        """The handshake of legacy revisions."""
        params = {
            "protocolVersion": self.revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }
        answer = await self.call("initialize", params)
        await self.wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result: dict[str, Any] = answer["result"]
        return result

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        given = dict(params or {})
        if self.revision == MODERN:
            given["_meta"] = META | given.get("_meta", {})
        message: dict[str, Any] = self.wire.request(method, given)
        return message

    async def call(self, method: str, params: Any = None) -> dict[str, Any]:
        """Send a request and take its answer; what comes before goes to `notes` and `asked`."""
        message = self.request(method, params)
        await self.wire.send(message)
        return await self.answer(message)

    async def answer(self, to: dict[str, Any]) -> dict[str, Any]:
        while True:
            came = await self.receive()
            if "method" not in came:
                assert came.get("id") == to["id"], came
                if "result" in came:
                    check(self.revision, result_type(self.revision, to["method"]), came["result"])
                return came

    async def receive(self) -> dict[str, Any]:
        """The next message, whatever it is."""
        came: dict[str, Any] = await self.wire.receive()
        if "error" in came:
            check(self.revision, error_type(self.revision), came)
        elif "method" in came:
            (self.asked if "id" in came else self.notes).append(came)
            check(self.revision, message_type(came["method"], request="id" in came), came)
        return came

    async def tool(self, name: str, arguments: Any = None, **members: Any) -> dict[str, Any]:
        """The result of a tool."""
        answer = await self.call("tools/call", {"name": name, "arguments": arguments or {}, **members})
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result


@asynccontextmanager
async def mcp_client(
    serving: Any, hosted: Any, revision: str = "2025-11-25", **capabilities: Any
) -> AsyncGenerator[McpClient]:
    """A client of what is served. A legacy one has agreed on its revision."""
    async with serving(hosted, **MCP) as wire:
        client = McpClient(wire, revision)
        if revision != MODERN:
            assert (await client.begin(**capabilities))["protocolVersion"] == revision
        yield client


def result_type(revision: str, method: str) -> str:
    """The types that the result of a method may have, by their names in the schema."""
    if method == "server/discover":
        return "DiscoverResult"
    if method == "subscriptions/listen":
        return "SubscriptionsListenResult"
    name = RESULTS.get(method, "Result")
    if revision != MODERN or method not in MAY_ASK:
        return name
    return f"{name} | InputRequiredResult{' | CreateTaskResult' if method == 'tools/call' else ''}"


RESULTS = {
    "completion/complete": "CompleteResult",
    "initialize": "InitializeResult",
    "prompts/get": "GetPromptResult",
    "prompts/list": "ListPromptsResult",
    "resources/list": "ListResourcesResult",
    "resources/read": "ReadResourceResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "tools/call": "CallToolResult",
    "tools/list": "ListToolsResult",
    "tasks/cancel": "CancelTaskResult",
    "tasks/get": "GetTaskResult",
    "tasks/update": "UpdateTaskResult",
}
OF_TASKS = ("CreateTaskResult", "CancelTaskResult", "GetTaskResult", "UpdateTaskResult", "TaskStatusNotification")
"""The types of the extension, which has a schema of its own."""
MAY_ASK = ("prompts/get", "resources/read", "tools/call")


def error_type(revision: str) -> str:
    return "JSONRPCErrorResponse" if revision >= "2025-11-25" else "JSONRPCError"


def message_type(method: str, *, request: bool) -> str:
    special = {
        "notifications/message": "LoggingMessageNotification",
        "notifications/resources/updated": "ResourceUpdatedNotification",
        "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
        "notifications/cancelled": "CancelledNotification",
        "notifications/progress": "ProgressNotification",
        "notifications/tasks": "TaskStatusNotification",
        "elicitation/create": "ElicitRequest",
    }
    return special.get(method, f"JSONRPC{'Request' if request else 'Notification'}")


def check(revision: str, name: str, value: Any) -> None:
    """Raises for a value that is not of one of these types (`A | B`). Does nothing where there are no schemas."""
    if "DISCREET_SCHEMAS" not in os.environ:
        return
    failures: list[str] = []
    for one in name.split(" | "):
        errors = [error.message for error in validator(revision, one).iter_errors(value)]
        if not errors:
            return
        failures += errors
    raise AssertionError(f"{name} of {revision}: {failures}: {value}")


@cache
def validator(revision: str, name: str) -> Any:
    file = "tasks/schema.json" if name in OF_TASKS else f"{revision}.json"
    document = msgspec.json.decode((Path(os.environ["DISCREET_SCHEMAS"]) / "mcp" / file).read_bytes())
    words = "$defs" if "$defs" in document else "definitions"
    assert name in document[words], (revision, name)
    kind = Draft202012Validator if words == "$defs" else Draft7Validator
    return kind({words: document[words], "$ref": f"#/{words}/{name}"})
