"""Basic/transports of 2025-11-25: Session Management and Protocol Version Header; and the bounds of sessions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from discreet.daemon.host import Host
from discreet.daemon.logs import RepeatedWarning
from discreet.daemon.settings import Settings
from discreet.dialects.mcp.session import McpSession
from discreet.dialects.mcp.state import Offered
from discreet.errors.failures import Overloaded
from discreet.gateway.mcp import conversation
from discreet.gateway.mcp.conversation import SESSION_BYTES, OpenSession, Session, Sessions
from support.asgi_client import AsgiClient
from support.logged_events import logged_events
from support.mcp_http import McpHttp, begun, budget, messages
from support.vault import SECRET, digest
from support.waits import until

from ..conftest import Serve
from .conftest import SERVED, Works

pytestmark = pytest.mark.anyio

ADA = f"Bearer {SECRET}"
BOB = "Bearer other-token"
TOKENS = (f"ada:{digest(SECRET)}", f"bob:{digest('other-token')}")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_session_begins_with_initialize_and_has_an_id_that_nobody_guesses(
    client: AsgiClient, revision: str
) -> None:
    ids = set()
    for _ in range(3):
        ours = McpHttp(client, revision)
        answer = await ours.begin()
        assert answer.result["protocolVersion"] == revision
        assert "mcp-session-id" not in (await ours.post("ping")).headers
        ids.add(ours.session)
    assert len(ids) == 3
    assert all(re.fullmatch(r"[\x21-\x7e]{43,}", each) for each in ids)


async def test_who_gives_no_id_or_none_that_there_is(ours: McpHttp) -> None:
    for send in (lambda **h: ours.post("ping", **h), ours.get, ours.delete):
        assert (await send(mcp_session_id=None)).status == 400
        assert (await send(mcp_session_id="guessed")).status == 404
        assert (await send(mcp_session_id=ours.session[:-1])).status == 404
    assert (await ours.send({"jsonrpc": "2.0", "method": "initialize"}, mcp_session_id=None)).status == 400
    assert (await ours.post("ping")).status == 200


async def test_an_initialize_that_fails_begins_no_session(serve: Serve, works: Works) -> None:
    async with serve(works.service, http_max_sessions=1, **SERVED) as client:
        for _ in range(3):
            answer = await McpHttp(client).post("initialize", {})
            assert (answer.status, answer.code, "mcp-session-id" in answer.headers) == (200, -32602, False)
        assert (await McpHttp(client).begin()).status == 200


async def test_delete_ends_a_session_and_all_that_belongs_to_it(client: AsgiClient, works: Works) -> None:
    ours = await begun(client, roots={})
    async with (
        ours.open("tools/call", {"name": "work_wait"}) as waiting,
        ours.open("tools/call", {"name": "work_ask"}, 2) as asking,
        ours.listen() as listening,
    ):
        await works.began.wait()
        answer = await ours.delete()
        assert (answer.status, answer.body) == (204, b"")
        assert await messages(waiting) == []
        assert [each["method"] for each in await messages(asking)] in ([], ["roots/list"])
        assert await messages(listening) == []
    await until(lambda: works.done == ["cancelled"])
    for status in ((await ours.post("ping")).status, (await ours.get()).status, (await ours.delete()).status):
        assert status == 404
    ours.session = ""
    assert (await ours.begin()).status == 200


async def test_a_session_belongs_to_the_identity_that_began_it(serve: Serve, works: Works) -> None:
    async with serve(works.service, tokens=TOKENS, **SERVED) as client:
        ada, bob = McpHttp(client, authorization=ADA), McpHttp(client, authorization=BOB)
        for each in (ada, bob):
            assert (await each.begin()).status == 200
        bobs, bob.session = bob.session, ada.session
        for answer in (await bob.post("ping"), await bob.get(), await bob.delete(), await bob.note("notifications/x")):
            assert answer.status == 404
        bob.session = bobs
        assert {(await each.post("ping")).status for each in (ada, bob)} == {200}


async def test_equal_ids_in_two_sessions_are_two_requests(client: AsgiClient, works: Works) -> None:
    one, other = await begun(client), await begun(client)
    wait = {"name": "work_wait"}
    async with one.open("tools/call", wait, 7) as first, other.open("tools/call", wait, 7) as second:
        again = await one.post("ping", call_id=7)
        assert (again.status, again.code) == (400, -32600)
        await one.note("notifications/cancelled", {"requestId": 7})
        assert await messages(first) == []
        works.going.set()
        assert [each["id"] for each in await messages(second)] == [7]


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("2025-11-25", 200),
        ("2025-03-26", 200),
        (None, 200),
        ("2024-11-05", 400),
        ("2024-01-01", 400),
        ("nonsense", 400),
        ("", 400),
    ],
)
async def test_the_header_with_the_version_must_name_a_known_one(
    client: AsgiClient, ours: McpHttp, version: str | None, status: int
) -> None:
    assert (await ours.post("ping", mcp_protocol_version=version)).status == status
    assert (await McpHttp(client).post("initialize", {}, mcp_protocol_version=version)).status == status


async def test_the_revision_before_this_transport_is_named_only_by_those_who_agreed_on_it(client: AsgiClient) -> None:
    assert (await (await begun(client, "2024-11-05")).post("ping")).status == 200
    assert (await (await begun(client)).post("ping", mcp_protocol_version="2024-11-05")).status == 400


# -- bounds ----------------------------------------------------------------------------------------------------------


async def test_one_session_too_many_ends_the_one_that_is_idle_for_longest(serve: Serve, works: Works) -> None:
    async with serve(works.service, http_max_sessions=3, tokens=TOKENS, **SERVED) as client:
        bob = McpHttp(client, authorization=BOB)
        await bob.begin()
        adas = [McpHttp(client, authorization=ADA) for _ in range(4)]
        for each in adas[:3]:
            await each.begin()
        await adas[0].post("ping")
        await adas[3].begin()
        assert [(await each.post("ping")).status for each in (*adas, bob)] == [200, 404, 200, 200, 200]


async def test_a_session_that_is_used_is_never_the_one_that_ends(serve: Serve, works: Works) -> None:
    async with serve(works.service, http_max_sessions=1, **SERVED) as client:
        ours = await begun(client)
        async with ours.listen():
            refused = await McpHttp(client).begin()
            assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert (await McpHttp(client).begin()).status == 200
        assert (await ours.post("ping")).status == 404


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 5}])
async def test_a_handshake_that_fails_ends_no_idle_session(serve: Serve, works: Works, params: Any) -> None:
    async with serve(works.service, http_max_sessions=1, **SERVED) as client:
        ours = await begun(client)
        assert "error" in (await McpHttp(client).post("initialize", params)).json
        assert (await ours.post("ping")).status == 200


async def test_an_answer_that_nothing_waits_for_is_in_the_log(
    client: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "_answer_unmatched", RepeatedWarning("mcp.answer_unmatched"))
    ours = await begun(client)
    with logged_events("warn") as logged:
        for _ in range(3):
            assert (await ours.reply(99, {})).status == 202
        ((name, fields),) = logged()
    assert (name, "balancer" in fields["hint"]) == ("mcp.answer_unmatched", True)


def opening(host: Host) -> OpenSession:
    offered = Offered(host)
    return lambda conversation: McpSession(conversation, offered=offered)


async def test_an_idle_session_ends_and_gives_its_memory_back() -> None:
    now = 0.0
    host = Host([], Settings(), version="1")
    sessions = Sessions(host, opening(host), 2, 10.0, clock=lambda: now)
    one, other = sessions.begin("ada"), sessions.begin("bob")
    assert isinstance(one, Session)
    assert isinstance(other, Session)
    assert host.memory.held("sessions") == 2 * SESSION_BYTES
    with sessions.using(one):
        now = 10.0
        assert sessions.find(one.id, "ada") is one
        sessions.sweep()
        assert sessions.find(other.id, "bob") is None
    now = 19.9
    assert sessions.find(one.id, "ada") is one
    now = 20.0
    assert sessions.find(one.id, "ada") is None
    assert host.memory.held("sessions") == 0


async def test_no_session_begins_without_memory_for_it() -> None:
    host = Host([], Settings(max_memory=16 * 1024 * 1024), version="1")
    sessions = Sessions(host, opening(host), 1000, 10.0)
    begun = [sessions.begin(f"caller {number}") for number in range(600)]
    assert sum(isinstance(each, Session) for each in begun) == host.memory.limit // SESSION_BYTES == 512
    assert isinstance(begun[-1], Overloaded)


async def test_idle_sessions_are_looked_for_without_any_request(serve: Serve, works: Works) -> None:
    async with serve(works.service, http_session_timeout=0.05, **SERVED) as client:
        memory = budget(client)
        ours = await begun(client)
        async with ours.listen():
            assert memory.held("sessions") > 0
        await until(lambda: memory.held("sessions") == 0)
        assert (await ours.post("ping")).status == 404


async def test_what_a_client_says_of_itself_and_subscribes_to_counts(client: AsgiClient) -> None:
    memory = budget(client)
    ours = await begun(client, experimental={"x": {"y": "z" * 100_000}})
    said = memory.held("sessions")
    assert said >= SESSION_BYTES + 100_000
    await ours.post("resources/subscribe", {"uri": "work://one"})
    assert memory.held("sessions") == said + len("work://one")
    await ours.delete()
    assert memory.held("sessions") == 0
