"""Reads the request bodies of operations: the media type that is sent, its schema, and how the parts of a form are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, final

import msgspec
from msgspec import Struct

from ..http.model import Body, Serialization, Style
from ..model import Schema
from .documents.nodes import Node, Noting, PartError, quoted
from .documents.references import Documents
from .media_types import OCTETS, body_form, body_rank, is_json, is_text, plain, sent_as
from .schemas.reader import SchemaReader

_PART_STYLES: Final[tuple[Style, ...]] = ("form", "spaceDelimited", "pipeDelimited", "deepObject")


class ReadBody(Struct, frozen=True):
    body: Body
    schema: Schema
    others: Mapping[str, Body] = {}
    """Bodies of other media types that may be chosen, by these."""


@final
class BodyReader:
    """Reads the bodies of one import. `note` is told of media types that are not sent."""

    def __init__(self, documents: Documents, schemas: SchemaReader, note: Noting) -> None:
        self._documents = documents
        self._schemas = schemas
        self._note = note
        self._read: dict[int, ReadBody] = {}

    def read(self, node: Node) -> ReadBody:
        """The body at a node, which may be a reference. Raises `PartError`."""
        body = self._documents.follow(node)
        key = id(body.value)
        if key not in self._read:
            self._read[key] = self._read_one(body, shared=body is not node)
        return self._read[key]

    def _read_one(self, node: Node, *, shared: bool) -> ReadBody:
        node.object()
        content = node.get("content")
        types = [] if content is None else list(content.members())
        if content is None or not types:
            raise node.wrong("the body has no media type in `content`")
        types.sort(key=lambda each: body_rank(each[0]))
        required = node.flag("required") or False
        (name, first), *rest = types
        body, read = self._media_type(name, first, shared=shared, required=required)
        others: dict[str, Body] = {}
        schemas = [read]
        for other, media_type in rest:
            if "*" in other:
                continue
            try:
                others[other], schema = self._media_type(other, media_type, shared=shared, required=required)
                schemas.append(schema)
            except PartError as exc:
                self._note(exc.pointer, "left-out", exc.reason)
        if rest:
            names = quoted(", ".join(other for other, _ in rest))
            self._note(content.pointer, "changed", f"sent as {quoted(name)}, and as {names} where a caller says so")
        read = any_of(schemas)
        if description := node.prose("description"):
            read = self._schemas.extended(read, {"description": description})
        return ReadBody(body, read, others)

    def _media_type(self, name: str, media_type: Node, *, shared: bool, required: bool) -> tuple[Body, Schema]:
        form = body_form(name)
        media_type = self._documents.follow(media_type)
        media_type.object()
        schema = media_type.get("schema")
        read: Schema = True if schema is None else self._schemas.read(schema, "input", shared=shared)
        parts: dict[str, Serialization] = {}
        if form in ("form", "multipart"):
            parts = self._parts(media_type, schema, is_multipart=form == "multipart")
        elif form == "text":
            read = text_schema(read)
        elif form == "binary":
            read = binary_schema(read, name)
        return Body(sent_as(name), form, parts=parts, required=required), read

    def _parts(self, media_type: Node, schema: Node | None, *, is_multipart: bool) -> dict[str, Serialization]:
        """How the members are written, where that does not follow from their types."""
        parts: dict[str, Serialization] = {}
        if is_multipart and schema is not None:
            parts = {name: Serialization(content_type=OCTETS) for name in self._binary_members(schema, 3)}
        encoding = media_type.get("encoding")
        if encoding is not None:
            for name, part in encoding.members():
                parts[name] = self._part(part, parts.get(name))
        return parts

    def _part(self, node: Node, known: Serialization | None) -> Serialization:
        node.object()
        if node.get("headers") is not None:
            self._note(node.pointer, "changed", "the part is sent without the headers that it declares")
        content_type = node.text("contentType").partition(",")[0].strip()
        if content_type and "*" in content_type:
            content_type = OCTETS if plain(content_type) != "text/*" else "text/plain"
        style = node.text("style") or "form"
        if style not in _PART_STYLES:
            self._note(node.pointer, "changed", f"{quoted(style)!r} is no style of a part; form is taken")
            style = "form"
        explode = node.flag("explode")
        if {"style", "explode", "allowReserved"}.isdisjoint(node.value) and not content_type and known is not None:
            return known
        return Serialization(
            style,  # type: ignore[arg-type] # it is one of them
            style == "form" if explode is None else explode,
            node.flag("allowReserved") or False,
            content_type or (known.content_type if known is not None else ""),
        )

    def _binary_members(self, schema: Node, depth: int) -> list[str]:
        """The members that are bytes, as the document says: of an object, or of the branches of its `allOf`."""
        try:
            schema = self._documents.follow(schema)
            members = schema.get("properties")
            found = [name for name, each in (members.members() if members else ()) if self._is_binary(each)]
            branches = schema.get("allOf")
            for branch in branches.items() if branches is not None and depth > 0 else ():
                found += self._binary_members(branch, depth - 1)
        except PartError:  # the reader of schemas has said so
            return []
        return found

    def _is_binary(self, node: Node) -> bool:
        node = self._documents.follow(node)
        if not isinstance(node.value, dict):
            return False
        items = node.get("items")
        if items is not None:
            node = self._documents.follow(items)
        value = node.value
        if not isinstance(value, dict) or "contentEncoding" in value:
            return False
        kind = value.get("contentMediaType")
        encoded = isinstance(kind, str) and not is_json(kind) and not is_text(kind)
        return value.get("format") == "binary" or encoded


def text_schema(schema: Schema) -> Schema:
    """The schema of a text: that of the document where it is one of a string."""
    return schema if isinstance(schema, dict) and schema.get("type") == "string" else {"type": "string"}


def binary_schema(schema: Schema, media_type: str) -> Schema:
    """The schema of bytes, which stand in JSON as base64."""
    said = (
        {word: schema[word] for word in ("title", "description") if word in schema} if isinstance(schema, dict) else {}
    )
    known = {} if "*" in media_type else {"contentMediaType": media_type}
    return {"type": "string", **said, "contentEncoding": "base64", **known}


def any_of(schemas: Iterable[Schema]) -> Schema:
    """The schema of what one of these accepts."""
    different = list({msgspec.json.encode(schema): schema for schema in schemas}.values())
    if len(different) == 1:
        return different[0]
    return True if True in different or not different else {"anyOf": different}
