"""The OpenRPC document: what the specification demands, that it says what the operations declare; and its named types."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from discreet import OperationError, Service
from discreet.schemas.named_types import NamedTypes
from discreet.schemas.openrpc import openrpc_document
from support.daemon_wire import Serving

FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "document": ({"openrpc", "info", "methods"}, {"servers", "components", "externalDocs"}),
    "info": ({"title", "version"}, {"description", "termsOfService", "contact", "license"}),
    "method": (
        {"name", "params"},
        {"description", "summary", "servers", "tags", "paramStructure", "result", "errors", "links", "examples"},
    ),
    "descriptor": ({"name", "schema"}, {"summary", "description", "required", "deprecated"}),
    "error": ({"code", "message"}, {"data"}),
    "tag": ({"name"}, {"description", "externalDocs"}),
}
"""What each object of OpenRPC 1.3 must and may have; beyond that only names that begin with `x-` (never in an error)."""


class Page(msgspec.Struct):
    """A page, and those below it."""

    title: str
    below: list[Page] = []
    size: tuple[int, int] = (0, 0)


class Torn(OperationError, code="TORN", http_status=409, retryable=True):
    """The page is torn."""

    page: Page


class Burnt(OperationError, code="BURNT"):
    """Nothing is left."""


def book() -> Service:
    service = Service("book")

    @service.query(errors=[Torn, Burnt], scopes=["book:read"], any_scope=["b", "a"])
    def find(*, limit: int = 10, title: str, near: Page | None = None) -> list[Page]:
        """Find pages."""
        return []

    @service.subscription()
    async def leaf(start: int) -> AsyncIterator[Page]:
        """Leaf through it."""
        yield Page("one")

    @service.mutation()
    def mark(page: int, **more: str) -> None:
        """Put marks."""

    @service.query(visibility="internal")
    def hidden() -> None: ...

    return service


def described(*services: Service) -> Any:
    specs = (spec for service in services for spec in service.operations if spec.visibility == "external")
    return msgspec.json.decode(msgspec.json.encode(openrpc_document(specs, version="1.2.3")))


def methods(document: Any) -> dict[str, Any]:
    return {method["name"]: method for method in document["methods"]}


def objects(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "document", document
    yield "info", document["info"]
    for method in document["methods"]:
        yield "method", method
        yield from (("descriptor", param) for param in [*method["params"], method["result"]])
        yield from (("error", error) for error in method["errors"])
        yield from (("tag", tag) for tag in method["tags"])


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def resolve(document: Any, reference: str) -> Any:
    found = document
    assert reference.startswith("#/")
    for part in reference[2:].split("/"):
        found = found[part]
    return found


def test_every_object_has_what_it_must_and_nothing_that_it_may_not() -> None:
    told = described(book())
    assert told["openrpc"].startswith("1.3.")
    for kind, found in objects(told):
        must, may = FIELDS[kind]
        names = {name for name in found if kind == "error" or not name.startswith("x-")}
        assert must <= names <= must | may, kind
    assert {kind for kind, _ in objects(told)} == FIELDS.keys()


def test_every_reference_resolves_within_the_document() -> None:
    told = described(book())
    found = set(references(told))
    assert found == {"#/components/schemas/Page"}
    assert resolve(told, found.pop())["properties"]["below"]["items"] == {"$ref": "#/components/schemas/Page"}


def test_optional_params_come_behind_required_ones_and_all_by_name() -> None:
    find = methods(described(book()))["book/find"]
    assert find["paramStructure"] == "by-name"
    assert [(param["name"], param.get("required", False)) for param in find["params"]] == [
        ("title", True),
        ("limit", False),
        ("near", False),
    ]


def test_a_declared_error_is_told_with_its_code_its_flag_and_the_schema_of_its_details() -> None:
    torn, burnt = methods(described(book()))["book/find"]["errors"]
    assert (torn["code"], torn["message"]) == (-32000, "The page is torn")
    assert torn["data"]["properties"]["code"] == {"const": "TORN"}
    assert torn["data"]["properties"]["retryable"] == {"const": True}
    assert torn["data"]["properties"]["details"]["properties"] == {"page": {"$ref": "#/components/schemas/Page"}}
    assert torn["data"]["required"] == ["code", "retryable", "details"]
    assert burnt["data"]["required"] == ["code", "retryable"]


def test_kind_scopes_and_events_are_told_by_extensions() -> None:
    told = methods(described(book()))
    assert {name: method["x-kind"] for name, method in told.items()} == {
        "book/find": "query",
        "book/leaf": "subscription",
        "book/mark": "mutation",
    }
    assert told["book/find"]["x-scopes"] == {"allOf": ["book:read"], "anyOf": ["a", "b"]}
    assert "x-scopes" not in told["book/leaf"]
    assert told["book/leaf"]["x-event"]["properties"]["title"] == {"type": "string"}
    assert told["book/leaf"]["result"]["schema"]["required"] == ["completed", "events"]
    assert told["book/mark"]["x-further-params"] == {"type": "string"}
    assert [tag["name"] for tag in told["book/leaf"]["tags"]] == ["book", "subscription"]


def test_tuples_are_told_as_draft_07_has_them() -> None:
    size = described(book())["components"]["schemas"]["Page"]["properties"]["size"]
    assert size["items"] == [{"type": "integer"}, {"type": "integer"}]
    assert size["additionalItems"] is False
    assert "prefixItems" not in size


def test_what_stands_beside_a_reference_is_kept() -> None:
    class Color(enum.Enum):
        RED = "red"

    service = Service("paint")

    def mix(color: Any = Color.RED) -> None: ...

    mix.__annotations__["color"] = Color
    service.mutation(description="Mix it.")(mix)
    (color,) = methods(described(service))["paint/mix"]["params"]
    assert color["schema"] == {"allOf": [{"$ref": "#/components/schemas/Color"}], "default": "red"}


def shelf_of(name: str, field: str) -> Service:
    inner = msgspec.defstruct("Inner", [(field, int)])
    outer = msgspec.defstruct("Outer", [("inner", inner)])
    service = Service(name)

    def get() -> Any: ...

    get.__annotations__ = {"return": list[outer]}  # type: ignore[valid-type]
    service.query(description="Get it.")(get)
    return service


def test_equal_types_are_told_once_and_others_of_the_same_name_apart() -> None:
    told = described(shelf_of("a", "x"), shelf_of("b", "x"), shelf_of("c", "y"))
    used = {name: method["result"]["schema"]["items"]["$ref"] for name, method in methods(told).items()}
    assert used["a/get"] == used["b/get"] != used["c/get"]
    other = resolve(told, resolve(told, used["c/get"])["properties"]["inner"]["$ref"])
    assert other["properties"].keys() == {"y"}
    assert len(told["components"]["schemas"]) == 4


def test_a_property_named_like_a_keyword_is_no_reference() -> None:
    service = Service("odd")
    odd = msgspec.defstruct("Odd", [("a", str), ("b", Page)], rename={"a": "$ref", "b": "items"})

    def get() -> Any: ...

    get.__annotations__ = {"return": odd}
    service.query(description="Get it.")(get)
    schema = methods(described(service))["odd/get"]["result"]["schema"]
    assert schema["properties"] == {"$ref": {"type": "string"}, "items": {"$ref": "#/components/schemas/Page"}}


@pytest.mark.anyio
async def test_rpc_discover_tells_what_the_caller_may_call(serving: Serving) -> None:
    async with serving(book()) as wire:
        told = (await wire.call("rpc.discover"))["result"]
        assert [method["name"] for method in told["methods"]] == ["book/find", "book/leaf", "book/mark"]
        assert told["info"]["version"] == "1.2.3"


def row(count: int, last: Any) -> dict[str, Any]:
    """A schema whose types refer to the next one each."""
    types: dict[str, Any] = {f"T{n}": {"properties": {"next": {"$ref": f"#/$defs/T{n + 1}"}}} for n in range(count - 1)}
    return {"$ref": "#/$defs/T0", "$defs": {**types, f"T{count - 1}": last}}


@pytest.mark.parametrize("last", [{"type": "null"}, {"properties": {"next": {"$ref": "#/$defs/T0"}}}])
def test_types_may_refer_to_each_other_in_a_long_row(last: Any) -> None:
    types = NamedTypes()
    assert types.include(row(2000, last)) == {"$ref": "#/components/schemas/T0"}
    assert len(types.schemas) == 2000
    assert types.schemas["T1998"] == {"properties": {"next": {"$ref": "#/components/schemas/T1999"}}}


def test_types_are_the_same_only_if_all_that_they_refer_to_is() -> None:
    types = NamedTypes()
    for last in ({"type": "null"}, {"type": "string"}, {"type": "null"}):
        types.include(row(3, last))
    assert list(types.schemas) == ["T0", "T1", "T2", "T0_2", "T1_2", "T2_2"]
    assert types.schemas["T1_2"] == {"properties": {"next": {"$ref": "#/components/schemas/T2_2"}}}


def test_types_on_one_circle_are_each_written_once() -> None:
    types = NamedTypes()
    circle = row(3, {"properties": {"next": {"$ref": "#/$defs/T0"}}})
    for _ in range(2):
        types.include(circle)
    assert list(types.schemas) == ["T0", "T1", "T2"]
