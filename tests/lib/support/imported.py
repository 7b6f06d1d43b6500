"""An import without a program behind it: a few operations, and an upstream that answers as the params ask."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from msgspec import Raw

from discreet import Context, Service
from discreet.imports.archive import ImportArchive, pack
from discreet.imports.model import Imported, ImportedError, ImportedOperation, Schema, UpstreamError
from discreet.imports.service import ImportOptions, imported_service

NODE: Schema = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}},
    "required": ["name"],
}
ERRORS = (
    ImportedError("HTTP_404", 404, "It is not there", {"$ref": "#/$defs/Problem"}),
    ImportedError("HTTP_429", 429, "Too many", None, retryable=True),
)
GET = ImportedOperation(
    name="nodes/get",
    kind="query",
    description="Get a node.",
    input={
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "node": {"$ref": "#/$defs/Node"},
            "color": {"enum": ["red", "blue"]},
            "tags": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
        },
        "required": ["id"],
        "additionalProperties": False,
    },
    output={"$ref": "#/$defs/Node"},
    errors=ERRORS,
)
PUT = ImportedOperation(
    name="nodes/put", kind="mutation", input={"type": "object"}, output={"type": "null"}, idempotent=True
)
WATCH = ImportedOperation(
    name="watch", kind="subscription", input={"type": "object"}, output={"type": "integer"}, errors=ERRORS[1:]
)
IMPORTED = Imported(
    title="Nodes",
    version="3",
    description="Nodes of a list.",
    operations=(GET, PUT, WATCH),
    definitions={
        "Node": NODE,
        "Problem": {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]},
        "Unused": {"type": "integer"},
    },
)


class Scripted:
    """Answers with what it was given: JSON text, or an exception to raise. Keeps what it was called with."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.open = False
        self.opens = self.refusals = 0
        self.streams_closed = 0

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        self.opens += 1
        if self.opens <= self.refusals:
            raise OSError("it is not there")
        self.open = True
        yield
        self.open = False

    async def call(self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context) -> Raw:
        self.calls.append((operation.name, arguments))
        await anyio.lowlevel.checkpoint()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Raw(answer)

    async def stream(
        self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context
    ) -> AsyncGenerator[Raw, None]:
        try:
            while self.answers:
                yield await self.call(operation, arguments, ctx)
        finally:
            self.streams_closed += 1


def nodes(upstream: Scripted, **options: Any) -> Service:
    """The service of these operations, all of them exposed."""
    packed = ImportArchive(pack(IMPORTED), Imported, ImportedOperation)
    return imported_service("list", packed, upstream, ImportOptions(**{"expose": True, **options}))


__all__ = ["ERRORS", "GET", "IMPORTED", "Scripted", "UpstreamError", "nodes"]
