"""Reads the request bodies and the responses of operations: the media types that are sent and taken, and their schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, final

import msgspec
from msgspec import Struct

from ..http.model import (
    OCTETS,
    STREAMS,
    Body,
    Reply,
    ReplyForm,
    Serialization,
    Style,
    body_form,
    body_rank,
    code_of,
    is_any,
    is_json,
    is_text,
    plain,
    reply_form,
    reply_rank,
    sent_as,
)
from ..model import ImportedError, Schema
from .document import Node, PartError
from .parsing import quoted
from .schemas import SchemaReader

_PART_STYLES: Final[tuple[Style, ...]] = ("form", "spaceDelimited", "pipeDelimited", "deepObject")


class ReadBody(Struct, frozen=True):
    """A body, its schema, and bodies of other media types that may be chosen, by these."""

    body: Body
    schema: Schema
    others: Mapping[str, Body]


@final
class BodyReader:
    """Reads the bodies of one import."""

    def __init__(self, schemas: SchemaReader) -> None:
        self._schemas = schemas
        self._read: dict[int, ReadBody] = {}

    def read(self, declared: Node) -> ReadBody:
        """Return the body at a node, which may be a reference. Raises `PartError`."""
        node = declared.followed()
        key = id(node.value)
        if key not in self._read:
            self._read[key] = self._read_one(node, shared=node is not declared)
        return self._read[key]

    def _read_one(self, node: Node, *, shared: bool) -> ReadBody:
        node.object()
        content = node.get("content")
        types = [] if content is None else sorted(content.members(), key=lambda each: body_rank(each[0]))
        if content is None or not types:
            raise node.wrong("the body has no media type in `content`")
        required = node.flag("required") or False
        (name, first), *rest = types
        body, schema = self._media_type(name, first, shared=shared, required=required)
        others: dict[str, Body] = {}
        schemas = [schema]
        for other, media_type in rest:
            if "*" in other:
                continue
            try:
                others[other], schema = self._media_type(other, media_type, shared=shared, required=required)
                schemas.append(schema)
            except PartError as exc:
                exc.node.note("left-out", exc.reason)
        if rest:
            names = quoted(", ".join(other for other, _ in rest))
            content.note("changed", f"sent as {quoted(name)}, and as {names} where a caller says so")
        description = node.prose("description")
        words = {"description": description} if description else {}
        return ReadBody(body, self._schemas.extended(any_of(schemas), words), others)

    def _media_type(self, name: str, media_type: Node, *, shared: bool, required: bool) -> tuple[Body, Schema]:
        form = body_form(name)
        media_type = media_type.followed()
        media_type.object()
        schema = media_type.get("schema")
        read: Schema = True if schema is None else self._schemas.read(schema, "input", shared=shared)
        parts: dict[str, Serialization] = {}
        if form in ("form", "multipart"):
            parts = _parts(media_type, schema, is_multipart=form == "multipart")
        elif form == "text":
            read = _text_schema(read)
        elif form == "binary":
            read = _binary_schema(read, name)
        return Body(sent_as(name), form, parts=parts, required=required), read


def _parts(media_type: Node, schema: Node | None, *, is_multipart: bool) -> dict[str, Serialization]:
    """How the members of a form are written, where that does not follow from their types."""
    parts: dict[str, Serialization] = {}
    if is_multipart and schema is not None:
        parts = {name: Serialization(content_type=OCTETS) for name in _binary_members(schema, 3)}
    encoding = media_type.get("encoding")
    for name, part in encoding.members() if encoding is not None else ():
        parts[name] = _part(part, parts.get(name))
    return parts


def _part(node: Node, known: Serialization | None) -> Serialization:
    node.object()
    if node.get("headers") is not None:
        node.note("changed", "the part is sent without the headers that it declares")
    content_type = node.text("contentType").partition(",")[0].strip()
    if content_type and "*" in content_type:
        content_type = OCTETS if plain(content_type) != "text/*" else "text/plain"
    style = node.text("style") or "form"
    if style not in _PART_STYLES:
        node.note("changed", f"{quoted(style)!r} is no style of a part; form is taken")
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


def _binary_members(schema: Node, depth: int) -> list[str]:
    """The members that are bytes, as the document says: of an object, or of the branches of its `allOf`."""
    try:
        schema = schema.followed()
        members = schema.get("properties")
        found = [name for name, each in (members.members() if members else ()) if _is_binary(each)]
        branches = schema.get("allOf")
        for branch in branches.items() if branches is not None and depth > 0 else ():
            found += _binary_members(branch, depth - 1)
    except PartError:  # the reader of schemas has said so
        return []
    return found


def _is_binary(node: Node) -> bool:
    node = node.followed()
    items = node.get("items")
    value = node.value if items is None else items.followed().value
    if not isinstance(value, dict) or "contentEncoding" in value:
        return False
    kind = value.get("contentMediaType")
    return value.get("format") == "binary" or (isinstance(kind, str) and not is_json(kind) and not is_text(kind))


def _text_schema(schema: Schema) -> Schema:
    """The schema of a text: that of the document where it is one of a string."""
    return schema if isinstance(schema, dict) and schema.get("type") == "string" else {"type": "string"}


def _binary_schema(schema: Schema, media_type: str) -> Schema:
    """The schema of bytes, which stand in JSON as base64."""
    given = schema if isinstance(schema, dict) else {}
    said = {word: given[word] for word in ("title", "description") if word in given}
    known = {} if "*" in media_type else {"contentMediaType": media_type}
    return {"type": "string", **said, "contentEncoding": "base64", **known}


def any_of(schemas: Iterable[Schema]) -> Schema:
    """Return the schema of what one of these accepts."""
    different = list({msgspec.json.encode(schema): schema for schema in schemas}.values())
    if len(different) == 1:
        return different[0]
    return True if True in different or not different else {"anyOf": different}


# -- responses -------------------------------------------------------------------------------------------------

_STATUS: Final = re.compile(r"[1-5](?:[0-9]{2}|XX)")
_EMPTY: Final = frozenset({"204", "205", "304"})
"""Statuses whose responses have no body (RFC 9110)."""

_RETRYABLE: Final = frozenset({"408", "425", "429"})
_DEFAULT: Final = "default"
_UNKNOWN: Final[dict[str, ReplyForm]] = {"application/json": "json", "text/*": "text"}


class _Response(Struct, frozen=True):
    """A response as the document has it: each media type that is read, with its form and schema."""

    description: str
    forms: dict[str, ReplyForm]
    schemas: tuple[Schema, ...]
    node: Node
    asked: tuple[str, ...]

    @property
    def streams(self) -> bool:
        return not STREAMS.isdisjoint(self.forms.values())

    def reply(self, status: str, code: str = "") -> Reply:
        return Reply(status, self.forms, code, self.asked)


class ReadReplies(Struct, frozen=True):
    """The responses of an operation. `choices` are media types of the result, the first of which comes where no other is asked
    for."""

    replies: tuple[Reply, ...]
    errors: tuple[ImportedError, ...]
    output: Schema
    streams: bool
    choices: tuple[str, ...]


@final
class ReplyReader:
    """Reads the responses of one import."""

    def __init__(self, schemas: SchemaReader) -> None:
        self._schemas = schemas
        self._read: dict[tuple[int, bool], _Response] = {}

    def read(self, operation: Node, *, has_body: bool) -> ReadReplies:
        """Return the replies of an operation; without `has_body` (HEAD) none has content. Raises `PartError`."""
        found: dict[str, _Response] = {}
        node = operation.get("responses")
        for status, response in node.fields() if node is not None else ():
            key = status if status == _DEFAULT else status.upper()
            if key != _DEFAULT and not _STATUS.fullmatch(key):
                response.note("left-out", f"{quoted(status)!r} is no status: 200, 4XX or default")
            elif key[0] == "1":
                response.note("left-out", "it comes before a response, and is none")
            else:
                empty = not has_body or key in _EMPTY
                found[key] = self._response(response, is_error=key[0] not in "2d", empty=empty)
        errors = {status: each for status, each in found.items() if status[0] != "2"}
        successes = {status: each for status, each in found.items() if status[0] == "2"}
        if not successes and _DEFAULT in found:  # which is a success, too
            successes = {"2XX": found[_DEFAULT]}
        elif not successes:
            operation.note("changed", "declares no success; any result is taken")
            successes = {"2XX": _Response("", _UNKNOWN, (True,), operation, ())}
        streams = any(each.streams for each in successes.values())
        if streams and any(each.forms and not each.streams for each in successes.values()):
            streams = False
            for each in (each for each in successes.values() if each.streams):
                each.node.note("left-out", "a stream, beside another response with one result")
        taken = {status: each for status, each in successes.items() if streams or not each.streams}
        schemas = [schema for each in taken.values() if each.forms or not streams for schema in each.schemas]
        replies = [each.reply(status) for status, each in taken.items()]
        failures = [Reply(status, each.forms, code_of(status)) for status, each in errors.items()]
        return ReadReplies(
            (*replies, *failures),
            tuple(_error(status, each) for status, each in errors.items()),
            any_of(schemas),
            streams,
            _choices(replies),
        )

    def _response(self, declared: Node, *, is_error: bool, empty: bool) -> _Response:
        node = declared.followed()
        if empty:
            return self._read_one(node, is_error=is_error, empty=True, shared=False)
        key = (id(node.value), is_error)
        if key not in self._read:
            self._read[key] = self._read_one(node, is_error=is_error, empty=False, shared=node is not declared)
        return self._read[key]

    def _read_one(self, node: Node, *, is_error: bool, empty: bool, shared: bool) -> _Response:
        node.object()
        content = node.get("content")
        forms: dict[str, ReplyForm] = {}
        schemas: list[Schema] = []
        asked: list[str] = []
        if content is not None and not empty:
            taken, others = _taken(content, is_error=is_error)
            for name, media_type in taken:
                forms[name], schema = self._media_type(name, media_type, is_error=is_error, shared=shared)
                schemas.append(schema)
            for name, media_type in others:
                try:
                    forms[name], schema = self._asked(name, media_type, shared=shared)
                except PartError as exc:
                    exc.node.note("left-out", exc.reason)
                else:
                    asked.append(name)
                    schemas.append(schema)
        description = " ".join(node.prose("description").split())
        return _Response(description, forms, tuple(schemas) or ({"type": "null"},), node, tuple(asked))

    def _asked(self, name: str, node: Node, *, shared: bool) -> tuple[ReplyForm, Schema]:
        """A media type beside JSON: a stream is the text of all of it."""
        if reply_form(name) in STREAMS:
            node.followed()
            return "text", {"type": "string", "description": f"All of the stream ({name}), as it came."}
        return self._media_type(name, node, is_error=False, shared=shared)

    def _media_type(self, name: str, node: Node, *, is_error: bool, shared: bool) -> tuple[ReplyForm, Schema]:
        form = reply_form(name)
        node = node.followed()
        node.object()
        if form in STREAMS and not is_error:
            return self._stream(form, node)
        schema = node.get("schema")
        read: Schema = True if schema is None else self._schemas.read(schema, "output", shared=shared)
        if form == "json" and is_any(name) and isinstance(read, dict) and read.get("type") == "string":
            form = "binary" if "contentEncoding" in read else "text"
        if form == "json":
            return form, read
        if form == "binary" and not is_text(name):
            return form, _binary_schema(read, name)
        return "text", _text_schema(read)

    def _stream(self, form: ReplyForm, node: Node) -> tuple[ReplyForm, Schema]:
        """A stream, and the schema of one event: `itemSchema` of 3.2. Older ones describe the data of an event, or a line."""
        schema = node.get("itemSchema")
        if schema is None:
            form = "event-data" if form == "events" else form
            schema = node.get("schema")
            followed = None if schema is None else schema.followed()
            kind = followed.value.get("type") if followed and isinstance(followed.value, dict) else None
            items = followed and followed.get("items")
            if kind == "array" and items is not None:
                schema = items
            elif kind == "string":  # the text of the whole stream
                schema = None
        return form, True if schema is None else self._schemas.read(schema, "output")


def _taken(content: Node, *, is_error: bool) -> tuple[list[tuple[str, Node]], list[tuple[str, Node]]]:
    """The media types that are taken: JSON if there is any, else streams, else all; and those to be asked for."""
    types = [(reply_rank(name, is_error=is_error), name, node) for name, node in content.members()]
    best = min((rank for rank, _, _ in types), default=0)
    taken = [(name, node) for rank, name, node in types if rank == best]
    left = [(name, node) for rank, name, node in types if rank != best]
    if not left:
        return taken, []
    kept, others = quoted(", ".join(name for name, _ in taken)), quoted(", ".join(name for name, _ in left))
    if is_error or any(reply_form(name) in STREAMS for name, _ in taken):
        content.note("changed", f"taken as {kept}, and not as {others}")
        return taken, []
    content.note("changed", f"taken as {kept}, and as {others} where a caller asks for it")
    return taken, left


def _choices(replies: Iterable[Reply]) -> tuple[str, ...]:
    names = dict.fromkeys(name for reply in replies for name in reply.forms if name not in reply.asked)
    asked = dict.fromkeys(name for reply in replies for name in reply.asked)
    choices = tuple(name for name in {**names, **asked} if "*" not in name)
    return choices if len(choices) > 1 else ()


def _error(status: str, response: _Response) -> ImportedError:
    is_range = status.endswith("XX")
    return ImportedError(
        code=code_of(status),
        http_status=500 if status == _DEFAULT else int(status[0]) * 100 if is_range else int(status),
        description=response.description,
        schema=any_of(response.schemas) if response.forms else None,
        retryable=status in _RETRYABLE or status[0] == "5",
    )
