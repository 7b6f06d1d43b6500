"""Whatever a server writes, a conversation goes on, and each request is answered once at most."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from discreet.client.connection import open_connection
from discreet.client.errors import ClientError, ConnectionLoss, InvalidReply, RemoteError
from discreet.framing.transports.memory import memory_pair
from discreet.imports.mcp.server_messages import ServerMessages
from discreet.imports.mcp.session import Session

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
METHODS = st.sampled_from(
    [
        "ping",
        "roots/list",
        "notifications/progress",
        "notifications/message",
        "notifications/tools/list_changed",
        "notifications/cancelled",
    ]
)
PARAMS = JSON | st.fixed_dictionaries({}, optional={"progressToken": st.integers(0, 2), "data": JSON, "level": JSON})
ID = st.integers(0, 2) | JSON
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={"id": ID, "method": METHODS | JSON, "params": PARAMS, "result": JSON, "error": JSON},
)
BODIES = (MESSAGES | st.lists(MESSAGES, max_size=3) | JSON).map(msgspec.json.encode) | st.binary(max_size=20)


@given(bodies=st.lists(BODIES, max_size=8))
def test_any_messages_are_taken(bodies: list[bytes]) -> None:
    async def run() -> None:
        told: list[Any] = []
        ours, theirs = memory_pair()
        server = ServerMessages("any")
        handlers = server.handlers()
        async with open_connection(ours, handlers, framing="newline", explain=lost) as connection:
            session = Session(connection, handlers, server)

            async def ask() -> None:
                try:
                    await session.request("tools/call", {}, on_progress=told.append)
                except ClientError as exc:
                    assert isinstance(exc, RemoteError | InvalidReply)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                assert b"tools/call" in await theirs.receive()
                for body in (*bodies, b'{"jsonrpc":"2.0","id":"last","method":"ping"}'):
                    await theirs.send(body.replace(b"\n", b" ") + b"\n")
                written = b""
                while b'"last"' not in written:
                    written += await theirs.receive()
                tasks.cancel_scope.cancel()
            assert connection.usable
        for line in written.splitlines():
            message = msgspec.json.decode(line)
            assert "method" in message or ("result" in message) != ("error" in message)
        assert all(isinstance(each, dict) for each in told)

    anyio.run(run)


async def lost() -> ConnectionLoss:
    return ConnectionLoss("it ended")
