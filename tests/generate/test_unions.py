"""Unions, as authors write them and as other servers do: each client can be imported, decodes its types, and calls."""

from __future__ import annotations

import datetime
import enum
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypedDict, get_type_hints

import msgspec
import pytest

from discreet import Service
from discreet.daemon.operations.registry import Registry
from discreet.generate import python_client, typescript_client
from discreet.schemas.documents import OperationSchema, snapshot
from discreet.testing import in_memory


class Item(msgspec.Struct):
    count: int


class Pair(NamedTuple):
    count: int
    name: str


class Open(NamedTuple):
    count: int
    name: str = ""


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Line(msgspec.Struct, tag=True, array_like=True):
    length: int


class Arc(msgspec.Struct, tag=True, array_like=True):
    angle: int


class Row(TypedDict):
    count: int


class Color(enum.Enum):
    RED = "red"


class Tree(msgspec.Struct):
    below: list[Tree] = []


DECLARED: dict[str, tuple[Any, list[Any]]] = {
    # the type, and values of it
    "a struct or a named tuple": (Item | Pair, [Item(1), Pair(1, "a")]),
    "a struct or a named tuple with a default": (Item | Open, [Item(1), Open(1)]),
    "a struct or a list": (Item | list[int], [Item(1), [1, 2]]),
    "a struct or a tuple": (Item | tuple[int, str], [Item(1), (1, "a")]),
    "a dict or a named tuple": (dict[str, int] | Pair, [{"a": 1}, Pair(1, "a")]),
    "a typed dict or a named tuple": (Row | Pair, [{"count": 1}, Pair(1, "a")]),
    "tagged structs": (Cat | Dog, [Cat(9), Dog("a")]),
    "tagged structs or a named tuple": (Cat | Dog | list[int], [Cat(9), Dog("a"), [1]]),
    "tagged arrays": (Line | Arc, [Line(1), Arc(2)]),
    "nested optionals": (list[list[int | None] | None], [[None, [1, None]]]),
    "items of a union": (list[Item | Pair], [[Item(1), Pair(1, "a")]]),
    "values of a union": (dict[str, Item | Pair | None], [{"a": Item(1), "b": Pair(1, "a"), "c": None}]),
    "a literal or a number": (Literal["auto"] | int, ["auto", 3]),
    "an enum or nothing": (Color | None, [Color.RED, None]),
    "a date or a number": (datetime.date | int, [datetime.date(2024, 1, 2), 3]),
    "itself or a list of it": (Tree | list[Tree], [Tree([Tree()]), [Tree()]]),
}


@pytest.fixture
def modules() -> Iterator[list[ModuleType]]:
    made: list[ModuleType] = []
    yield made
    for module in made:
        del sys.modules[module.__name__]


def imported(text: str, modules: list[ModuleType]) -> Any:
    module = ModuleType("client_of_unions")
    sys.modules[module.__name__] = module
    modules.append(module)
    exec(compile(text, module.__name__, "exec"), vars(module))
    return module


@pytest.mark.anyio
@pytest.mark.parametrize("case", DECLARED)
async def test_a_client_calls_with_each_member_of_a_union(case: str, modules: list[ModuleType]) -> None:
    annotation, values = DECLARED[case]
    service = Service("shop")

    def echo(value) -> None:  # type: ignore[no-untyped-def]
        return value  # type: ignore[no-any-return]

    echo.__annotations__ |= {"value": annotation, "return": annotation}
    service.query()(echo)
    client = imported(python_client(snapshot(Registry([service])).operations.values()), modules)
    async with in_memory(service) as peer:
        shop = client.ShopClient(peer)
        for value in values:
            answer = await shop.echo(value)
            assert msgspec.json.encode(answer) == msgspec.json.encode(value)


def reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def record(title: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "title": title, "properties": properties or {"x": {"type": "integer"}}}


DEFINITIONS = {
    "One": record("One"),
    "Two": record("Two"),
    "Kind": record("Kind", kind={"enum": ["a"]}),
    "Same": record("Same", kind={"enum": ["a"]}),
    "Sort": record("Sort", sort={"enum": ["b"]}),
    "Numbered": record("Numbered", kind={"enum": [1]}),
    "Slots": {"type": "array", "title": "Slots", "prefixItems": [{"type": "integer"}]},
    "Loop": reference("Loop"),
    "Cycle": {"anyOf": [reference("Cycle"), {"type": "null"}]},
    "Choice": {"anyOf": [reference("One"), {"type": "null"}]},
}
DATE, TEXT, UUID = {"type": "string", "format": "date"}, {"type": "string"}, {"type": "string", "format": "uuid"}
INTEGERS, TEXTS = {"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": TEXT}

FOREIGN: dict[str, list[dict[str, Any]]] = {
    "two records": [reference("One"), reference("Two")],
    "a record or any object": [reference("One"), {"type": "object"}],
    "two tags": [reference("Kind"), reference("Sort")],
    "one tag twice": [reference("Kind"), reference("Same")],
    "tags of two types": [reference("Kind"), reference("Numbered")],
    "a tag or none": [reference("Kind"), reference("One")],
    "a record or a positional one": [reference("One"), reference("Slots")],
    "a tag or a positional one": [reference("Kind"), reference("Slots")],
    "three of them": [reference("One"), reference("Kind"), reference("Slots")],
    "a record or an alias of it and null": [reference("Two"), reference("Choice")],
    "two arrays": [INTEGERS, TEXTS],
    "an array or a positional record": [INTEGERS, reference("Slots")],
    "two maps": [{"type": "object", "additionalProperties": TEXT}, {"type": "object", "additionalProperties": DATE}],
    "a date or any text": [DATE, TEXT],
    "a date or a uuid": [DATE, UUID],
    "a date or a word": [DATE, {"enum": ["today"]}],
    "a word or any text": [{"enum": ["a"]}, TEXT],
    "bytes or a text": [{"type": "string", "contentEncoding": "base64"}, TEXT],
    "a reference to itself": [reference("Loop"), {"type": "null"}],
    "a cycle": [reference("Cycle"), TEXT],
    "an unknown type": [{"type": "nonsense"}, {"type": "null"}],
    "a huge number": [{"enum": [2**70, "a"]}],
    "a huge list": [{"enum": [f"word{number}" for number in range(5000)]}],
    "a name out of Python": [record("class", **{"class": TEXT, "None": TEXT, "__init__": TEXT, "self": TEXT, "list": TEXT})],
    "a quote at the end": [{**record("Quote"), "description": 'ends in \\"'}],
    "quotes": [{**record("Quotes"), "description": '"""'}],
    "a backslash at the end": [{**record("Slash"), "description": "ends in \\"}],
}  # fmt: skip


@pytest.mark.parametrize("case", FOREIGN)
def test_a_union_of_any_server_can_be_imported_and_decoded(case: str, modules: list[ModuleType]) -> None:
    schema = {"anyOf": FOREIGN[case], "$defs": DEFINITIONS}
    operation = OperationSchema(
        name="shop/price",
        namespace="shop",
        kind="query",
        visibility="external",
        description="",
        input_schema={"type": "object", "properties": {"value": {"anyOf": FOREIGN[case]}}, "$defs": DEFINITIONS},
        output_schema=schema,
        error_schemas=(),
    )
    client = imported(python_client([operation]), modules)
    for annotation in get_type_hints(client.ShopClient.price).values():
        msgspec.json.Decoder(annotation)
    assert typescript_client([operation])
