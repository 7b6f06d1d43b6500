"""What tools/protocols writes: it is what stands in the tree, every struct reads and writes, and the tables agree with the structs."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints  # Any: schemas are JSON

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec import Struct, UnsetType

from discreet import lsp
from discreet.dialects.lsp.generated import names as lsp_names
from discreet.dialects.lsp.generated import tables as lsp_tables
from discreet.dialects.mcp.generated import tables as mcp_tables
from discreet.dialects.structs import StructUnion
from discreet.errors.decoders import decoder_for
from support.lsp_model import META_MODEL

ROOT = Path(__file__).parents[2]
PROTOCOLS = ("lsp", "mcp", "acp")

MERGED = {
    "ConfigOptionUpdate",
    "CreateElicitationRequest",
    "SessionConfigOption",
    "SetSessionConfigOptionRequest",
    "SetSessionConfigOptionResponse",
}
"""Objects of ACP with alternatives, and what holds one: one struct has the members of all, so as little as it takes is too little."""


# -- JSON for any struct: as little as it takes, or all that there is --

LEADS_BACK: Any = object()
"""Instead of a sample that would hold a struct within itself."""

PLAIN: dict[Any, Any] = {str: "text", int: 7, float: 0.5, bool: True, Any: "any"}


def sample(struct: type[Struct], *, full: bool, within: tuple[Any, ...] = ()) -> dict[str, Any]:
    """An object with the required members of a struct; with `full`, with every member but those that lead back to it."""
    hints = get_type_hints(struct, include_extras=True)
    config = struct.__struct_config__
    found: dict[str, Any] = {config.tag_field: config.tag} if config.tag_field else {}
    for field in msgspec.structs.fields(struct):
        if field.required or full:
            value = _sample_of(hints[field.name], full, (*within, struct))
            if value is not LEADS_BACK:
                found[field.encode_name] = value
    return found


def _sample_of(of: Any, full: bool, within: tuple[Any, ...]) -> Any:
    arguments = get_args(of)
    match get_origin(of):
        case origin if origin is Annotated:
            union: StructUnion = arguments[1]
            value = _first([struct for _, struct in union.candidates], full, within)
            return [value] if union.lists and value is not LEADS_BACK else value
        case origin if origin in {Union, UnionType}:
            return _first([one for one in arguments if one not in {NoneType, UnsetType}], full, within)
        case origin if origin is Literal:
            return arguments[0]
        case origin if origin is list:
            item = _sample_of(arguments[0], full, within)
            return [] if item is LEADS_BACK else [item]
        case origin if origin is dict and arguments[1] is Any:
            return {"type": "object"}  # what a tool's schema must have; anything elsewhere
        case origin if origin is dict:
            value = _sample_of(arguments[1], full, within)
            return {} if value is LEADS_BACK else {"key": value}
        case origin if origin is tuple:
            return [_sample_of(one, full, within) for one in arguments]
        case _ if isinstance(of, type) and issubclass(of, Struct):
            return LEADS_BACK if of in within else sample(of, full=full, within=within)
        case _ if isinstance(of, type) and issubclass(of, Enum):
            return next(iter(of)).value
        case _:
            return PLAIN[of]


def _first(alternatives: list[Any], full: bool, within: tuple[Any, ...]) -> Any:
    """Of the structs, else of the first."""
    structs = [one for one in alternatives if isinstance(one, type) and issubclass(one, Struct)]
    return _sample_of((structs or alternatives)[0], full, within)


# -- the structs --


def structs_of(protocol: str) -> dict[str, type[Struct]]:
    """Every struct of a message by its module and name; the handlers of clients are none."""
    package = importlib.import_module(f"discreet.dialects.{protocol}.generated")
    found: dict[str, type[Struct]] = {}
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.name.endswith(".client"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if (
                isinstance(value, type)
                and issubclass(value, Struct)
                and (value.__module__, value.__name__) == (module.name, name)
            ):
                found[f"{protocol}.{module.name.rpartition('.')[2]}.{name}"] = value
    return found


@pytest.mark.needs("ruff")
def test_the_tree_holds_what_the_generator_writes(schemas: Path, tmp_path: Path) -> None:
    compare_with_the_tree(tmp_path, PROTOCOLS, str(schemas))


@pytest.mark.needs("ruff")
def test_the_tree_holds_what_the_generator_writes_of_lsp(tmp_path: Path) -> None:
    compare_with_the_tree(tmp_path, ("lsp",))


def compare_with_the_tree(tmp_path: Path, protocols: tuple[str, ...], *schemas: str) -> None:
    command = [sys.executable, "-P", str(ROOT / "tools" / "protocols"), *schemas, "--to", str(tmp_path)]
    subprocess.run(command, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(protocols)
    for protocol in protocols:
        written = {path.name: path.read_text("utf-8") for path in (tmp_path / protocol / "generated").iterdir()}
        folder = ROOT / "dialects" / protocol / "generated"
        assert written == {path.name: path.read_text("utf-8") for path in folder.glob("*.py")}


def test_the_first_line_of_a_generated_file_says_where_it_comes_from() -> None:
    files = list((ROOT / "dialects").glob("*/generated/*.py"))
    assert files
    pattern = re.compile(r"# Written by tools/protocols from the (meta model|schemas?) of (LSP|MCP|MCP Apps|ACP) [0-9]")
    assert [path for path in files if not pattern.match(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_struct_writes_what_it_has_read_and_ignores_unknown_members(protocol: str) -> None:
    for name, struct in structs_of(protocol).items():
        decode = decoder_for(struct)
        for full in (False, True):
            wire = sample(struct, full=full)
            read = decode(json.dumps({**wire, "unheardOf": {"a": [1]}}).encode())
            assert type(read) is struct, name
            assert json.loads(msgspec.json.encode(read)) == wire, name
            assert msgspec.convert(wire, struct) == read, name


def test_what_structs_of_mcp_and_acp_write_satisfies_the_published_schemas(schemas: Path) -> None:
    old, new, acp, draft = (
        {"$defs": definitions_of(schemas / name)["$defs"]}
        for name in ("mcp/2025-11-25.json", "mcp/2026-07-28.json", "acp/v1.json", "acp/v2.json")
    )
    of_acp = {"acp.structs": [acp], "acp.draft": [draft]}
    checked = 0
    for place, struct in {**structs_of("mcp"), **structs_of("acp")}.items():
        module, _, name = place.rpartition(".")
        legacy = name.endswith("Result") or module == "mcp.messages"
        for schema in of_acp.get(module, [old] if legacy else [old, new]):
            if name in schema["$defs"]:
                validator = Draft202012Validator({**schema, "$ref": f"#/$defs/{name}"})
                for full in (False, True) if name not in MERGED else (True,):
                    validator.validate(sample(struct, full=full))
                    checked += 1
    assert checked > 200


def test_what_structs_of_mcp_apps_write_satisfies_the_published_schema(schemas: Path) -> None:
    path = schemas / "mcp" / "apps" / "schema.json"
    if not path.exists():
        pytest.skip(f"the folder has no {path.relative_to(schemas)}")
    published = definitions_of(path)
    structs = {name: struct for name, struct in structs_of("mcp").items() if name.startswith("mcp.apps.")}
    assert len(structs) == 4
    for place, struct in structs.items():
        validator = Draft202012Validator({**published, "$ref": f"#/$defs/{place.rpartition('.')[2]}"})
        for full in (False, True):
            wire = json.loads(json.dumps(sample(struct, full=full)).replace('{"type": "object"}', "{}"))
            validator.validate(wire)


def definitions_of(path: Path) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return {"$defs": schema.get("$defs") or schema["definitions"]}


def test_structs_of_lsp_have_the_members_of_the_meta_model() -> None:
    structures = {structure["name"]: structure for structure in META_MODEL["structures"]}

    def members(name: str) -> dict[str, Any]:
        others = structures[name].get("extends", []) + structures[name].get("mixins", [])
        own = {member["name"]: member for member in structures[name]["properties"]}
        return {key: member for other in others for key, member in members(other["name"]).items()} | own

    def may_be_absent(member: dict[str, Any]) -> bool:
        return member.get("optional", False) or {"kind": "base", "name": "null"} in member["type"].get("items", ())

    structs = {place.rpartition(".")[2]: struct for place, struct in structs_of("lsp").items()}
    structs["Position"] = lsp.Position  # written by hand, since documents give positions too
    assert len(structs) > 200
    for name, struct in structs.items():
        tag = struct.__struct_config__.tag_field
        fields = {field.encode_name: field.required for field in msgspec.structs.fields(struct)}
        published = members(name)
        assert fields.keys() | ({tag} if tag else set()) == published.keys(), name
        assert {key for key, required in fields.items() if required} <= {
            key for key, member in published.items() if not member.get("optional")
        }, name
        assert {key for key, required in fields.items() if not required} <= {
            key for key, member in published.items() if may_be_absent(member)
        }, name


def test_enumerations_of_lsp_have_the_values_of_the_meta_model() -> None:
    published = {each["name"]: each for each in META_MODEL["enumerations"] if each["name"] in lsp_names.HOMES}
    assert len(published) > 20
    for name, each in published.items():
        assert {member.value for member in getattr(lsp, name)} == {value["value"] for value in each["values"]}


def words(text: str) -> set[str]:
    """The names of definitions in an annotation."""
    return {word for word in re.findall(r"\w+", re.sub('"[^"]*"', "", text)) if word[0].isupper()} - {
        "Any",
        "Literal",
        "None",
    }


LSP_ROWS = {**lsp_tables.REQUESTS, **lsp_tables.NOTIFICATIONS}


def test_the_types_of_a_row_of_lsp_are_names_of_discreet_lsp() -> None:
    for method, row in LSP_ROWS.items():
        if method != "initialize":  # the dialect writes its result
            assert words(f"{row.params} {row.result} {row.partial_result}") <= lsp_names.HOMES.keys(), method
        assert set(row.registration_options) <= lsp_tables.OPTIONS.keys(), method


def test_the_server_capability_of_a_method_leads_through_the_options() -> None:
    paths = {row.server_capability for row in LSP_ROWS.values() if row.server_capability}
    assert len(paths) > 40
    for path in paths:
        at = {"ServerCapabilities"}
        for name in path.split("."):
            members = [lsp_tables.OPTIONS[one][name] for one in at if name in lsp_tables.OPTIONS[one]]
            assert members, path
            at = {of for member in members for of in member.split(" | ") if of in lsp_tables.OPTIONS}


def test_a_method_names_the_client_capability_that_allows_to_register_it() -> None:
    saved = lsp_tables.NOTIFICATIONS["textDocument/didSave"]
    assert saved.dynamic_registration == "textDocument.synchronization.dynamicRegistration"
    assert not lsp_tables.REQUESTS["initialize"].dynamic_registration


def test_an_older_revision_of_mcp_knows_fewer_methods() -> None:
    assert mcp_tables.LEGACY_METHODS["tasks/get"] == "2025-11-25"
    assert mcp_tables.LEGACY_METHODS["tools/call"] == "2024-11-05"
    assert not {"elicitation/create", "server/discover"} & mcp_tables.LEGACY_METHODS.keys()
    assert not {"initialize", "sampling/createMessage"} & mcp_tables.MODERN_METHODS


def test_an_older_revision_of_mcp_knows_the_members_that_its_schema_has(schemas: Path) -> None:
    """Compared by the names of definitions, wherever both revisions have one of that name."""
    compared = 0
    told = {place: struct for place, struct in structs_of("mcp").items() if not place.startswith("mcp.messages.")}
    legacy = {place.rpartition(".")[2]: struct for place, struct in told.items()}
    for index, revision in enumerate(mcp_tables.LEGACY_REVISIONS):
        definitions = definitions_of(schemas / "mcp" / f"{revision}.json")["$defs"]
        so_far = mcp_tables.LEGACY_REVISIONS[: index + 1]
        for name in definitions.keys() & legacy.keys():
            config = legacy[name].__struct_config__
            members = {field.encode_name for field in msgspec.structs.fields(legacy[name])}
            members |= {config.tag_field} if config.tag_field else set()
            since = mcp_tables.MEMBERS.get(name, {})
            properties = definitions[name].get("properties")
            if properties is not None and not name.endswith("Params"):
                assert mcp_tables.STRUCTS.get(name, so_far[0]) in so_far, name
                known = {member for member in members if since.get(member, so_far[0]) in so_far}
                assert known == set(properties), (revision, name)
                compared += 1
    assert compared > 50
