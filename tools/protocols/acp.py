"""The schema of ACP: the structs of the methods that the dialect has or calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final  # Any: a schema is JSON

from json_schema import Reader
from model import ANY, NONE, Plain, Type, load, one_of
from python_text import Group, Style, heading, name_ambiguous_unions, write_modules

VERSION: Final = 1

METHODS: Final = frozenset(
    "authenticate elicitation/complete elicitation/create fs/read_text_file fs/write_text_file logout "
    "session/cancel session/close session/delete session/list session/load session/new session/prompt "
    "session/request_permission session/resume session/set_config_option session/set_mode session/update "
    "terminal/create terminal/kill terminal/output terminal/release terminal/wait_for_exit".split()
)
"""Those whose params and results are written. The dialect writes `initialize` itself."""

THREE_STATES: Final = frozenset({"SessionInfoUpdate"})
"""Where null clears what absence leaves as it is. Elsewhere every optional member may be null and means the same."""


def generate(schemas: Path) -> dict[str, str]:
    """The text of each module by its name."""
    definitions = load(schemas / "acp" / f"v{VERSION}.json")["$defs"]
    reader = Reader(definitions, known={"ExtRequest": ANY}, enumerations=True, three_states=_null_clears)
    seeds = sorted(_seeds(definitions))
    for name in seeds:
        reader.define(name)
    name_ambiguous_unions(reader.model)
    source = f"the schema of ACP {VERSION}"
    group = Group("structs", "The params and results of methods of agents and of clients.", seeds)
    return {
        "__init__": f'{heading(source)}"""ACP as structs."""\n',
        **write_modules(reader.model, [group], Style(source, frozen=True)),
    }


def _null_clears(structure: str, of: Type, null: bool) -> bool:
    return null and structure in THREE_STATES and of == one_of(Plain("str"), NONE)


def _seeds(definitions: dict[str, Any]) -> Iterator[str]:
    """The names of params and results."""
    found = {name: schema["x-method"] for name, schema in definitions.items() if "x-method" in schema}
    if lost := METHODS - {*found.values()}:
        raise ValueError(f"ACP {VERSION} has no {lost}")
    yield from (name for name, method in found.items() if method in METHODS)
