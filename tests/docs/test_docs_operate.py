"""docs/operate.md tells the truth: its events and settings exist, and its backup is one."""

from __future__ import annotations

import re
import shutil
import sqlite3
import sys
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import anyio
import pytest

from discreet.a2a.types import new_id
from discreet.client import Peer
from discreet.daemon.settings.table import OPTIONS
from discreet.testing import spawned
from support.pages import Page
from support.programs import environment

DOCUMENT = Page("docs/operate.md")
PAGE, rows = DOCUMENT.text, DOCUMENT.rows

AGENT = """
from discreet.agents import Agent

class Works:
    async def execute(self, context, events):
        await events.artifact(context.text)
        await events.complete()

    async def cancel(self, context, events): ...

agent = Agent(Works(), name="Works", description="Says it again.")
"""


def test_every_event_that_asks_for_something_is_explained() -> None:
    explained = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", Page("docs/logging.md").text))
    named = {event for row in rows("What the log tells, and what to do") for event in re.findall(r"`([^`]+)`", row[0])}
    assert named and named <= explained


def test_the_limits_are_those_of_the_settings() -> None:
    defaults = {option.flag: option.default for option in OPTIONS}
    shown = {row[2].strip("`"): row[1] for row in rows("Sizes and limits") if row[2]}
    units = {"MiB": 1024 * 1024}
    for flag, text in shown.items():
        number, _, unit = text.replace(",", "").partition(" ")
        assert float(number) * units.get(unit, 1) == defaults[flag], flag
    assert len(shown) == 6


@pytest.fixture
def commands() -> list[str]:
    """The ways to make a backup, as the page has them."""
    (block,) = re.findall(r"^```sh\n(umask 077\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (shorter,) = re.findall(r"`(sqlite3 tasks\.db .*?)`", PAGE)
    return [block.replace("python3", sys.executable), f"umask 077\n{shorter}"]


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell")
@pytest.mark.parametrize("number", [0, 1], ids=["python", "sqlite3"])
async def test_a_backup_while_a_daemon_works_holds_all_that_was_acknowledged(
    tmp_path: Path, commands: list[str], number: int
) -> None:
    if number == 1 and not shutil.which("sqlite3"):
        pytest.skip("sqlite3 is not installed")
    (tmp_path / "app.py").write_text(AGENT)
    acknowledged: list[str] = []

    async def send(peer: Peer) -> None:
        text = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": "again"}]}
        acknowledged.append((await peer.call("SendMessage", {"message": text}))["task"]["id"])

    async def go_on(peer: Peer) -> None:
        while True:
            await send(peer)

    async with opened("tasks.db", tmp_path) as peer:
        for _ in range(20):
            await send(peer)
        before = [*acknowledged]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go_on, peer)
            await anyio.run_process(commands[number], cwd=tmp_path)
            tasks.cancel_scope.cancel()
    assert (tmp_path / "backup.db").stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(tmp_path / "backup.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    async with opened("backup.db", tmp_path) as peer:
        tasks_kept = [await peer.call("GetTask", {"id": task_id}) for task_id in before]
    assert {task["status"]["state"] for task in tasks_kept} == {"TASK_STATE_COMPLETED"}
    assert {task["artifacts"][0]["parts"][0]["text"] for task in tasks_kept} == {"again"}


def opened(store: str, folder: Path) -> AbstractAsyncContextManager[Peer]:
    return spawned("./app.py:agent", "--store", f"sqlite:{store}", cwd=folder, env=environment())
