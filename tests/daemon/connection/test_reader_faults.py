"""Nothing that a client can send ends the daemon: params of the built-in methods, whatever their structure."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discreet import Service
from discreet.daemon.connection.connection import Connection
from discreet.daemon.connection.notices import ClientRequests
from discreet.daemon.connection.plain import builtins
from discreet.daemon.connection.reader import Reader
from discreet.daemon.connection.writer import Writer
from discreet.daemon.discovery import discovery, rpc_discovery
from discreet.daemon.dispatch.metrics import RequestMetrics
from discreet.daemon.dispatch.responder import Responder
from discreet.daemon.host import Host
from discreet.daemon.operations.request import Backlog, Request
from discreet.daemon.rpc.dialect import PLAIN
from discreet.daemon.settings import Settings
from discreet.framing.channel import Channel
from discreet.framing.encoder import encode_frame
from discreet.framing.events import FrameLimits
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import memory_pair
from support.owners import Alone

Serving = Callable[..., AbstractAsyncContextManager[Any]]


_host = Host([Service("app")], Settings(framing="newline"), version="1")

METHODS = sorted(
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


@given(method=st.sampled_from(METHODS), params=texts, call_id=st.sampled_from([None, b"1", b'"\\u0061"']))
def test_built_in_methods_survive_params_of_any_structure(method: str, params: bytes, call_id: bytes | None) -> None:
    member = b"" if call_id is None else b'"id":%b,' % call_id
    body = b'{"jsonrpc":"2.0",%b"method":%b,"params":%b}' % (member, json.dumps(method).encode(), params)
    replies = exchange(body, b'{"jsonrpc":"2.0","id":"after","method":"version"}')
    assert json.loads(replies[-1]) == {"jsonrpc": "2.0", "id": "after", "result": {"version": "1"}}
    assert len(replies) <= 2
    if len(replies) == 2:
        error = json.loads(replies[0]).get("error", {})
        assert error.get("code") != -32603, replies[0]


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
