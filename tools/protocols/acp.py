"""The schema of ACP: structs for all methods of agents and clients, and the table of methods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final  # Any: a schema is JSON

from json_schema import Reader
from model import ANY, NONE, Plain, Type, one_of
from names import pascal
from python_text import Group, Style, heading, name_ambiguous_unions, write_modules
from schema_file import load

VERSION: Final = 1

SIDES: Final = {"agent": "clientToAgent", "client": "agentToClient", "protocol": "both"}

THREE_STATES: Final = frozenset({"SessionInfoUpdate"})
"""Where null clears what absence leaves as it is. Elsewhere every optional member may be null and means the same."""

METHODS_HEAD: Final = '''"""The methods and error codes. Plain data, no structs. Types are names of structs."""

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict


class Method(TypedDict):
    direction: Literal["clientToAgent", "agentToClient", "both"]
    kind: Literal["request", "notification"]
    params: str
    result: NotRequired[str]


'''


def generate(schemas: Path) -> dict[str, str]:
    """The text of each module by its name."""
    definitions = load(schemas / "acp" / f"v{VERSION}.json")["$defs"]
    reader = Reader(definitions, known={"ExtRequest": ANY}, enumerations=True, three_states=_null_clears)
    methods = dict(sorted(_methods(definitions)))
    _compare(methods, schemas / "acp" / f"v{VERSION}.meta.json")
    for row in methods.values():
        for key in {"params", "result"} & row.keys():
            reader.define(row[key])
    reader.define("ErrorCode")
    model = reader.model
    codes = {pascal(name): code for name, code in model.enumerations.pop("ErrorCode").values}
    name_ambiguous_unions(model)
    source = f"the schema of ACP {VERSION}"
    in_session = sorted(
        row[key]
        for method, row in methods.items()
        for key in {"params", "result"} & row.keys()
        if method in {"session/prompt", "session/update", "session/cancel"}
    )
    groups = [
        Group("prompts", "A turn: the prompt, its updates, its end.", in_session),
        Group("methods_of_agents", "What a client asks of an agent.", _types(methods, "clientToAgent")),
        Group("methods_of_clients", "What an agent asks of a client.", _types(methods, "agentToClient", "both")),
    ]
    if lost := model.public - set[str]().union(*(model.reachable(*group.seeds) for group in groups)):
        raise ValueError(f"no module claims {lost}")
    tables = (
        f"{heading(source)}{METHODS_HEAD}PROTOCOL_VERSION: Final = {VERSION}\n\n"
        f"METHODS: Final[dict[str, Method]] = {methods!r}\n\nERROR_CODES: Final[dict[str, int]] = {codes!r}\n"
    )
    return {
        "__init__": f'{heading(source)}"""ACP as structs and tables."""\n',
        **write_modules(model, groups, Style(source, frozen=True)),
        "tables": tables,
    }


def _null_clears(structure: str, of: Type, null: bool) -> bool:
    return null and structure in THREE_STATES and of == one_of(Plain("str"), NONE)


def _types(methods: dict[str, dict[str, str]], *directions: str) -> list[str]:
    rows = [row for row in methods.values() if row["direction"] in directions]
    return sorted({row[key] for row in rows for key in {"params", "result"} & row.keys()})


def _methods(definitions: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    found: dict[str, dict[str, str]] = {}
    for name, schema in definitions.items():
        if "x-method" in schema:
            row = found.setdefault(schema["x-method"], {"direction": SIDES[schema["x-side"]]})
            row["result" if name.endswith("Response") else "params"] = name
            if not name.endswith("Response"):
                row["kind"] = "request" if name.endswith("Request") else "notification"
    for method, row in found.items():
        yield method, {key: row[key] for key in ("direction", "kind", "params", "result") if key in row}


def _compare(methods: dict[str, dict[str, str]], meta: Path) -> None:
    """The list of methods that is published beside the schema says the same."""
    raw = load(meta)
    listed = {SIDES[side]: set(raw[f"{side}Methods"].values()) for side in SIDES}
    found = {
        direction: {name for name, row in methods.items() if row["direction"] == direction} for direction in listed
    }
    if listed != found or raw["version"] != VERSION:
        raise ValueError(f"{meta.name} and the schema differ")
