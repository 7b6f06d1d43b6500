"""The tools of a session: which operations they are, how they are listed, and which call means which. Runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar, final

import msgspec
from msgspec import Raw

from ...daemon.declarations import DECLARED_ERRORS, LONGEST_TOOL_NAME, OF_SERVERS, ToolErrorFacts, asks_of, foreign_tool
from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from ...daemon.schemas.json_schema import JsonSchema, json_schema
from ...daemon.schemas.phrases import schema_kinds
from ...errors.decoders import DECODE_ERRORS, ExternalSchema, convert
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ...errors.redaction import scrub_known
from .generated import legacy
from .generated.shared import ToolAnnotations
from .options import ToolOptions, options_of
from .tool_schemas import REFERENCE, Shape, inlined, is_tool, json_params, shape_of, tool_input, tool_output

T = TypeVar("T")

PAGE: Final = 500
"""Items of a list that are sent at once. Many hosts never ask for a second page."""
PAGE_BYTES: Final = 4 * 1024 * 1024
"""How much one page of tools holds: those of imported operations may be large."""

_DIGEST: Final = 8
"""Hexadecimal digits that end a shortened name."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_raw_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_raw: Final = msgspec.json.Decoder(Raw).decode
_text: Final = msgspec.json.Decoder(str).decode
_encode: Final = msgspec.json.Encoder().encode
_STRING: Final = ord('"')


@final
class Tool:
    """One operation as a tool. Its schemas are made when somebody asks."""

    def __init__(self, spec: OperationSpec) -> None:
        self.spec = spec
        self.name = tool_name(spec.name)
        self._options = options_of(spec, ToolOptions)
        self._described: legacy.Tool | None = None

    @cached_property
    def shape(self) -> Shape:
        return shape_of(self.spec)

    @cached_property
    def json_params(self) -> frozenset[str]:
        return json_params(self.spec)

    @cached_property
    def mirrored(self) -> Mapping[str, tuple[str, ...]]:
        """What HTTP's clients repeat in headers: the paths of the properties that are marked, by the names of these headers."""
        return dict(_marked(self.described.input_schema, ()))

    @property
    def described(self) -> legacy.Tool:
        """How it is listed. Of an imported operation, whose schemas may be large, nothing is kept."""
        if self._described is not None:
            return self._described
        described = legacy.Tool(
            name=self.name,
            title=self._options.title,
            icons=self._options.icons,
            meta={**_declared_errors(self.spec), **(self._options.meta or {})} or None,
            description=scrub_known(self.spec.description) or None,
            input_schema=tool_input(self.spec),
            output_schema=tool_output(self.spec, self.shape),
            annotations=_annotations(self.spec, self._options.annotations),
        )
        if not isinstance(self.spec.input.type, ExternalSchema):
            self._described = described
        return described

    def arguments(self, given: Raw) -> Raw:
        """The arguments without a layer of JSON in strings that hosts put around what is no string."""
        if memoryview(given)[0] == _STRING:
            given = _unpacked(given)
        if not self.json_params:
            return given
        try:
            members = _raw_members(given)
        except DECODE_ERRORS:
            return given  # the operation's input says what is wrong
        packed = [name for name in self.json_params & members.keys() if bytes(members[name])[0] == _STRING]
        if packed:
            given = Raw(_encode(members | {name: _unpacked(members[name]) for name in packed}))
        return self._unpacked_within(given) if self._nested else given

    @cached_property
    def _nested(self) -> bool:
        """Whether arguments may hold others."""
        schema = self.described.input_schema
        parts = schema.get("properties", {}).values()
        return any(not schema_kinds(part, schema).isdisjoint(("object", "array")) for part in parts)

    def _unpacked_within(self, given: Raw) -> Raw:
        """The arguments; where they do not fit, without the layers of JSON in strings anywhere in them."""
        try:
            self.spec.input.decode(given)
        except FailureError:
            schema = self.described.input_schema
            try:
                return Raw(_encode(_without_strings(msgspec.json.decode(given), schema, schema)))
            except (*DECODE_ERRORS, ValueError):
                return given
        return given


def _without_strings(value: Any, part: Any, root: JsonSchema) -> Any:  # Any: JSON
    """A value, with what the JSON text of a string says in the place of each string where its schema takes none."""
    if not isinstance(part, dict):
        return value
    if isinstance(value, str) and (kinds := schema_kinds(part, root)) and "string" not in kinds:
        try:
            return _without_strings(msgspec.json.decode(value), part, root)
        except DECODE_ERRORS:
            return value
    if not isinstance(value, dict | list):
        return value
    reference = part.get("$ref", "")
    if reference.startswith(REFERENCE):
        return _without_strings(value, root.get("$defs", {}).get(reference.removeprefix(REFERENCE)), root)
    kind = "object" if isinstance(value, dict) else "array"
    branches = [each for each in (*part.get("anyOf", ()), *part.get("oneOf", ())) if kind in schema_kinds(each, root)]
    if len(branches) == 1:
        return _without_strings(value, branches[0], root)
    if isinstance(value, dict):
        properties, others = part.get("properties", {}), part.get("additionalProperties")
        return {name: _without_strings(item, properties.get(name, others), root) for name, item in value.items()}
    first, others = part.get("prefixItems", ()), part.get("items")
    return [
        _without_strings(item, first[index] if index < len(first) else others, root) for index, item in enumerate(value)
    ]


def _declared_errors(spec: OperationSpec) -> dict[str, Any]:  # Any: JSON
    """The errors that an operation declares. What an import's own server says of a failed tool is none of them."""
    facts = [
        ToolErrorFacts(
            each.definition.code,
            each.definition.message,
            each.definition.retryable,
            each.definition.http_status,
            None
            if isinstance(each.definition.details, ExternalSchema)
            else inlined(json_schema(each.definition.details)),
        )
        for each in spec.errors
        if each.definition.code not in OF_SERVERS
    ]
    return {DECLARED_ERRORS: msgspec.to_builtins(facts)} if facts else {}


def _marked(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:  # Any: JSON
    for name, part in schema.get("properties", {}).items():
        if isinstance(part, dict):
            if isinstance(mark := part.get("x-mcp-header"), str):
                yield f"Mcp-Param-{mark}", (*path, name)
            yield from _marked(part, (*path, name))


def _unpacked(given: Raw) -> Raw:
    try:
        inner = Raw(_text(given).encode())
        _raw(inner)
    except DECODE_ERRORS:
        return given
    return inner


def tool_name(operation: str) -> str:
    """The name of an operation as a tool: models take at most 64 letters, digits, `_` and `-`. A longer one is cut, and ends with
    a digest of the whole, so that it is the same wherever it is made.
    """
    name = _NOT_IN_NAMES.sub("_", operation)
    if len(name) <= LONGEST_TOOL_NAME:
        return name
    from hashlib import sha256  # late: few names are so long

    digest = sha256(operation.encode()).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST_TOOL_NAME - _DIGEST - 1]}_{digest}"


def tools_of(specs: Iterable[OperationSpec]) -> dict[str, Tool]:
    """The tools by name, in the order of declaration. Raises `DeclarationError` where two have one name, or options that MCP does
    not know.
    """
    found: dict[str, Tool] = {}
    for spec in filter(is_tool, specs):
        tool = Tool(spec)
        if tool.name in found:
            twin = found[tool.name].spec.name
            raise DeclarationError(
                f"operations {twin} and {spec.name} are both the tool {tool.name}; rename one of them"
            )
        if spec.kind == "subscription" and asks_of(spec.input.type):
            raise DeclarationError(
                f"operation {spec.name}: a subscription can't ask the user; make it a query or a mutation"
            )
        found[tool.name] = tool
    return found


def page(items: Sequence[T], cursor: str | None) -> tuple[list[T], str | None]:
    """The page that begins at the cursor, and the cursor of the next one. Raises `FailureError` for one that was never given."""
    start = 0
    if cursor is not None:
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 8 and 0 < int(cursor) < len(items)):
            raise FailureError(InvalidParams("cursor", "a cursor of an earlier page", "another value"))
        start = int(cursor)
    end = start + PAGE
    return list(items[start:end]), str(end) if end < len(items) else None


def tool_page(tools: Sequence[Tool], cursor: str | None) -> tuple[list[legacy.Tool], str | None]:
    """Return a page of tools as `page` does, of at least one and of as many as `PAGE_BYTES` have room for."""
    shown, _ = page(tools, cursor)
    found: list[legacy.Tool] = []
    size = 0
    for tool in shown:
        described = tool.described
        size += len(msgspec.json.encode(described))
        if found and size > PAGE_BYTES:
            break
        found.append(described)
    end = len(found) + (0 if cursor is None else int(cursor))
    return found, str(end) if end < len(tools) else None


def _annotations(spec: OperationSpec, given: ToolAnnotations | None) -> ToolAnnotations:
    derived = _derived_annotations(spec)
    if given is None:
        return derived
    said = {name: value for name, value in msgspec.structs.asdict(given).items() if value is not None}
    return msgspec.structs.replace(derived, **said)


def _derived_annotations(spec: OperationSpec) -> ToolAnnotations:
    foreign = foreign_tool(spec.options)
    if foreign is not None:
        hints: ToolAnnotations = convert(foreign.annotations, ToolAnnotations)
        return hints
    if spec.idempotent and spec.kind == "mutation":
        return ToolAnnotations(read_only_hint=False, idempotent_hint=True)
    return ToolAnnotations(read_only_hint=spec.kind != "mutation")
