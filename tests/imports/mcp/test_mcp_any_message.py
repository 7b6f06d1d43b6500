"""Whatever a server writes, a conversation goes on, and each request is answered once at most."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.imports.mcp.connection.conversation import Agreed, Conversation, Request
from discreet.imports.mcp.connection.server_messages import ServerMessages

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


class Recorder:
    """A link that keeps what is sent, and lets requests wait."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.waiting: list[Request] = []

    async def exchange(self, request: Request) -> None:
        self.waiting.append(request)
        await request.answered.wait()

    async def send(self, body: bytes) -> None:
        self.sent.append(body)

    def post(self, body: bytes) -> None:
        self.sent.append(body)

    def give_up(self, request: Request) -> None:
        self.waiting.remove(request)

    async def listen(self) -> None:
        """There is nothing to listen to."""


@pytest.mark.parametrize("revision", ["2025-03-26", "2026-07-28"])
@given(bodies=st.lists(BODIES, max_size=8))
def test_any_messages_are_taken(revision: str, bodies: list[bytes]) -> None:
    async def run() -> None:
        told: list[Any] = []
        conversation, link = Conversation(Agreed(revision), ServerMessages("any")), Recorder()
        conversation.begin(link)

        async def ask() -> None:
            try:
                await conversation.request("tools/call", {}, on_progress=told.append)
            except Exception as exc:  # noqa: BLE001 - the class is looked at
                assert type(exc).__name__ in ("RpcError", "InvalidReply")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            for body in bodies:
                conversation.receive(body)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        for answer in link.sent:
            message = msgspec.json.decode(answer)
            assert ("result" in message) != ("error" in message)
        assert all(isinstance(each, dict) for each in told)

    anyio.run(run)
