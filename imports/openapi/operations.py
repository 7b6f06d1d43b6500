"""Finds the operations of a document, and reads one: its input, its replies, and how it is called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, final

from msgspec import Struct

from ..http.model import HttpOperation
from ..model import JsonSchema, Schema
from .bodies import BodyReader, ReadBody
from .documents.nodes import DocumentError, Node, Noting, PartError, quoted
from .documents.references import Documents
from .naming import Found
from .params import ParamReader, ReadParam, named
from .replies import ReplyReader
from .schemas.reader import SchemaReader
from .servers import SecurityReader, ServerReader

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_QUERIES: Final = frozenset({"GET", "HEAD", "QUERY"})
_IDEMPOTENT: Final = frozenset({"PUT", "DELETE", "OPTIONS", "TRACE"})
"""May be repeated, though they are no queries (RFC 9110, 9.2.2)."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BODY: Final = "body"

MAX_OPERATIONS: Final = 200_000
MAX_PARTS: Final = 1_000_000
"""How many operations a document may have, and how many params and replies they may have together: many can share one."""


class Place(Struct, frozen=True):
    """An operation that was found, and the path item that it stands in."""

    found: Found
    node: Node
    item: Node


@final
class OperationFinder:
    """Goes through the paths of a document. `note` is told of paths and operations that are none."""

    def __init__(self, documents: Documents, note: Noting) -> None:
        self._documents = documents
        self._note = note

    def find(self, paths: Node) -> Iterator[Place]:
        """The operations in the order of the document. Raises `DocumentError` if there are too many."""
        count = 0
        for path, item in paths.fields():
            try:
                for place in self._of_path(path if path.startswith("/") else f"/{path}", item):
                    count += 1
                    if count > MAX_OPERATIONS:
                        raise DocumentError(f"has more than {MAX_OPERATIONS} operations", paths.pointer)
                    yield place
            except PartError as exc:
                self._note(exc.pointer, "left-out", exc.reason)

    def _of_path(self, path: str, item: Node) -> Iterator[Place]:
        if not path.isprintable():
            raise item.wrong("the path holds characters that can't stand in a URL")
        item.object()
        items = [item]
        if item.get("$ref") is not None:
            items.append(self._documents.follow(item))
        seen: set[str] = set()
        for each in items:
            for method, node in self._methods(each):
                if method not in seen:
                    seen.add(method)
                    place = self._place(path, method, node, each)
                    if place is not None:
                        yield place

    def _methods(self, item: Node) -> Iterator[tuple[str, Node]]:
        for name, node in item.fields():
            if name in _METHODS:
                yield name.upper(), node
        additional = item.get("additionalOperations")
        for name, node in additional.members() if additional is not None else ():
            if _TOKEN.fullmatch(name):
                yield name, node
            else:
                self._note(node.pointer, "left-out", f"{quoted(name)!r} is no method of HTTP")

    def _place(self, path: str, method: str, node: Node, item: Node) -> Place | None:
        try:
            node.object()
            tags = node.get("tags")
            names = tuple(str(tag.value) for tag in tags.items()) if tags is not None else ()
            return Place(Found(method, path, node.text("operationId"), names), node, item)
        except PartError as exc:
            self._note(node.pointer, "left-out", _because(exc, node))
            return None


@final
class OperationReader:
    """Reads the operations of one import."""

    def __init__(
        self,
        documents: Documents,
        schemas: SchemaReader,
        servers: ServerReader,
        security: SecurityReader,
        note: Noting,
    ) -> None:
        self._documents = documents
        self._servers = servers
        self._security = security
        self._note = note
        self._params = ParamReader(documents, schemas, note)
        self._bodies = BodyReader(documents, schemas, note)
        self._replies = ReplyReader(documents, schemas, note)
        self._parts = 0

    def read(self, place: Place, name: str) -> HttpOperation | None:
        """The operation; None, and a note, where something in it is wrong."""
        try:
            return self._read(place, name)
        except PartError as exc:
            self._note(place.node.pointer, "left-out", _because(exc, place.node))
            return None

    def _read(self, place: Place, name: str) -> HttpOperation:
        node, method, root = place.node, place.found.method, self._documents.first.root
        self._leave_out_callbacks(node)
        request = node.get("requestBody")
        body = self._bodies.read(request) if request is not None else None
        params = self._params.read((place.item.get("parameters"), node.get("parameters")), place.found.path)
        params = named(params, _BODY if body is not None else None, self._note)
        replies = self._replies.read(node.get("responses"), node.pointer, has_body=method != "HEAD")
        taken = {_BODY, *(read.param.name for read in params)}
        content_type = _free("contentType", taken) if body is not None and body.others else ""
        accept = _free("accept", taken) if replies.choices else ""
        self._parts += len(params) + len(replies.replies)
        if self._parts > MAX_PARTS:
            raise DocumentError("its operations share too many params and responses", "/paths")
        return HttpOperation(
            name=name,
            kind="subscription" if replies.streams else _kind(method),
            input=self._input(params, body, content_type, accept, replies.choices),
            output=replies.output,
            errors=replies.errors,
            description=_description(node, place.item),
            pointer=node.pointer,
            idempotent=method in _IDEMPOTENT,
            method=method,
            path=place.found.path,
            server=self._servers.read(node.get("servers"), place.item.get("servers"), root.get("servers")),
            params=tuple(read.param for read in params),
            body=body.body if body is not None else None,
            bodies=body.others if body is not None else {},
            content_type=content_type,
            accept=accept,
            replies=replies.replies,
            security=self._security.required(node.get("security") or root.get("security")),
        )

    def _input(
        self, params: list[ReadParam], body: ReadBody | None, content_type: str, accept: str, choices: tuple[str, ...]
    ) -> JsonSchema:
        members: dict[str, Schema] = {read.param.name: read.schema for read in params}
        required = [read.param.name for read in params if read.param.required]
        if body is not None:
            members[_BODY] = body.schema
            required += [_BODY] if body.body.required else []
            if content_type:
                members[content_type] = _choice("body", (body.body.content_type, *body.others))
        if accept:
            members[accept] = _choice("result", choices)
        schema: JsonSchema = {"type": "object", "properties": members}
        if required:
            schema["required"] = required
        return schema | {"additionalProperties": False}

    def _leave_out_callbacks(self, node: Node) -> None:
        callbacks = node.get("callbacks")
        if callbacks is not None and isinstance(callbacks.value, dict):
            for name, callback in callbacks.members():
                self._note(callback.pointer, "left-out", f"{quoted(name)} is a callback, which the other side calls")


def _choice(what: str, types: tuple[str, ...]) -> JsonSchema:
    """The schema of a param that names one of several media types."""
    return {"enum": [*dict.fromkeys(types)], "description": f"The media type of the {what}: {types[0]} by default."}


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _kind(method: str) -> Literal["query", "mutation"]:
    return "query" if method in _QUERIES else "mutation"


def _description(node: Node, item: Node) -> str:
    """The summary and the description, as paragraphs; those of the path if the operation has none."""
    parts: list[str] = []
    for each in (node, item):
        parts = [each.prose("summary"), each.prose("description")]
        if any(parts):
            break
    if node.value.get("deprecated") is True:
        parts.append("Deprecated.")
    return "\n\n".join(dict.fromkeys(part for part in parts if part))


def _because(exc: PartError, node: Node) -> str:
    """Why an operation is left out: what is wrong, and where, unless that is the operation itself."""
    return exc.reason if exc.pointer == node.pointer else f"{exc.pointer} {exc.reason}"
