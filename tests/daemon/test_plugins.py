"""Plug-ins of an installed package: a dialect, a task store and a verb, found by the entry points in its metadata."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from discreet.daemon import plugins
from support.programs import DISCREET, environment

PACKAGE: Final = Path(__file__).parent / "plugin_package"

AGENT: Final = """
import discreet
from discreet.agents import Agent
from discreet.agents.stores.checks import Retention
from mine_for_discreet.store import MineStore

class Greeter:
    async def execute(self, request, events):
        await events.reply("hello")
    async def cancel(self, request, events): ...

store = MineStore({path!r}, Retention())
agent = Agent(Greeter(), name="greeter", description="Greets.", {agent_store})
if __name__ == "__main__":
    discreet.serve(agent, framing="newline", isolated=True, {serve_store})
"""


def run(
    *arguments: str, sent: str = "", program: tuple[str, ...] = DISCREET, package: Path = PACKAGE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *arguments],
        env=environment(package),
        input=sent,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


def call(method: str, call_id: int = 1, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}) + "\n"


def test_a_dialect_of_a_package_is_spoken_beside_the_operations_that_are_served(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    sent = call("mine/hello") + call("fs/read", 2, path="a.txt") + call("mine/nothing", 3)
    done = run("--dialect", "mine", "--root", str(tmp_path), sent=sent)
    replies = {
        reply["id"]: reply for reply in map(json.loads, done.stdout.splitlines())
    }  # the framing is the dialect's
    assert (replies[1]["result"], replies[3]["error"]["code"]) == ("hello 1", -32601)
    assert "result" in replies[2]
    assert done.returncode == 0


def test_a_service_may_declare_a_dialect_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("from discreet import Service\napp = Service('app', dialect='mine')\n")
    done = run(f"{tmp_path}/app.py:app", sent=call("mine/hello"))
    assert json.loads(done.stdout)["result"] == "hello 1"


@pytest.mark.parametrize(("app", "status"), [("def own(): ...", 0), ("@app.query(name='mine/own')\ndef own(): ...", 1)])
def test_the_doctor_only_starts_and_ends_a_daemon_of_a_dialect_that_it_does_not_speak(
    app: str, status: int, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(f"from discreet import Service\napp = Service()\n{app}\n")
    done = run("doctor", "--dialect", "mine", "--json", f"{tmp_path}/app.py:app")
    *_, mine, end = json.loads(done.stdout)["findings"]
    assert (mine["check"], mine["status"], done.returncode) == ("mine", "warn", status)
    assert (end["check"], end["status"]) == ("end", "fail" if status else "ok")
    assert ("the dialect mine has methods of this name" in end["message"]) is bool(status)
    assert "Traceback" not in done.stderr


def test_the_doctor_names_a_dialect_of_a_package_that_cannot_be_loaded() -> None:
    done = run("doctor", "--dialect", "broken", "--json")
    *_, end = json.loads(done.stdout)["findings"]
    assert (end["status"], done.returncode, done.stderr) == ("fail", 1, "")
    assert "dialect 'broken' of the package mine-for-discreet can't be loaded" in end["message"]


def test_what_a_dialect_of_a_package_refuses_to_serve_ends_the_start(tmp_path: Path) -> None:
    code = "from discreet import Service\napp = Service()\n@app.query(name='mine/own')\ndef own() -> int: ...\n"
    (tmp_path / "app.py").write_text(code)
    done = run("--dialect", "mine", f"{tmp_path}/app.py:app")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the dialect mine has methods of this name" in done.stderr


def test_a_store_of_a_package_keeps_the_tasks(tmp_path: Path) -> None:
    done = run("--framing", "newline", "--store", f"mine:{tmp_path}/events", sent=call("GetTask", id="x"))
    assert json.loads(done.stdout)["error"]["code"] == -32001
    assert (tmp_path / "events").read_text().split() == ["open", "close"]


@pytest.mark.parametrize(("agent_store", "serve_store"), [("store=store", ""), ("", "store=store")])
def test_a_program_may_bring_its_store_as_an_object(tmp_path: Path, agent_store: str, serve_store: str) -> None:
    path = str(tmp_path / "events")
    code = AGENT.format(path=path, agent_store=agent_store, serve_store=serve_store)
    (tmp_path / "app.py").write_text(code)
    done = run(str(tmp_path / "app.py"), sent=call("GetTask", id="x"), program=(DISCREET[0], "-P"))
    assert json.loads(done.stdout)["error"]["code"] == -32001, done.stderr
    assert Path(path).read_text().split() == ["open", "close"]


def test_a_verb_of_a_package_is_run_and_explains_itself() -> None:
    done = run("mine", "a", "b", "--status", "3")
    assert (done.returncode, done.stdout) == (3, "a b\n")
    assert "Print the words." in run("mine", "--help").stdout
    assert "Of installed packages: broken, mine." in run("--help").stdout


def test_a_package_takes_no_name_of_a_plug_in_that_is_built_in() -> None:
    assert "Print the words." not in run("serve", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--dialect", "nothing"), "plain, lsp, mcp, acp, auto, or of installed packages broken, mine"),
        (("--store", "nothing:x"), "redis://..., or of installed packages broken, mine"),
        (("mien",), "nearest: mine"),
        (("--dialect", "broken"), "mine-for-discreet"),
        (("--store", "broken:x"), "mine-for-discreet"),
        (("broken",), "mine-for-discreet"),
        (("--store", "mine:/nowhere/events"), "its folder does not exist"),
    ],
)
def test_a_wrong_name_or_a_plug_in_that_fails_is_one_line_and_status_2(arguments: tuple[str, ...], names: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("discreet: ")
    assert (done.stderr.count("\n"), names in done.stderr) == (1, True), done.stderr


BLOCK: Final = re.compile(r"```python\n(.*?)```", re.DOTALL)
PAGE: Final = Path(__file__).parents[2] / "docs" / "plugins.md"


@pytest.fixture
def page_package(tmp_path: Path) -> Path:
    """A package of the code that docs/plugins.md shows."""
    package, metadata = tmp_path / "my_package", tmp_path / "my_package-1.0.dist-info"
    package.mkdir()
    metadata.mkdir()
    for name, code in zip(("dialect", "store", "verb"), BLOCK.findall(PAGE.read_text()), strict=True):
        (package / f"{name}.py").write_text(code)
    points = "[discreet]\ndialect.page = my_package.dialect\nstore.page = my_package.store:open_mine\n"
    (metadata / "entry_points.txt").write_text(points + "verb.page = my_package.verb\n")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    return tmp_path


def test_the_dialect_and_the_verb_of_the_page_work(page_package: Path) -> None:
    done = run("--dialect", "page", sent=call("mine/hello"), package=page_package)
    assert json.loads(done.stdout)["result"] == "hello", done.stderr
    assert run("page", "a", "b", package=page_package).stdout == "a b\n"


@pytest.mark.parametrize(
    ("arguments", "code", "fault"),
    [
        (("--store", "page:x"), "", "store 'page' of the package my-package can't be used: AttributeError: 'NoneType'"),
        (("--dialect", "page"), "def open_session(*_): return 1 / 0", "dialect 'page' of the package my-package"),
        (("--dialect", "page"), "def open_session(*_): ...", "can't be used: AttributeError: 'NoneType'"),
    ],
)
def test_a_plug_in_that_fails_at_the_start_is_one_line_and_status_2(
    page_package: Path, arguments: tuple[str, ...], code: str, fault: str
) -> None:
    with (page_package / "my_package" / "dialect.py").open("a") as dialect:
        dialect.write(code)
    done = run(*arguments, "--framing", "newline", package=page_package)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert fault in done.stderr


def test_entry_points_are_not_read_for_what_is_built_in() -> None:
    code = "import sys; from discreet.daemon import plugins; plugins.load('dialect', 'plain'); plugins.load('verb', 'show')\n"
    asked = code + "assert plugins.is_known('store', 'sqlite'); print('importlib.metadata' in sys.modules)"
    assert run(asked, program=(DISCREET[0], "-P", "-c")).stdout == "False\n"


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, known in plugins.BUILT_IN.items() for name in known])
def test_every_plug_in_of_the_table_is_there(kind: plugins.Kind, name: str) -> None:
    assert plugins.load(kind, name) is not None
