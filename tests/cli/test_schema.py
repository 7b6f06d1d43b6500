"""`discreet schema` as it is run: what comes on stdout, what on stderr, and the status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.schemas.documents import read_snapshot
from support.in_process import in_process
from support.programs import DISCREET, finished

APP = """
import os, subprocess, sys
from discreet import Service
print("printed at import")
os.write(1, b"written at import\\n")
subprocess.run([sys.executable, "-c", "print('printed by a child')"], check=True)
app = Service("app")
@app.query()
def one(a: int{more}) -> {returns}:
    return a
"""


def write_app(folder: Path, more: str = "", returns: str = "int") -> None:
    (folder / "app.py").write_text(APP.format(more=more, returns=returns), encoding="utf-8")


def schema(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return in_process("schema", *argv, folder=folder)


def test_the_snapshot_stands_alone_on_stdout_whatever_the_app_prints(tmp_path: Path) -> None:
    write_app(tmp_path)
    done = schema(tmp_path, "./app.py:app")
    assert done.returncode == 0
    assert list(json.loads(done.stdout)["operations"]) == ["app/one"]
    assert sorted(done.stderr.splitlines()) == ["printed at import", "printed by a child", "written at import"]


@pytest.mark.parametrize(("flag", "member"), [("--openapi", "paths"), ("--isolated", "operations")])
def test_an_agent_alone_has_no_operations_and_its_document_says_so(flag: str, member: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from discreet.agents import Agent\n"
        "class Nothing:\n"
        "    async def execute(self, context, events): ...\n"
        "    async def cancel(self, context, events): ...\n"
        'agent = Agent(Nothing(), name="Lone", description="Alone.")\n'
    )
    done = schema(tmp_path, "./app.py:agent", flag)
    assert (done.returncode, json.loads(done.stdout)[member]) == (0, {})
    assert done.stderr.count("\n") == 1
    assert "there are no operations" in done.stderr


def test_an_openapi_document_is_printed_or_written(tmp_path: Path) -> None:
    write_app(tmp_path)
    printed = schema(tmp_path, "./app.py:app", "--openapi")
    assert printed.returncode == 0
    document = json.loads(printed.stdout)
    assert (document["openapi"][:4], list(document["paths"])) == ("3.1.", ["/operations/app/one"])
    assert document["servers"] == [{"url": "/"}]
    done = schema(tmp_path, "./app.py:app", "--openapi", "-o", "kept.json", "--http-url", "https://shop.example/")
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads((tmp_path / "kept.json").read_bytes())["servers"][0]["url"] == "https://shop.example"


def test_without_an_app_the_file_service_is_described(tmp_path: Path) -> None:
    done = schema(tmp_path, "--allow-write")
    assert (done.returncode, done.stderr) == (0, "")
    assert "fs/write" in read_snapshot(done.stdout.encode()).operations


def test_a_check_says_what_is_new_and_succeeds(tmp_path: Path) -> None:
    write_app(tmp_path)
    schema(tmp_path, "./app.py:app", "-o", "kept.json")
    write_app(tmp_path, more=", b: int = 1")
    done = schema(tmp_path, "./app.py:app", "--check", "kept.json")
    assert (done.returncode, done.stdout) == (0, "app/one input.b: is new\n")
    assert "discreet:" not in done.stderr


@pytest.mark.parametrize("form", [[], ["--openapi"]], ids=["snapshot", "OpenAPI"])
def test_a_check_says_what_breaks_one_line_each_and_fails(tmp_path: Path, form: list[str]) -> None:
    write_app(tmp_path)
    schema(tmp_path, "./app.py:app", *form, "-o", "kept.json")
    write_app(tmp_path, more=", b: int", returns="str")
    done = schema(tmp_path, "./app.py:app", "--check", "kept.json", *form, "-o", "kept.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert [line for line in done.stderr.splitlines() if line.startswith("discreet: ")] == [
        "discreet: app/one input.b: is required",
        "discreet: app/one output: string may be received",
    ]
    again = schema(tmp_path, "./app.py:app", "--check", "kept.json")
    assert (again.returncode, again.stdout) == (0, "")


@pytest.mark.parametrize(
    "argv",
    [
        ["no_such_module:app"],
        ["./app.py:nothing"],
        ["./app.py:app", "--check", "missing.json"],
        ["./app.py:app", "--check", "app.py"],
        ["./app.py:app", "--check"],
        ["./app.py:app", "--check", "foreign.json"],
        ["./app.py:app", "--openapi", "--token", "nonsense"],
        ["--root", "missing"],
    ],
)
def test_what_can_t_be_read_is_wrong_usage_in_one_line(tmp_path: Path, argv: list[str]) -> None:
    write_app(tmp_path)
    (tmp_path / "foreign.json").write_text('{"openapi": "3.1.0", "paths": {"/pets": {"get": {}}}}')
    done = schema(tmp_path, *argv)
    assert (done.returncode, done.stdout) == (2, "")
    assert len([line for line in done.stderr.splitlines() if line.startswith("discreet: ")]) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_with_a_file_to_write_a_closed_stdout_is_no_fault(tmp_path: Path) -> None:
    done = finished(["sh", "-c", 'exec "$0" "$@" >&-', *DISCREET, "schema", "-o", "kept.json"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert read_snapshot((tmp_path / "kept.json").read_bytes()).operations


SECRETIVE = '''
import os
from typing import Annotated
import msgspec
from discreet import OperationError, Service

KEY = os.environ["SHOP_API_KEY"]
NUMBER = int(os.environ["SHOP_PIN_TOKEN"])

class Settings(msgspec.Struct):
    key: str = KEY

Settings.__doc__ = f"Uses {KEY}."

class Refused(OperationError, code="REFUSED", message=f"not with {KEY}"):
    """No."""
    detail: str = KEY

app = Service("shop", description=f"Sells with {KEY}")

@app.query(description=f"Asks with {KEY}", errors=[Refused])
def one(
    key: str = KEY,
    pin: int = NUMBER,
    keys: list[str] | None = None,
    shown: Annotated[str, msgspec.Meta(examples=[KEY, "harmless"], description=f"like {KEY}", extra_json_schema={"x-key": [KEY]})] = "x",
    settings: Settings = Settings(),
) -> Settings:
    return settings
'''


KEY, PIN = "correct-horse-battery", "4711081547110815"
VERBS = (["schema"], ["schema", "--openapi"], ["card"], ["generate", "python"], ["generate", "typescript"])
ALL_VERBS = f"""
import sys
from discreet.cli.main import main
for verb in {VERBS}:
    assert main([*verb, "./app.py:app"]) == 0
"""


def test_secrets_of_the_environment_are_not_printed(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SECRETIVE, encoding="utf-8")
    done = finished([sys.executable, "-P", "-c", ALL_VERBS], tmp_path, SHOP_API_KEY=KEY, SHOP_PIN_TOKEN=PIN)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("class ShopClient") == 2  # all of them were printed
    assert KEY not in done.stdout
    assert PIN not in done.stdout


@pytest.mark.parametrize("verb", ["serve", "schema"])
def test_an_import_that_fails_is_one_printable_line_without_secrets(tmp_path: Path, verb: str) -> None:
    raised = "x" * 190 + r"\x1b[31mred\x9b\n\u202e" + f"{KEY} token=hunter2hunter2 /home/bob/app.cfg"
    (tmp_path / "app.py").write_text(f'raise ValueError("{raised}")', encoding="utf-8")
    (tmp_path / "odd.py").write_text(f'from discreet import Service\nService("a\\x1b[31m{KEY}\\n")', encoding="utf-8")
    for name in ("app", "odd"):
        done = finished([*DISCREET, verb, f"./{name}.py:app"], tmp_path, SHOP_API_KEY=KEY)
        assert (done.returncode, done.stdout) == (2, "")
        line = done.stderr.removesuffix("\n")
        assert line.isprintable() and f"'./{name}.py:app'" in line
        assert not any(part in line for part in (KEY, "horse", "hunter2", "/home/bob"))
