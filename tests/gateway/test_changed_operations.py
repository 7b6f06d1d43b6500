"""Operations that are replaced while they are served, as clients of HTTP see them."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from discreet import Service
from discreet.daemon.operations.service import Changes
from support.mcp_http import MODERN, McpHttp, begun, events, first

from .conftest import Serve

pytestmark = pytest.mark.anyio


def with_query(name: str) -> Service:
    service = Service("a")

    @service.query(name=name)
    async def handler() -> str:
        return name

    service.changes = Changes()
    return service


def replace(service: Service, name: str) -> None:
    assert service.changes is not None
    service.operations = with_query(name).operations
    service.changes.announce()


async def test_their_paths_and_the_document_are_those_of_now(serve: Serve) -> None:
    service = with_query("one")
    async with serve(service, http_operations=True) as client:

        async def seen() -> tuple[list[int], Any]:
            statuses = [(await client.request("GET", f"/operations/a/{name}"))[0] for name in ("one", "two")]
            document = msgspec.json.decode((await client.request("GET", "/openapi.json"))[2])
            return statuses, list(document["paths"])

        assert await seen() == ([200, 404], ["/operations/a/one"])
        replace(service, "two")
        assert await seen() == ([404, 200], ["/operations/a/two"])


async def test_the_document_is_made_anew_also_where_the_names_stay(serve: Serve) -> None:
    service = with_query("one")
    async with serve(service, http_operations=True) as client:
        before = (await client.request("GET", "/openapi.json"))[2]
        assert (await client.request("GET", "/openapi.json"))[2] == before
        other = with_query("one")
        assert service.changes is not None
        service.operations = [msgspec.structs.replace(other.operations[0], description="Another one.")]
        service.changes.announce()
        assert b"Another one." in (await client.request("GET", "/openapi.json"))[2]


async def test_sessions_of_mcp_are_told_on_their_streams(serve: Serve) -> None:
    service = with_query("one")
    async with serve(service, http_mcp=True, http_keep_alive=0.05) as client:
        ours = await begun(client)
        async with ours.listen(accept="text/event-stream") as reply:
            replace(service, "two")
            told = [message for _, message in await first(reply)]
        assert [each["method"] for each in told] == ["notifications/tools/list_changed"]
        listed = (await ours.post("tools/list")).result["tools"]
        assert [each["name"] for each in listed] == ["a_two"]
        assert (await ours.call("a_two")).result["content"][0]["text"] == "two"
        assert (await ours.call("a_one")).json["error"]["code"] == -32602


async def test_modern_clients_that_listen_are_told_on_the_stream_of_their_request(serve: Serve) -> None:
    service = with_query("one")
    async with serve(service, http_mcp=True, http_keep_alive=0.05) as client:
        ours = McpHttp(client, MODERN)
        wanted = {"notifications": {"toolsListChanged": True}}
        async with ours.open("subscriptions/listen", wanted) as reply, aclosing(events(reply)) as coming:
            _, acknowledged = await anext(coming)
            replace(service, "two")
            _, told = await anext(coming)
    assert acknowledged["params"]["notifications"] == wanted["notifications"]
    assert told["method"] == "notifications/tools/list_changed"
    assert told["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 1}
