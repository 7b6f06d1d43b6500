"""LSP 3.18 as its authors have it on npm: their types are those of our meta model, and their client has every new method at work.

`NODE_PATH` names a folder `node_modules` with vscode-languageserver-protocol 3.18.5 and typescript.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.lsp_model import META_MODEL
from support.requirements import missing
from support.waits import DEADLINE_SECONDS

Place = Any

STRUCTURES = {each["name"]: each for each in META_MODEL["structures"]}

OWN_TO_A_FILE = {
    "CancelParams", "FileOperationPattern", "LogTraceParams", "ProgressParams", "ResourceOperation", "SetTraceParams",
}  # fmt: skip
"""Structures that the packages do not export, or not under this name."""
OPEN = {"FormattingOptions", "InitializeResult", "MessageActionItem"}
"""Structures that take any further member."""

OF_BASE = {"$/cancelRequest", "$/logTrace", "$/progress", "$/setTrace"}
"""Methods that are in the package of JSON-RPC."""

VALUES_OF_JSONRPC = {"ErrorCodes", "LSPErrorCodes", "TraceValue"}
"""Enumerations with values that are not of LSP: the ends of ranges, and a way to trace."""

PRINT_METHODS = """
const found = {};
for (const each of Object.values(require("vscode-languageserver-protocol/node")))
  if (each?.method?.includes?.("/") || ["initialize", "initialized", "shutdown", "exit"].includes(each?.method)) found[each.method] = [each.messageDirection, each.capabilities ?? {}];
console.log(JSON.stringify(found));
"""
PRINT_VALUES = """
const lsp = require("vscode-languageserver-protocol/node");
const values = (name) => lsp[name] && Object.values(lsp[name]).filter((each) => typeof each !== "function");
console.log(JSON.stringify(Object.fromEntries(JSON.parse(process.argv[1]).map((name) => [name, values(name)]))));
"""


CAN = {
    "announced": '[true,{"schemes":["made"]},{"rangesSupport":true}]', "inline": "true", "content": "of made:1",
    "ranges": "2", "rename": "a snippet", "diagnostic": "markup",
    "completion": '[{"b":2},{"data":{"a":1}},{"data":2}]', "refresh": "folding",
    "content refresh": "made:1", "log": "5", "apply": '[true,{"isRefactoring":true}]', "status": "0",
}  # fmt: skip
CAN_NOT = {
    "announced": "[null,null,{}]", "rename": "new", "diagnostic": "*no*", "completion": '[{"a":1,"b":2},null,null]',
    "log": "4", "apply": "[false,null]", "status": "0",
}  # fmt: skip


@pytest.fixture
def modules() -> Path:
    for folder in os.environ.get("NODE_PATH", "").split(os.pathsep):
        if folder and Path(folder, "vscode-languageserver-protocol").is_dir():
            return Path(folder)
    missing("vscode-languageserver-protocol is not installed where NODE_PATH says")


def printed(*command: str, folder: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def members(name: str) -> dict[str, Any]:
    others = STRUCTURES[name].get("extends", []) + STRUCTURES[name].get("mixins", [])
    found = {key: member for other in others for key, member in members(other["name"]).items()}
    return found | {member["name"]: member for member in STRUCTURES[name]["properties"]}


def assertions() -> Iterator[str]:
    """TypeScript that compiles if the packages have the same members, and the same of them optional."""
    yield 'import type * as lsp from "./published.mjs";'
    yield "type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;"
    yield "type Needed<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? never : K }[keyof T];"
    for name in sorted(STRUCTURES.keys() - OWN_TO_A_FILE - OPEN):
        if not name.startswith("_"):
            every = members(name)
            needed = [key for key, member in every.items() if not member.get("optional")]
            for kind, of, keys in (("all", f"keyof lsp.{name}", every), ("needed", f"Needed<lsp.{name}>", needed)):
                yield f"export const {name}_{kind}: Same<{of}, {' | '.join(map(json.dumps, keys)) or 'never'}> = true;"


def test_structures_have_the_members_that_the_published_types_have(modules: Path, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(modules)
    folder = "node_modules/vscode-languageserver-protocol/lib/common"
    files = sorted(
        path.name.removesuffix(".d.ts") for path in (tmp_path / folder).glob("protocol*.d.ts")
    )  # not all are exported
    published = [f'export type * from "./{folder}/{name}.js";' for name in files]
    (tmp_path / "published.mts").write_text(
        "\n".join([*published, 'export type * from "vscode-languageserver-types";'])
    )
    (tmp_path / "model.mts").write_text("\n".join(assertions()), "utf-8")
    options = ["--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "--noEmit"]
    printed(str(modules / ".bin" / "tsc"), *options, "model.mts", folder=tmp_path)


def test_methods_have_the_directions_and_capabilities_that_the_published_ones_have(modules: Path) -> None:
    published = json.loads(printed("node", "-e", PRINT_METHODS))
    rows = {row["method"]: row for row in META_MODEL["requests"] + META_MODEL["notifications"]}
    assert rows.keys() - published.keys() == OF_BASE
    assert published.keys() - rows.keys() == {"notebookDocument/sync", "textDocument/semanticTokens"}
    for method in rows.keys() - OF_BASE:
        capabilities = {"client": rows[method].get("clientCapability"), "server": rows[method].get("serverCapability")}
        named = {key: value for key, value in capabilities.items() if value}
        assert published[method] == [rows[method]["messageDirection"], named], method


def test_enumerations_have_the_values_that_the_published_ones_have(modules: Path) -> None:
    names = [each["name"] for each in META_MODEL["enumerations"]]
    published = json.loads(printed("node", "-e", PRINT_VALUES, json.dumps(names)))
    compared = 0
    for each in META_MODEL["enumerations"]:
        if (values := published.get(each["name"])) and each["name"] not in VALUES_OF_JSONRPC:
            own = {value["value"] for value in each["values"]}
            assert own == {value for value in values if type(value) is type(next(iter(own)))}, each["name"]
            compared += 1
    assert compared > 30


@pytest.mark.parametrize(("which", "seen"), [("all", CAN), ("none", CAN_NOT)])
def test_the_client_of_its_authors_is_served_what_it_can(place: Place, modules: Path, which: str, seen: Any) -> None:
    done = place.run(["env", f"NODE_PATH={modules}", "node", "session_lsp_3_18.js", which])
    lines = done.stdout.decode().splitlines()
    assert dict(line.split("=", 1) for line in lines) == seen, done.stderr
    assert done.returncode == 0
