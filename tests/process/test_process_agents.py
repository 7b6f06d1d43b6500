"""Agents in daemons that are killed, on a store that stays: what was acknowledged is there, and nothing hangs."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from discreet.a2a.types import new_id
from support.waits import DEADLINE_SECONDS, wait_until
from support.wire import request

Spawn = Callable[..., Any]

AGENT = """
import anyio
from discreet.agents import Agent

class Works:
    async def execute(self, context, events):
        for word in context.text.split():
            match word:
                case "work":
                    await events.working()
                case "say":
                    await events.artifact("said", artifact_id="a", append=True)
                case "rest":
                    await anyio.sleep(0)
                case "stay":
                    await anyio.sleep_forever()
                case "ask":
                    await events.require_input("more?")
                case "touch":
                    open("touched", "x").close()
                case "print":
                    print("from the agent")
                case "end":
                    await events.complete()

    async def cancel(self, context, events):
        pass

works = Agent(Works(), name="Works", description="Does as it is told.")
"""
WORKING, PARKED, ENDED = "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"
FAILED, CANCELED = "TASK_STATE_FAILED", "TASK_STATE_CANCELED"


@pytest.fixture
def serve(spawn: Spawn, app_directory: Path) -> Callable[..., Any]:
    """A daemon on the test's file."""
    (app_directory / "agent.py").write_text(AGENT)

    def start(*, module: str = "agent", **options: Any) -> Any:
        return spawn("serve", f"./{module}.py:works", "--store", "sqlite:tasks.db", **options)

    return start


def message(text: str, task_id: str | None = None, *, at_once: bool = False) -> dict[str, Any]:
    said = {
        "messageId": new_id(),
        "role": "ROLE_USER",
        "parts": [{"text": text}],
        **({"taskId": task_id} if task_id else {}),
    }
    return {"message": said, "configuration": {"returnImmediately": at_once}}


def begin(child: Any, text: str) -> str:
    task_id: str = child.call(1, "SendMessage", message(text, at_once=True))["result"]["task"]["id"]
    return task_id


def get(child: Any, task_id: str) -> dict[str, Any]:
    task: dict[str, Any] = child.call(2, "GetTask", {"id": task_id})["result"]
    return task


def passing() -> Callable[[], bool]:
    """True for as long as a test may wait for what must come."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    return lambda: time.monotonic() < deadline


def until(child: Any, task_id: str, state: str) -> dict[str, Any]:
    """Ask until the task has this state; `get` itself takes its time."""
    waits = passing()
    while (task := get(child, task_id))["status"]["state"] != state:
        assert waits() and task["status"]["state"] not in (ENDED, FAILED, CANCELED), task
    return task


def kill(child: Any) -> None:
    child.signal(signal.SIGKILL)
    child.wait()


def rows(path: Path) -> dict[str, int]:
    """What the file says, without any daemon: states by task."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT id, ended_ms IS NOT NULL FROM tasks").fetchall())


def test_without_any_call_the_next_daemon_fails_what_a_killed_one_worked_on(serve: Spawn, app_directory: Path) -> None:
    child = serve()
    ids = [begin(child, "work stay") for _ in range(3)]
    parked = begin(child, "ask")
    until(child, parked, PARKED)
    kill(child)
    child = serve()
    wait_until(lambda: sum(rows(app_directory / "tasks.db").values()) >= 3)
    for task_id in ids:
        task = get(child, task_id)
        assert task["status"]["state"] == FAILED
        assert task["status"]["message"]["parts"] == [{"text": "The process that worked on this task has ended."}]
    assert get(child, parked)["status"]["state"] == PARKED
    assert child.end() == 0


def test_a_parked_task_can_be_subscribed_to_and_answered_after_a_kill(serve: Spawn) -> None:
    child = serve()
    asked = child.call(1, "SendMessage", message("work say ask"))["result"]["task"]
    kill(child)
    child = serve()
    child.write(request("s", "tasks/resubscribe", {"id": asked["id"]}))
    child.write(request("t", "SubscribeToTask", {"id": asked["id"]}))
    first, second = child.read(), child.read()
    assert {first["params"]["id"], second["params"]["id"]} == {"s", "t"}
    child.write(request("u", "SendMessage", message("say end", asked["id"])))
    answers: dict[str, Any] = {}
    seen: dict[str, list[Any]] = {"s": [first], "t": [second]}
    while len(answers) < 3:
        got = child.read()
        if "params" in got:
            seen[got["params"]["id"]].append(got)
        else:
            answers[got["id"]] = got
    assert answers["u"]["result"]["task"]["status"]["state"] == ENDED
    for call_id, events in seen.items():
        assert [event["params"]["seq"] for event in events] == [*range(1, len(events) + 1)]
        assert answers[call_id]["result"] == {"completed": True, "events": len(events)}
    snapshots = [event["params"]["value"] for event in (seen["t"][0], seen["s"][0])]
    assert snapshots[0]["task"] == asked
    assert snapshots[1]["status"]["state"] == "input-required"
    assert child.end() == 0


PROGRAMS = ("work say say end", "work say ask", "work say rest say stay", "end", "ask")


def told(child: Any, answers: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tasks in so many answers; streams say more than their answers do."""
    while answers:
        try:
            got = child.read()
        except EOFError:
            return
        if "result" in got:
            answers -= 1
            if "task" in got["result"]:
                yield got["id"], got["result"]["task"]
        elif "params" in got and "task" in got["params"]["value"]:
            yield got["params"]["id"], got["params"]["value"]["task"]


def test_whatever_was_acknowledged_is_there_after_a_kill_at_any_moment(serve: Spawn) -> None:
    chance = random.Random(20260711)
    known: dict[str, dict[str, Any]] = {}
    for turn in range(6):
        child = serve()
        for number in range(60):
            method = chance.choice(["SendMessage", "SendStreamingMessage"])
            text = chance.choice(PROGRAMS)
            at_once = text.endswith("stay") or chance.random() < 0.3
            child.write(request(f"{turn}-{number}", method, message(text, at_once=at_once)))
        for _, task in told(child, chance.randrange(1, 40)):
            known[task["id"]] = task
        child.signal(signal.SIGKILL)
        for _, task in told(child, 100):  # what was on its way to the client counts, too
            known[task["id"]] = task
        child.wait()
    assert len(known) > 50
    child = serve()
    for task_id, before in known.items():
        waits = passing()
        while (task := get(child, task_id))["status"]["state"] in (WORKING, "TASK_STATE_SUBMITTED"):
            assert waits()
        assert task["contextId"] == before["contextId"]
        first = task["history"][0]
        assert first | {"metadata": None} == before["history"][0] | {
            "metadata": None
        }  # where it was cut off, it says so now
        if before["status"]["state"] in (ENDED, PARKED):
            assert task == before
    assert child.end() == 0


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_a_side_effect_of_a_silent_executor_is_not_without_its_task_after_a_kill(
    serve: Spawn, app_directory: Path, method: str
) -> None:
    child = serve()
    child.write(request(1, method, message("touch stay")))
    waits = passing()
    while not (app_directory / "touched").exists():
        assert waits()
    kill(child)
    child = serve()
    (task,) = child.call(2, "ListTasks", {})["result"]["tasks"]
    assert task["history"][0]["parts"] == [{"text": "touch stay"}]
    until(child, task["id"], FAILED)
    assert child.end() == 0


def test_what_an_agent_prints_is_no_part_of_the_stream(serve: Spawn) -> None:
    child = serve()
    assert child.call(1, "SendMessage", message("print end"))["result"]["task"]["status"]["state"] == ENDED
    assert "event=stdout.stray" in child.stderr_until("from the agent")
    assert child.end() == 0


# -- stores that can't be used -------------------------------------------------------------------------------------


BROKEN = {
    "no database": lambda path: path.write_bytes(b"this is no database, and long enough to be seen as none" * 100),
    "a directory": lambda path: path.mkdir(),
    "a link to nowhere": lambda path: path.symlink_to("no/such/directory/tasks.db"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_store_that_cannot_be_used_is_told_in_one_line_at_the_start(
    serve: Spawn, app_directory: Path, broken: str
) -> None:
    BROKEN[broken](app_directory / "tasks.db")
    child = serve()
    assert child.wait() == 2
    (line,) = child.stderr().splitlines()
    assert "tasks.db" in line


def test_a_start_without_the_threads_of_the_store_ends_in_one_line(serve: Spawn, app_directory: Path) -> None:
    few = """
import threading

start, started = threading.Thread.start, []

def start_some(thread):
    if len(started) == 1:
        raise RuntimeError("can't start new thread")
    started.append(thread)
    start(thread)

threading.Thread.start = start_some
"""
    (app_directory / "few.py").write_text(AGENT + few)
    child = serve(module="few")
    assert child.wait() == 2
    (line,) = child.stderr().splitlines()
    assert "tasks.db" in line and "thread" in line
    assert [entry.name for entry in app_directory.glob("tasks.db*")] == ["tasks.db"]


# -- stores that break under a daemon ------------------------------------------------------------------------------


def code_of(child: Any, method: str, params: Any) -> int | None:
    code: int | None = child.call(9, method, params).get("error", {}).get("code")
    return code


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "ended"])
def test_a_daemon_whose_store_lost_its_log_acknowledges_nothing_more_and_says_so_once(
    serve: Spawn, app_directory: Path, killed: bool
) -> None:
    child = serve()
    kept = begin(child, "ask")
    until(child, kept, PARKED)
    (app_directory / "tasks.db-wal").unlink()
    (app_directory / "tasks.db-shm").unlink()
    assert [code_of(child, "SendMessage", message("end")) for _ in range(3)] == [-32603] * 3
    assert child.call(10, "version")["result"]
    if killed:
        kill(child)
    else:
        log = child.stderr_until("store.failed")
        assert child.end() == 0
        assert (log + child.stderr()).count("store.failed") == 1
    child = serve()
    assert get(child, kept)["status"]["state"] == PARKED
    assert child.call(3, "ListTasks", {})["result"]["totalSize"] == 1


def test_a_task_that_was_changed_in_the_file_is_an_internal_error_and_logged(serve: Spawn, app_directory: Path) -> None:
    child = serve()
    task_id = begin(child, "ask")
    until(child, task_id, PARKED)
    with closing(sqlite3.connect(app_directory / "tasks.db")) as connection, connection:
        connection.execute("UPDATE snapshots SET body = x'00'")
    for method, params in (
        ("GetTask", {"id": task_id}),
        ("SubscribeToTask", {"id": task_id}),
        ("SendMessage", message("end", task_id)),
    ):
        assert code_of(child, method, params) == -32603, method
    (listed,) = child.call("list", "ListTasks", {})["result"]["tasks"]
    assert listed["id"] == task_id and "artifacts" not in listed
    log = child.stderr_until("store.failed")
    assert child.end() == 0
    log += child.stderr()
    assert task_id in log and "tasks.db" in log
