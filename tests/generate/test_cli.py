"""`discreet generate` as it is run: where the client goes, from where it comes, and how it fails."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from support.in_process import in_process
from support.programs import finished

HERE = Path(__file__).parent
SOURCES = Path(discreet.__file__).parents[1]
APPS = ("./kinds_app.py:app", "./kinds_app.py:bare")


def generate(*argv: str, cwd: Path = HERE) -> subprocess.CompletedProcess[str]:
    if "--server" in argv:
        return in_process("generate", *argv, folder=cwd)
    return finished([sys.executable, "-P", "-B", "-m", "discreet", "generate", *argv], cwd)


@pytest.mark.parametrize(
    ("language", "kept"), [("python", "kinds_client.py.txt"), ("typescript", "kinds_client.ts.txt")]
)
def test_an_app_and_a_running_server_give_the_same_client(language: str, kept: str, tmp_path: Path) -> None:
    golden = (HERE / kept).read_text(encoding="utf-8")
    assert generate(language, *APPS).stdout == golden
    server = shlex.join([sys.executable, "-P", "-m", "discreet", "serve", "./kinds_app.py:app", "./kinds_app.py:bare"])
    done = generate(language, "--server", server, "-o", str(tmp_path / "client"))
    assert (done.stdout, done.returncode) == ("", 0)
    assert (tmp_path / "client").read_text(encoding="utf-8") == golden


def test_without_an_app_the_file_service_gets_its_client(tmp_path: Path) -> None:
    done = generate("python", cwd=tmp_path)
    assert done.returncode == 0
    assert "class FsClient:" in done.stdout
    compile(done.stdout, "fs_client.py", "exec")


def test_what_an_app_prints_is_no_part_of_its_client(tmp_path: Path) -> None:
    text = 'from discreet import Service\nprint("printed")\napp = Service("loud")\n@app.query\ndef one() -> int: ...\n'
    (tmp_path / "loud.py").write_text(text, encoding="utf-8")
    done = generate("python", "./loud.py:app", cwd=tmp_path)
    assert "printed" not in done.stdout
    assert "printed" in done.stderr


@pytest.mark.parametrize(
    ("argv", "status"), [((), 2), (("--server", shlex.join([sys.executable, "-P", "-m", "discreet", "serve"])), 1)]
)
def test_an_agent_alone_has_no_operations_to_generate_a_client_from(
    argv: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    (tmp_path / "lone.py").write_text(
        "from discreet.agents import Agent\n"
        "class Nothing:\n"
        "    async def execute(self, context, events): ...\n"
        "    async def cancel(self, context, events): ...\n"
        'agent = Agent(Nothing(), name="Lone", description="Alone.")\n'
    )
    app = "./lone.py:agent"
    done = generate("python", *([argv[0], f"{argv[1]} {app}"] if argv else [app]), cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("", status)
    assert "discreet.client.agent" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "status"),
    [
        ((), 2),
        (("cobol",), 2),
        (("python", "no_such_module:app"), 2),
        (("python", "./kinds_app.py:app", "--server", "cat"), 2),
        (("python", "--server", ""), 2),
        (("python", "--server", '"'), 2),
        (("python", "--server", "no-such-command"), 1),
        (("python", "--server", f"{shlex.quote(sys.executable)} -c pass"), 1),
        (("python", "-o", "missing/client.py"), 2),
    ],
)
def test_a_failure_is_one_line_and_a_status(argv: tuple[str, ...], status: int, tmp_path: Path) -> None:
    done = generate(*argv, cwd=HERE if "./kinds_app.py:app" in argv else tmp_path)
    assert (done.stdout, done.returncode) == ("", status)
    assert len(done.stderr.splitlines()) == 1, done.stderr


SERVER = """
import json, sys
while line := sys.stdin.readline():
    request = json.loads(line)
    answer = [{"name": "a/b"}] if request["method"] == "services/list" else json.loads(sys.argv[1])
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer}), flush=True)
"""

SCHEMA = {
    "name": "a/b",
    "namespace": "a",
    "kind": "query",
    "visibility": "external",
    "description": 'Ends with \\"',
    "inputSchema": {},
    "outputSchema": {},
    "errorSchemas": [],
}


def generate_from(schema: object, language: str) -> subprocess.CompletedProcess[str]:
    server = shlex.join([sys.executable, "-I", "-c", SERVER, json.dumps(schema)])
    return generate(language, "--server", server, "--framing", "newline")


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_a_server_of_another_make_gets_its_client(language: str) -> None:
    done = generate_from(SCHEMA, language)
    assert (done.stderr, done.returncode) == ("", 0)
    if language == "python":
        compile(done.stdout, "client.py", "exec")


@pytest.mark.parametrize("language", ["python", "typescript"])
@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA | {"inputSchema": {"properties": 3}},
        SCHEMA | {"outputSchema": {"type": "object", "properties": {"a": {"required": 5}}}},
        SCHEMA | {"inputSchema": []},
        {},
        3,
    ],
)
def test_documents_that_are_no_schemas_are_one_line_and_status_1(schema: object, language: str) -> None:
    done = generate_from(schema, language)
    assert (done.stdout, done.returncode) == ("", 1)
    assert len(done.stderr.splitlines()) == 1, done.stderr
