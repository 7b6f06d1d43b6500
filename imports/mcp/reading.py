"""Makes operations of what a server lists: tools, resources and their templates, prompts. Asks nobody.

Names without a namespace: a tool has its own name, a prompt is `prompts/NAME`; resources are read by `resources/read`, those of
a template also by `resources/NAME`, and listed by `resources/list`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, final

from ...daemon.declarations import CONTENT as CONTENT_MEMBER
from ...daemon.declarations import DECLARED_ERRORS, OF_SERVERS, ToolErrorFacts
from ...daemon.declarations import SERVER_ERROR as SERVER_ERROR_CODE
from ...daemon.declarations import TOOL_ERROR as TOOL_ERROR_CODE
from ...errors.codes import RESERVED_CODES
from ...errors.decoders import DECODE_ERRORS, convert
from ...schemas.phrases import schema_kinds
from ..model import ImportedError, JsonSchema, Note, Schema
from .model import MODERN_REVISION, Agreed, Item, Listing, McpImport, McpMethod, McpOperation
from .schemas import Schemas
from .templates import variables_of

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
MAX_EXAMPLES: Final = 100
"""URIs of resources that the schema of `resources/read` names."""
MAX_NAME: Final = 200
MAX_ERRORS: Final = 100
"""Declared errors of a tool."""
_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,99}")

_HINTS: Final = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_NOT_IN_NAMES: Final = re.compile(r"[^\w.$-]+", re.ASCII)
_FIRST: Final = re.compile(r"[$A-Za-z_]")


def read_listing(listing: Listing, agreed: Agreed, *, by_http: bool = False) -> McpImport:
    """What the server offers, as operations. `by_http` is whether it is called by HTTP, which repeats some params in headers."""
    return _Reader(agreed, by_http=by_http).read(listing)


@final
class _Reader:
    def __init__(self, agreed: Agreed, *, by_http: bool) -> None:
        self._agreed = agreed
        self._mirrors = by_http and agreed.modern
        self._schemas = Schemas()
        self._schemas.definitions["Content"] = CONTENT
        self._taken: set[str] = set()

    def read(self, listing: Listing) -> McpImport:
        operations = (
            *self._tools(listing.tools),
            *self._resources(listing),
            *self._prompts(listing.prompts),
        )
        return McpImport(
            title=self._agreed.name,
            version=self._agreed.version,
            description=self._agreed.instructions,
            operations=operations,
            definitions=self._schemas.definitions,
            notes=tuple(self._schemas.notes),
            era="modern" if self._agreed.revision == MODERN_REVISION else "legacy",
        )

    # -- tools ----------------------------------------------------------------------------------------------------

    def _tools(self, tools: tuple[Item, ...]) -> Iterator[McpOperation]:
        for number, tool in enumerate(tools):
            pointer = f"/tools/{number}"
            name, schema = tool.get("name"), tool.get("inputSchema")
            if not isinstance(name, str) or not isinstance(schema, dict) or not name:
                self._left_out(pointer, "a tool needs a name and an inputSchema")
                continue
            try:
                mirrored = _mirrored(schema) if self._mirrors else {}
            except ValueError as exc:
                self._left_out(pointer, str(exc))
                continue
            own = self._name(name, pointer)
            output = tool.get("outputSchema")
            structured = isinstance(output, dict)
            hints = tool.get("annotations")
            hints = hints if isinstance(hints, dict) else {}
            read_only = hints.get("readOnlyHint") is True
            params = self._schemas.read(schema, own, f"{pointer}/inputSchema") | {"type": "object"}
            yield McpOperation(
                name=own,
                kind="query" if read_only else "mutation",
                input=params,
                output=self._with_meta(self._schemas.read(output, f"{own}.result", f"{pointer}/outputSchema"))
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
            )

    def _with_meta(self, schema: JsonSchema) -> JsonSchema:
        """A schema of structured content that takes the member `_meta`, too."""
        properties = schema.get("properties", {})
        if schema_kinds(schema, {"$defs": self._schemas.definitions}) != {"object"} or "_meta" in properties:
            return schema
        if schema.keys() <= _OPEN_TO_MEMBERS:
            return {**schema, "properties": {**properties, "_meta": _META}}
        with_meta = {"properties": {"_meta": _META}, "required": ["_meta"]}
        return {"type": "object", "anyOf": [schema, with_meta]}

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
                schema=None if schema is None else self._schemas.read(schema, f"{own}.{each.code}", f"{pointer}/_meta"),
            )

    # -- resources ------------------------------------------------------------------------------------------------

    def _resources(self, listing: Listing) -> Iterator[McpOperation]:
        if not (listing.resources or listing.templates):  # many servers announce what they don't have
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
                f"resources/{self._part(name)}",
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
                f"prompts/{self._part(name)}",
                _description(prompt),
                {each: _described({"type": "string"}, about) for each, about in named.items()},
                [each for each, about in named.items() if about.get("required") is True],
                _PROMPT,
                "prompts/get",
                target=name,
                pointer=pointer,
                named=name,
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

    def _name(self, name: str, pointer: str) -> str:
        parts = [self._part(part) for part in name.split("/") if part]
        own = "/".join(parts) or "_"
        return self._unique(own if _FIRST.match(own) else f"_{own}", pointer, name, whole=True)

    def _part(self, name: str) -> str:
        return _NOT_IN_NAMES.sub("_", name)[:MAX_NAME] or "_"

    def _unique(self, own: str, pointer: str, given: str, *, whole: bool = False) -> str:
        wanted, number = own, 2
        while own in self._taken:
            own, number = f"{wanted}_{number}", number + 1
        self._taken.add(own)
        if (own if whole else own.partition("/")[2].rpartition("/")[2]) != given:
            self._schemas.notes.append(Note(pointer, "renamed", f"it is called {own} here"))
        return own

    def _left_out(self, pointer: str, reason: str) -> None:
        self._schemas.notes.append(Note(pointer, "left-out", reason))


def _description(item: Item, title: object = None) -> str:
    for text in (item.get("description"), item.get("title"), title):
        if isinstance(text, str) and text.strip():
            return text.strip()
    return ""


def _described(schema: JsonSchema, item: Item) -> JsonSchema:
    text = _description(item)
    return {**schema, "description": text} if text else schema


def _mirrored(schema: JsonSchema) -> dict[str, tuple[str, ...]]:
    """The paths of the params that HTTP repeats in headers, by the names of these headers.

    Raises `ValueError` for a mark that is wrong: such a tool must not be called (2026-07-28, basic/transports/streamable-http,
    section Custom Headers from Tool Parameters).
    """
    found: dict[str, tuple[str, ...]] = {}
    for part, path in _marked(schema):
        mark = part[MARK]
        if path is None:
            raise ValueError(f"{MARK} stands where no header can be made of it")
        if not isinstance(mark, str) or not _TOKEN.fullmatch(mark):
            raise ValueError(f"{MARK} names no header")
        if part.get("type") not in ("string", "integer", "number", "boolean"):
            raise ValueError(f"{MARK} stands at a param that is no string, number or boolean")
        if f"Mcp-Param-{mark}".lower() in map(str.lower, found):
            raise ValueError(f"two params have the same {MARK}")
        found[f"Mcp-Param-{mark}"] = path
    return found


def _marked(root: JsonSchema) -> Iterator[tuple[JsonSchema, tuple[str, ...] | None]]:
    """All marked schemas, each with the path to its param; None where that is not led to by `properties` alone."""
    pending: list[tuple[Any, tuple[str, ...] | None, bool]] = [(root, (), True)]
    while pending:
        part, path, is_schema = pending.pop()
        if isinstance(part, list):
            pending += ((each, None, True) for each in part)
        elif isinstance(part, dict) and is_schema:
            if MARK in part:
                yield part, path or None
            for word, each in part.items():
                if word not in _VALUES:
                    pending.append((each, path if word == "properties" else None, word not in _TABLES))
        elif isinstance(part, dict):
            pending += ((each, None if path is None else (*path, name), True) for name, each in part.items())


MARK: Final = "x-mcp-header"
_TABLES: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_VALUES: Final = frozenset({"const", "enum", "default", "examples"})
"""Words of a schema that hold values and no schemas."""
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
