"""Messages that a protocol allows, made from the types of their params, and the same with one thing wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple  # Any: JSON, and types

import anyio
from msgspec import inspect as types

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


def sample_of(annotation: Any, depth: int = 0) -> Any:
    """A JSON value of this type with all its members."""
    return _sample(types.type_info(annotation), depth)


def _sample(node: types.Type, depth: int) -> Any:
    match node:
        case types.StructType():
            tagged = {} if node.tag_field is None else {node.tag_field: node.tag}
            fields = [each for each in node.fields if each.required or depth < MAX_DEPTH]
            return tagged | {each.encode_name: _sample(each.type, depth + 1) for each in fields}
        case types.UnionType(members):
            return _sample(next(each for each in members if not isinstance(each, types.NoneType)), depth)
        case types.ListType(item):
            return [_sample(item, depth + 1)] if depth < MAX_DEPTH else []
        case types.DictType():
            return {"key": _sample(node.value_type, depth + 1)}
        case types.LiteralType(values):
            return values[0]
        case types.EnumType(cls):
            return next(iter(cls)).value
        case types.Metadata(inner):
            return _sample(inner, depth)
        case _:
            return _PLAIN[type(node)]


_PLAIN: Final = {
    types.BoolType: True,
    types.IntType: 1,
    types.FloatType: 0.5,
    types.StrType: "text",
    types.AnyType: {"any": [1]},
    types.RawType: {"any": [1]},
}


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


def samples(
    methods: Any, direction: str, modules: Iterable[Any], right: dict[str, Any]
) -> Iterator[tuple[str, Any, bool]]:
    """Each message of a client: its method, its params, and whether it is a request."""
    for name, method in methods.items():
        if method["direction"] not in (direction, "both"):
            continue
        types = [getattr(module, method["params"], None) for module in modules] if "params" in method else []
        found = next(filter(None, types), None)
        params = ({} if found is None else sample_of(found)) | right.get(name, {})
        yield name, params, method["kind"] == "request"


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
