"""Reads the params of operations: where each stands in a request, how it is written, and its schema."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, final, get_args

from msgspec import Struct
from msgspec.structs import replace

from ..http.media_types import is_any, is_json, sent_as
from ..http.model import Location, Param, Serialization, Style
from ..http.styles import is_token
from ..model import Schema
from .document import Node
from .parsing import quoted
from .schemas import SchemaReader

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
    """What a param says for people, as words of a schema."""
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
