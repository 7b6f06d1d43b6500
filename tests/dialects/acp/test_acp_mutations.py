"""Every message of an editor with every member wrong in every way: each request has one answer, and none is a fault of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.acp_client import agent_of, schema
from support.executors import echo
from support.logged_events import logged_events
from support.mutations import exchange, samples

pytestmark = pytest.mark.anyio

BLOCKS = [
    {"type": "text", "text": "hi", "annotations": {"audience": ["user"], "priority": 1}},
    {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 1},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "a", "mimeType": "text/plain"}},
]
SERVERS = [
    {"name": "a", "command": "/a", "args": ["b"], "env": [{"name": "a", "value": "b"}]},
    {"type": "http", "name": "a", "url": "http://a", "headers": [{"name": "a", "value": "b"}]},
]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is read and refused is the same on each loop
async def test_no_message_of_an_editor_is_a_fault_of_the_agent(serving: Any, schemas: Path) -> None:
    definitions = schema()["$defs"]
    params = {
        one["x-method"]: one
        for name, one in definitions.items()
        if one.get("x-side") == "agent" and not name.endswith("Response")
    }
    opening = {"cwd": "/a", "mcpServers": SERVERS, "additionalDirectories": ["/b"]}
    with logged_events("error") as logged:
        async with serving(agent=agent_of(echo), dialect="acp", framing="content-length") as wire:
            session = (await wire.call("session/new", opening))["result"]["sessionId"]
            right: dict[str, Any] = {
                "initialize": {"protocolVersion": 1},
                "session/new": opening,
                "session/load": {"sessionId": session, **opening},
                "session/resume": {"sessionId": session, **opening},
                "session/prompt": {"sessionId": session, "prompt": BLOCKS},
                "session/set_mode": {"sessionId": session},
                "session/set_config_option": {"sessionId": session, "value": "v"},
            }
            messages = samples(params, definitions, right)
            codes = await exchange(wire, messages, ("session/close", {"sessionId": session}))
        assert logged.names() == []
    assert set(codes) == {0, -32602, -32600, -32601, -32002}
