"""Makes operations of a server's lists: tools, resources and their templates, prompts. Asks no server.

Names without a namespace: a tool has its own name, a prompt is `prompts/NAME`; resources are read by `resources/read`, those
of a template also by `resources/NAME`, and listed by `resources/list`; `completion/complete` completes arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from ...client.http.wire import is_token
from ...daemon.declarations import CONTENT as CONTENT_MEMBER
from ...daemon.declarations import DECLARED_ERRORS, OF_SERVERS, PAGE_SCHEME, ToolErrorFacts
from ...daemon.declarations import SERVER_ERROR as SERVER_ERROR_CODE
from ...daemon.declarations import TOOL_ERROR as TOOL_ERROR_CODE
from ...errors.codes import RESERVED_CODES
from ...errors.decoders import DECODE_ERRORS, convert
from ...schemas.phrases import schema_kinds
from ..archive import objects_in
from ..arguments import UniqueNames, operation_name
from ..model import ImportedError, JsonSchema, Note, Schema
from ..openapi.document import Documents, PartError
from ..openapi.schemas import Direction, SchemaReader
from .model import MODERN_REVISION, Agreed, Item, Listing, McpImport, McpMethod, McpOperation

TOOL_ERROR: Final = ImportedError(
    code=TOOL_ERROR_CODE,
    http_status=422,
    message="The tool reports an error.",
    description="What the tool says is in `content`; `structuredContent` is there where the tool gives any.",
    schema={
        "type": "object",
        "properties": {"content": {"$ref": "#/$defs/Content"}, "structuredContent": True},
        "required": ["content"],
    },
)
SERVER_ERROR: Final = ImportedError(
    code=SERVER_ERROR_CODE,
    http_status=502,
    message="The server refuses the request.",
    description="`code` and `message` are those of the JSON-RPC error of the server.",
    schema={
        "type": "object",
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
        "required": ["code", "message"],
    },
)

CONTENT: Final[Schema] = {
    "description": "Content as MCP has it: text, images, audio, resources and links to them.",
    "type": "array",
    "items": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
}
_RESULT: Final[JsonSchema] = {
    "type": "object",
    "properties": {"content": {"$ref": "#/$defs/Content"}, "structuredContent": True},
    "required": ["content"],
}
_META: Final[JsonSchema] = {
    "description": "`discreet/content` is the content of the tool, where that is more than the text of this result.",
    "type": "object",
    "properties": {CONTENT_MEMBER: {"$ref": "#/$defs/Content"}},
}
_OPEN_TO_MEMBERS: Final = frozenset(
    {
        "type",
        "title",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "unevaluatedProperties",
        "examples",
    }
)
"""Words of a schema that takes any member that its `properties` name."""
_READ: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "contents": {
            "description": "Contents with `text`, or with `blob` in Base64.",
            "type": "array",
            "items": {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
        }
    },
    "required": ["contents"],
}
_PROMPT: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "description": {"type": "string"},
        "messages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"role": {"type": "string"}, "content": {"type": "object"}},
                "required": ["role", "content"],
            },
        },
    },
    "required": ["messages"],
}
_OBJECT: Final[JsonSchema] = {"type": "object"}
_COMPLETED: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "completion": {
            "type": "object",
            "properties": {"values": {"type": "array", "items": {"type": "string"}}},
            "required": ["values"],
        }
    },
    "required": ["completion"],
}
MAX_EXAMPLES: Final = 100
"""URIs of resources that the schema of `resources/read` names."""
MAX_NAME: Final = 200
MAX_ERRORS: Final = 100
"""Declared errors of a tool."""
_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,99}")

_VISIBLE_TO: Final = ("model", "app")
_encode: Final = msgspec.json.Encoder().encode

_HINTS: Final = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def read_listing(listing: Listing, agreed: Agreed, *, by_http: bool = False) -> McpImport:
    """Make operations of a server's lists. `by_http` is whether it is called by HTTP, which repeats some params in headers."""
    return _Reader(agreed, by_http=by_http).read(listing)


def read_output(schema: JsonSchema) -> JsonSchema:
    """An output schema of a tool as one document of JSON Schema 2020-12, which refers to nothing elsewhere.

    Raises `PartError` for one that can't be read.
    """
    reader = SchemaReader([])
    found = reader.read(_documents_of(schema, "output", 0).first.root, "output")
    return {**(found if isinstance(found, dict) else {}), "$defs": reader.finish()}


def _documents_of(schema: JsonSchema, owner: str, number: int) -> Documents:
    declared = schema.get("$schema")
    is_old = isinstance(declared, str) and re.search(r"draft-0[3-7]", declared) is not None
    return Documents(schema, f"http://mcp.invalid/{number}", stem=owner, is_old=is_old)


@final
class _Reader:
    def __init__(self, agreed: Agreed, *, by_http: bool) -> None:
        self._agreed = agreed
        self._mirrors = by_http and agreed.modern
        self._schemas = SchemaReader(["Content"])
        self._documents: list[tuple[str, Documents]] = []
        self._notes: list[Note] = []
        self._names = UniqueNames()

    def read(self, listing: Listing) -> McpImport:
        operations = [
            *self._tools(listing.tools),
            *self._resources(listing),
            *self._prompts(listing.prompts),
            *self._completion(listing),
        ]
        definitions = {"Content": CONTENT, **self._schemas.finish()}
        for pointer, documents in self._documents:
            self._notes += (Note(pointer + each.pointer, each.kind, each.reason) for each in documents.notes.values())
        return McpImport(
            title=self._agreed.name,
            version=self._agreed.version,
            description=self._agreed.instructions,
            operations=tuple(
                replace(each, output=_with_meta(each.output, definitions)) if each.structured else each
                for each in operations
            ),
            definitions=definitions,
            notes=tuple(self._notes),
            era="modern" if self._agreed.revision == MODERN_REVISION else "legacy",
            resources=tuple(_encode(each) for each in listing.resources if isinstance(each.get("uri"), str)),
            templates=tuple(_encode(each) for each in listing.templates if isinstance(each.get("uriTemplate"), str)),
            prompts={each["name"]: _encode(each) for each in listing.prompts if isinstance(each.get("name"), str)},
            has_apps=_has_apps(listing),
        )

    def _schema(self, schema: JsonSchema, owner: str, pointer: str, direction: Direction = "output") -> JsonSchema:
        """A schema of the server, which is a document of its own. Names of its types begin with `owner`."""
        documents = _documents_of(schema, owner, len(self._documents))
        self._documents.append((pointer, documents))
        try:
            found = self._schemas.read(documents.first.root, direction)
        except PartError as exc:
            exc.node.note("changed", f"{exc.reason}; accepts anything")
            return {}
        return found if isinstance(found, dict) else {}

    # -- tools ----------------------------------------------------------------------------------------------------

    def _tools(self, tools: tuple[Item, ...]) -> Iterator[McpOperation]:
        for number, tool in enumerate(tools):
            pointer = f"/tools/{number}"
            name, schema = tool.get("name"), tool.get("inputSchema")
            if not isinstance(name, str) or not isinstance(schema, dict) or not name:
                self._left_out(pointer, "a tool needs a name and an inputSchema")
                continue
            try:
                mirrored = mirrored_params(schema) if self._mirrors else {}
            except ValueError as exc:
                self._left_out(pointer, str(exc))
                continue
            own = self._unique(operation_name(name), pointer, name)
            output = tool.get("outputSchema")
            structured = isinstance(output, dict)
            hints = tool.get("annotations")
            hints = hints if isinstance(hints, dict) else {}
            read_only = hints.get("readOnlyHint") is True
            params = self._schema(schema, own, f"{pointer}/inputSchema", "input")
            yield McpOperation(
                name=own,
                kind="query" if read_only else "mutation",
                input=self._as_object(params),
                output=self._schema(output, f"{own}.result", f"{pointer}/outputSchema")
                if isinstance(output, dict)
                else _RESULT,
                errors=(TOOL_ERROR, SERVER_ERROR, *self._declared(tool, own, pointer)),
                description=_description(tool, hints.get("title")),
                pointer=pointer,
                idempotent=read_only or hints.get("idempotentHint") is True,
                annotations={hint: hints[hint] for hint in _HINTS if isinstance(hints.get(hint), bool | str)},
                method="tools/call",
                target=name,
                structured=structured,
                mirrored=mirrored,
                ui=_ui_of(tool),
            )

    def _declared(self, tool: Item, own: str, pointer: str) -> Iterator[ImportedError]:
        """The errors that a tool of another discreet declares. What can't be one here is left out."""
        meta = tool.get("_meta")
        try:
            given = convert(meta.get(DECLARED_ERRORS, []) if isinstance(meta, dict) else [], list[ToolErrorFacts])
        except DECODE_ERRORS:
            return
        codes = set(OF_SERVERS | RESERVED_CODES)
        for each in given[:MAX_ERRORS]:
            if each.code in codes or not _CODE.fullmatch(each.code) or not 400 <= each.http_status <= 599:
                continue
            codes.add(each.code)
            schema = None if each.details is None else dict(each.details)
            yield ImportedError(
                code=each.code,
                http_status=each.http_status,
                message=each.message[:MAX_NAME],
                retryable=each.retryable,
                schema=None if schema is None else self._schema(schema, f"{own}.{each.code}", f"{pointer}/_meta"),
            )

    def _as_object(self, schema: JsonSchema) -> JsonSchema:
        if schema.get("type") == "object":
            return schema
        found = self._schemas.extended(
            {word: each for word, each in schema.items() if word != "type"}, {"type": "object"}
        )
        assert isinstance(found, dict), "it was one"
        return found

    # -- resources ------------------------------------------------------------------------------------------------

    def _resources(self, listing: Listing) -> Iterator[McpOperation]:
        if not (listing.resources or listing.templates or _has_apps(listing)):  # many announce what they don't have
            return
        known = [each["uri"] for each in listing.resources if isinstance(each.get("uri"), str)]
        uri: JsonSchema = {"type": "string", "format": "uri", "description": "The URI of the resource."}
        if known:
            uri["examples"] = known[:MAX_EXAMPLES]
        yield self._query(
            "resources/read", "Read a resource.", {"uri": uri}, ["uri"], _READ, "resources/read", pointer="/resources"
        )
        yield self._listing("resources/list", "List the resources, a page at a time.", "resources", "/resources")
        if listing.templates:
            yield self._listing(
                "resources/templates/list",
                "List the templates of resources, a page at a time.",
                "resourceTemplates",
                "/resourceTemplates",
            )
        for number, template in enumerate(listing.templates):
            pointer = f"/resourceTemplates/{number}"
            name, text = template.get("name"), template.get("uriTemplate")
            variables = variables_of(text) if isinstance(text, str) else None
            if not isinstance(name, str) or not name or not isinstance(text, str) or variables is None:
                self._left_out(pointer, "its URI template is none of RFC 6570; resources/read reads what it stands for")
                continue
            yield self._query(
                f"resources/{_part(name)}",
                _description(template),
                {each: {"type": "string"} for each in variables},
                list(variables),
                _READ,
                "resources/read",
                target=text,
                pointer=pointer,
                named=name,
            )

    def _listing(self, method: McpMethod, description: str, member: str, pointer: str) -> McpOperation:
        output: JsonSchema = {
            "type": "object",
            "properties": {
                member: {"type": "array", "items": {"type": "object"}},
                "nextCursor": {"type": "string", "description": "Of the next page; absent on the last."},
            },
            "required": [member],
        }
        return self._query(method, description, {"cursor": {"type": "string"}}, [], output, method, pointer=pointer)

    # -- prompts --------------------------------------------------------------------------------------------------

    def _prompts(self, prompts: tuple[Item, ...]) -> Iterator[McpOperation]:
        for number, prompt in enumerate(prompts):
            pointer = f"/prompts/{number}"
            name = prompt.get("name")
            if not isinstance(name, str) or not name:
                self._left_out(pointer, "a prompt needs a name")
                continue
            given = prompt.get("arguments")
            arguments = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
            named = {each["name"]: each for each in arguments if isinstance(each.get("name"), str)}
            yield self._query(
                f"prompts/{_part(name)}",
                _description(prompt),
                {each: _described({"type": "string"}, about) for each, about in named.items()},
                [each for each, about in named.items() if about.get("required") is True],
                _PROMPT,
                "prompts/get",
                target=name,
                pointer=pointer,
                named=name,
            )

    def _completion(self, listing: Listing) -> Iterator[McpOperation]:
        if "completions" not in self._agreed.capabilities or not (listing.templates or listing.prompts):
            return
        properties: JsonSchema = {
            "ref": {"description": "`ref/prompt` with a name, or `ref/resource` with a template.", **_OBJECT},
            "argument": {"description": "`name` of the argument, and the beginning of its `value`.", **_OBJECT},
            "context": _OBJECT,
        }
        yield self._query(
            "completion/complete",
            "Complete the value of an argument.",
            properties,
            ["ref", "argument"],
            _COMPLETED,
            "completion/complete",
            pointer="/completions",
        )

    def _query(  # noqa: PLR0913 - the fields of an operation
        self,
        name: str,
        description: str,
        properties: dict[str, Any],
        required: list[str],
        output: JsonSchema,
        method: McpMethod,
        *,
        pointer: str,
        target: str = "",
        named: str = "",
    ) -> McpOperation:
        params: JsonSchema = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            params["required"] = required
        return McpOperation(
            name=self._unique(name, pointer, named or name.rpartition("/")[2]),
            kind="query",
            input=params,
            output=output,
            errors=(SERVER_ERROR,),
            description=description,
            pointer=pointer,
            idempotent=True,
            method=method,
            target=target,
        )

    # -- names ----------------------------------------------------------------------------------------------------

    def _unique(self, wanted: str, pointer: str, given: str) -> str:
        """A name that no other operation has. The part behind the prefix is what the server calls it."""
        own = self._names.add(wanted)
        if own.removeprefix(wanted.removesuffix(given)) != given:
            self._notes.append(Note(pointer, "renamed", f"it is called {own} here"))
        return own

    def _left_out(self, pointer: str, reason: str) -> None:
        self._notes.append(Note(pointer, "left-out", reason))


def _with_meta(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """A schema of structured content that takes the member `_meta`, too."""
    if not isinstance(schema, dict):
        return schema
    properties = schema.get("properties", {})
    if schema_kinds(schema, {"$defs": definitions}) != {"object"} or "_meta" in properties:
        return schema
    if schema.keys() <= _OPEN_TO_MEMBERS:
        return {**schema, "properties": {**properties, "_meta": _META}}
    with_meta = {"properties": {"_meta": _META}, "required": ["_meta"]}
    return {"type": "object", "anyOf": [schema, with_meta]}


def _ui_of(tool: Item) -> dict[str, Any]:  # Any: JSON
    """What MCP Apps says of a tool (2026-01-26, Resource Discovery); what can't be that is left out."""
    meta = tool.get("_meta")
    ui = meta.get("ui") if isinstance(meta, dict) else None
    found = {} if not isinstance(ui, dict) else ui
    page, visibility = found.get("resourceUri"), found.get("visibility")
    return {
        **({"resourceUri": page} if isinstance(page, str) and page.startswith(PAGE_SCHEME) else {}),
        **({"visibility": [one for one in visibility if one in _VISIBLE_TO]} if isinstance(visibility, list) else {}),
    }


def _has_apps(listing: Listing) -> bool:
    pages = (str(each.get("uri", each.get("uriTemplate"))) for each in (*listing.resources, *listing.templates))
    return any("resourceUri" in _ui_of(each) for each in listing.tools) or any(
        each.startswith(PAGE_SCHEME) for each in pages
    )


def _part(name: str) -> str:
    return operation_name(name).replace("/", "_")


def _description(item: Item, title: object = None) -> str:
    for text in (item.get("description"), item.get("title"), title):
        if isinstance(text, str) and text.strip():
            return text.strip()
    return ""


def _described(schema: JsonSchema, item: Item) -> JsonSchema:
    text = _description(item)
    return {**schema, "description": text} if text else schema


MARK: Final = "x-mcp-header"


def mirrored_params(schema: JsonSchema) -> dict[str, tuple[str, ...]]:
    """The paths of the params that HTTP repeats in headers, by the names of these headers.

    Raises `ValueError` for a mark that is wrong: such a tool must not be called (2026-07-28, basic/transports/streamable-http,
    section Custom Headers from Tool Parameters).
    """
    found: dict[str, tuple[str, ...]] = {}
    pending: list[tuple[Any, tuple[str, ...]]] = [(schema, ())]
    while pending:
        part, path = pending.pop()
        if path and MARK in part:
            mark = part[MARK]
            if not isinstance(mark, str) or not is_token(mark) or len(mark) > MAX_NAME:
                raise ValueError(f"{MARK} names no header")
            if part.get("type") not in ("string", "integer", "number", "boolean"):
                raise ValueError(f"{MARK} stands at a param that is no string, number or boolean")
            if f"Mcp-Param-{mark}".lower() in map(str.lower, found):
                raise ValueError(f"two params have the same {MARK}")
            found[f"Mcp-Param-{mark}"] = path
        members = part.get("properties")
        members = members if isinstance(members, dict) else {}
        pending += ((each, (*path, name)) for name, each in members.items() if isinstance(each, dict))
    if sum(isinstance(part.get(MARK), str) for part in objects_in(schema)) > len(found):
        raise ValueError(f"{MARK} stands where no header can be made of it")
    return found


_EXPRESSION: Final = re.compile(r"\{([+#./;?&]?)([A-Za-z0-9_.%]+(?:,[A-Za-z0-9_.%]+)*)\}")
_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_OPENINGS: Final = {"+": "", "#": "#", ".": ".", "/": "/", ";": ";", "?": "?", "&": "&", "": ""}
_SEPARATORS: Final = {"+": ",", "#": ",", ".": ".", "/": "/", ";": ";", "?": "&", "&": "&", "": ","}


def variables_of(template: str) -> tuple[str, ...] | None:
    """The variables, in their order; None for what is no template of these levels."""
    rest = _EXPRESSION.sub("", template)
    if "{" in rest or "}" in rest:
        return None
    names = (name for match in _EXPRESSION.finditer(template) for name in match[2].split(","))
    return tuple(dict.fromkeys(names))


def expand(template: str, values: Mapping[str, str]) -> str:
    """The URI of these values."""

    def fill(match: re.Match[str]) -> str:
        operator, names = match[1], match[2].split(",")
        safe = _RESERVED if operator in ("+", "#") else ""
        parts = [(name, quote(values[name], safe=safe)) for name in names if name in values]
        if operator in (";", "?", "&"):
            shown = [f"{name}={text}" if text or operator != ";" else name for name, text in parts]
        else:
            shown = [text for _, text in parts]
        return _OPENINGS[operator] + _SEPARATORS[operator].join(shown) if shown else ""

    return _EXPRESSION.sub(fill, template)
