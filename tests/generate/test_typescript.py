"""The TypeScript client: what it looks like, what compilers say of it, and what it does with a daemon."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.generate import typescript_client
from discreet.schemas.documents import OperationSchema
from support.programs import finished

HERE = Path(__file__).parent
SOURCES = Path(discreet.__file__).parents[1]
OPTIONS = {
    "strict": True,
    "target": "es2022",
    "module": "nodenext",
    "types": [],
    "noUncheckedIndexedAccess": True,
    "exactOptionalPropertyTypes": True,
    "noImplicitOverride": True,
    "noUnusedLocals": True,
    "noUnusedParameters": True,
    "verbatimModuleSyntax": True,
    "erasableSyntaxOnly": True,
    "outDir": "out",
}


@pytest.fixture(scope="module")
def text(operations: list[OperationSchema]) -> str:
    return typescript_client(operations)


@pytest.fixture(scope="module")
def folder(text: str, node_modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the client, a program that uses it, and both compiled."""
    folder = tmp_path_factory.mktemp("typescript")
    (folder / "node_modules").symlink_to(node_modules, target_is_directory=True)
    compile_usage(folder, text, node_modules)
    return folder


def compile_usage(folder: Path, text: str, node_modules: Path) -> None:
    """Write the client and the program that uses it, and compile both with the library of the folder."""
    (folder / "kinds_client.ts").write_text(text, encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    settings = {"compilerOptions": OPTIONS, "files": ["kinds_client.ts", "usage.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    for name in ("usage.ts", "usage_main.mjs", "kinds_app.py"):
        shutil.copy(HERE / name, folder)
    done = run("node", str(node_modules / "typescript" / "bin" / "tsc"), cwd=folder)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return finished(command, cwd)


def test_every_kind_of_type_has_its_typescript_form(text: str) -> None:
    """Made by `discreet generate typescript ./kinds_app.py:app ./kinds_app.py:bare -o kinds_client.ts.txt`."""
    assert text == (HERE / "kinds_client.ts.txt").read_text(encoding="utf-8")


def test_a_client_of_nothing_is_a_session() -> None:
    assert "export class Session {" in typescript_client([])


def test_it_is_formatted_as_prettier_formats(folder: Path, node_modules: Path) -> None:
    prettier = node_modules / "prettier" / "bin" / "prettier.cjs"
    if not prettier.exists():
        pytest.skip("prettier is not installed beside typescript")
    done = run("node", str(prettier), "--check", "kinds_client.ts", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_compiled_under_strict_it_talks_to_a_daemon(folder: Path) -> None:
    done = run("node", "usage_main.mjs", sys.executable, cwd=folder)
    assert said(done.stdout) == EXPECTED, done.stderr
    assert done.returncode == 0


def test_with_the_oldest_supported_library_it_talks_to_a_daemon(
    text: str, node_modules: Path, oldest_library: Path
) -> None:
    folder = oldest_library.parent
    compile_usage(folder, text, node_modules)
    done = run("node", "usage_main.mjs", sys.executable, cwd=folder)
    assert said(done.stdout) == EXPECTED, done.stderr
    assert done.returncode == 0


def test_the_docs_load_the_library_in_the_way_that_is_tested_here() -> None:
    (line,) = [
        line for line in (HERE / "usage_main.mjs").read_text("utf-8").splitlines() if "vscode-jsonrpc/node" in line
    ]
    assert line in (HERE.parents[1] / "docs" / "generate.md").read_text("utf-8").splitlines()


def said(stdout: str) -> dict[str, Any]:
    return {name: json.loads(value) for name, _, value in (line.partition("=") for line in stdout.splitlines())}


EXPECTED = {
    "ping": "pong",
    "scalars": [
        "/w==",
        "0.10",
        "2026-07-14T12:00:00Z",
        "2026-07-14",
        "12:30:00",
        "P1DT1.5S",
        "00000000-0000-0000-0000-000000000007",
        {"m": []},
    ],
    "enums": ["green", 2],
    "list": [[1.0, 0.0], [1.0, 3.0], [4.0, 0.0]],
    "pets": [7, "Rex"],
    "declared": "no Rex near [[2.5,0]]",
    "undeclared": "false -32602 pet.lives",
    "tree": 1,
    "named": {"first": 1, "second": 2},
    "defaults": [1, 2, 0, 5],
    "stream": [1, 2, 3, "more"],
    "streams": [1, 3, 6],
    "left": "pong",
    "beside": [{"authorization": "Bearer one"}, {"authorization": "Bearer two"}, {}],
    "cancelled": -32800,
    "status": 0,
    "lost": True,
}


WRONG_USE = (
    'kinds.pets({ pet: { type: "bird" }, shape: [1, 1] });',
    'kinds.enums({ color: "blue" });',
    "new KindsClient(null!, { serviceParams: { n: 1 } });",
    "kinds.named({});",
    "kinds.scalars();",
    "const n: number = await kinds.tree({ tree: { nodeName: '' } });",
    "for await (const pet of kinds.count({ to: 1 })) pet.name;",
)


def test_the_compiler_refuses_wrong_use(folder: Path, node_modules: Path, tmp_path: Path) -> None:
    for name in ("package.json", "kinds_client.ts"):
        shutil.copy(folder / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(node_modules, target_is_directory=True)
    names = [f"wrong{number}.ts" for number in range(len(WRONG_USE))]
    for name, wrong in zip(names, WRONG_USE, strict=True):
        program = f'import {{ KindsClient }} from "./kinds_client.js";\ndeclare const kinds: KindsClient;\n{wrong}\n'
        (tmp_path / name).write_text(program, encoding="utf-8")
    settings = {"compilerOptions": {**OPTIONS, "noEmit": True}, "files": names}
    (tmp_path / "tsconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = run("node", str(node_modules / "typescript" / "bin" / "tsc"), cwd=tmp_path)
    faults = [line for line in done.stdout.splitlines() if "error TS" in line]
    assert done.returncode != 0
    assert {fault.partition(",")[0] for fault in faults} == {f"{name}(3" for name in names}
