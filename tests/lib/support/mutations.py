"""Messages that a protocol allows, made from the schemas of their params, and the same with one thing wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple  # Any: JSON, and types

import anyio

Path = tuple[str | int, ...]

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


def paths_of(value: Any, at: Path = ()) -> Iterator[Path]:
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


def _text(value: Any, path: Path, change: Any, key: str = "") -> str:
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
    for name, schema in requests.items():
        params = sample_of(schema, definitions) | right.get(name, {})
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
