"""The tools of a session: which operations they are, and what their arguments mean. Loads their schemas when one is needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

import msgspec
from msgspec import Raw

from ...daemon.declarations import LONGEST_TOOL_NAME, Foreign, Prompt, Resource, asks_of
from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from ...daemon.operations.type_phrases import json_kinds
from ...errors.decoders import DECODE_ERRORS, ExternalSchema, type_info
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams

if TYPE_CHECKING:
    from .generated import structs
    from .generated.apps import McpUiToolMeta
    from .tool_schemas import Shape

T = TypeVar("T")
U = TypeVar("U")

PAGE: Final = 500
"""Items of a list that are sent at once. Many hosts never ask for a second page."""

SEARCH_TOOLS: Final = "search_tools"
CALL_TOOL: Final = "call_tool"
"""The tools that are listed in place of all others, where the setting `tool-search` says so."""
SEARCH_METHOD: Final = "$search/tools"
"""The method behind `search_tools`. Only forward calls reach it."""

_DIGEST: Final = 8
"""Hexadecimal digits that end a shortened name."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_raw_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_raw: Final = msgspec.json.Decoder(Raw).decode
_text: Final = msgspec.json.Decoder(str).decode
_encode: Final = msgspec.json.Encoder().encode
_STRING: Final = ord('"')


def is_tool(spec: OperationSpec) -> bool:
    """Whether an operation can be a tool: its params come as an object, and it is neither a notification nor an offer."""
    if spec.kind == "notification" or isinstance(spec.offer, Resource | Prompt) or spec.visibility != "external":
        return False
    if isinstance(spec.options, Foreign) and spec.options.method != "tools/call":
        return False
    return not spec.input.whole or "object" in json_kinds(type_info(spec.input.type))


@final
class Tool:
    """One operation as a tool. Raises `DeclarationError` for options that MCP does not know."""

    def __init__(self, spec: OperationSpec, name: str | None = None) -> None:
        self.spec = spec
        self.name = name or tool_name(spec.name)
        self._described: structs.Tool | None = None
        if spec.options is not None and not isinstance(spec.options, Foreign):
            _ = self.ui

    @cached_property
    def ui(self) -> McpUiToolMeta | None:
        """The page that hosts show for it, and who may call it."""
        if self.spec.options is None:
            return None
        from .options import ui_of_tool  # late: few operations have any options

        return ui_of_tool(self.spec)

    @property
    def is_for_models(self) -> bool:
        """False for a tool that only pages of apps call: its `visibility` lacks the model."""
        return self.ui is None or self.ui.visibility is None or "model" in self.ui.visibility

    @cached_property
    def shape(self) -> Shape:
        from .tool_schemas import shape_of  # late: until a tool is called or listed

        return shape_of(self.spec)

    @cached_property
    def json_params(self) -> frozenset[str]:
        from .tool_schemas import json_params  # late, as above

        return json_params(self.spec)

    @cached_property
    def mirrored(self) -> Mapping[str, tuple[str, ...]]:
        """The properties that HTTP's clients repeat in headers: paths of the marked properties, by the names of these headers."""
        return dict(_marked(self.described.input_schema, ()))

    @property
    def described(self) -> structs.Tool:
        """How it is listed. Of an imported operation, whose schemas may be large, nothing is kept."""
        if self._described is not None:
            return self._described
        from .tool_schemas import described  # late, as above

        found = described(self.spec, self.name, self.shape)
        if not isinstance(self.spec.input.type, ExternalSchema):
            self._described = found
        return found

    def arguments(self, given: Raw) -> Raw:
        """The arguments without a layer of JSON in strings that hosts put around what is no string."""
        given = without_string(given)
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
        from ...schemas.phrases import schema_kinds  # late, as above

        schema = self.described.input_schema
        parts = schema.get("properties", {}).values()
        return any(not schema_kinds(part, schema).isdisjoint(("object", "array")) for part in parts)

    def _unpacked_within(self, given: Raw) -> Raw:
        """The arguments; where they do not fit, without the layers of JSON in strings anywhere in them."""
        try:
            self.spec.input.decode(given)
        except FailureError:
            from .tool_schemas import without_strings  # late, as above

            schema = self.described.input_schema
            try:
                return Raw(_encode(without_strings(msgspec.json.decode(given), schema, schema)))
            except (*DECODE_ERRORS, ValueError):
                return given
        return given


def _marked(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:  # Any: JSON
    for name, part in schema.get("properties", {}).items():
        if isinstance(part, dict):
            if isinstance(mark := part.get("x-mcp-header"), str):
                yield f"Mcp-Param-{mark}", (*path, name)
            yield from _marked(part, (*path, name))


def without_string(given: Raw) -> Raw:
    """Return what the JSON text of a string says, if there is such a layer around it."""
    return _unpacked(given) if memoryview(given)[0] == _STRING else given


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


PAGE_BYTES: Final = 4 * 1024 * 1024
"""How much one page of a list holds: entries of imported servers may be large."""


def written_page(items: Sequence[T], cursor: str | None, write: Callable[[T], U | None]) -> tuple[list[U], str | None]:
    """Return a page as `page` does, of at least one item and of as many as `PAGE_BYTES` have room for. What `write` makes nothing
    of is left out.
    """
    shown, _ = page(items, cursor)
    found: list[U] = []
    size = count = 0
    for item in shown:
        written = write(item)
        if written is not None:
            size += len(_encode(written))
            if found and size > PAGE_BYTES:
                break
            found.append(written)
        count += 1
    end = count + (0 if cursor is None else int(cursor))
    return found, str(end) if end < len(items) else None


def page(items: Sequence[T], cursor: str | None) -> tuple[list[T], str | None]:
    """The page that begins at the cursor, and the cursor of the next one. Raises `FailureError` for one that was never given."""
    start = 0
    if cursor is not None:
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 8 and 0 < int(cursor) < len(items)):
            raise FailureError(InvalidParams("cursor", "a cursor of an earlier page", "another value"))
        start = int(cursor)
    end = start + PAGE
    return list(items[start:end]), str(end) if end < len(items) else None
