"""A service with everything that an OpenAPI document tells, and what reads such documents."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal

import msgspec
from jsonschema import Draft202012Validator
from msgspec import Meta

from discreet import OperationError, ServerEvent, Service
from discreet.gateway.openapi.document import About, about, document_text, openapi_document


class Page(msgspec.Struct):
    """A page, and those below it."""

    title: str
    below: list[Page] = []
    size: tuple[int, int] = (0, 0)


class Torn(OperationError, code="TORN", http_status=409, retryable=True):
    """The page is torn."""

    page: Page


class Wet(OperationError, code="WET", http_status=409):
    """The page is wet."""


class Lost(OperationError, code="LOST", http_status=404):
    """The page is lost."""

    title: str


def book() -> Service:
    service = Service("book", description="Has pages.")

    @service.query(errors=[Torn, Wet, Lost], scopes=["book:read"], any_scope=["b", "a"], etag=True)
    def find(title: Annotated[str, Meta(examples=["One"])], limit: int = 10, near: Page | None = None) -> list[Page]:
        """Find pages."""
        return []

    @service.subscription()
    async def leaf(start: int) -> AsyncIterator[ServerEvent[Page]]:
        """Leaf through it."""
        yield ServerEvent(Page("one"), id=1)

    @service.mutation()
    def mark(page: int, **more: str) -> None:
        """Put marks."""

    @service.mutation(timeout=None)
    def bind(page: Page, /) -> Page:
        return page

    @service.query(inline=True)
    def anything(*, x: Any, either: Literal["a", 1, None] = None) -> dict[str, Any]:
        return {}

    @service.notification()
    def turned(page: int) -> None: ...

    @service.query(visibility="internal")
    def hidden() -> None: ...

    return service


def described(*services: Service, told: About | None = None) -> Any:
    specs = (spec for service in services for spec in service.operations if spec.visibility == "external")
    told = told or about(services, None, None, version="1.2.3", url="https://book.example/")
    return json.loads(document_text(openapi_document(specs, told)))


def operations(document: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        yield from ((path, verb, operation) for verb, operation in item.items())


def resolved(document: Any, value: Any) -> Any:
    while "$ref" in value:
        found = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        value = found
    return value


def validator(document: Any, schema: Any) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": document["components"]})


def responses(operation: str, verb: str = "post") -> tuple[Any, dict[str, Any]]:
    document = described(book())
    found = document["paths"][f"/operations/book/{operation}"][verb]["responses"]
    return document, {status: resolved(document, response) for status, response in found.items()}
