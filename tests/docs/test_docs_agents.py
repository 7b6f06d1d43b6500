"""The page on agents, done: its programs are written and its commands run, in order, and print what is shown."""

from __future__ import annotations

import inspect
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from discreet.a2a.task import MAX_JSON_DEPTH
from discreet.a2a.types import TaskQuery
from discreet.agents import event_buffer, executor, live_task, methods, notifier, push_configs, runner, steps
from discreet.agents.executor import (
    AgentExecutor,
    RequestContext,
    SupportsCancel,
    SupportsCheck,
    SupportsResume,
)
from discreet.agents.stores import checks
from discreet.agents.stores.memory import StoreLimits
from discreet.client import ConnectionFailed, UnsupportedOperation, connect
from discreet.daemon.connection.writer import MAX_UNDELIVERED
from discreet.daemon.dispatch.scheduler import STARVED_SECONDS
from discreet.daemon.settings import Settings
from support.pages import Page, run, variables
from support.programs import environment

DOCUMENT = Page("docs/agents.md")
PAGE = DOCUMENT.text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return DOCUMENT.install(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
def test_whoever_follows_the_page_sees_what_it_shows(folder: Path) -> None:
    for command, shown in DOCUMENT.sessions:
        assert run(command, folder) == shown, command


def test_the_page_has_what_it_promises() -> None:
    assert list(DOCUMENT.programs) == [
        "greeter.py",
        "ask.py",
        "baker.py",
        "orders.py",
        "deliver.py",
        "test_baker.py",
        "door.py",
        "again.py",
        "sums.py",
    ]
    assert len(DOCUMENT.sessions) == 11
    assert len([line for line in DOCUMENT.programs["greeter.py"].splitlines() if line.strip()]) <= 15


KILLER = """\
import os
import signal

from discreet import Service

killer = Service("killer")


@killer.mutation()
def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
async def test_the_baker_goes_on_where_a_killed_daemon_stopped(folder: Path) -> None:
    (folder / "killer.py").write_text(KILLER, encoding="utf-8")
    command = [sys.executable, "-P", "-m", "discreet", "serve", "./baker.py:agent", "--store", "sqlite:tasks.db"]
    message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "12"}]}
    seen: list[Any] = []
    async with (
        connect([*command, "./killer.py:killer"], cwd=folder, env=environment(**variables(folder))) as peer,
        peer.subscribe("SendStreamingMessage", {"message": message}) as stream,
    ):
        while len(seen) < 5:
            seen.append(await anext(stream))
        await peer.notify("killer/kill")
        with pytest.raises(ConnectionFailed):
            while True:
                seen.append(await anext(stream))
    assert len(seen) < 15
    task_id = seen[0]["task"]["id"]
    async with connect(command, cwd=folder, env=environment(**variables(folder))) as peer:
        with suppress(UnsupportedOperation):  # it may have ended by now
            async for _ in peer.subscribe("SubscribeToTask", {"id": task_id}):
                pass
        task = await peer.call("GetTask", {"id": task_id})
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [part["text"] for part in task["artifacts"][0]["parts"]] == [f"Roll {number}" for number in range(1, 13)]


# -- tables --------------------------------------------------------------------------------------------------------


def cells(head: str) -> list[tuple[str, str]]:
    """The first two columns of the table whose first row begins so."""
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    return re.findall(r"^\| (.+?) \| (.+?) \|", table, re.MULTILINE)[1:]


def public(cls: type) -> set[str]:
    return {name for name, it in vars(cls).items() if not name.startswith("_") and callable(it)}


def test_the_executors_methods_are_those_of_its_protocols() -> None:
    shown = {re.sub(r"`(?:async )?(\w+)\(.*", r"\1", name): name for name, _ in cells("method")}
    declared = {
        name: it
        for cls in (AgentExecutor, SupportsCancel, SupportsCheck, SupportsResume)
        for name, it in vars(cls).items()
        if name in public(cls)
    }
    assert shown.keys() == declared.keys()
    for name, it in declared.items():
        assert ("async" in shown[name]) == inspect.iscoroutinefunction(it)


def test_all_that_a_context_holds_is_there() -> None:
    shown = {name for cell, _ in cells("`context`") for name in re.findall(r"`(\w+)`", cell)}
    assert shown == {*RequestContext.__struct_fields__, "text"}


def test_all_that_an_agent_can_say_is_there() -> None:
    shown = {name for cell, _ in cells("`await events.…`") for name in re.findall(r"`(\w+)\(", cell)}
    assert shown == public(executor.TaskEvents)
    properties = {name for name, it in vars(executor.TaskEvents).items() if isinstance(it, property)}
    assert {name for name in properties if f"`events.{name}`" in PAGE} == properties


def test_the_limits_are_those_of_the_code() -> None:
    shown = dict(cells("what"))
    assert shown == {
        "executions that run or wait": f"{runner.MAX_EXECUTIONS:,}; then OVERLOADED",
        "messages whose senders wait for their tasks at the same time": f"{methods.MAX_WAITING:,}; more wait while others end, "
        f"and are OVERLOADED when none does for a {'second' if STARVED_SECONDS == 1 else STARVED_SECONDS}",
        "executions under way with which a daemon takes more tasks from the queue of its store, or to resume them": "fewer than "
        f"`--max-runs`, {Settings().max_runs}",
        "events that an executor may be ahead of the store": f"{executor.MAX_UNCOMMITTED}",
        "events of a stream that wait for its reader in the pipe's queue": f"{MAX_UNDELIVERED}",
        "events of one task kept in memory for slow watchers": f"{event_buffer.MAX_EVENTS:,}, or {event_buffer.MAX_BYTES // 1024**2} MiB; "
        f"{live_task.MAX_TOTAL_BYTES // 1024**2} MiB of all tasks",
        "tasks in memory: those in use, with what their watchers have not read, and those of the store `memory`": (
            f"{'three quarters' if live_task.TASKS_SHARE == 0.75 else live_task.TASKS_SHARE} of `--max-memory`; then messages are OVERLOADED, "
            "and what the executor publishes raises `FailureError(Overloaded)`"
        ),
        "calls of one client that read tasks at the same time (`GetTask`, `ListTasks`, `tasks/get`)": (
            f"{methods.MAX_READING}; more wait for their turn, and while the client has not taken the replies"
        ),
        "a reply that holds a task": "as large as the task; one that does not fit into what is left of `--max-memory` is OVERLOADED, "
        "that of a message or of `CancelTask` never",
        "tasks on a page": f"1 to {checks.MAX_PAGE_SIZE}, {TaskQuery(scope='').page_size} by default; "
        f"fewer where they take more than {checks.MAX_PAGE_BYTES // 1024**2} MiB",
        "seconds for an executor's `cancel`, and for another daemon to cancel a task of its own": f"{runner.CANCEL_SECONDS:.0f}",
        "seconds for interceptors": "`--request-timeout` before the call, and again after it; "
        f"{methods.AFTER_CANCEL_SECONDS:.0f} after a call that was cancelled",
        "the name of a step; its result; all steps of an execution; plain functions that run as steps of one daemon": (
            f"{steps.MAX_NAME_CHARS} characters; {steps.MAX_STEP_BYTES // 1024**2} MiB; {steps.MAX_STEPS_BYTES // 1024**2} MiB; "
            f"then `StepError`. {steps.MAX_THREADS} threads; more wait"
        ),
        "push configs of one task": f"{push_configs.MAX_CONFIGS}; then −32004",
        "levels of objects and arrays in one JSON value, from callers and from agents": f"{MAX_JSON_DEPTH}; then −32602, and a "
        "`TypeError` in the executor",
        "a message": f"{Settings().max_message_bytes // 1024**2} MiB, `--max-message-bytes`",
    }


def test_what_is_said_of_stores_and_queues_is_what_they_do() -> None:
    text = " ".join(PAGE.split())
    assert f"{StoreLimits().active_tasks:,} tasks that have not ended" in text
    kept, size = Settings().max_ended_tasks, StoreLimits().ended_bytes // 1024**2
    hours = (Settings().ended_task_seconds or 0) / 3600
    assert (kept, hours * 3600) == (checks.Retention().max_tasks, checks.Retention().max_seconds)
    assert f"stay for {hours:.0f} hours, and the last {kept:,} of them; in memory {size} MiB or a quarter" in text
    assert f"At most {notifier.MAX_NOTIFICATIONS:,} notifications or {notifier.MAX_BYTES // 1024**2} MiB wait" in text
    assert f"{executor.MAX_UNCOMMITTED} events ahead of the store" in text
    limit, limits = event_buffer.BACKPRESSURE_BYTES, []
    while limit < event_buffer.MAX_BYTES:
        limits.append(limit // 1024**2)
        limit *= 2
    *most, last = limits
    waits = f"{', '.join(map(str, most))} and {last} MiB of events are waiting"
    assert f"at most {executor.WATCHER_WAIT_SECONDS} s each time that {waits}" in text
