"""The schemas of ACP: the structs of the methods that the dialect has or calls, and those that the draft of version 2 changes."""

from __future__ import annotations

from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, Final  # Any: a schema is JSON

from json_schema import Reader
from model import ANY, NONE, ListOf, MapOf, Model, Named, OneOf, Plain, Type, load, names_in, one_of
from python_text import Group, Style, heading, name_ambiguous_unions, write_modules

VERSION: Final = 1
DRAFT: Final = 2

METHODS: Final = frozenset(
    "authenticate elicitation/complete elicitation/create fs/read_text_file fs/write_text_file logout "
    "session/cancel session/close session/delete session/list session/load session/new session/prompt "
    "session/request_permission session/resume session/set_config_option session/set_mode session/update "
    "terminal/create terminal/kill terminal/output terminal/release terminal/wait_for_exit".split()
)
"""Those whose params and results are written. The dialect writes `initialize` itself."""

DRAFT_METHODS: Final = frozenset(
    "session/new session/prompt session/request_permission session/resume session/set_config_option session/update".split()
)
"""Those whose params or results differ in the draft. Others are those of version 1, under another name maybe, or empty."""

TEXTS: Final = ("AbsolutePath", "MediaType")
"""Names of the draft for texts that version 1 calls by none."""

THREE_STATES: Final = frozenset({"SessionInfoUpdate"})
"""Where null clears what absence leaves as it is. Elsewhere every optional member may be null and means the same."""


def generate(schemas: Path) -> dict[str, str]:
    """The text of each module by its name."""
    stable, seeds = _read(schemas, VERSION, METHODS)
    draft, changed = _read(schemas, DRAFT, DRAFT_METHODS)
    source = f"the schema of ACP {VERSION}"
    group = Group("structs", "The params and results of methods of agents and of clients.", seeds)
    shared = Group(group.module, "", _shared(draft, stable, stable.reachable(*seeds)))
    draft_group = Group("draft", "The params and results that version 2, a draft, changes.", changed)
    return {
        "__init__": f'{heading(source)}"""ACP as structs."""\n',
        **write_modules(stable, [group], Style(source, frozen=True)),
        "draft": write_modules(draft, [shared, draft_group], Style(f"the schema of ACP {DRAFT}", frozen=True))["draft"],
    }


def _read(schemas: Path, version: int, methods: Set[str]) -> tuple[Model, list[str]]:
    """What the schema of this version has of these methods, and the names of their params and results."""
    definitions = load(schemas / "acp" / f"v{version}.json")["$defs"]
    known: dict[str, Type] = {"ExtRequest": ANY, **dict.fromkeys(TEXTS, Plain("str"))}
    reader = Reader(definitions, known=known, enumerations=True, three_states=_null_clears)
    seeds = sorted(_seeds(definitions, methods, version))
    for name in seeds:
        reader.define(name)
    name_ambiguous_unions(reader.model)
    return reader.model, seeds


def _shared(draft: Model, stable: Model, written: Set[str]) -> list[str]:
    """The names that both versions give to the same thing, with all that it leads to."""
    found = {name for name in draft.reachable(*draft.public) & written if _own(draft, name) == _own(stable, name)}
    while differing := {name for name in found if not draft.mentioned(name) & _held(draft) <= found | _plain(draft)}:
        found -= differing
    return sorted(found)


def _held(model: Model) -> set[str]:
    return model.structures.keys() | model.enumerations.keys() | model.aliases.keys()


def _plain(model: Model) -> set[str]:
    """The aliases of plain types, whose names say nothing."""
    return {name for name in model.aliases if not names_in(model.follow(Named(name)))}


def _own(model: Model, name: str) -> object:
    """What a definition says, without what the names in it stand for."""
    if name in model.enumerations:
        return model.enumerations[name]
    if name in model.aliases:
        return _own_type(model, model.aliases[name])
    structure = model.structures[name]
    members = {(each.name, _own_type(model, each.type), each.optional, each.three_states) for each in structure.members}
    return structure.base, structure.tag, members


def _own_type(model: Model, of: Type) -> object:
    """A type with plain aliases followed. An optional member may be null in either version."""
    match model.follow(of) if isinstance(of, Named) and of.name in _plain(model) else of:
        case ListOf(item):
            return ("list", _own_type(model, item))
        case MapOf(value):
            return ("map", _own_type(model, value))
        case OneOf(items):
            parts = {_own_type(model, item) for item in items if item != NONE}
            return next(iter(parts)) if len(parts) == 1 else frozenset(parts)
        case other:
            return other


def _null_clears(structure: str, of: Type, null: bool) -> bool:
    return null and structure in THREE_STATES and of == one_of(Plain("str"), NONE)


def _seeds(definitions: dict[str, Any], methods: Set[str], version: int) -> Iterator[str]:
    """The names of params and results."""
    found = {name: schema["x-method"] for name, schema in definitions.items() if "x-method" in schema}
    if lost := methods - {*found.values()}:
        raise ValueError(f"ACP {version} has no {lost}")
    yield from (name for name, method in found.items() if method in methods)
