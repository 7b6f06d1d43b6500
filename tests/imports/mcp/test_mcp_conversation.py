"""Sessions with servers that are processes: odd ones, and our own in both eras."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest

from discreet.client.connection import Connection
from discreet.client.errors import InvalidReply
from discreet.dialects.mcp.generated import tables
from discreet.imports.mcp import model
from discreet.imports.mcp.model import McpImport
from discreet.imports.mcp.server_messages import ServerMessages
from discreet.imports.mcp.session import Opener, Session, read_mcp
from discreet.imports.model import ImportFailed
from discreet.imports.targets import Command
from support.backends import both_loops
from support.waits import DEADLINE_SECONDS, until

from .conftest import odd

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="signals and groups of POSIX")]


@asynccontextmanager
async def talking(command: Command) -> AsyncGenerator[Session]:
    opening = Opener(command, ServerMessages("odd"))
    with anyio.fail_after(DEADLINE_SECONDS):
        async with opening.open() as conversation:
            yield conversation


async def act(conversation: Session, do: str, **given: Any) -> Any:
    result = await conversation.request("tools/call", {"name": "act", "arguments": {"do": do, **given}})
    return msgspec.json.decode(result)


def said(text: str) -> Mapping[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


# -- beginnings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_legacy_revision_is_agreed_on(revision: str) -> None:
    async with talking(odd(revision)) as conversation:
        assert conversation.agreed.revision == revision
        assert conversation.agreed.name == "odd"


@pytest.mark.parametrize("mode", ["python", "dies"])
async def test_whatever_an_old_server_does_with_an_unknown_request_it_is_initialized(mode: str) -> None:
    async with talking(odd(mode)) as conversation:
        assert conversation.agreed.revision == "2025-11-25"
        assert await act(conversation, "hello") == said('{"do": "hello"}')


async def test_a_server_that_ignores_unknown_requests_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.imports.mcp.session.PROBE_SECONDS", 0.2)
    async with talking(odd("silent")) as conversation:
        heard = (await act(conversation, "heard"))["content"][0]["text"]
        assert heard == "initialize notifications/initialized tools/call"


async def test_which_era_a_server_speaks_is_asked_once() -> None:
    opening = Opener(odd("python"), ServerMessages("odd"))
    heard: list[str] = []
    for _ in range(2):
        async with opening.open() as conversation:
            heard.append((await act(conversation, "heard"))["content"][0]["text"].split()[0])
    assert heard == ["server/discover", "initialize"]


# -- messages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("do", ["huge", "huge-hidden"])
async def test_a_reply_that_is_too_large_fails_its_own_call_alone(do: str) -> None:
    async with talking(odd()) as conversation, anyio.create_task_group() as tasks:
        tasks.start_soon(act, conversation, "never")
        with pytest.raises(InvalidReply, match="larger than"):
            await act(conversation, do)
        assert await act(conversation, "next") == said('{"do": "next"}')
        tasks.cancel_scope.cancel()


async def test_a_server_may_ping_and_nothing_else() -> None:
    async with talking(odd()) as conversation:
        await act(conversation, "ask")
        heard: list[str] = []
        while len(answers := [each for each in heard if each in ("{}", "-32601")]) < 4:  # in any order, beside calls
            heard = (await act(conversation, "heard"))["content"][0]["text"].split()
        assert sorted(answers) == ["-32601", "-32601", "-32601", "{}"]


@both_loops
async def test_what_waits_for_a_server_that_does_not_read_is_bounded() -> None:
    async with talking(odd()) as conversation, anyio.create_task_group() as tasks:
        tasks.start_soon(act, conversation, "deaf")
        for _ in range(40):
            tasks.start_soon(lambda: act(conversation, "x", text="x" * 1024 * 1024))
        connection = conversation._connection
        assert isinstance(connection, Connection)
        await until(lambda: connection._channel.congested)
        await anyio.wait_all_tasks_blocked()
        assert connection._channel.unsent < 2 * 1024 * 1024
        tasks.cancel_scope.cancel()


# -- reading before there is a loop ----------------------------------------------------------------------------------


def read(*modes: str, seconds: float = 10.0) -> McpImport:
    return read_mcp(odd(*modes), "odd", seconds=seconds)


async def test_an_import_may_be_read_while_a_loop_runs() -> None:
    assert [operation.name for operation in read().operations] == ["act"]
    assert read().era == "legacy"


@pytest.mark.parametrize(
    ("modes", "why"),
    [
        (["endless"], "tools/list has more than"),
        (["circle"], "tools/list names the same page twice"),
        (["no-list"], "the answer to tools/list is no list"),
        (["list-refused"], "it refused to list what it offers with the error -32000"),
        (["2099-01-01"], "it speaks no revision of MCP that is known here"),
    ],
)
async def test_what_is_wrong_with_a_server_is_told_in_one_line(modes: list[str], why: str) -> None:
    with pytest.raises(ImportFailed) as caught:
        read(*modes)
    text = str(caught.value)
    assert text.startswith(f"MCP server {sys.executable}: ")
    assert why in text
    assert "\n" not in text


async def test_a_server_that_says_nothing_is_given_up() -> None:
    with pytest.raises(ImportFailed, match="it did not answer within"):
        read("mute", seconds=0.5)


def test_the_revisions_that_imports_speak_are_those_of_the_published_schemas() -> None:
    assert (model.LEGACY_REVISIONS, model.MODERN_REVISION) == (
        tables.LEGACY_REVISIONS,
        tables.MODERN_REVISION,
    )
