"""Every message of an editor and of a host with every member wrong in every way: each request has one answer, and none is a
fault of ours. Messages are made from the published schemas of their params.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple  # Any: JSON, and types

import anyio
import pytest

from support.acp_client import agent_of, schema
from support.executors import echo
from support.logged_events import logged_events
from support.mcp_wire import MCP, META

from .mcp.conftest import make_shop

pytestmark = pytest.mark.anyio

Place = tuple[str | int, ...]

MAX_DEPTH: Final = 6
"""How deep samples of types that refer to themselves go."""


class Text(NamedTuple):
    """A JSON text, where a value may stand."""

    text: str


WRONG: Final = (
    None, True, -1, 1.5, "", "x", [], {}, [[]], {"": None},
    Text("1e400"), Text("9" * 5000), Text('"\\u0000\\ud83d\\ude00"'), Text("[" * 3000 + "]" * 3000), Text('"' + "y" * 70_000 + '"'),
)  # fmt: skip
"""What a member may be, beside what it should be."""

UNPAIRED: Final = Text('"\\ud800"')
"""No JSON text, strictly speaking: the whole message is refused."""


def sample_of(schema: Any, definitions: Any, depth: int = 0) -> Any:
    """A JSON value with all the members that this part of a schema has."""
    parts = [schema, *schema.get("allOf", ())]
    if "$ref" in schema:
        parts.append(definitions[schema["$ref"].rpartition("/")[2]])
    for part in [*parts[1:], *(schema.get("anyOf") or schema.get("oneOf") or ())[:1]]:
        found = sample_of(part, definitions, depth)
        schema = {
            **schema,
            "const": {**found, **_members(schema, definitions, depth)} if isinstance(found, dict) else found,
        }
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            return _members(schema, definitions, depth)
        case "array":
            return [sample_of(schema.get("items", {}), definitions, depth + 1)] if depth < MAX_DEPTH else []
        case str(plain):
            return _PLAIN[plain]
        case _:
            return {"any": [1]}


def _members(schema: Any, definitions: Any, depth: int) -> dict[str, Any]:
    needed = schema.get("required", ())
    members = schema.get("properties", {}).items()
    return {
        name: sample_of(part, definitions, depth + 1)
        for name, part in members
        if isinstance(part, dict) and (depth < MAX_DEPTH or name in needed)
    }


_PLAIN: Final = {"boolean": True, "integer": 1, "number": 0.5, "string": "text", "null": None}


def paths_of(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place in a JSON value, the whole first."""
    yield at
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from paths_of(part, (*at, name))


def mutations(value: Any) -> Iterator[str]:
    """JSON texts of the value with one place wrong: of another type, absent, or there twice."""
    for path in paths_of(value):
        for wrong in WRONG:
            yield _text(value, path, lambda key, _, wrong=wrong: key + _plain(wrong))
        if path and isinstance(path[-1], str):
            yield _text(value, path, lambda key, part: "")
            yield _text(value, path, lambda key, part: f"{key}null,{key}{_plain(part)}")


def _text(value: Any, path: Place, change: Any, key: str = "") -> str:
    """`change(key, part)` is what stands at the path, with the key and colon of a member."""
    if not path:
        return str(change(key, value))
    if isinstance(value, Mapping):
        parts = [
            _text(part, path[1:], change, f"{json.dumps(name)}:")
            if name == path[0]
            else f"{json.dumps(name)}:{_plain(part)}"
            for name, part in value.items()
        ]
        return key + "{" + ",".join(filter(None, parts)) + "}"
    parts = [_text(part, path[1:], change) if at == path[0] else _plain(part) for at, part in enumerate(value)]
    return key + "[" + ",".join(parts) + "]"


def _plain(value: Any) -> str:
    return value.text if isinstance(value, Text) else json.dumps(value)


def samples(requests: Mapping[str, Any], definitions: Any, right: dict[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Each message of a client: its method, its params, and whether it is a request. `requests` are the schemas of params by method."""
    for name, params_schema in requests.items():
        params = sample_of(params_schema, definitions) | right.get(name, {})
        yield name, params, not name.startswith("notifications/") and name != "session/cancel"


async def exchange(wire: Any, messages: Iterable[tuple[str, Any, bool]], last: tuple[str, Any]) -> Counter[int]:
    """Send all mutations; the codes of the errors that came. Fails where a request has no answer, or two."""
    texts: list[bytes] = []
    ids: set[str] = set()
    for method, params, is_request in messages:
        for text in (json.dumps(params), *mutations(params)):
            call_id = f"{len(texts)}"
            ids |= {call_id} if is_request else set()
            member = f'"id":"{call_id}",' if is_request else ""
            texts.append(f'{{"jsonrpc":"2.0",{member}"method":"{method}","params":{text}}}'.encode())
        if is_request:
            ids.add(f"{len(texts)}")
            params_text = f'{{"a":{UNPAIRED.text}}}'
            texts.append(f'{{"jsonrpc":"2.0","id":"{len(texts)}","method":"{method}","params":{params_text}}}'.encode())
    texts.append(json.dumps({"jsonrpc": "2.0", "id": "last", "method": last[0], "params": last[1]}).encode())
    answers: Counter[str | None] = Counter()
    codes: Counter[int] = Counter()

    async def send() -> None:
        for start in range(0, len(texts), 100):
            await wire.send(*texts[start : start + 100])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        while answers.total() < len(ids) + 1:
            came = await wire.receive()
            if "method" not in came:
                answers[came.get("id")] += 1
                codes[came.get("error", {}).get("code", 0)] += 1
    assert answers == {**dict.fromkeys(ids, 1), "last": 1}
    return codes


# -- ACP --

BLOCKS = [
    {"type": "text", "text": "hi", "annotations": {"audience": ["user"], "priority": 1}},
    {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 1},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "a", "mimeType": "text/plain"}},
]
SERVERS = [
    {"name": "a", "command": "/a", "args": ["b"], "env": [{"name": "a", "value": "b"}]},
    {"type": "http", "name": "a", "url": "http://a", "headers": [{"name": "a", "value": "b"}]},
]


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


# -- MCP --

REF = {"type": "ref/prompt", "name": "shop_advise"}
MCP_PARAMS: dict[str, Any] = {
    "initialize": {"protocolVersion": "2025-11-25"},
    "completion/complete": {"ref": REF, "argument": {"name": "about", "value": "p"}},
    "prompts/get": {"name": "shop_advise", "arguments": {"about": "pens", "style": "short", "words": "3"}},
    "resources/read": {"uri": "shop://items/pen/1"},
    "resources/subscribe": {"uri": "shop://prices"},
    "resources/unsubscribe": {"uri": "shop://prices"},
    "tools/call": {"name": "shop_price", "arguments": {"name": "pen", "amount": 2, "labels": ["a"]}},
}
"""What has to be right for more than the first check to be passed."""
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


def messages_of_clients(schemas: Path, revision: str, right: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    definitions = json.loads((schemas / "mcp" / f"{revision}.json").read_text("utf-8"))["$defs"]
    unions = ("ClientRequest", "ClientNotification")
    names = [part["$ref"].rpartition("/")[2] for union in unions for part in definitions[union].get("anyOf", ())]
    found = [definitions[name]["properties"] for name in names]
    params = {each["method"]["const"]: each.get("params", {"type": "object"}) for each in found}
    return list(samples(params, definitions, right))


async def test_no_message_of_a_legacy_host_is_a_fault_of_the_server(serving: Any, schemas: Path) -> None:
    messages = messages_of_clients(schemas, "2025-11-25", MCP_PARAMS | {name: {"cursor": None} for name in LISTS})
    with logged_events("error") as logged:
        async with serving(make_shop(), **MCP) as wire:
            codes = await exchange(wire, messages, ("ping", {}))
        assert logged.names() == []
    assert set(codes) == {0, -32602, -32600, -32601, -32002}


async def test_no_message_of_a_modern_host_is_a_fault_of_the_server(serving: Any, schemas: Path) -> None:
    meta = META | {"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"}
    asked = {"name": "shop_order", "arguments": {"name": "pen"}, "inputResponses": {"sure": {"action": "accept"}}}
    right = MCP_PARAMS | {name: {"cursor": None} for name in LISTS} | {"tools/call": asked}
    messages = [
        (name, params | {"_meta": meta}, is_request)
        for name, params, is_request in messages_of_clients(schemas, "2026-07-28", right)
        if name != "subscriptions/listen"  # which is not answered
    ]
    with logged_events("error") as logged:
        async with serving(make_shop(), **MCP) as wire:
            codes = await exchange(wire, messages, ("server/discover", {"_meta": META}))
        assert logged.names() == []
    assert set(codes) == {0, -32602, -32600, -32022}
