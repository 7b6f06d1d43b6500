"""The schemas of MCP: the structs that the dialect and its users need, what each revision knows, and which methods it has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final  # Any: a schema is JSON

from json_schema import Reader, Schema
from model import ANY, ListOf, MapOf, Model, Named, OneOf, Type, load, names_in
from python_text import Group, Style, heading, name_ambiguous_unions, quoted_lines, write_modules

Roots = Mapping[str, tuple[Type | None, Type | None]]
"""For each method its params and its result."""


class Comparison:
    """What an older revision knows of the last one."""

    def __init__(self, last: Model, older: Model) -> None:
        self.members: defaultdict[str, set[str]] = defaultdict(set)
        """By the names of the last revision. A struct without a row is unknown."""
        self._last = last
        self._older = older
        self._compared: set[tuple[str, str]] = set()

    def compare_methods(self, last: Roots, older: Roots, always: Mapping[int, set[str]]) -> None:
        """`always` are members that all params (0) have, though the older schema does not repeat them."""
        for method in last.keys() & older.keys():
            for place, (new, old) in enumerate(zip(last[method], older[method], strict=True)):
                if new is not None and old is not None:
                    self._compare(new, old)
                for name in self._structures(new, self._last) if new is not None else ():
                    if old is None or name in self.members:
                        self.members[name] |= always.get(place, set())

    def _compare(self, last: Type, older: Type) -> None:
        ours, theirs = list(self._structures(last, self._last)), list(self._structures(older, self._older))
        for name in ours:
            if name in theirs:
                self._compare_structures(name, name)
            elif len(ours) == len(theirs) == 1:
                self._compare_structures(name, theirs[0])
            elif same := [other for other in theirs if self._same_tag(name, other) and self._holds(name, other)]:
                self._compare_structures(name, same[0])

    def _holds(self, name: str, other: str) -> bool:
        """Whether the structure has all members of the older one."""
        known = {member.name for member in self._last.all_members(name)}
        return {member.name for member in self._older.all_members(other)} <= known

    def _compare_structures(self, name: str, other: str) -> None:
        if (name, other) in self._compared:
            return
        self._compared.add((name, other))
        known = {member.name: member for member in self._older.all_members(other)}
        tag = self._last.tag_of(name)
        self.members[name] |= {tag[0]} if tag else set()
        for member in self._last.all_members(name):
            if member.name in known:
                self.members[name].add(member.name)
                self._compare(member.type, known[member.name].type)

    def _same_tag(self, name: str, other: str) -> bool:
        return self._last.tag_of(name) == self._older.tag_of(other)

    def _structures(self, of: Type, model: Model) -> Iterator[str]:
        """The structures that may stand here, also in lists and maps."""
        match model.follow(of):
            case Named(name) if name in model.structures:
                yield name
            case ListOf(inner) | MapOf(inner):
                yield from self._structures(inner, model)
            case OneOf(items):
                for item in items:
                    yield from self._structures(item, model)
            case _:
                pass


def members_of_all_params(definitions: dict[str, Schema]) -> set[str]:
    params = definitions["Request"]["properties"].get("params", {})
    return set(params.get("properties", {}))


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

EMPTY: Final = MapOf(ANY)
"""Params of a method that has none of its own."""

TREE: Final = Path(__file__).parents[2] / "dialects" / "mcp" / "generated"

APPS: Final = "2026-01-26"
OF_APPS: Final = ("McpUiResourceMeta", "McpUiToolMeta")
"""What the extension adds to resources and to tools."""

TO_SERVERS: Final = ("ClientRequest", "ClientNotification")
"""The unions of what clients send."""

TABLES_HEAD: Final = '''"""The tables of the revisions: methods, and members of results that an older one lacks. Plain data."""

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
    structs = Group("structs", "The messages of servers, and the members of prompts, resources and tools.", USED)
    written = sorted(model.reachable(*USED) & model.structures.keys())
    messages = Group(
        "messages", "The other params and results of methods, for clients.", _of_messages(revisions[LEGACY[-1]])
    )
    return {
        "__init__": f'{heading(sources)}"""MCP as structs and tables."""\n',
        **write_modules(model, [structs, messages], Style(f"the schema of MCP {LEGACY[-1]}", frozen=True)),
        "tables": heading(sources)
        + _tables_module(revisions, [*written, "ServerCapabilities"])
        + _names(model, messages),
        "apps": _apps(schemas / "mcp" / "apps" / "schema.json"),
    }


def read_last(schemas: Path) -> Revision:
    """The last revision that begins with a handshake."""
    return _read(schemas / "mcp" / f"{LEGACY[-1]}.json")


def sent_by_servers(revision: Revision) -> set[str]:
    """The methods of what servers send."""
    unions = (revision.definitions[union] for union in ("ServerRequest", "ServerNotification"))
    return {method for union in unions for method in _methods_in(union, revision.definitions)}


def _of_messages(revision: Revision) -> list[str]:
    """The names of the params and the results of all methods but those of tasks."""
    rows = (row for method, row in revision.types.items() if "tasks/" not in method and method != "initialize")
    return sorted({name for row in rows for of in row if of is not None for name in names_in(of)})


def _names(model: Model, messages: Group) -> str:
    names = sorted((model.reachable(*messages.seeds) - model.reachable(*USED)) & model.public)
    return f'''
MESSAGES: Final = (
{quoted_lines(names, " ")}
).split()
"""The names of the module `messages`."""
'''


def _apps(schema: Path) -> str:
    """The metadata of tools and resources in MCP Apps. The schema repeats its definitions wherever they are used. Without it the
    module stays as it is.
    """
    if not schema.exists():
        return (TREE / "apps.py").read_text("utf-8")
    definitions: dict[str, Schema] = load(schema)["$defs"]
    plain = {name: _plain(schema) for name, schema in definitions.items()}
    named = {name: _with_references(schema, plain, name) for name, schema in plain.items()}
    reader = Reader(named, known={}, enumerations=False, three_states=_any_may_be_null)
    for name in OF_APPS:
        reader.define(name)
    group = Group("apps", "The metadata of tools and resources in MCP Apps.", OF_APPS)
    return write_modules(reader.model, [group], Style(f"the schema of MCP Apps {APPS}", frozen=True))["apps"]


def _plain(schema: Schema) -> Schema:
    """A schema without words for people, without members that must be absent, and with objects that take any member."""
    left_out = ("$schema", "description", "additionalProperties", "propertyNames")
    found = {word: part for word, part in schema.items() if word not in left_out}
    if members := schema.get("properties"):
        found["properties"] = {name: _plain(part) for name, part in members.items() if part != {"not": {}}}
    elif "properties" in schema:
        del found["properties"]
    if "items" in schema:
        found["items"] = _plain(schema["items"])
    if "anyOf" in schema:
        found["anyOf"] = [_plain(part) for part in schema["anyOf"]]
    return found


def _with_references(schema: Schema, definitions: dict[str, Schema], own: str = "") -> Schema:
    for name, definition in definitions.items():
        if name != own and schema == definition and "properties" in schema:
            return {"$ref": f"#/$defs/{name}"}
    members = {name: _with_references(part, definitions) for name, part in schema.get("properties", {}).items()}
    return schema | ({"properties": members} if members else {})


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
