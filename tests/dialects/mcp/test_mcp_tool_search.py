"""Two tools in place of many: found by words, called by name, and no more of them than the caller may call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from discreet import DeclarationError, OperationError, Service
from discreet.daemon.host import Host
from discreet.daemon.operations.access import Access
from discreet.daemon.operations.identity import Identity
from discreet.daemon.settings import Settings
from discreet.dialects.mcp.state import Offered
from support.mcp_wire import MCP, McpClient

pytestmark = pytest.mark.anyio


class Gone(OperationError, code="GONE"):
    """It is gone."""


def forge() -> Service:
    service = Service("forge")

    @service.query
    def list_repositories(owner: str, limit: int = 10) -> list[str]:
        """List what somebody has."""
        return [owner] * limit

    @service.mutation(errors=[Gone])
    def createIssue(repository: str, labels: list[str]) -> str:  # noqa: N802 - names come as they are
        """Open an issue in a repository."""
        if repository == "gone":
            raise Gone
        return f"{repository} {labels}"

    @service.query
    def star_count(owner: str) -> int:
        """Count the stars of the repositories."""
        return 3

    @service.mutation(scopes=["admin"])
    def delete_repository(name: str) -> None:
        """Delete a repository."""

    return service


@asynccontextmanager
async def searching(serving: Any, service: Service, **settings: Any) -> AsyncGenerator[McpClient]:
    async with serving(service, **MCP, tool_search=True, **settings) as wire:
        client = McpClient(wire, "2025-11-25")
        await client.begin()
        yield client


async def found(client: McpClient, query: str, **arguments: Any) -> list[str]:
    params = {"name": "search_tools", "arguments": {"query": query, **arguments}}
    result = (await client.call("tools/call", params))["result"]["structuredContent"]
    assert all(tool["inputSchema"]["type"] == "object" for tool in result["tools"])
    return [tool["name"].removeprefix("forge_") for tool in result["tools"]]


async def called(client: McpClient, name: Any, arguments: Any) -> dict[str, Any]:
    return await client.call("tools/call", {"name": "call_tool", "arguments": {"name": name, "arguments": arguments}})


async def test_two_tools_are_listed(serving: Any) -> None:
    async with searching(serving, forge()) as client:
        tools = (await client.call("tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["search_tools", "call_tool"]
        assert "There are 4 tools." in tools[0]["description"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("list repositories", ["list_repositories", "star_count", "delete_repository", "createIssue"]),
        ("create an issue", ["createIssue"]),
        ("issues", ["createIssue"]),
        ("star", ["star_count"]),
        ("repo", ["list_repositories", "delete_repository", "createIssue", "star_count"]),
        ("weather", []),
        ("", []),
        ("?!", []),
    ],
)
async def test_tools_are_found_by_words_of_their_names_and_descriptions(
    serving: Any, query: str, names: list[str]
) -> None:
    async with searching(serving, forge()) as client:
        given = await found(client, query, limit=20)
        assert given[:1] == names[:1]
        assert sorted(given) == sorted(names)


async def test_no_more_are_found_than_asked_for(serving: Any) -> None:
    async with searching(serving, forge()) as client:
        params = {"name": "search_tools", "arguments": {"query": "repository", "limit": 1}}
        result = (await client.call("tools/call", params))["result"]["structuredContent"]
        assert (len(result["tools"]), result["more"]) == (1, 3)
        for limit in (0, 21):
            params = {"name": "search_tools", "arguments": {"query": "repository", "limit": limit}}
            assert (await client.call("tools/call", params))["result"]["structuredContent"]["code"] == "INVALID_INPUT"


async def test_a_tool_is_called_as_if_it_were_listed(serving: Any) -> None:
    async with searching(serving, forge()) as client:
        arguments = {"repository": "a", "labels": '["b"]'}
        answer = await called(client, "forge_createIssue", arguments)
        assert answer["result"]["structuredContent"] == {"result": "a ['b']"}
        packed = msgspec.json.encode({"name": "forge_createIssue", "arguments": arguments}).decode()
        answer = await client.call("tools/call", {"name": "call_tool", "arguments": packed})
        assert answer["result"]["structuredContent"] == {"result": "a ['b']"}
        direct = await client.call("tools/call", {"name": "forge_createIssue", "arguments": arguments})
        assert direct["result"]["structuredContent"] == {"result": "a ['b']"}
        failed = await called(client, "forge_createIssue", {"repository": "gone", "labels": []})
        assert failed["result"]["structuredContent"]["code"] == "GONE"


async def test_wrong_calls_name_the_param(serving: Any) -> None:
    async with searching(serving, forge()) as client:
        wrong = (await called(client, "forge_star_count", {}))["result"]["structuredContent"]
        assert (wrong["code"], wrong["details"]["param"]) == ("INVALID_INPUT", "arguments.arguments.owner")
        unknown = (await called(client, "forge_nothing", {}))["error"]
        assert (unknown["code"], unknown["data"]["param"]) == (-32602, "arguments.name")
        no_call = (await client.call("tools/call", {"name": "call_tool", "arguments": {"name": 5}}))["error"]
        assert (no_call["code"], no_call["data"]["param"]) == (-32602, "arguments")
        assert (await called(client, "call_tool", {}))["error"]["code"] == -32602  # it does not call itself


async def test_what_the_caller_may_not_call_is_neither_found_nor_called(serving: Any) -> None:
    access = Access(Identity("ann", frozenset()))
    async with searching(serving, forge(), access=access) as client:
        assert "delete_repository" not in await found(client, "delete repository", limit=20)
        tools = (await client.call("tools/list"))["result"]["tools"]
        assert "There are 3 tools." in tools[0]["description"]
        assert "error" in await called(client, "forge_delete_repository", {"name": "a"})


async def test_the_list_is_short_however_many_tools_there_are(serving: Any) -> None:
    service = Service("")

    def work(value: int) -> int:
        return value

    for number in range(1223):
        service.query(name=f"operation{number}", description="Do something with something. " * 5)(work)
    async with searching(serving, service) as client:
        listed = await client.call("tools/list")
        assert len(msgspec.json.encode(listed)) < 2000


@pytest.mark.parametrize("name", ["search_tools", "call_tool"])
def test_an_operation_of_such_a_name_fails_at_the_start(name: str) -> None:
    service = Service("")

    @service.query(name=name)
    def work() -> None: ...

    with pytest.raises(DeclarationError, match=f"--tool-search has a tool {name} of its own"):
        Offered(Host([service], Settings(tool_search=True), version="1"))
    Offered(Host([service], Settings(), version="1"))
