"""Reads the responses of operations: how each is read, the schema of what succeeds, and a declared error for every other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, final

from msgspec import Struct

from ..http.faults import code_of
from ..http.model import Reply, ReplyForm
from ..model import ImportedError, Schema
from .bodies import any_of, binary_schema, text_schema
from .documents.nodes import Node, Noting, PartError, quoted
from .documents.references import Documents
from .media_types import STREAMS, is_any, is_text, reply_form
from .schemas.reader import SchemaReader

_STATUS: Final = re.compile(r"[1-5](?:[0-9]{2}|XX)")
_EMPTY: Final = frozenset({"204", "205", "304"})
"""Statuses whose responses have no body (RFC 9110)."""

_RETRYABLE: Final = frozenset({"408", "425", "429"})
_DEFAULT: Final = "default"
_UNKNOWN: Final[dict[str, ReplyForm]] = {"application/json": "json", "text/*": "text"}
_NULL: Final[Schema] = {"type": "null"}


class _Response(Struct, frozen=True):
    """A response as the document has it: each media type that is read, with its form and schema."""

    description: str
    forms: dict[str, ReplyForm]
    schemas: tuple[Schema, ...]
    streams: bool
    pointer: str
    asked: tuple[str, ...] = ()


class ReadReplies(Struct, frozen=True):
    replies: tuple[Reply, ...]
    errors: tuple[ImportedError, ...]
    output: Schema
    streams: bool
    choices: tuple[str, ...] = ()
    """Media types of the result, the first of which comes where no other is asked for."""


@final
class ReplyReader:
    """Reads the responses of one import. `note` is told of what is left out."""

    def __init__(self, documents: Documents, schemas: SchemaReader, note: Noting) -> None:
        self._documents = documents
        self._schemas = schemas
        self._note = note
        self._read: dict[tuple[int, bool], _Response] = {}

    def read(self, node: Node | None, pointer: str, *, has_body: bool) -> ReadReplies:
        """The replies of an operation; without `has_body` (HEAD) none has content. Raises `PartError`."""
        found: dict[str, _Response] = {}
        for status, response in node.fields() if node is not None else ():
            if status != _DEFAULT and not _STATUS.fullmatch(status.upper()):
                self._note(response.pointer, "left-out", f"{quoted(status)!r} is no status: 200, 4XX or default")
            elif status[0] == "1":
                self._note(response.pointer, "left-out", "it comes before a response, and is none")
            else:
                key = status if status == _DEFAULT else status.upper()
                empty = not has_body or key in _EMPTY
                found[key] = self._response(response, is_error=key[0] not in "2d", empty=empty)
        successes = {status: each for status, each in found.items() if status[0] == "2"}
        replies = self._successes(successes)
        errors = {status: each for status, each in found.items() if status[0] != "2"}
        if not successes:
            replies = self._undeclared(found.get(_DEFAULT), pointer)
        return ReadReplies(
            (*replies.replies, *(Reply(status, each.forms, code_of(status)) for status, each in errors.items())),
            tuple(_error(status, each) for status, each in errors.items()),
            replies.output,
            replies.streams,
            _choices(replies.replies),
        )

    def _successes(self, found: dict[str, _Response]) -> ReadReplies:
        streams = any(each.streams for each in found.values()) and not any(
            each.forms and not each.streams for each in found.values()
        )
        replies: list[Reply] = []
        schemas: list[Schema] = []
        for status, each in found.items():
            if each.streams and not streams:
                self._note(each.pointer, "left-out", "a stream, beside another response with one result")
                continue
            replies.append(Reply(status, each.forms, asked=each.asked))
            schemas += each.schemas if each.forms or not streams else ()
        return ReadReplies(tuple(replies), (), any_of(schemas), streams)

    def _undeclared(self, default: _Response | None, pointer: str) -> ReadReplies:
        """Where no success is declared: `default` is that too, or else a reply may be anything."""
        if default is not None:
            return ReadReplies(
                (Reply("2XX", default.forms, asked=default.asked),), (), any_of(default.schemas), default.streams
            )
        self._note(pointer, "changed", "declares no success; any result is taken")
        return ReadReplies((Reply("2XX", _UNKNOWN),), (), True, False)

    def _response(self, declared: Node, *, is_error: bool, empty: bool) -> _Response:
        node = self._documents.follow(declared)
        key = (id(node.value), is_error)
        if empty or key not in self._read:
            read = self._read_one(node, is_error=is_error, empty=empty, shared=node is not declared)
            if empty:
                return read
            self._read[key] = read
        return self._read[key]

    def _read_one(self, node: Node, *, is_error: bool, empty: bool, shared: bool) -> _Response:
        node.object()
        content = node.get("content")
        forms: dict[str, ReplyForm] = {}
        schemas: list[Schema] = []
        asked: list[str] = []
        if content is not None and not empty:
            taken, others = self._taken(content, is_error=is_error)
            for name, media_type in taken:
                media_type = self._documents.follow(media_type)
                forms[name], schema = self._media_type(name, media_type, is_error=is_error, shared=shared)
                schemas.append(schema)
            for name, media_type in others:
                try:
                    forms[name], schema = self._asked(name, self._documents.follow(media_type), shared=shared)
                except PartError as exc:
                    self._note(exc.pointer, "left-out", exc.reason)
                else:
                    asked.append(name)
                    schemas.append(schema)
        description = " ".join(node.prose("description").split())
        streams = any(form in STREAMS for form in forms.values())
        return _Response(description, forms, tuple(schemas) or (_NULL,), streams, node.pointer, tuple(asked))

    def _taken(self, content: Node, *, is_error: bool) -> tuple[list[tuple[str, Node]], list[tuple[str, Node]]]:
        """The media types that are taken: JSON if there is any, else streams, else all; and those to be asked for."""
        types = list(content.members())
        ranks = [_rank(name, is_error=is_error) for name, _ in types]
        best = min(ranks, default=0)
        left = [each for each, rank in zip(types, ranks, strict=True) if rank != best]
        taken = [each for each, rank in zip(types, ranks, strict=True) if rank == best]
        if not left:
            return taken, []
        kept, others = quoted(", ".join(name for name, _ in taken)), quoted(", ".join(name for name, _ in left))
        if is_error or any(reply_form(name) in STREAMS for name, _ in taken):
            self._note(content.pointer, "changed", f"taken as {kept}, and not as {others}")
            return taken, []
        self._note(content.pointer, "changed", f"taken as {kept}, and as {others} where a caller asks for it")
        return taken, left

    def _asked(self, name: str, node: Node, *, shared: bool) -> tuple[ReplyForm, Schema]:
        """A media type beside JSON: a stream is the text of all of it."""
        if reply_form(name) in STREAMS:
            return "text", {"type": "string", "description": f"All of the stream ({name}), as it came."}
        return self._media_type(name, node, is_error=False, shared=shared)

    def _media_type(self, name: str, node: Node, *, is_error: bool, shared: bool) -> tuple[ReplyForm, Schema]:
        form = reply_form(name)
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
            return form, binary_schema(read, name)
        return "text", text_schema(read)

    def _stream(self, form: ReplyForm, node: Node) -> tuple[ReplyForm, Schema]:
        """A stream, and the schema of one event: `itemSchema` of 3.2. Older ones describe the data of an event, or a line."""
        item = node.get("itemSchema")
        if item is not None:
            return form, self._schemas.read(item, "output")
        if form == "events":
            form = "event-data"
        schema = node.get("schema")
        if schema is None:
            return form, True
        followed = self._documents.follow(schema)
        if isinstance(followed.value, dict):
            items = followed.get("items")
            if items is not None and followed.value.get("type") == "array":
                return form, self._schemas.read(items, "output")
            if followed.value.get("type") == "string":  # the text of the whole stream
                return form, True
        return form, self._schemas.read(schema, "output")


def _choices(replies: Iterable[Reply]) -> tuple[str, ...]:
    names = dict.fromkeys(name for reply in replies for name in reply.forms if name not in reply.asked)
    asked = dict.fromkeys(name for reply in replies for name in reply.asked)
    choices = tuple(name for name in {**names, **asked} if "*" not in name)
    return choices if len(choices) > 1 else ()


def _rank(media_type: str, *, is_error: bool) -> int:
    form = reply_form(media_type)
    if form == "json":
        return 1 if is_any(media_type) else 0
    return 2 if form in STREAMS and not is_error else 3


def _error(status: str, response: _Response) -> ImportedError:
    is_range = status.endswith("XX")
    return ImportedError(
        code=code_of(status),
        http_status=500 if status == _DEFAULT else int(status[0]) * 100 if is_range else int(status),
        description=response.description,
        schema=any_of(response.schemas) if response.forms else None,
        retryable=status in _RETRYABLE or status[0] == "5",
    )
