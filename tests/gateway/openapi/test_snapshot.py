"""An OpenAPI document read back stands for the same operations as the snapshot of them."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from discreet import OperationError, Service
from discreet.compatibility.changes import additions, breaking_changes
from discreet.gateway.openapi.document import About, document_text, openapi_document
from discreet.gateway.openapi.snapshot import is_openapi, read_openapi
from discreet.schemas.documents import Snapshot, snapshot, snapshot_text


class Tree(msgspec.Struct):
    n: int
    below: list[Tree] = []


class Closed(msgspec.Struct, forbid_unknown_fields=True, array_like=True):
    pair: tuple[int, str]
    any: list[Any] = []


class Gone(OperationError, code="GONE", http_status=410):
    """It is gone."""


class GoneWithTree(OperationError, code="GONE", http_status=410):
    """It is gone."""

    tree: Tree


class GoneElsewhere(OperationError, code="GONE", http_status=404, retryable=True):
    """It has left."""

    tree: Tree


class Missing(OperationError, code="MISSING", http_status=404):
    """It was never there."""


def one(a: int, b: str = "", c: Tree | None = None) -> Tree: ...  # type: ignore[empty-body]
def more(a: int, b: str = "", c: Tree | None = None, d: int = 0) -> Tree: ...  # type: ignore[empty-body]
def moved(b: str = "", a: int = 0, c: Tree | None = None) -> Tree: ...  # type: ignore[empty-body]
def narrower(a: Annotated[int, Meta(ge=1)], b: str = "", c: Tree | None = None) -> Tree: ...  # type: ignore[empty-body]
def tuples(a: Closed, b: tuple[int, int], c: list[Any]) -> Closed | None: ...  # type: ignore[empty-body]
def extra(a: int, **more: Tree) -> dict[str, Any]: ...  # type: ignore[empty-body]
def whole(params: Tree, /) -> Literal["a", 1]: ...  # type: ignore[empty-body]
def formats(  # type: ignore[empty-body]
    a: decimal.Decimal,
    b: datetime.datetime,
    c: datetime.time,
    d: datetime.timedelta,
    e: set[Any],
    f: decimal.Decimal | None = None,
) -> tuple[decimal.Decimal | None, datetime.datetime, datetime.timedelta, set[Any]]: ...
def nothing() -> None: ...
def anything(x: Any) -> Any: ...
async def stream(a: int) -> AsyncIterator[Tree]:
    yield Tree(a)


def service_of(func: Callable[..., Any], kind: str = "query", **options: Any) -> Service:
    service = Service("s")
    getattr(service, kind)(name="op", **options)(func)
    return service


SERVICES = [
    Service("empty"),
    *map(service_of, (one, more, moved, narrower, tuples, formats, extra, whole, nothing, anything)),
    service_of(one, "mutation"),
    service_of(stream, "subscription"),
    service_of(nothing, "notification"),
    *(service_of(one, errors=errors) for errors in ([Gone, Missing], [GoneWithTree], [GoneElsewhere, Missing])),
    service_of(one, scopes=["r"]),
    service_of(one, any_scope=["r", "w"]),
    service_of(one, visibility="internal"),
]


def written(service: Service) -> bytes:
    specs = (spec for spec in service.operations if spec.visibility == "external")
    return document_text(openapi_document(specs, About(title="x", version="1")))


@pytest.mark.parametrize("old", SERVICES)
def test_what_breaks_is_the_same_by_a_document_as_by_a_snapshot(old: Service) -> None:
    by_document, by_snapshot = read_openapi(written(old)), snapshot(old.operations)
    differences = 0
    for new in SERVICES:
        current = snapshot(new.operations)
        assert breaking_changes(by_document, current) == breaking_changes(by_snapshot, current)
        assert additions(by_document, current) == additions(by_snapshot, current)
        differences += bool(breaking_changes(by_document, current) or additions(by_document, current))
    assert differences


@pytest.mark.parametrize("service", SERVICES)
def test_a_document_breaks_nobody_who_has_it(service: Service) -> None:
    document, current = read_openapi(written(service)), snapshot(service.operations)
    for old, new in ((document, current), (current, document)):
        assert breaking_changes(old, new) == additions(old, new) == ()


def test_the_two_formats_are_told_apart() -> None:
    service = service_of(one)
    assert is_openapi(written(service))
    assert not is_openapi(snapshot_text(snapshot(service.operations)))
    for text in (b"", b"[]", b"\xff", b'{"openapi": 3}', b"[" * 100_000):
        assert not is_openapi(text)


def changed(change: Callable[[Any], None]) -> bytes:
    document = json.loads(written(service_of(one, errors=[Gone])))
    change(document)
    return json.dumps(document).encode()


def post(document: Any) -> Any:
    return document["paths"]["/operations/s/op"]["post"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"openapi": "3.1.0"}',
        b'{"openapi": "3.1.0", "paths": {"/pets": {"get": {}}}}',
        changed(lambda document: document["paths"].update({"/pets": {"post": {"responses": {}}}})),
        changed(lambda document: document["components"].clear()),
        changed(lambda document: document["components"]["schemas"].clear()),
        changed(lambda document: post(document)["requestBody"]["content"].clear()),
        changed(lambda document: post(document)["responses"].pop("200")),
        changed(lambda document: post(document)["responses"].update({"4XX": {"description": ""}})),
        changed(lambda document: post(document)["responses"]["410"].pop("content")),
        changed(lambda document: document["components"]["schemas"].update(GoneError={"type": "object"})),
        changed(lambda document: document["components"]["schemas"].update(GoneError={"properties": []})),
        changed(lambda document: document["components"]["schemas"].update(GoneError={"properties": {"code": 1}})),
        changed(lambda document: document["components"]["schemas"].update(GoneError={"oneOf": 1})),
        changed(lambda document: document["components"]["schemas"].update(GoneError={"items": 1, "anyOf": {}})),
        changed(lambda document: document["components"]["schemas"].update(Tree={"properties": 5})),
    ],
)
def test_what_is_no_document_of_ours_is_refused_with_one_sentence(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"^not an OpenAPI document of operations, or one of another program$"):
        read_openapi(text)


def test_operations_come_in_the_order_of_their_names() -> None:
    service = Service("s")
    for name in ("b", "a"):
        service.query(name=name)(nothing)
    found: Snapshot = read_openapi(written(service))
    assert list(found.operations) == ["s/a", "s/b"]
