"""Reads an OpenAPI document of 3.0, 3.1 or 3.2 as operations that are called by HTTP. Gets no document by itself.

Of each operation: its params, its replies, its server, and how callers show who they are.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, final, get_args
from urllib.parse import urljoin, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ...client.http.wire import is_token
from ..archive import references
from ..arguments import Found, Selection, choose
from ..complexity import TOO_MANY
from ..http.model import (
    BODY,
    HttpImport,
    HttpOperation,
    Location,
    Param,
    SecurityScheme,
    Serialization,
    Style,
    is_any,
    is_json,
    sent_as,
)
from ..model import JsonSchema, Schema
from .document import Documents, Fetcher, Node, PartError, read_documents, type_name
from .messages import BodyReader, ReadBody, ReplyReader
from .parsing import DocumentError, quoted
from .schemas import SchemaReader

_EVERYTHING: Final = Selection()


def read_openapi(
    text: bytes,
    *,
    origin: str = "",
    select: Selection = _EVERYTHING,
    rename: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    fetch: Fetcher | None = None,
) -> HttpImport:
    """Return what a document offers, with notes on all that is not as it stands there.

    `origin` is the document's own address, for relative references and servers. `rename` has new names by operationId or name,
    `variables` values for the variables of servers. `fetch` gets the documents that this one refers to; without it such
    references lead nowhere.

    A wrong part leaves its operation out, with a note. Raises `DocumentError`, whose message is one line, for a document that
    can't be read and for a variable that it does not have, and `ImportFailed` for a name or filter that fits nothing in it.
    """
    collects = gc.isenabled()
    gc.disable()  # it would look again and again through all that is made here, and find nothing
    try:
        return _read(read_documents(text, origin, fetch), select, rename or {}, variables or {})
    except RecursionError as exc:
        raise DocumentError("nested too deeply") from exc
    finally:
        if collects:
            gc.enable()


def _read(
    documents: Documents, select: Selection, rename: Mapping[str, str], variables: Mapping[str, str]
) -> HttpImport:
    root = documents.first.root
    security = SecurityReader(documents)
    servers = ServerReader(documents.first.uri, variables)
    places = _places(documents)
    left_out = documents.left_out
    chosen = choose(places, [place.found for place in places], select, rename)
    schemas = SchemaReader(root.component_names())
    reader = OperationReader(documents, schemas, servers, security)
    operations: list[HttpOperation] = []
    for place, name in chosen:
        _note_name(place, name)
        try:
            operations.append(reader.read(place, name))
        except PartError as exc:
            note_left_out(place.node, exc)
    if chosen:
        servers.check_given()
    webhooks = root.get("webhooks")
    for name, node in webhooks.members() if webhooks is not None and isinstance(webhooks.value, dict) else ():
        node.note("left-out", f"{quoted(name)} is a webhook, which the other side calls")
    definitions = schemas.finish()
    operations = _checkable(operations, schemas.find_unbounded(definitions), documents)
    used = {name for operation in operations for names in operation.security for name in names}
    info = root.get("info") or Node(documents.first, None, None)
    return HttpImport(
        title=info.prose("title"),
        version=info.prose("version"),
        description=info.prose("description"),
        operations=tuple(operations),
        definitions=definitions,
        notes=tuple(documents.notes.values()),
        left_out=left_out + len(chosen) - len(operations),
        security_schemes={name: scheme for name, scheme in security.schemes.items() if name in used},
    )


def _places(documents: Documents) -> list[Place]:
    paths = documents.first.root.get("paths")
    if paths is None:
        return []
    if not isinstance(paths.value, dict):
        raise DocumentError(f"must be an object, not {type_name(paths.value)}", "/paths")
    return list(find_operations(paths))


def _note_name(place: Place, name: str) -> None:
    given = place.found.operation_id
    if not given:
        place.node.note("renamed", f"it has no operationId; called {name}")
    elif given != name:
        place.node.note("renamed", f"{quoted(given)} is called {name}")


def _checkable(operations: list[HttpOperation], unbounded: set[str], documents: Documents) -> list[HttpOperation]:
    """The operations of which every part can be checked."""
    if not unbounded:
        return operations
    kept: list[HttpOperation] = []
    for operation in operations:
        parts = [operation.input, operation.output, *(error.schema for error in operation.errors)]
        if unbounded.isdisjoint(references(parts)):
            kept.append(operation)
        else:
            documents.note(operation.pointer, "left-out", TOO_MANY)
    return kept


__all__ = ["DocumentError", "Selection", "read_openapi"]


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


_STYLES: Final[dict[Location, tuple[Style, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "querystring": ("form",),
    "header": ("simple",),
    "cookie": ("form", "cookie"),
}
"""The styles of each location; the first is the default. Params get their names in this order: the first keeps its own."""

_EXPLODED: Final = frozenset({"form", "cookie", "deepObject"})
"""Styles that write the members of an object and the items of an array apart, unless the document says otherwise."""

_IGNORED_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""Headers that no param describes, says the specification: they follow from bodies, responses and security."""

_RESERVED: Final = frozenset({"_meta", "workDoneToken", "partialResultToken"})
"""Members that requests of the dialects may have beside their params."""

_VARIABLE: Final = re.compile(r"\{([^{}/]+)\}")


class ReadParam(Struct, frozen=True):
    """A param as the document has it. `param.name` may be taken by another."""

    param: Param
    schema: Schema
    node: Node


@final
class ParamReader:
    """Reads the params of one import."""

    def __init__(self, schemas: SchemaReader) -> None:
        self._schemas = schemas
        self._read: dict[int, ReadParam | None] = {}

    def read(self, lists: Iterable[Node | None], path: str, paths: Node) -> list[ReadParam]:
        """Return the params of an operation, from the lists of its path and of its own, which count more.

        Every variable of the path gets a param, and a path param that the path does not have gets none. Raises `PartError`.
        """
        found: dict[tuple[str, str], ReadParam] = {}
        for node in (node for params in lists if params is not None for node in params.items()):
            read = self._param(node)
            if read is not None:
                name = read.param.wire_name
                found[read.param.location, name.lower() if read.param.location == "header" else name] = read
        variables = dict.fromkeys(_VARIABLE.findall(path))
        for (location, name), read in tuple(found.items()):
            if location == "path" and name not in variables:
                read.node.note("left-out", f"the path has no {{{quoted(name)}}}")
                del found[location, name]
        for name in variables:
            if ("path", name) not in found:
                at = Node(paths.document, (paths.path, path), None)
                at.note("changed", f"{{{quoted(name)}}} is declared nowhere; taken for a string")
                missing = Param(name, name, "path", Serialization("simple"), True)
                found["path", name] = ReadParam(missing, {"type": "string"}, at)
        return sorted(found.values(), key=lambda read: [*_STYLES].index(read.param.location))

    def _param(self, declared: Node) -> ReadParam | None:
        node = declared.followed()
        key = id(node.value)  # the documents live as long as this
        if key not in self._read:
            self._read[key] = self._read_one(node, shared=node is not declared)
        return self._read[key]

    def _read_one(self, node: Node, *, shared: bool) -> ReadParam | None:
        node.object()
        name, location = node.text("name"), node.text("in")
        if location not in _STYLES:
            raise node.wrong(f"`in` must be one of {', '.join(get_args(Location))}, not {quoted(location)!r}")
        if not name and location != "querystring":
            raise node.wrong("the param has no name")
        if location == "header" and name.lower() in _IGNORED_HEADERS:
            node.note("left-out", f"the header {name} is no param: it follows from bodies and security")
            return None
        if location in ("header", "cookie") and not is_token(name):
            raise node.wrong(f"{quoted(name)!r} can't be the name of a {location}")
        if not name.isprintable():
            raise node.wrong(f"{quoted(name)!r} can't be the name of a param")
        serialization, schema = self._form(node, location, shared=shared)
        required = node.flag("required") or location == "path"
        param = Param(name or "query", name, location, serialization, required)
        return ReadParam(param, self._schemas.extended(schema, _said(node)), node)

    def _form(self, node: Node, location: Location, *, shared: bool) -> tuple[Serialization, Schema]:
        content = node.get("content")
        if content is not None:
            return self._content(content, shared=shared)
        schema = node.get("schema")
        if schema is None:
            node.note("changed", "the param has no schema; taken for a string")
        read: Schema = {"type": "string"} if schema is None else self._schemas.read(schema, "input", shared=shared)
        style: Any = node.text("style") or _STYLES[location][0]
        if style not in _STYLES[location]:
            default = _STYLES[location][0]
            node.note("changed", f"{quoted(style)!r} is no style of a {location} param; {default} is taken")
            style = default
        explode = node.flag("explode")
        explode = style in _EXPLODED if explode is None else explode
        return Serialization(style, explode, node.flag("allowReserved") or False), read

    def _content(self, content: Node, *, shared: bool) -> tuple[Serialization, Schema]:
        types = list(content.members())
        if len(types) != 1:
            raise content.wrong(f"must hold one media type, and holds {len(types)}")
        media_type, node = types[0]
        schema = node.followed().get("schema")
        read: Schema = True if schema is None else self._schemas.read(schema, "input", shared=shared)
        if not (is_json(media_type) or is_any(media_type)) and schema is None:
            read = {"type": "string"}
        return Serialization(content_type=sent_as(media_type)), read


def _said(node: Node) -> dict[str, Any]:
    """Return the texts of a param for people, as keywords of a schema."""
    words: dict[str, Any] = {}
    if description := node.prose("description"):
        words["description"] = description
    if node.value.get("deprecated") is True:
        words["deprecated"] = True
    if "example" in node.value:
        words["examples"] = [node.value["example"]]
    return words


def named(params: Iterable[ReadParam], taken: Iterable[str]) -> list[ReadParam]:
    """Return the params with names that no two share, nor one with those that are `taken`: `id` of the query beside `id` of the
    path is `id_query`.
    """
    names = {*taken, *_RESERVED}
    found: list[ReadParam] = []
    for read in params:
        param = read.param
        if param.name in names:
            stem = name = f"{param.name.lstrip('_') or 'param'}_{param.location}"
            count = 1
            while name in names:
                count += 1
                name = f"{stem}_{count}"
            wire_name = f"{quoted(param.wire_name)} of the {param.location}"
            read.node.note("renamed", f"{wire_name} is {quoted(name)}, for there is another {quoted(param.name)}")
            param = replace(param, name=name)
        names.add(param.name)
        found.append(replace(read, param=param))
    return found


_SERVER_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")


@final
class ServerReader:
    """Reads servers. `given` are values for their variables; `origin` is the address of the document."""

    def __init__(self, origin: str, given: Mapping[str, str]) -> None:
        self._origin = origin if urlsplit(origin).scheme in ("http", "https") else ""
        self._given = given
        self._known: set[str] = set()
        self._read: dict[int, str] = {}

    def read(self, *lists: Node | None) -> str:
        """Return the base URL by the first of these lists that has a server; empty if it can't be known."""
        for servers in lists:
            if servers is not None and servers.value != []:
                key = id(servers.value)
                if key not in self._read:
                    self._read[key] = self._first(servers)
                return self._read[key]
        return urljoin(self._origin, "/") if self._origin else ""

    def _first(self, servers: Node) -> str:
        try:
            first, *others = servers.items()
            if others:
                servers.note("changed", f"the first of {len(others) + 1} servers is taken")
            return self._url(first)
        except PartError as exc:
            exc.node.note("left-out", exc.reason)
            return ""

    def check_given(self) -> None:
        """Raises `DocumentError` for a given variable that no server has."""
        for name in self._given:
            if name not in self._known:
                known = quoted(", ".join(sorted(self._known)) or "none")
                raise DocumentError(f"no server has the variable {quoted(name)}; those of this document: {known}")

    def _url(self, node: Node) -> str:
        node.object()
        variables = node.get("variables")

        def value(match: re.Match[str]) -> str:
            return self._value(match[1], variables.get(match[1]) if variables is not None else None, node)

        url = _SERVER_VARIABLE.sub(value, node.text("url"))
        if not url.isprintable() or " " in url:
            raise node.wrong(f"{quoted(url)!r} is no URL")
        try:
            return urljoin(self._origin, url) if self._origin else url
        except ValueError:
            raise node.wrong(f"{quoted(url)!r} is no URL") from None

    def _value(self, name: str, variable: Node | None, server: Node) -> str:
        self._known.add(name)
        choices = variable.get("enum") if variable is not None else None
        if name in self._given:
            given = self._given[name]
            allowed = [str(each.value) for each in choices.items()] if choices is not None else [given]
            if given not in allowed:
                told = quoted(", ".join(allowed))
                raise DocumentError(f"the variable {quoted(name)} must be one of {told}, not {quoted(given)}")
            return given
        default = variable.get("default") if variable is not None else None
        if default is None or not isinstance(default.value, str | int | float):
            raise server.wrong(f"the variable {quoted(name)} has no default; give it a value")
        return str(default.value)


@final
class SecurityReader:
    """Reads security schemes and requirements."""

    def __init__(self, documents: Documents) -> None:
        self.schemes: dict[str, SecurityScheme] = {}
        self._required: dict[int, tuple[tuple[str, ...], ...]] = {}
        components = documents.first.root.get("components")
        declared = components.get("securitySchemes") if components is not None else None
        if declared is not None and not isinstance(declared.value, dict):
            declared.note("left-out", f"must be an object, not {type_name(declared.value)}")
            return
        for name, node in declared.members() if declared is not None else ():
            try:
                self.schemes[name] = _scheme(node.followed())
            except PartError as exc:
                exc.node.note("left-out", exc.reason)

    def required(self, node: Node | None) -> tuple[tuple[str, ...], ...]:
        """Return the alternatives, each of the schemes that it needs together. Raises `PartError`."""
        if node is None:
            return ()
        key = id(node.value)
        if key not in self._required:
            self._required[key] = tuple(self._alternatives(node))
        return self._required[key]

    def _alternatives(self, node: Node) -> Iterator[tuple[str, ...]]:
        for requirement in node.items():
            names = tuple(requirement.object())
            unknown = [name for name in names if name not in self.schemes]
            if unknown:
                requirement.note("left-out", f"the security scheme {quoted(unknown[0])} is declared nowhere")
            else:
                yield names


def _scheme(node: Node) -> SecurityScheme:
    node.object()
    match node.text("type"), node.text("scheme").lower(), node.text("in"):
        case "http", ("bearer" | "basic") as kind, _:
            return SecurityScheme(kind)
        case "apiKey", _, ("header" | "query" | "cookie") as location if node.text("name"):
            return SecurityScheme("api-key", location, node.text("name"))
        case "apiKey", _, _:
            raise node.wrong("an API key needs `name`, and `in`: header, query or cookie")
        case (("oauth2" | "openIdConnect"), _, _):
            return SecurityScheme("bearer")
        case ("http" | "mutualTLS") as kind, scheme, _:
            node.note("changed", f"{quoted(f'{kind} {scheme}'.strip())} can't be sent; calls go without it")
            return SecurityScheme("other")
        case kind, _, _:
            raise node.wrong(f"{quoted(kind)!r} is no type of security scheme")
