"""A replay sends the client's messages in order, waits where the client waited, and compares the answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import msgspec
import pytest
from msgspec import Raw

from discreet.framing.encoder import encode_frame
from discreet.framing.events import NEED_DATA, Frame
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from discreet.recording.diff import differences
from discreet.recording.format import (
    ClosedEntry,
    EndEntry,
    Entry,
    MessageEntry,
    OmittedEntry,
    Recording,
    Sender,
    StartEntry,
)
from discreet.recording.json_values import load
from discreet.recording.replay import replay
from discreet.recording.report import ReplayReport, compare
from discreet.recording.script import build_script
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

SHORT_SECONDS = 0.05
"""How long a replay waits for messages that never come."""


class Server:
    """A server that the test controls."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport
        self.seen: list[dict[str, Any]] = []
        self._parser = parser_for("content-length")

    async def read(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        while (event := self._parser.next_event()) is NEED_DATA:
            if not (data := await self.transport.receive()):
                return None
            self._parser.receive_data(data)
        assert isinstance(event, Frame)
        message: dict[str, Any] = msgspec.json.decode(event.body)
        self.seen.append(message)
        return message

    async def write(self, *messages: object) -> None:
        for message in messages:
            body = message if isinstance(message, bytes) else msgspec.json.encode(message)
            await self.transport.send(encode_frame(body, "content-length"))


Behaviour: TypeAlias = Callable[[Server], Awaitable[None]]


def recording(
    *said: tuple[Sender, Any] | Entry, scrubbed: dict[int, dict[str, int]] | None = None, cut: bool = False
) -> Recording:
    entries: list[Entry] = []
    for place, item in enumerate(said):
        if isinstance(item, tuple):
            marks = (scrubbed or {}).get(place, {})
            item = MessageEntry(
                ms=float(place), sender=item[0], message=Raw(msgspec.json.encode(item[1])), scrubbed=marks
            )
        entries.append(item)
    if not cut and not isinstance(entries[-1], EndEntry):
        entries.append(EndEntry(ms=float(len(entries)), status=None))
    return Recording(StartEntry(ms=0.0, version=1, framing="content-length", command=()), tuple(entries))


def call(call_id: Any, method: str, **params: Any) -> tuple[Sender, Any]:
    return "client", {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}


def result(call_id: Any, value: Any) -> tuple[Sender, Any]:
    return "server", reply(call_id, value)


def reply(call_id: Any, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "result": value}


def event(call_id: Any, seq: int, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "stream/event", "params": {"id": call_id, "seq": seq, "value": value}}


async def replayed(
    session: Recording, behave: Behaviour, *, timeout: float = DEADLINE_SECONDS, **options: Any
) -> tuple[ReplayReport, Server]:
    """Play a session to a server that behaves like that and then ends its side."""
    recorded = build_script(session)
    ours, theirs = memory_pair()
    server = Server(theirs)

    async def serve() -> None:
        await behave(server)
        theirs.send_eof()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            result = await replay(recorded, ours, timeout=timeout)
            ours.close()
    return compare(recorded, result, **options), server


async def echo(server: Server) -> None:
    """Answers every request with its params."""
    while message := await server.read():
        if "id" in message and "method" in message:
            await server.write(reply(message["id"], message.get("params")))


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


@pytest.mark.parametrize("ignore", [["result.at"], ["result.*"], ["**.at"], ["result"]])
async def test_ignored_fields_are_ignored_with_everything_below_them(ignore: list[str]) -> None:
    session = recording(call(1, "a", at={"x": 1}), result(1, {"at": {"x": 2, "y": 3}}))
    report, _ = await replayed(session, echo, ignore=ignore)
    assert report.differences == ()


async def test_other_fields_are_not_ignored() -> None:
    report, _ = await replayed(recording(call(1, "a", at=1), result(1, {"at": 2})), echo, ignore=["result.x", "at"])
    assert [d.path for d in report.differences] == ["result.at"]


async def test_the_secret_of_this_run_replaces_the_recorded_one() -> None:
    async def login(server: Server) -> None:
        assert await server.read()
        await server.write(reply(1, {"token": "fresh-Secret-1"}))
        assert await server.read()
        await server.write(reply(2, {}))

    session = recording(
        call(1, "login"),
        result(1, {"token": "<redacted>"}),
        call(2, "me", token="<redacted>", header="Bearer <redacted>", password="<redacted>"),
        result(2, {}),
        scrubbed={1: {"result.token": 1}, 2: {"params.token": 1, "params.header": 1, "params.password": 2}},
    )
    report, server = await replayed(session, login)
    assert server.seen[1]["params"] == {
        "token": "fresh-Secret-1",
        "header": "Bearer fresh-Secret-1",
        "password": "<redacted>",
    }
    assert report.differences == ()
    assert [note.split(";")[0] for note in report.notes] == ["me: params.password was scrubbed"]


async def test_no_difference_shows_a_secret() -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
    report, _ = await replayed(
        recording(call(1, "a"), result(1, {"note": "no"})), _answering({"note": f"it is {secret}"})
    )
    assert len(report.differences) == 1
    assert secret not in str(report.differences)


def _answering(value: Any) -> Behaviour:
    async def answer(server: Server) -> None:
        message = await server.read()
        assert message
        await server.write(reply(message["id"], value))

    return answer


async def test_garbage_of_the_server_is_a_difference_and_the_replay_goes_on() -> None:
    async def garbage(server: Server) -> None:
        assert await server.read()
        await server.write(b"no json", reply(1, {}))

    report, _ = await replayed(recording(call(1, "a"), result(1, {})), garbage)
    assert [d.message for d in report.differences] == ["the server"]
    assert report.compared == 1


async def test_garbage_of_the_client_is_not_sent_and_its_errors_are_not_expected() -> None:
    session = recording(
        OmittedEntry(ms=0.0, sender="client", reason="malformed-header", size=9),
        ("server", {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Invalid Request"}}),
        call(1, "a"),
        result(1, {}),
    )
    report, _ = await replayed(session, echo, timeout=SHORT_SECONDS)
    assert report.differences == ()
    assert len(report.notes) == 1


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


@pytest.mark.parametrize(
    ("one", "other", "places"),
    [
        ("1", "1.0", []),
        ("1e400", "1e400", []),
        ("1e400", "2e400", [()]),
        ("true", "1", [()]),
        ("null", '""', [()]),
        ('{"a":1,"b":2}', '{"b":2,"a":1}', []),
        ('{"a":null}', "{}", [("a",)]),
        ("[1,2]", "[1]", [(1,)]),
        ('[{"a":[0]}]', '[{"a":[1]}]', [(0, "a", 0)]),
        ("{}", "[]", [()]),
    ],
)
def test_values_are_compared_as_json(one: str, other: str, places: list[object]) -> None:
    found = differences(load(one.encode()), load(other.encode()), lambda _: False)
    assert [path for path, _, _ in found] == places


async def test_messages_after_the_end_of_a_cut_recording_are_not_compared() -> None:
    session = recording(call(1, "a", x=1), result(1, {"x": 1}), call(2, "b", x=2), cut=True)
    report, _ = await replayed(session, echo)
    assert (report.differences, report.sent, report.compared) == ((), 2, 1)
    assert [note for note in report.notes if "cut off" in note] == list(report.notes)
    wrong, _ = await replayed(recording(call(1, "a", x=1), result(1, {"x": 2}), cut=True), echo)
    assert len(wrong.differences) == 1
