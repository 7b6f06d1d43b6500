"""The page on editors tells the truth: its programs run, its tables are those of the code, and its counts are right."""

from __future__ import annotations

import importlib
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from discreet import acp
from discreet.acp import AcpOptions, Asker, Editor
from discreet.agents import TaskEvents
from discreet.dialects.acp.session import own_methods
from discreet.dialects.acp.sessions import MAX_BYTES, MAX_SESSIONS
from discreet.errors.codes import ACP_REQUEST_FAILED, ACP_RESERVED
from support.acp_client import acp_client, outcome_of
from support.pages import Page

DOCUMENT = Page("docs/acp.md")
PAGE, PROGRAMS, section = DOCUMENT.text, DOCUMENT.programs, DOCUMENT.section


def first_cells(heading: str) -> str:
    return "\n".join(re.findall(r"^\| (.+?) \|", section(heading), re.MULTILINE))


@pytest.mark.anyio
async def test_the_first_agent_does_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "greeter.py").write_text(PROGRAMS["greeter.py"], encoding="utf-8")
    agent = runpy.run_path(str(tmp_path / "greeter.py"))["agent"]
    async with acp_client(agent) as client:
        assert await client.prompt(await client.session(), "Ada") == "end_turn"
        assert (client.texts("agent_thought_chunk"), client.texts("agent_message_chunk")) == (
            "Thinking …",
            "Hello, Ada!",
        )


@pytest.mark.parametrize(("file", "function"), [("tidy.py", "tidy_file"), ("announce.py", "announce")])
def test_the_other_programs_can_be_imported(tmp_path: Path, file: str, function: str) -> None:
    (tmp_path / file).write_text(PROGRAMS[file], encoding="utf-8")
    assert function in runpy.run_path(str(tmp_path / file))


@pytest.mark.anyio
async def test_the_form_and_the_page_ask_as_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "order.py").write_text(PROGRAMS["order.py"], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    order = importlib.import_module("order")
    asked: list[str] = []

    async def answer(params: Any) -> Any:
        asked.append(params["mode"])
        return {"action": "accept", **({"content": {"target": "production"}} if params["mode"] == "form" else {})}

    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await order.ask_for_order(editor)

    outcome, _ = await outcome_of(work, {"elicitation/create": answer})
    assert (outcome, asked) == (order.Order("production", 2), ["form", "url"])


def test_settings_of_editors_are_json() -> None:
    for text in re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        settings: dict[str, Any] = json.loads(text)
        assert settings["agent_servers"]["Greeter"]["args"][-2:] == ["--dialect", "acp"]


def test_all_that_an_editor_can_do_is_there_and_nothing_else() -> None:
    shown = set(re.findall(r"`(\w+)[`(]", first_cells("The editor"))) - {"editor"}
    assert shown == {name for each in (Asker, Editor) for name in vars(each) if not name.startswith("_")}


def test_all_options_are_there() -> None:
    assert set(re.findall(r"`(\w+)`", first_cells("What the user may choose"))) == set(AcpOptions.__struct_fields__)


def test_the_executors_events_exist() -> None:
    shown = set(re.findall(r"`events\.(\w+)\(", first_cells("What becomes of what")))
    assert shown <= set(vars(TaskEvents))
    assert len(shown) == 8


def test_every_method_of_the_protocol_is_told_of() -> None:
    async def sign_out() -> None: ...

    told = section("What is supported")
    untold = {name for name in own_methods(AcpOptions(logout=sign_out)) - {"initialize"} if f"`{name}`" not in told}
    assert untold == set()


def test_numbers_and_limits_are_those_of_the_code() -> None:
    assert f"−{-ACP_REQUEST_FAILED}" in first_cells("Errors")
    assert all(f"−{-number}" in section("Errors").splitlines()[-1] for number in ACP_RESERVED)
    assert f"{MAX_SESSIONS:,} sessions open, of {MAX_BYTES // 1024**2} MiB" in PAGE


def test_every_name_of_the_module_is_there() -> None:
    assert all(hasattr(acp, name) for name in acp.__all__)
