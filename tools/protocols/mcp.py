"""The schemas of MCP: structs of both eras, what each revision knows, and the tables of methods and errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final  # Any: a schema is JSON

from json_schema import Reader, Schema
from mcp_revisions import Comparison, Roots, members_of_all_params
from model import ANY, ListOf, MapOf, Model, Plain, Type, one_of
from python_text import Group, Style, heading, name_ambiguous_unions, type_text, write_modules
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

DIRECTIONS: Final = {
    "ClientRequest": "clientToServer",
    "ClientNotification": "clientToServer",
    "ServerRequest": "serverToClient",
    "ServerNotification": "serverToClient",
    "InputRequest": "inputRequired",
}
"""The direction of the methods in each union."""

REVISIONS_HEAD: Final = '''"""What each legacy revision knows, so that what leaves can be reduced to the negotiated one."""

from __future__ import annotations

from typing import Final

'''

METHODS_HEAD: Final = '''"""The methods and error codes of each revision. Plain data, no structs.

Types are written as in Python, with the names of the structs in `shared`, and in `legacy` or `modern`.
"""

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict


class Method(TypedDict):
    direction: Literal["clientToServer", "serverToClient", "both", "inputRequired"]
    """`inputRequired` is a request within a result, which the client answers with its next request."""
    kind: Literal["request", "notification"]
    params: NotRequired[str]
    result: NotRequired[str]
    since: NotRequired[str]
    """The first revision that knows it, if that is not the first of all."""


class Error(TypedDict):
    code: int
    data: NotRequired[str]

'''


@dataclass
class Revision:
    name: str
    definitions: dict[str, Schema]
    reader: Reader
    methods: dict[str, dict[str, Any]]
    types: Roots
    errors: dict[str, dict[str, Any]]


def generate(schemas: Path) -> dict[str, str]:
    """The text of each module by its name."""
    revisions = {name: _read(schemas / "mcp" / f"{name}.json") for name in (*LEGACY, MODERN)}
    legacy, modern = revisions[LEGACY[-1]].reader.model, revisions[MODERN].reader.model
    revisions_text = _revisions_module([revisions[name] for name in LEGACY])
    for model in (legacy, modern):
        name_ambiguous_unions(model)
    shared = _shared(legacy, modern)
    source = f"the schema of MCP {MODERN}"
    sources = f"the schemas of MCP {LEGACY[0]} to {LEGACY[-1]}"
    common = Group("shared", "What both eras have in common.", sorted(shared))
    texts = write_modules(modern, [common, _rest("modern", MODERN, modern, shared)], Style(source, frozen=True))
    old = Style(f"the schema of MCP {LEGACY[-1]}", frozen=True)
    return {
        "__init__": f'{heading(f"{sources} and {MODERN}")}"""MCP as structs and tables."""\n',
        **texts,
        "legacy": write_modules(legacy, [common, _rest("legacy", LEGACY[-1], legacy, shared)], old)["legacy"],
        "revisions": heading(sources) + revisions_text,
        "methods": heading(f"{sources} and {MODERN}") + _methods_module(revisions),
    }


def _rest(module: str, revision: str, model: Model, shared: set[str]) -> Group:
    return Group(
        module,
        f"What only revision {revision} has, or has otherwise than the other era.",
        sorted(model.public - shared),
    )


def _read(path: Path) -> Revision:
    schema = load(path)
    definitions = schema.get("$defs") or schema["definitions"]
    reader = Reader(definitions, known=KNOWN, enumerations=False, three_states=_any_may_be_null)
    types: dict[str, tuple[Type | None, Type | None]] = {}
    methods = dict(_methods(definitions, reader, types))
    errors = dict(_errors(definitions, reader))
    _accept_fractions(reader.model)
    return Revision(path.stem, definitions, reader, methods, types, errors)


def _accept_fractions(model: Model) -> None:
    """The answers to a form may be any numbers, by the forms that the same schema allows; it says integers only."""
    if answer := model.structures.get("ElicitResult"):
        numbers = MapOf(one_of(ListOf(Plain("str")), Plain("str"), Plain("int"), Plain("float"), Plain("bool")))
        members = (replace(member, type=numbers) if member.name == "content" else member for member in answer.members)
        model.structures["ElicitResult"] = replace(answer, members=tuple(members))


def _any_may_be_null(_structure: str, of: Type, null: bool) -> bool:
    """Where any JSON may stand, null is a value of it."""
    return null or of == ANY


def _methods(
    definitions: dict[str, Schema], reader: Reader, types: dict[str, tuple[Type | None, Type | None]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A row for each method. Fills `types` with params and results."""
    directions: dict[str, str] = {}
    for union, direction in DIRECTIONS.items():
        for method in _methods_in(definitions.get(union, {}), definitions):
            directions[method] = "both" if directions.get(method, direction) != direction else direction
    for name, schema in definitions.items():
        method = schema.get("properties", {}).get("method", {}).get("const")
        if method not in directions:
            continue
        row = {"direction": directions[method], "kind": "request" if name.endswith("Request") else "notification"}
        params = schema["properties"].get("params")
        if directions[method] == "inputRequired":
            reader.define(name)
        of = reader.type_of(params, f"{name}Params") if params else None
        result = _result(name.removesuffix("Request"), definitions, reader) if row["kind"] == "request" else None
        types[method] = of, result
        yield method, row | {key: type_text(found) for key, found in (("params", of), ("result", result)) if found}


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


def _errors(definitions: dict[str, Schema], reader: Reader) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, schema in definitions.items():
        found = schema.get("properties", {}).get("error", schema)
        parts = [part.get("properties", {}) for part in (found, *found.get("allOf", ()))]
        properties = next((part for part in parts if "const" in part.get("code", {})), None)
        if name.endswith("Error") and properties:
            row: dict[str, Any] = {"code": properties["code"]["const"]}
            if data := properties.get("data", {}).get("properties"):
                named = {**properties["data"], "properties": data}
                named.pop("additionalProperties", None)
                row["data"] = type_text(reader.define(f"{name}Data", named))
            yield name.removesuffix("Error"), row


def _shared(legacy: Model, modern: Model) -> set[str]:
    """What is the same in both eras, with all that it leads to."""
    same = {name for name in legacy.public & modern.public if _definition(name, legacy) == _definition(name, modern)}
    while lost := {name for name in same if not _mentioned(name, modern) <= same | modern.unnamed}:
        same -= lost
    return same


def _definition(name: str, model: Model) -> object:
    return model.structures.get(name) or model.aliases.get(name)


def _mentioned(name: str, model: Model) -> set[str]:
    """With what unions without a name lead to."""
    found = model.mentioned(name)
    return found.union(*(model.mentioned(other) for other in found & model.unnamed))


def _revisions_module(revisions: Sequence[Revision]) -> str:
    last = revisions[-1]
    known: dict[str, dict[str, set[str]]] = {}
    for revision in revisions:
        comparison = Comparison(last.reader.model, revision.reader.model)
        always = {0: members_of_all_params(revision.definitions)}
        comparison.compare_methods(last.types, revision.types, always)
        known[revision.name] = comparison.members
    written = sorted(last.reader.model.structures)
    structs = {name: next((one for one in LEGACY if name in known[one]), LEGACY[-1]) for name in written}
    members = {name: dict(_later_members(name, structs[name], known, last.reader.model)) for name in written}
    return "\n".join(
        [
            REVISIONS_HEAD,
            f"LEGACY_REVISIONS: Final = {LEGACY!r}\n",
            f'MODERN_REVISION: Final = "{MODERN}"\n',
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


def _methods_module(revisions: dict[str, Revision]) -> str:
    legacy: dict[str, dict[str, Any]] = {}
    for name in LEGACY:
        for method, row in revisions[name].methods.items():
            since = legacy[method].get("since") if method in legacy else name
            legacy[method] = row | ({"since": since} if since and since != LEGACY[0] else {})
    if lost := legacy.keys() - revisions[LEGACY[-1]].methods.keys():
        raise ValueError(f"{LEGACY[-1]} has no {lost}")
    errors = {name: dict(sorted(revision.errors.items())) for name, revision in revisions.items()}
    return "\n".join(
        [
            METHODS_HEAD,
            f"LEGACY_METHODS: Final[dict[str, Method]] = {dict(sorted(legacy.items()))!r}\n",
            f"MODERN_METHODS: Final[dict[str, Method]] = {dict(sorted(revisions[MODERN].methods.items()))!r}\n",
            f"ERRORS: Final[dict[str, dict[str, Error]]] = {errors!r}",
            '"""What each revision\'s schema names. All of them have the codes of JSON-RPC."""\n',
        ]
    )
