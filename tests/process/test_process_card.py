"""`discreet card` as it is run: what comes on stdout, what on stderr, and the status."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from support.programs import DISCREET, finished

APP = """
import os
from msgspec.structs import replace
from discreet import Identity, Service
from discreet.agents.agent import Agent
from discreet.a2a.card import Skill
print("printed at import")
os.write(1, b"written at import\\n")

app = Service("app")

@app.query()
def look() -> None:
    "Look around."

@app.mutation(scopes=["app:write"])
def write() -> None:
    "Write."

class Executor:
    async def execute(self, context, events): ...
    async def cancel(self, context, events): ...

greet = Skill(id="greet", name="Greet", description="Grüßt.", tags=["talk"])
agent = Agent(Executor(), name="Greeter", description="Greets.", skills=[greet])
other = Agent(Executor(), name="Other", description="Others.", extended=lambda card, who: replace(card, name=who.subject))
broken = Agent(Executor(), name="Broken", description="Breaks.", extended=lambda card, who: 1 / 0)

class Provider:
    schemes = ("Basic", "Bearer")
    realm = "shop"
    def resolve(self, authorization):
        return None

provider = Provider()
"""
TOKEN = "me:" + "0" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    return tmp_path


def card(folder: Path, *argv: str) -> CompletedProcess[str]:
    return finished([*DISCREET, "card", *argv], folder)


def printed(folder: Path, *argv: str) -> dict[str, Any]:
    done = card(folder, *argv)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def skills(document: dict[str, Any]) -> list[str]:
    return [skill["id"] for skill in document["skills"]]


def test_the_card_stands_alone_on_stdout_whatever_the_app_prints(folder: Path) -> None:
    done = card(folder, "./app.py:agent")
    document = json.loads(done.stdout)
    assert (document["name"], document["skills"][0]["description"]) == ("Greeter", "Grüßt.")
    assert document["supportedInterfaces"][0]["url"] == "stdio:discreet%20serve%20./app.py:agent"
    assert sorted(done.stderr.splitlines()) == ["printed at import", "written at import"]


def test_without_an_agent_the_operations_are_the_skills(folder: Path) -> None:
    document = printed(folder, "./app.py:app")
    assert (document["name"], skills(document)) == ("app", ["app/look", "app/write"])


def test_without_an_app_the_file_service_is_described(folder: Path) -> None:
    assert "fs/write" not in skills(printed(folder))
    assert "fs/write" in skills(printed(folder, "--allow-write"))


def test_the_older_version_has_its_own_form(folder: Path) -> None:
    document = printed(folder, "./app.py:app", "--a2a-version", "0.3")
    assert document["protocolVersion"] == "0.3.0"
    assert document["url"] == "stdio:discreet%20serve%20./app.py:app"
    assert "supportedInterfaces" not in document


def test_scopes_tokens_and_providers_are_respected_as_serve_does(folder: Path) -> None:
    assert skills(printed(folder, "./app.py:app", "--scope", "other")) == ["app/look"]
    public = printed(folder, "./app.py:app", "--token", TOKEN)
    assert (skills(public), [*public["securitySchemes"]]) == (["app/look"], ["bearer"])
    assert TOKEN not in json.dumps(public)
    extended = printed(folder, "./app.py:app", "--identity", "./app.py:provider", "--extended")
    assert (skills(extended), [*extended["securitySchemes"]]) == (["app/look", "app/write"], ["basic", "bearer"])


def test_an_agents_own_extended_card_is_printed(folder: Path) -> None:
    assert printed(folder, "./app.py:other")["name"] == "Other"
    assert printed(folder, "./app.py:other", "--extended")["name"] == "parent"


@pytest.mark.parametrize(
    "argv",
    [
        ["./app.py:agent", "./app.py:other"],
        ["./app.py:app", "./app.py:app"],
        ["./app.py:agent", "--extended"],
        ["./app.py:app", "--extended"],
        ["./app.py:broken", "--extended"],
        ["./app.py:agent", "--a2a-version", "2.0"],
    ],
)
def test_what_is_wrong_is_one_line_and_status_2(folder: Path, argv: list[str]) -> None:
    done = card(folder, *argv)
    assert (done.returncode, done.stdout) == (2, "")
    said = [line for line in done.stderr.splitlines() if line not in ("printed at import", "written at import")]
    assert len(said) == 1
    assert said[0].startswith("discreet: ")
    assert "Traceback" not in done.stderr


def test_serve_takes_an_agent_beside_services(folder: Path) -> None:
    call = '{"jsonrpc":"2.0","id":1,"method":"app/look"}\n'
    done = finished([*DISCREET, "serve", "./app.py:agent", "./app.py:app", "--framing=newline"], folder, stdin=call)
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": None}
