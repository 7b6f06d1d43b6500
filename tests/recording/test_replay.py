"""A replay sends the client's messages in order, waits where the client waited, and reports other answers."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec import Raw

from discreet.recording.format import ClosedEntry, EndEntry, MessageEntry
from discreet.recording.replay import ReplayReport
from support.replays import SHORT_SECONDS, Server, call, echo, event, recording, replayed, reply, result

pytestmark = pytest.mark.anyio


async def test_a_server_that_answers_as_recorded_has_no_differences() -> None:
    session = recording(call(1, "a", x=1), result(1, {"x": 1}), call("b", "b", y=[]), result("b", {"y": []}))
    report, server = await replayed(session, echo)
    assert report == ReplayReport((), (), sent=2, compared=2)
    assert [message["id"] for message in server.seen] == [1, "b"]


async def test_another_answer_is_reported_by_method_id_and_path() -> None:
    report, _ = await replayed(recording(call(1, "files/read", x=[1]), result(1, {"x": [2]})), echo)
    (difference,) = report.differences
    assert (difference.message, difference.path) == ("files/read id 1", "result.x[0]")
    assert (difference.recorded, difference.now) == ("2", "1")


async def test_an_error_instead_of_a_result_is_reported() -> None:
    async def fail(server: Server) -> None:
        assert await server.read()
        await server.write({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Internal error"}})

    report, _ = await replayed(recording(call(1, "a"), result(1, {})), fail)
    assert {difference.path for difference in report.differences} == {"result", "error"}


async def test_a_message_waits_for_the_replies_that_the_client_had_received() -> None:
    async def late(server: Server) -> None:
        first = await server.read()
        assert first
        with anyio.move_on_after(SHORT_SECONDS) as scope:
            await server.read()
        assert scope.cancelled_caught
        await server.write(reply(first["id"], {}))
        second = await server.read()
        assert second and second["method"] == "b"
        await server.write(reply(second["id"], {}))

    session = recording(call(1, "a"), result(1, {}), call(2, "b"), result(2, {}))
    report, _ = await replayed(session, late)
    assert report.differences == ()


async def test_a_message_that_waited_for_nothing_does_not_wait() -> None:
    async def both_first(server: Server) -> None:
        assert await server.read() and await server.read()
        await server.write(reply(2, "two"), reply(1, "one"))

    session = recording(call(1, "a"), call(2, "b"), result(1, "one"), result(2, "two"))
    report, _ = await replayed(session, both_first)
    assert report.differences == ()


async def test_a_cancellation_waits_for_the_events_that_the_client_had_received() -> None:
    async def stream(server: Server) -> None:
        assert await server.read()
        await server.write(event(1, 1, "a"), event(1, 2, "b"))
        cancel = await server.read()
        assert cancel and cancel["method"] == "$/cancelRequest"
        await server.write({"jsonrpc": "2.0", "id": 1, "error": {"code": -32800, "message": "Request cancelled"}})

    session = recording(
        call(1, "watch"),
        ("server", event(1, 1, "a")),
        ("server", event(1, 2, "b")),
        ("client", {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}),
        ("server", {"jsonrpc": "2.0", "id": 1, "error": {"code": -32800, "message": "Request cancelled"}}),
    )
    report, _ = await replayed(session, stream)
    assert report.differences == () and report.compared == 3


async def test_the_order_of_events_counts_within_a_stream_only() -> None:
    async def swapped(server: Server) -> None:
        assert await server.read() and await server.read()
        await server.write(event(2, 1, "x"), event(1, 1, "b"), event(1, 2, "a"))

    session = recording(
        call(1, "watch"),
        call(2, "watch"),
        ("server", event(1, 1, "a")),
        ("server", event(1, 2, "b")),
        ("server", event(2, 1, "x")),
    )
    report, _ = await replayed(session, swapped)
    assert [(d.message, d.path) for d in report.differences] == [
        ("watch id 1: event 1", "params.value"),
        ("watch id 1: event 2", "params.value"),
    ]


async def test_a_missing_message_is_reported_and_waited_for_once() -> None:
    session = recording(
        call(1, "a"), result(1, {}), *(call(number, "b") for number in range(2, 200)), result(2, {}), call(500, "c")
    )

    async def silent(server: Server) -> None:
        while await server.read():
            pass

    report, server = await replayed(session, silent, timeout=SHORT_SECONDS)
    assert [(d.message, d.now) for d in report.differences] == [("a id 1", "nothing"), ("b id 2", "nothing")]
    assert len(server.seen) == 200


async def test_messages_beyond_the_recording_are_reported() -> None:
    async def talkative(server: Server) -> None:
        assert await server.read()
        await server.write(reply(1, {}), reply(1, {}), {"jsonrpc": "2.0", "method": "hello", "params": {}})

    report, _ = await replayed(recording(call(1, "a"), result(1, {})), talkative)
    assert [(d.message, d.recorded) for d in report.differences] == [
        ("a id 1 2", "nothing"),
        ("notification hello", "nothing"),
    ]


async def test_a_server_that_dies_ends_the_replay_at_once() -> None:
    async def die(server: Server) -> None:
        assert await server.read()
        server.transport.close()

    session = recording(call(1, "a"), result(1, {}), call(2, "b"), result(2, {}))
    report, _ = await replayed(session, die)
    assert [d.message for d in report.differences] == ["a id 1", "b id 2"]


async def test_requests_of_the_server_are_answered_as_recorded_whatever_their_ids_and_their_order() -> None:
    def ask(call_id: Any, name: str) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": call_id, "method": "confirm", "params": {"name": name}}

    async def asking(server: Server) -> None:
        assert await server.read()
        await server.write(ask("x", "two"), ask("y", "one"))
        answers = {(answer or {})["id"]: answer for answer in (await server.read(), await server.read())}
        assert answers["y"] == reply("y", 1) and answers["x"] == reply("x", 2)
        await server.write(reply(1, {}))

    session = recording(
        call(1, "a"),
        ("server", ask(7, "one")),
        ("server", ask(8, "two")),
        ("client", reply(7, 1)),
        ("client", reply(8, 2)),
        result(1, {}),
    )
    report, _ = await replayed(session, asking)
    assert report == ReplayReport((), (), sent=3, compared=3)


async def test_a_request_of_the_server_that_was_not_recorded_is_refused() -> None:
    async def asking(server: Server) -> None:
        assert await server.read()
        await server.write({"jsonrpc": "2.0", "id": 9, "method": "confirm"})
        answer = await server.read()
        assert answer and answer["error"]["code"] == -32601 and answer["id"] == 9
        await server.write(reply(1, {}))

    report, _ = await replayed(recording(call(1, "a"), result(1, {})), asking)
    assert [d.message for d in report.differences] == ["request confirm"]


async def test_the_client_closes_its_stream_where_it_did() -> None:
    async def at_the_end(server: Server) -> None:
        assert await server.read()
        assert await server.read() is None
        await server.write(reply(1, {}))

    session = recording(call(1, "a"), ClosedEntry(ms=1.0, sender="client"), result(1, {}), EndEntry(ms=2.0, status=0))
    report, _ = await replayed(session, at_the_end)
    assert report.differences == ()


async def test_a_server_that_never_ends_ends_the_replay_in_bounded_time() -> None:
    async def stay(server: Server) -> None:
        while await server.read():
            pass
        await server.write(reply(1, {}))
        while await server.transport.receive():
            pass

    report, _ = await replayed(recording(call(1, "a"), result(1, {})), stay, timeout=SHORT_SECONDS)
    assert report.sent == 1


async def test_ids_are_sent_unchanged_and_reused_ids_are_kept_apart() -> None:
    text = b'{"jsonrpc":"2.0","id":1.0,"method":"a"}'
    line = MessageEntry(ms=0.0, sender="client", message=Raw(text))
    answer = MessageEntry(ms=0.0, sender="server", message=Raw(b'{"jsonrpc":"2.0","id":1.0,"result":1}'))
    other = MessageEntry(ms=0.0, sender="server", message=Raw(b'{"jsonrpc":"2.0","id":1.0,"result":2}'))

    async def serve(server: Server) -> None:
        for number in (b"1", b"2"):
            assert await server.read()
            await server.write(b'{"jsonrpc":"2.0","id":1.0,"result":%b}' % number)

    report, _ = await replayed(recording(line, answer, line, other), serve)
    assert report == ReplayReport((), (), sent=2, compared=2)


@pytest.mark.parametrize("now", ["v-9", 17])
async def test_progress_tokens_that_the_server_makes_up_may_differ(now: Any) -> None:
    def create(token: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": 1, "method": "window/workDoneProgress/create", "params": {"token": token}}

    def told(method: str, token: Any, **more: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": method, "params": {"token": token, **more}}

    async def indexing(server: Server) -> None:
        assert await server.read()
        await server.write(create(now))
        assert (await server.read() or {}) == reply(1, None)
        await server.write(told("$/progress", "mine", value=1), told("$/progress", now, value=1))
        await server.write(told("$/progress", now, value=2), reply(1, {}))

    session = recording(
        call(1, "a", workDoneToken="mine"),
        ("server", create("u-1")),
        ("client", reply(1, None)),
        ("server", told("$/progress", "mine", value=1)),
        ("server", told("$/progress", "u-1", value=1)),
        ("server", told("$/progress", "u-1", value=2)),
        result(1, {}),
    )
    report, _ = await replayed(session, indexing)
    assert report == ReplayReport((), (), sent=2, compared=5)
