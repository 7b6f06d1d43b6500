"""The schemas of MCP: the structs that the dialect and its users need, what each revision knows, and which methods it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final  # Any: a schema is JSON

from json_schema import Reader, Schema
from mcp_revisions import Comparison, Roots, members_of_all_params
from model import ANY, ListOf, MapOf, Model, Type
from python_text import Group, Style, heading, name_ambiguous_unions, write_modules
from schema_file import load

LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN: Final = "2026-07-28"

KNOWN: Final[dict[str, Type]] = {
    "JSONValue": ANY,
    "JSONArray": ListOf(ANY),
    "JSONObject": MapOf(ANY),
    "MetaObject": MapOf(ANY),
    "Result": MapOf(ANY),
    "EmptyResult": MapOf(ANY),
    "ToolInputSchema": MapOf(ANY),
    "ToolOutputSchema": MapOf(ANY),
}
"""What is any JSON. A tool's schemas are JSON Schema, of which some revisions list a few members only."""

USED: Final = (
    "Annotations CallToolResult CompleteRequestParamsArgument CompleteResult ContentBlock CreateMessageResult GetPromptResult "
    "Icon ListPromptsResult ListResourceTemplatesResult ListResourcesResult ListToolsResult PromptReference "
    "ReadResourceResult ResourceTemplateReference Root SamplingMessage ToolAnnotations"
).split()
"""What the dialect and `discreet.mcp` need, as the last legacy revision has it. Results of 2026-07-28 have the same members, and
those that all of its results have.
"""

TO_SERVERS: Final = ("ClientRequest", "ClientNotification")
"""The unions of what clients send."""

TABLES_HEAD: Final = '''"""What each revision knows, and what of a result an older one does not. Plain data."""

from __future__ import annotations

from typing import Final

'''


@dataclass
class Revision:
    definitions: dict[str, Schema]
    reader: Reader
    methods: list[str]
    """Those that clients call."""
    types: Roots


def generate(schemas: Path) -> dict[str, str]:
    """The text of each module by its name."""
    revisions = {name: _read(schemas / "mcp" / f"{name}.json") for name in (*LEGACY, MODERN)}
    model = revisions[LEGACY[-1]].reader.model
    name_ambiguous_unions(model)
    sources = f"the schemas of MCP {LEGACY[0]} to {LEGACY[-1]} and {MODERN}"
    structs = Group("structs", "What servers send and what prompts, resources and tools are made of.", USED)
    written = sorted(model.reachable(*USED) & model.structures.keys())
    return {
        "__init__": f'{heading(sources)}"""MCP as structs and tables."""\n',
        **write_modules(model, [structs], Style(f"the schema of MCP {LEGACY[-1]}", frozen=True)),
        "tables": heading(sources) + _tables_module(revisions, [*written, "ServerCapabilities"]),
    }


def _read(path: Path) -> Revision:
    schema = load(path)
    definitions = schema.get("$defs") or schema["definitions"]
    reader = Reader(definitions, known=KNOWN, enumerations=False, three_states=_any_may_be_null)
    types = {method: types for name in definitions for method, types in _method(name, definitions, reader)}
    called = {method for union in TO_SERVERS for method in _methods_in(definitions[union], definitions)}
    return Revision(definitions, reader, sorted(called), types)


def _any_may_be_null(_structure: str, of: Type, null: bool) -> bool:
    """Where any JSON may stand, null is a value of it."""
    return null or of == ANY


def _method(
    name: str, definitions: dict[str, Schema], reader: Reader
) -> Iterator[tuple[str, tuple[Type | None, Type | None]]]:
    """The method of a definition with its params and its result; nothing where the definition is none."""
    properties = definitions[name].get("properties", {})
    if method := properties.get("method", {}).get("const"):
        params = properties.get("params")
        of = reader.type_of(params, f"{name}Params") if params else None
        is_request = name.endswith("Request")
        yield method, (of, _result(name.removesuffix("Request"), definitions, reader) if is_request else None)


def _methods_in(schema: Schema, definitions: dict[str, Schema]) -> Iterator[str]:
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    for part in schema.get("anyOf", ()):
        yield from _methods_in(part, definitions)
    if "properties" in schema:
        yield schema["properties"]["method"]["const"]


def _result(name: str, definitions: dict[str, Schema], reader: Reader) -> Type:
    if response := definitions.get(f"{name}ResultResponse"):
        return reader.type_of(response["properties"]["result"], f"{name}Result")
    return reader.define(f"{name}Result" if f"{name}Result" in definitions else "EmptyResult")


def _tables_module(revisions: dict[str, Revision], written: Sequence[str]) -> str:
    last = revisions[LEGACY[-1]]
    known: dict[str, dict[str, set[str]]] = {}
    for name in LEGACY:
        comparison = Comparison(last.reader.model, revisions[name].reader.model)
        always = {0: members_of_all_params(revisions[name].definitions)}
        comparison.compare_methods(last.types, revisions[name].types, always)
        known[name] = comparison.members
    structs = {name: next((one for one in LEGACY if name in known[one]), LEGACY[-1]) for name in written}
    members = {name: dict(_later_members(name, structs[name], known, last.reader.model)) for name in written}
    methods = {one: next(name for name in LEGACY if one in revisions[name].methods) for one in last.methods}
    return "\n".join(
        [
            TABLES_HEAD,
            f"LEGACY_REVISIONS: Final = {LEGACY!r}\n",
            f'MODERN_REVISION: Final = "{MODERN}"\n',
            f"LEGACY_METHODS: Final[dict[str, str]] = {methods!r}",
            '"""What clients call in legacy revisions, with the first one that knows it."""\n',
            f"MODERN_METHODS: Final = frozenset({revisions[MODERN].methods!r})",
            '"""What clients call in the modern revision."""\n',
            f"STRUCTS: Final[dict[str, str]] = { ({name: one for name, one in structs.items() if one != LEGACY[0]})!r}",
            '"""The first revision that has a struct, if that is not the first of all."""\n',
            f"MEMBERS: Final[dict[str, dict[str, str]]] = { ({name: found for name, found in members.items() if found})!r}",
            '"""The first revision that has a member, by its name on the wire, if its struct is older."""\n',
        ]
    )


def _later_members(
    name: str, since: str, known: dict[str, dict[str, set[str]]], last: Model
) -> Iterator[tuple[str, str]]:
    for member in last.all_members(name):
        first = next((one for one in LEGACY if member.name in known[one].get(name, ())), LEGACY[-1])
        if first != since:
            yield member.name, first
