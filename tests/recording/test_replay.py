"""A replay sends the client's messages in order, waits where the client waited, and reports other answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import anyio
import msgspec
import pytest
from msgspec import Raw

from discreet.framing.encoder import encode_frame
from discreet.framing.events import NEED_DATA, Frame
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from discreet.recording.format import (
    ClosedEntry,
    EndEntry,
    Entry,
    MessageEntry,
    OmittedEntry,
    Recording,
    Sender,
    StartEntry,
    load,
)
from discreet.recording.replay import ReplayReport, build_script, compare, differences, replay
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

SHORT_SECONDS: Final = 0.05
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

    async def write(self, message: object) -> None:
        body = message if isinstance(message, bytes) else msgspec.json.encode(message)
        await self.transport.send(encode_frame(body, "content-length"))


Behaviour: TypeAlias = Callable[[Server], Awaitable[None]]
READ: Final = "read"


def plays(*acts: object) -> Behaviour:
    """Reads a message for each `READ`, and writes what else is given."""

    async def play(server: Server) -> None:
        for act in acts:
            if act is READ:
                assert await server.read()
            else:
                await server.write(act)

    return play


async def echo(server: Server) -> None:
    """Answers every request with its params."""
    while message := await server.read():
        if "id" in message and "method" in message:
            await server.write(reply(message["id"], message.get("params")))


async def silent(server: Server) -> None:
    while await server.read():
        pass


Said: TypeAlias = tuple[Sender, Any] | Entry


def recording(*said: Said, scrubbed: dict[int, dict[str, int]] | None = None, cut: bool = False) -> Recording:
    entries: list[Entry] = []
    for place, item in enumerate(said):
        if isinstance(item, tuple):
            text = item[1] if isinstance(item[1], bytes) else msgspec.json.encode(item[1])
            marks = (scrubbed or {}).get(place, {})
            item = MessageEntry(ms=float(place), sender=item[0], message=Raw(text), scrubbed=marks)
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


def error(call_id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "error": {"code": code, "message": message}}


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


# -- what is sent, and when -------------------------------------------------------------------------------------------


async def test_a_message_waits_for_the_replies_that_the_client_had_received() -> None:
    async def late(server: Server) -> None:
        assert await server.read()
        with anyio.move_on_after(SHORT_SECONDS) as scope:
            await server.read()
        assert scope.cancelled_caught
        await plays(reply(1, {}), READ, reply(2, {}))(server)

    session = recording(call(1, "a"), result(1, {}), call(2, "b"), result(2, {}))
    report, server = await replayed(session, late)
    assert (report.differences, [message["method"] for message in server.seen]) == ((), ["a", "b"])


async def test_a_message_that_waited_for_nothing_does_not_wait() -> None:
    session = recording(call(1, "a"), call(2, "b"), result(1, "one"), result(2, "two"))
    report, _ = await replayed(session, plays(READ, READ, reply(2, "two"), reply(1, "one")))
    assert report.differences == ()


async def test_a_cancellation_waits_for_the_events_that_the_client_had_received() -> None:
    cancelled = error(1, -32800, "Request cancelled")
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}
    events = event(1, 1, "a"), event(1, 2, "b")
    session = recording(
        call(1, "watch"), *(("server", each) for each in events), ("client", cancel), ("server", cancelled)
    )
    report, server = await replayed(session, plays(READ, *events, READ, cancelled))
    assert (report.differences, report.compared, server.seen[1]) == ((), 3, cancel)


async def test_the_client_closes_its_stream_where_it_did() -> None:
    async def at_the_end(server: Server) -> None:
        assert await server.read()
        assert await server.read() is None
        await server.write(reply(1, {}))

    session = recording(call(1, "a"), ClosedEntry(ms=1.0, sender="client"), result(1, {}), EndEntry(ms=2.0, status=0))
    report, _ = await replayed(session, at_the_end)
    assert report.differences == ()


async def test_ids_are_sent_unchanged_and_reused_ids_are_kept_apart() -> None:
    line = b'{"jsonrpc":"2.0","id":1.0,"method":"a"}'
    one, two = (b'{"jsonrpc":"2.0","id":1.0,"result":%d}' % number for number in (1, 2))
    session = recording(("client", line), ("server", one), ("client", line), ("server", two))
    report, server = await replayed(session, plays(READ, one, READ, two))
    assert report == ReplayReport((), (), sent=2, compared=2)
    assert [type(message["id"]) for message in server.seen] == [float, float]


def ask(call_id: Any, name: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "method": "confirm", "params": {"name": name}}


async def test_requests_of_the_server_are_answered_as_recorded_whatever_their_ids_and_their_order() -> None:
    session = recording(
        call(1, "a"),
        ("server", ask(7, "one")),
        ("server", ask(8, "two")),
        ("client", reply(7, 1)),
        ("client", reply(8, 2)),
        result(1, {}),
    )
    report, server = await replayed(session, plays(READ, ask("x", "two"), ask("y", "one"), READ, READ, reply(1, {})))
    assert report == ReplayReport((), (), sent=3, compared=3)
    assert server.seen[1:] == [reply("y", 1), reply("x", 2)]


async def test_a_request_of_the_server_that_was_not_recorded_is_refused() -> None:
    session = recording(call(1, "a"), result(1, {}))
    report, server = await replayed(session, plays(READ, ask(9, "one"), READ, reply(1, {})))
    assert [d.message for d in report.differences] == ["request confirm"]
    assert (server.seen[1]["error"]["code"], server.seen[1]["id"]) == (-32601, 9)


async def test_the_secret_of_this_run_replaces_the_recorded_one() -> None:
    session = recording(
        call(1, "login"),
        result(1, {"token": "<redacted>"}),
        call(2, "me", token="<redacted>", header="Bearer <redacted>", password="<redacted>"),
        result(2, {}),
        scrubbed={1: {"result.token": 1}, 2: {"params.token": 1, "params.header": 1, "params.password": 2}},
    )
    report, server = await replayed(session, plays(READ, reply(1, {"token": "fresh-Secret-1"}), READ, reply(2, {})))
    assert server.seen[1]["params"] == {
        "token": "fresh-Secret-1",
        "header": "Bearer fresh-Secret-1",
        "password": "<redacted>",
    }
    assert report.differences == ()
    assert [note.split(";")[0] for note in report.notes] == ["me: params.password was scrubbed"]


# -- servers that do something else -----------------------------------------------------------------------------------


async def test_an_error_instead_of_a_result_is_reported() -> None:
    session = recording(call(1, "a"), result(1, {}))
    report, _ = await replayed(session, plays(READ, error(1, -32603, "Internal error")))
    assert {difference.path for difference in report.differences} == {"result", "error"}


async def test_the_order_of_events_counts_within_a_stream_only() -> None:
    session = recording(
        call(1, "watch"),
        call(2, "watch"),
        ("server", event(1, 1, "a")),
        ("server", event(1, 2, "b")),
        ("server", event(2, 1, "x")),
    )
    swapped = plays(READ, READ, event(2, 1, "x"), event(1, 1, "b"), event(1, 2, "a"))
    report, _ = await replayed(session, swapped)
    assert [(d.message, d.path) for d in report.differences] == [
        ("watch id 1: event 1", "params.value"),
        ("watch id 1: event 2", "params.value"),
    ]


async def test_a_missing_message_is_reported_and_waited_for_once() -> None:
    session = recording(
        call(1, "a"), result(1, {}), *(call(number, "b") for number in range(2, 200)), result(2, {}), call(500, "c")
    )
    report, server = await replayed(session, silent, timeout=SHORT_SECONDS)
    assert [(d.message, d.now) for d in report.differences] == [("a id 1", "nothing"), ("b id 2", "nothing")]
    assert len(server.seen) == 200


async def test_messages_beyond_the_recording_are_reported() -> None:
    hello = {"jsonrpc": "2.0", "method": "hello", "params": {}}
    session = recording(call(1, "a"), result(1, {}))
    report, _ = await replayed(session, plays(READ, reply(1, {}), reply(1, {}), hello))
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


async def test_a_server_that_never_ends_ends_the_replay_in_bounded_time() -> None:
    async def stay(server: Server) -> None:
        await silent(server)
        await server.write(reply(1, {}))
        while await server.transport.receive():
            pass

    report, _ = await replayed(recording(call(1, "a"), result(1, {})), stay, timeout=SHORT_SECONDS)
    assert report.sent == 1


async def test_garbage_of_the_server_is_a_difference_and_the_replay_goes_on() -> None:
    report, _ = await replayed(recording(call(1, "a"), result(1, {})), plays(READ, b"no json", reply(1, {})))
    assert [d.message for d in report.differences] == ["the server"]
    assert report.compared == 1


# -- what is compared -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("now", ["v-9", 17])
async def test_progress_tokens_that_the_server_makes_up_may_differ(now: Any) -> None:
    def told(method: str, token: Any, **more: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": method, "params": {"token": token, **more}}

    def indexing(token: Any) -> tuple[dict[str, Any], ...]:
        return (
            {**told("window/workDoneProgress/create", token), "id": 1},
            told("$/progress", "mine", value=1),
            told("$/progress", token, value=1),
            told("$/progress", token, value=2),
            reply(1, {}),
        )

    create, *rest = (("server", message) for message in indexing("u-1"))
    session = recording(call(1, "a", workDoneToken="mine"), create, ("client", reply(1, None)), *rest)
    create_now, *rest_now = indexing(now)
    report, server = await replayed(session, plays(READ, create_now, READ, *rest_now))
    assert report == ReplayReport((), (), sent=2, compared=5)
    assert server.seen[1] == reply(1, None)


@pytest.mark.parametrize(
    ("ignore", "paths"),
    [
        (["result.at"], []),
        (["result.*"], []),
        (["**.at"], []),
        (["result"], []),
        (["result.x", "at"], ["result.at.x", "result.at.y"]),
    ],
)
async def test_ignored_fields_are_ignored_with_everything_below_them(ignore: list[str], paths: list[str]) -> None:
    session = recording(call(1, "a", at={"x": 1}), result(1, {"at": {"x": 2, "y": 3}}))
    report, _ = await replayed(session, echo, ignore=ignore)
    assert [d.path for d in report.differences] == paths


async def test_no_difference_shows_a_secret() -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
    session = recording(call(1, "a"), result(1, {"note": "no"}))
    report, _ = await replayed(session, plays(READ, reply(1, {"note": f"it is {secret}"})))
    assert len(report.differences) == 1
    assert secret not in str(report.differences)


async def test_garbage_of_the_client_is_not_sent_and_its_errors_are_not_expected() -> None:
    session = recording(
        OmittedEntry(ms=0.0, sender="client", reason="malformed-header", size=9),
        ("server", error(None, -32600, "Invalid Request")),
        call(1, "a"),
        result(1, {}),
    )
    report, _ = await replayed(session, echo, timeout=SHORT_SECONDS)
    assert (report.differences, len(report.notes)) == ((), 1)


@pytest.mark.parametrize(
    ("recorded", "now", "equal"),
    [
        ("Bearer <redacted> for ann", "Bearer fresh-Secret-1 for ann", True),
        ("Bearer <redacted> for ann", "Bearer <redacted> for ann", True),
        ("Bearer <redacted> for ann", "Bearer fresh-Secret-1 for bob", False),
        ("Bearer <redacted> for ann", "Basic fresh-Secret-1 for ann", False),
        ("<redacted> at <path>/a, <redacted>", "one at /tmp/x/a, two", True),
        ("<redacted> at <path>/a, <redacted>", "one at /tmp/x/b, two", False),
        ("aa<redacted>aa", "aaa", False),
        ("<redacted> is it", 7, False),
        ("<redacted>", "fresh-Secret-1", True),
        ("<redacted>", 7, True),
        ("<redacted>", None, False),
    ],
)
async def test_what_stands_around_a_removed_part_is_compared(recorded: str, now: Any, equal: bool) -> None:
    session = recording(call(1, "a"), result(1, {"text": recorded}), scrubbed={1: {"result.text": 1}})
    report, _ = await replayed(session, plays(READ, reply(1, {} if now is None else {"text": now})))
    assert [difference.path for difference in report.differences] == ([] if equal else ["result.text"])


async def test_messages_after_the_end_of_a_cut_recording_are_not_compared() -> None:
    session = recording(call(1, "a", x=1), result(1, {"x": 1}), call(2, "b", x=2), cut=True)
    report, _ = await replayed(session, echo)
    assert (report.differences, report.sent, report.compared) == ((), 2, 1)
    assert [note for note in report.notes if "cut off" in note] == list(report.notes)
    wrong, _ = await replayed(recording(call(1, "a", x=1), result(1, {"x": 2}), cut=True), echo)
    assert len(wrong.differences) == 1


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
