"""Makes operations of what a server lists: tools, resources and their templates, prompts. Asks nobody.

Names without a namespace: a tool has its own name, a prompt is `prompts/NAME`; resources are read by `resources/read`, those of
a template also by `resources/NAME`, and listed by `resources/list`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, final

from ...dialects.mcp.generated.revisions import MODERN_REVISION
from ...offers import TOOL_ERROR as TOOL_ERROR_CODE
from ..model import ImportedError, JsonSchema, Note, Schema
from .connection.conversation import Agreed
from .lists import Item, Listing
from .model import McpImport, McpMethod, McpOperation
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
    code="MCP_ERROR",
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

_HINTS: Final = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_NOT_IN_NAMES: Final = re.compile(r"[^\w.$-]+", re.ASCII)
_FIRST: Final = re.compile(r"[$A-Za-z_]")


def read_listing(listing: Listing, agreed: Agreed) -> McpImport:
    """What the server offers, as operations."""
    return _Reader(agreed).read(listing)


@final
class _Reader:
    def __init__(self, agreed: Agreed) -> None:
        self._agreed = agreed
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
                output=self._schemas.read(output, f"{own}.result", f"{pointer}/outputSchema")
                if isinstance(output, dict)
                else _RESULT,
                errors=(TOOL_ERROR, SERVER_ERROR),
                description=_description(tool, hints.get("title")),
                pointer=pointer,
                idempotent=read_only or hints.get("idempotentHint") is True,
                annotations={hint: hints[hint] for hint in _HINTS if isinstance(hints.get(hint), bool | str)},
                method="tools/call",
                target=name,
                structured=structured,
                mirrored=dict(_mirrored(params, ())) if self._agreed.modern else {},
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


def _mirrored(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:  # Any: JSON
    """The paths of the params that HTTP repeats in headers, by the names of these headers (2026-07-28)."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, part in properties.items() if isinstance(properties, dict) else ():
        if isinstance(part, dict):
            mark = part.get("x-mcp-header")
            if isinstance(mark, str) and _TOKEN.fullmatch(mark):
                yield f"Mcp-Param-{mark}", (*path, name)
            yield from _mirrored(part, (*path, name))


_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
