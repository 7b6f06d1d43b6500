"""Resources, templates and prompts of a mounted daemon, as clients of MCP get them: under names and URIs of the mount."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import pytest

from discreet import Service, mcp
from discreet.client import Peer
from discreet.client.errors import RemoteError
from discreet.gateway.openapi.document import About, document_text, openapi_document
from discreet.imports.daemon.calls import PeerUpstream
from discreet.imports.daemon.contracts import DaemonImport, import_of, read_own_document, without_numbers
from discreet.schemas.documents import snapshot
from discreet.testing import in_memory
from support.logged_events import LoggedEvents
from support.mcp_wire import META as META_OF_REQUESTS
from support.mounts import assembled

pytestmark = pytest.mark.anyio
META = {"_meta": META_OF_REQUESTS}


def notes() -> Service:
    service = Service("notes")

    @service.resource("notes://all", mime_type="text/plain", title="All notes")
    async def everything() -> str:
        """All notes."""
        return "one\ntwo"

    @service.resource("notes://day/{day}")
    async def one(day: Literal["monday", "sunday"]) -> dict[str, str]:
        """The note of a day."""
        return {"day": day}

    @service.resource("notes://picture", mime_type="image/png")
    async def picture() -> bytes:
        return b"png"

    @service.resource("notes://own")
    async def own() -> list[mcp.TextResourceContents]:
        return [mcp.TextResourceContents(uri="notes://own/a", text="a")]

    @service.resource("ui://notes/page")
    async def page() -> str:
        return "<p>"

    @service.prompt(title="Summary")
    async def summarize(day: str, words: int = 50) -> str:
        """Summarize the notes of a day."""
        return f"Summarize {day} in {words} words."

    @service.prompt
    async def compare() -> list[mcp.PromptMessage]:
        link = mcp.ResourceLink(uri="notes://all", name="all")
        return [mcp.PromptMessage(role="assistant", content=link)]

    @service.query
    async def count() -> int:
        return 2

    return service


def by_contracts(service: Service) -> DaemonImport:
    return import_of(snapshot(service.operations).operations.values())


def by_document(service: Service) -> DaemonImport:
    found = read_own_document(document_text(openapi_document(service.operations, About(title="t", version="1"))))
    assert found is not None
    return found


def mounted(
    read: Callable[[Service], DaemonImport] = by_contracts, namespace: str = "archive", **options: Any
) -> Service:
    upstream = PeerUpstream("archive", partial(in_memory, notes(), timeout=None))
    return assembled(without_numbers(read(notes())), upstream, namespace, **options)


async def contents(peer: Peer, uri: str) -> Any:
    (found,) = (await peer.call("resources/read", {**META, "uri": uri}))["contents"]
    return found


@pytest.mark.parametrize("read", [by_contracts, by_document])
async def test_resources_templates_and_prompts_of_a_mount_are_offered_as_such(
    read: Callable[[Service], DaemonImport],
) -> None:
    async with in_memory(mounted(read), dialect="mcp") as peer:
        tools = (await peer.call("tools/list", META))["tools"]
        assert [each["name"] for each in tools] == ["archive_notes_count", "archive_notes_page"]
        resources = (await peer.call("resources/list", META))["resources"]
        assert {each["uri"]: each.get("title") for each in resources} == {
            "notes://archive/all": "All notes",
            "notes://archive/own": None,
            "notes://archive/picture": None,
        }
        (template,) = (await peer.call("resources/templates/list", META))["resourceTemplates"]
        assert template == {
            "uriTemplate": "notes://archive/day/{day}",
            "name": "archive/notes/one",
            "description": "The note of a day.",
        }
        prompts = {each["name"]: each for each in (await peer.call("prompts/list", META))["prompts"]}
        assert sorted(prompts) == ["archive_notes_compare", "archive_notes_summarize"]
        summary = prompts["archive_notes_summarize"]
        assert (summary["title"], [each["name"] for each in summary["arguments"]]) == ("Summary", ["day", "words"])


async def test_they_are_read_got_and_completed() -> None:
    async with in_memory(mounted(), dialect="mcp") as peer:
        uri = "notes://archive/all"
        assert await contents(peer, uri) == {"uri": uri, "mimeType": "text/plain", "text": "one\ntwo"}
        uri = "notes://archive/day/monday"
        assert await contents(peer, uri) == {"uri": uri, "mimeType": "application/json", "text": '{"day":"monday"}'}
        uri = "notes://archive/picture"
        assert await contents(peer, uri) == {"uri": uri, "mimeType": "image/png", "blob": "cG5n"}
        assert await contents(peer, "notes://archive/own") == {"uri": "notes://archive/own/a", "text": "a"}
        asked = {"name": "archive_notes_summarize", "arguments": {"day": "monday", "words": "7"}}
        (message,) = (await peer.call("prompts/get", {**META, **asked}))["messages"]
        assert message["content"]["text"] == "Summarize monday in 7 words."
        (message,) = (await peer.call("prompts/get", {**META, "name": "archive_notes_compare"}))["messages"]
        assert (message["role"], message["content"]["uri"]) == ("assistant", "notes://archive/all")
        ref = {"type": "ref/resource", "uri": "notes://archive/day/{day}"}
        completed = await peer.call(
            "completion/complete", {**META, "ref": ref, "argument": {"name": "day", "value": "s"}}
        )
        assert completed["completion"]["values"] == ["sunday"]
        with pytest.raises(RemoteError):
            await contents(peer, "notes://archive/day/tuesday")


async def test_only_those_are_offered_that_the_mount_exposes() -> None:
    async with in_memory(mounted(expose=["notes/one"]), dialect="mcp") as peer:
        assert (await peer.call("resources/list", META))["resources"] == []
        assert len((await peer.call("resources/templates/list", META))["resourceTemplates"]) == 1


async def test_a_daemon_whose_clients_are_not_of_mcp_does_not_warn_of_them(logged: LoggedEvents) -> None:
    async with in_memory(mounted()) as peer:
        assert await peer.call("archive/notes/everything") == "one\ntwo"
    warned = [fields["methods"] for name, fields in logged() if name == "dialect.undeclared"]
    assert all("archive" not in method for methods in warned for method in methods)


async def test_a_mount_of_a_mount_passes_them_on() -> None:
    upstream = PeerUpstream("outer", partial(in_memory, mounted(), timeout=None))
    outer = assembled(without_numbers(by_contracts(mounted())), upstream, "outer")
    async with in_memory(outer, dialect="mcp") as peer:
        uri = "notes://outer/archive/all"
        assert (await contents(peer, uri))["text"] == "one\ntwo"
