"""Reads an OpenAPI document that `openapi_document` wrote as the snapshot of operations that it stands for.

So it is compared as snapshots are. What a document does not hold breaks no caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ...errors.codes import RESERVED_CODES, grpc_of_http
from ...errors.decoders import decoder_for
from ...schemas.documents import SNAPSHOT_FORMAT, AccessSchema, ErrorSchema, OperationSchema, Snapshot
from ...schemas.json_schema import JsonSchema
from ...schemas.named_types import LOCAL, SHARED, Schema, require_schema, rewritten
from .document import LAST_EVENT_ID, PREFIX
from .errors import JSON, RESPONSES
from .keywords import from_openapi
from .objects import Components, Document, PathItem, Response


class _Probe(Struct, frozen=True):
    openapi: str = ""


def is_openapi(text: bytes) -> bool:
    """Whether this is meant as an OpenAPI document."""
    try:
        return decoder_for(_Probe)(text).openapi != ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def read_openapi(text: bytes) -> Snapshot:
    """The snapshot of a document. Raises `ValueError` for any other text, and for one that describes other things, too."""
    try:
        document = decoder_for(Document)(text)
        reader = _Reader(document.components)
        operations = [reader.operation(path, item) for path, item in document.paths.items()]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError, ValueError):
        raise ValueError("not an OpenAPI document of operations, or one of another program") from None
    return Snapshot(SNAPSHOT_FORMAT, {each.name: each for each in sorted(operations, key=lambda each: each.name)})


@final
class _Reader:
    def __init__(self, components: Components) -> None:
        for schema in components.schemas.values():
            require_schema(schema)
        self._responses = components.responses
        local = {SHARED + name: LOCAL + name for name in components.schemas}
        self._definitions = {
            name: rewritten(schema, local, from_openapi) for name, schema in components.schemas.items()
        }
        self._local = local

    def operation(self, path: str, item: PathItem) -> OperationSchema:
        operation = item.post
        if isinstance(operation, UnsetType) or isinstance(operation.request_body, UnsetType) or not operation.kind:
            raise ValueError("no operation of discreet")
        output: JsonSchema = {"type": "null"}
        if "204" not in operation.responses:
            (found,) = operation.responses["200"].content.values()
            output = self._schema(found.schema if isinstance(found.event, UnsetType) else found.event)
        return OperationSchema(
            name=path.removeprefix(PREFIX),
            namespace=operation.tags[0] if operation.tags else "",
            kind=operation.kind,
            visibility="external",
            description=operation.description,
            input_schema=self._schema(operation.request_body.content[JSON].schema),
            output_schema=output,
            error_schemas=tuple(self._errors(operation.responses)),
            access=UNSET if operation.scopes is UNSET else AccessSchema(operation.scopes.all, operation.scopes.any),
            timeout=operation.timeout,
            numbered=any(each.name == LAST_EVENT_ID for each in operation.parameters) or UNSET,
            offer=operation.offer,
        )

    def _errors(self, responses: Mapping[str, Response]) -> Iterator[ErrorSchema]:
        for status, response in responses.items():
            found = self._responses[response.ref.removeprefix(RESPONSES)] if response.ref else response
            if int(status) < 400 or (response.ref and not found.content):  # the latter is no operation's
                continue
            schema = self._schema(found.content[JSON].schema)
            meanings = dict(line.split(": ", 1) for line in found.description.splitlines() if ": " in line)
            for each in schema.get("oneOf") or schema.get("anyOf") or [schema]:
                error = self._error(int(status), self._schema(each), meanings)
                if error.code not in RESERVED_CODES:
                    yield error

    def _error(self, status: int, schema: JsonSchema, meanings: Mapping[str, str]) -> ErrorSchema:
        facts = schema["properties"]
        code, (message,) = facts["code"]["const"], facts["message"]["examples"]
        meaning = meanings.get(code, message)
        details = {**facts["details"], "$defs": self._definitions} if "details" in facts else None
        return ErrorSchema(
            code=code,
            message=message,
            description="" if meaning == message else meaning,
            schema=details,
            http_status=status,
            grpc_status=grpc_of_http(status),
            retryable=facts["retryable"]["const"],
        )

    def _schema(self, schema: Schema | UnsetType) -> JsonSchema:
        """A schema as a document of its own; in place of a reference, what it refers to."""
        schema = True if isinstance(schema, UnsetType) else schema
        require_schema(schema)
        local = rewritten(schema, self._local, from_openapi)
        if isinstance(local, dict) and local.keys() == {"$ref"}:
            local = self._definitions[local["$ref"].removeprefix(LOCAL)]
        if isinstance(local, bool):
            local = {} if local else {"not": {}}
        return {**local, "$defs": self._definitions}
