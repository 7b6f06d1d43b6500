"""Finds the operations of a document, and reads one: its input, its replies, and how it is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from msgspec import Struct

from ..http.model import BODY, HttpOperation
from ..http.styles import is_token
from ..model import JsonSchema, Schema
from .document import Documents, Node, PartError
from .messages import BodyReader, ReadBody, ReplyReader
from .naming import Found
from .params import ParamReader, ReadParam, named
from .parsing import DocumentError, quoted
from .schemas import SchemaReader
from .servers import SecurityReader, ServerReader

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_QUERIES: Final = frozenset({"GET", "HEAD", "QUERY"})
_IDEMPOTENT: Final = frozenset({"PUT", "DELETE", "OPTIONS", "TRACE"})
"""May be repeated, though they are no queries (RFC 9110, 9.2.2)."""

MAX_OPERATIONS: Final = 200_000
MAX_PARTS: Final = 1_000_000
"""How many operations a document may have, and how many params and replies they may have together: many can share one."""


class Place(Struct, frozen=True):
    """An operation that was found, and the path item that it stands in."""

    found: Found
    node: Node
    item: Node


def find_operations(paths: Node) -> Iterator[Place]:
    """Yield the operations in the order of the document. Notes paths and operations that are none. Raises `DocumentError` if
    there are too many.
    """
    count = 0
    for path, item in paths.fields():
        try:
            for place in _of_path(path if path.startswith("/") else f"/{path}", item):
                count += 1
                if count > MAX_OPERATIONS:
                    raise DocumentError(f"has more than {MAX_OPERATIONS} operations", paths.pointer)
                yield place
        except PartError as exc:
            exc.node.note("left-out", exc.reason)


def _of_path(path: str, item: Node) -> Iterator[Place]:
    if not path.isprintable():
        raise item.wrong("the path holds characters that can't stand in a URL")
    item.object()
    items = [item, item.followed()] if item.get("$ref") is not None else [item]
    seen: set[str] = set()
    for each in items:
        for method, node in _methods(each):
            if method in seen:
                continue
            seen.add(method)
            try:
                node.object()
                tags = node.get("tags")
                names = tuple(str(tag.value) for tag in tags.items()) if tags is not None else ()
                yield Place(Found(method, path, node.text("operationId"), names), node, each)
            except PartError as exc:
                note_left_out(node, exc)


def _methods(item: Node) -> Iterator[tuple[str, Node]]:
    for name, node in item.fields():
        if name in _METHODS:
            yield name.upper(), node
    additional = item.get("additionalOperations")
    for name, node in additional.members() if additional is not None else ():
        if is_token(name):
            yield name, node
        else:
            node.note("left-out", f"{quoted(name)!r} is no method of HTTP")


def note_left_out(node: Node, exc: PartError) -> None:
    """Note why an operation is left out: what is wrong, and where, unless that is the operation itself."""
    wrong = exc.node.pointer
    node.note("left-out", exc.reason if wrong == node.pointer else f"{wrong} {exc.reason}")


@final
class OperationReader:
    """Reads the operations of one import."""

    def __init__(
        self, documents: Documents, schemas: SchemaReader, servers: ServerReader, security: SecurityReader
    ) -> None:
        self._root = documents.first.root
        self._servers = servers
        self._security = security
        self._params = ParamReader(schemas)
        self._bodies = BodyReader(schemas)
        self._replies = ReplyReader(schemas)
        self._parts = 0

    def read(self, place: Place, name: str) -> HttpOperation:
        """Return the operation. Raises `PartError` where something in it is wrong."""
        node, item, root, method = place.node, place.item, self._root, place.found.method
        _leave_out_callbacks(node)
        request = node.get("requestBody")
        body = self._bodies.read(request) if request is not None else None
        lists = item.get("parameters"), node.get("parameters")
        paths = Node(root.document, (None, "paths"), None)
        params = named(self._params.read(lists, place.found.path, paths), () if body is None else (BODY,))
        replies = self._replies.read(node, has_body=method != "HEAD")
        taken = {BODY, *(read.param.name for read in params)}
        content_type = _free("contentType", taken) if body is not None and body.others else ""
        accept = _free("accept", taken) if replies.choices else ""
        self._parts += len(params) + len(replies.replies)
        if self._parts > MAX_PARTS:
            raise DocumentError("its operations share too many params and responses", "/paths")
        return HttpOperation(
            name=name,
            kind="subscription" if replies.streams else "query" if method in _QUERIES else "mutation",
            input=_input(params, body, content_type, accept, replies.choices),
            output=replies.output,
            errors=replies.errors,
            description=_description(node, item),
            pointer=node.pointer,
            idempotent=method in _IDEMPOTENT,
            method=method,
            path=place.found.path,
            server=self._servers.read(node.get("servers"), item.get("servers"), root.get("servers")),
            params=tuple(read.param for read in params),
            body=body.body if body is not None else None,
            bodies=body.others if body is not None else {},
            content_type=content_type,
            accept=accept,
            replies=replies.replies,
            security=self._security.required(node.get("security") or root.get("security")),
        )


def _input(
    params: list[ReadParam], body: ReadBody | None, content_type: str, accept: str, choices: tuple[str, ...]
) -> JsonSchema:
    members: dict[str, Schema] = {read.param.name: read.schema for read in params}
    required = [read.param.name for read in params if read.param.required]
    if body is not None:
        members[BODY] = body.schema
        required += [BODY] if body.body.required else []
        if content_type:
            members[content_type] = _choice("body", (body.body.content_type, *body.others))
    if accept:
        members[accept] = _choice("result", choices)
    schema: JsonSchema = {"type": "object", "properties": members}
    if required:
        schema["required"] = required
    return schema | {"additionalProperties": False}


def _choice(what: str, types: tuple[str, ...]) -> JsonSchema:
    """The schema of a param that names one of several media types."""
    return {"enum": [*dict.fromkeys(types)], "description": f"The media type of the {what}: {types[0]} by default."}


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _leave_out_callbacks(node: Node) -> None:
    callbacks = node.get("callbacks")
    for name, each in callbacks.members() if callbacks is not None and isinstance(callbacks.value, dict) else ():
        each.note("left-out", f"{quoted(name)} is a callback, which the other side calls")


def _description(node: Node, item: Node) -> str:
    """The summary and the description, as paragraphs; those of the path if the operation has none."""
    parts = [node.prose("summary"), node.prose("description")]
    if not any(parts):
        parts = [item.prose("summary"), item.prose("description")]
    if node.value.get("deprecated") is True:
        parts.append("Deprecated.")
    return "\n\n".join(dict.fromkeys(part for part in parts if part))
