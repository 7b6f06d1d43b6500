"""The promise itself: whatever bytes come, every valid request is answered exactly once, and nothing ends the daemon."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Service
from discreet.daemon.connection.connection import Connection
from discreet.daemon.connection.notices import ClientRequests
from discreet.daemon.connection.plain import builtins
from discreet.daemon.connection.reader import Reader
from discreet.daemon.connection.writer import Writer
from discreet.daemon.daemon import Daemon
from discreet.daemon.discovery import discovery, rpc_discovery
from discreet.daemon.dispatch.metrics import RequestMetrics
from discreet.daemon.dispatch.responder import Responder
from discreet.daemon.host import Host
from discreet.daemon.operations.request import Backlog, Request
from discreet.daemon.rpc.dialect import PLAIN
from discreet.daemon.settings import Settings
from discreet.framing.channel import Channel
from discreet.framing.encoder import encode_frame
from discreet.framing.events import END_OF_INPUT, NEED_DATA, Frame, FrameLimits
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import memory_pair
from support.logged_events import LoggedEvents
from support.owners import Alone

pytestmark = pytest.mark.anyio

REST = None
"""In a script: the input rests until the daemon has taken note of it."""


def services() -> Service:
    service = Service("s")

    @service.query(inline=True)
    def inline(**params: Any) -> dict[str, Any]:
        return params

    @service.query()
    async def coroutine(**params: Any) -> dict[str, Any]:
        await anyio.lowlevel.checkpoint()
        return params

    @service.query()
    def thread(**params: Any) -> dict[str, Any]:
        return params

    return service


async def converse(script: list[bytes | None]) -> list[dict[str, Any]]:
    """Send the script, read everything that comes back until the daemon has ended."""
    ours, theirs = memory_pair()
    daemon = Daemon(Host([services()], Settings(max_message_bytes=4096, max_header_bytes=128), version="0"), ours)
    parser = parser_for("content-length", FrameLimits(max_body=1 << 20))
    replies: list[dict[str, Any]] = []

    async def serve() -> None:
        daemon.begin()
        assert await daemon.run() == 0
        ours.close()

    async def send() -> None:
        for part in script:
            if part is REST:
                await anyio.sleep(0.3)
            else:
                await theirs.send(part)
        theirs.send_eof()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        tasks.start_soon(send)
        with anyio.fail_after(30):
            while (event := parser.next_event()) is not END_OF_INPUT:
                if event is NEED_DATA:
                    data = await theirs.receive()
                    parser.receive_data(data) if data else parser.end_of_input()
                else:
                    assert isinstance(event, Frame), event
                    replies.append(json.loads(event.body))
    return replies


def request(number: int, method: str) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {"n": number}}).encode()
    return encode_frame(body, "content-length")


METHODS = ("s/inline", "s/coroutine", "s/thread", "version", "no/such")

in_step = st.sampled_from(
    [
        b"\r\n\n",
        encode_frame(b"", "content-length"),
        encode_frame(b"not json", "content-length"),
        encode_frame(b'{"a":\xff}', "content-length"),
        encode_frame(b"[]", "content-length"),
        encode_frame(b'{"jsonrpc":"2.0","method":"s/thread","params":{}}', "content-length"),
        encode_frame(b"x" * 5000, "content-length"),
        encode_frame(request(999_999, "s/inline"), "content-length"),
        b"Content-Length: abc\r\n\r\n",
        b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
        b'{"jsonrpc":"2.0","id":999999,"method":"s/inline"}\n',
        b"X: " + b"y" * 300 + b"\r\n\r\n",
    ]
)
"""Faults after which the very next frame must be read, with no rest between."""

junk = st.binary(max_size=300).map(lambda data: (b"\0" + data, REST))
"""Begins with a byte that no header line can hold: without a fault a rest would mean nothing."""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_valid_request_between_faults_is_answered_exactly_once(backend: str, data: st.DataObject) -> None:
    script: list[bytes | None] = []
    expected = 0
    for fault in data.draw(st.lists(st.just(b"") | in_step, max_size=30)):
        script += [fault, request(expected, METHODS[expected % len(METHODS)])]
        expected += 1
    joined = b"".join(part for part in script if part)
    cut = data.draw(st.integers(min_value=0, max_value=len(joined)))
    replies = anyio.run(converse, [joined[:cut] or b"\n", joined[cut:] or b"\n"], backend=backend)
    answered = Counter(reply["id"] for reply in replies if reply["id"] is not None)
    assert answered == Counter(range(expected))


@settings(max_examples=5, deadline=None)
@given(st.lists(junk, min_size=1, max_size=2))
def test_after_any_junk_and_a_rest_the_next_request_is_answered(parts: list[tuple[bytes, None]]) -> None:
    script: list[bytes | None] = []
    for number, part in enumerate(parts):
        script += [*part, request(number, METHODS[number])]
    replies = anyio.run(converse, script)
    answered = Counter(reply["id"] for reply in replies if reply["id"] is not None)
    assert all(answered[number] == 1 for number in range(len(parts)))


_host = Host([Service("app")], Settings(framing="newline"), version="1")

BUILTINS = sorted(
    {
        "$/cancelRequest",
        "$/progress",
        *(spec.name for spec in builtins(Connection(_host, memory_pair()[0], Alone()), Alone()).operations),
        *(spec.name for spec in discovery(_host).operations),
        *(spec.name for spec in rpc_discovery(_host).operations),
    }
)

STRANGE = [
    b"1e999",
    b"-0",
    b"1E400",
    b'"\\\\"',
    b'"\\ud800"',
    b'"\\u0000"',
    b"9" * 400,
    b"null",
    b"true",
    b"{}",
    b"[]",
    b'""',
]
WORDS = ["id", "processId", "level", "name", "operationId", "input", "namespace", "query", "token", "value", "x"]

texts = st.recursive(
    st.sampled_from(STRANGE)
    | st.integers().map(lambda n: b"%d" % n)
    | st.text(max_size=8).map(lambda s: json.dumps(s).encode()),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: b"[" + b",".join(items) + b"]")
        | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3).map(
            lambda members: b"{" + b",".join(json.dumps(k).encode() + b":" + v for k, v in members.items()) + b"}"
        )
    ),
    max_leaves=8,
)


def exchange(*bodies: bytes) -> list[bytes]:
    """What a connection answers to these before any event loop runs."""
    ours, theirs = memory_pair()
    connection = Connection(Host([Service("app")], Settings(framing="newline"), version="1"), ours, Alone())
    theirs.send_nowait(memoryview(b"".join(encode_frame(body, "newline") for body in bodies)))
    connection.begin()
    return (theirs.receive_nowait() or b"").splitlines()


@given(method=st.sampled_from(BUILTINS), params=texts, call_id=st.sampled_from([None, b"1", b'"\\u0061"']))
def test_built_in_methods_survive_params_of_any_structure(method: str, params: bytes, call_id: bytes | None) -> None:
    member = b"" if call_id is None else b'"id":%b,' % call_id
    body = b'{"jsonrpc":"2.0",%b"method":%b,"params":%b}' % (member, json.dumps(method).encode(), params)
    replies = exchange(body, b'{"jsonrpc":"2.0","id":"after","method":"version"}')
    assert json.loads(replies[-1]) == {"jsonrpc": "2.0", "id": "after", "result": {"version": "1"}}
    assert len(replies) <= 2
    if len(replies) == 2:
        code = json.loads(replies[0]).get("error", {}).get("code")
        assert code != -32603, replies[0]
        assert call_id is not None or code == -32700, "a notification is not answered, unless it is no JSON"


class Broken:
    """A dispatcher with a fault."""

    def __init__(self, responder: Responder) -> None:
        self._responder = responder

    def accept(self, call: Request) -> None:
        if call.method == "broken":
            raise AttributeError("a fault of ours, with /home/somebody in its text")
        self._responder.result(call, b"true")


def test_a_fault_of_the_daemon_itself_costs_one_request() -> None:
    ours, theirs = memory_pair()
    channel = Channel(ours, parser_for("newline", FrameLimits()))
    writer = Writer(channel, _host.memory, on_lost=lambda cause: None, on_room=lambda: None, on_sent=lambda: None)
    metrics = RequestMetrics()
    responder = Responder(writer, _host.memory, PLAIN, metrics)
    dispatcher: Any = Broken(responder)
    reader = Reader(channel, writer, _host.scheduler, Backlog(writer), ClientRequests(lambda: None), metrics)
    reader.read_as(dispatcher.accept, responder, PLAIN)
    theirs.send_nowait(
        memoryview(
            b'{"jsonrpc":"2.0","id":1,"method":"broken"}\n'
            b'{"jsonrpc":"2.0","method":"broken"}\n'
            b'{"jsonrpc":"2.0","id":2,"method":"sound"}\n'
        )
    )
    reader.begin()
    assert [json.loads(reply) for reply in (theirs.receive_nowait() or b"").splitlines()] == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Internal error"}},
        {"jsonrpc": "2.0", "id": 2, "result": True},
    ]
    assert metrics.methods["other"].codes == {"INTERNAL": 1}


CALL = b'{"jsonrpc":"2.0","id":1,"method":"version"}'
FRAMED = b"Content-Length: %d\r\n\r\n%b" % (len(CALL), CALL)


@pytest.mark.parametrize(
    ("framing", "sent", "hint"),
    [
        ("content-length", CALL + b"\n", "--framing newline"),
        ("newline", FRAMED + b"\n", "--framing content-length"),
        ("content-length", FRAMED.replace(b"\r", b""), "CR LF"),
        ("content-length", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP request"),
        ("newline", b"POST /rpc HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP request"),
        ("newline", b"\xef\xbb\xbf" + CALL + b"\n", "byte order mark"),
        ("content-length", b"\xef\xbb\xbf" + FRAMED, "byte order mark"),
        ("newline", CALL.decode().encode("utf-16") + b"\n", "byte order mark"),
        ("newline", b"{'id': 1}\n", None),
        ("newline", CALL + b"\n{\n", None),
    ],
)
async def test_the_first_loss_is_told_with_what_was_meant(
    serving: Callable[..., AbstractAsyncContextManager[Any]],
    logged: LoggedEvents,
    framing: str,
    sent: bytes,
    hint: str | None,
) -> None:
    async with serving(framing=framing) as wire:
        for byte in sent:
            await wire.transport.send(bytes([byte]))
        await wire.end()
    first = next(fields for name, fields in logged() if name == "frame.dropped")
    assert (hint or "") in first.get("hint", "")
    assert ("hint" in first) == (hint is not None)
