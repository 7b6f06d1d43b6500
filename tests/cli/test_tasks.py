"""`discreet tasks`: what operators see of a store, and what they change. What daemons do then: tests/agents/cluster/test_operating.py."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.a2a.types import (
    Artifact,
    ArtifactChanged,
    ExecutionBegun,
    Message,
    MessageAdded,
    Part,
    Role,
    StatusChanged,
    Step,
    StepStored,
    Task,
    TaskState,
    TaskStatus,
    new_id,
    now,
)
from discreet.agents.stores.interface import QUEUED, TaskChange
from discreet.agents.stores.sqlite.store import SqliteStore
from support.in_process import in_process
from support.programs import DISCREET, environment
from support.sqlite_files import opened
from support.task_changes import a_task, at, change_to, commit_all, status_changed, to_create
from support.waits import DEADLINE_SECONDS

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
FAILED, WORKING, ASKING = TaskState.FAILED, TaskState.WORKING, TaskState.INPUT_REQUIRED


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def stored(folder: Path, *changes: TaskChange) -> None:
    async def store_them() -> None:
        async with opened(SqliteStore(str(folder / "tasks.db"))) as store:
            for start in range(0, len(changes), 500):
                await commit_all(store, *changes[start : start + 500])

    anyio.run(store_them)


def tasks(folder: Path, *words: str) -> Any:
    return in_process("tasks", *words, "--store", "sqlite:tasks.db", folder=folder)


def rows(folder: Path, *words: str) -> list[dict[str, Any]]:  # Any: JSON
    done = tasks(folder, "list", "--json", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def ids(folder: Path, *words: str) -> list[str]:
    return [row["id"] for row in rows(folder, *words)]


def running(operation: str, task_id: str) -> Task:
    message = Message("m", Role.USER, (Part(data={"skill": operation, "input": {"token": TOKEN}}),), "c", task_id)
    return Task(task_id, "c", TaskStatus(WORKING, timestamp=now()), history=(message,))


def spoken(task_id: str = "talk") -> Sequence[TaskChange]:
    """A task with two turns, the second of which was resumed and failed."""
    said = Message("ask", Role.AGENT, (Part(text=f"With {TOKEN}? " + "x" * 200),), "context", task_id)
    answer = Message("yes", Role.USER, (Part(text="yes"),), "context", task_id)
    events = (
        ExecutionBegun(0),
        StatusChanged(TaskStatus(ASKING, said, at(1))),
        status_changed(WORKING, 1),
        MessageAdded(answer),
        ExecutionBegun(2),
        status_changed(WORKING, 2),
        ArtifactChanged(Artifact("a", (Part(text="crumbs"), Part(raw=b"123")), name="loaf")),
        ExecutionBegun(2),
        status_changed(FAILED, 3),
    )
    return [to_create(a_task(task_id), *events)]


def test_tasks_are_listed_without_their_content_and_filters_choose_among_them(folder: Path) -> None:
    stored(
        folder,
        to_create(a_task("old", FAILED), scope="ada"),
        to_create(running("shop/add", "runs"), scope="operation=ada", owner=QUEUED),
        to_create(a_task("own", ASKING), scope=""),
    )
    assert rows(folder)[1] == {
        "id": "runs",
        "context": "c",
        "state": "working",
        "since": rows(folder)[1]["since"],
        "caller": "operation=ada",
        "owner": "queue",
        "operation": "shop/add",
    }
    assert ids(folder) == ["own", "runs", "old"]
    assert ids(folder, "--state", "failed") == ["old"]
    assert ids(folder, "--caller", "ada") == ["old"]
    assert ids(folder, "--caller", "") == ["own"]
    assert ids(folder, "--operation", "shop/add") == ["runs"]
    assert ids(folder, "--newer", "1h") == ["runs"]
    assert ids(folder, "--older", "1h") == ["own", "old"]
    assert ids(folder, "--limit", "2") == ["own", "runs"]
    text = tasks(folder, "list").stdout
    assert text.splitlines()[0].split() == ["ID", "STATE", "SINCE", "OWNER", "CALLER", "OPERATION"]
    assert text.splitlines()[1].split() == ["own", "input-required", at(0), "-", "-", "-"]
    assert TOKEN not in text


def test_a_long_list_is_read_by_pages_and_begins_at_once(folder: Path) -> None:
    names = [f"t{number:04}" for number in range(1201)]
    stored(folder, *(to_create(a_task(name), scope=f"caller {int(name[1:]) % 3}") for name in names))
    assert ids(folder) == names[::-1]
    assert ids(folder, "--caller", "caller 1") == names[1::3][::-1]
    command = [*DISCREET, "tasks", "list", "--store", "sqlite:tasks.db"]
    with subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = [process.stdout.readline() for _ in range(2)]
        process.stdout.close()  # as `head`: what is not read is not waited for
        assert process.wait(DEADLINE_SECONDS) == 1
    assert first[1].startswith(b"t1200 ")


def test_a_task_is_shown_as_a_timeline_and_its_texts_are_cut_and_scrubbed_unless_asked(folder: Path) -> None:
    stored(folder, *spoken())
    shown = json.loads(tasks(folder, "show", "talk", "--json").stdout)
    assert (shown["log"], shown["missing"], shown["task"]["state"]) == ("task=talk", 0, "failed")
    assert [(each["number"], each["time"], each["what"], each["who"]) for each in shown["events"]] == [
        (1, at(0), "created", "user"),
        (2, "", "begun", ""),
        (3, at(1), "input-required", "agent"),
        (4, at(1), "working", ""),
        (5, "", "message", "user"),
        (6, "", "begun", ""),
        (7, at(2), "working", ""),
        (8, "", "artifact", "agent"),
        (9, "", "resumed", ""),
        (10, at(3), "failed", ""),
    ]
    assert shown["events"][7]["text"] == "loaf: crumbs <3 bytes>"
    text = tasks(folder, "show", "talk").stdout
    assert "log lines  task=talk\n" in text
    assert TOKEN not in text and "x" * 200 not in text
    raw = tasks(folder, "show", "talk", "--raw").stdout
    assert TOKEN in raw and "x" * 200 in raw


def test_the_first_event_has_its_time_while_nothing_else_has_happened(folder: Path) -> None:
    stored(folder, to_create(a_task("new", minute=7)))
    assert json.loads(tasks(folder, "show", "new", "--json").stdout)["events"][0]["time"] == at(7)


def test_a_step_is_an_event_by_its_name_without_its_result(folder: Path) -> None:
    steps = (
        StepStored(Step("weigh", b'"secret"')),
        StepStored(Step("pay", None, 2, 1e9)),
        StepStored(Step("dry", due=1e9 + 0.5)),
    )
    stored(folder, to_create(a_task("t"), *steps, ExecutionBegun(0)))
    shown = json.loads(tasks(folder, "show", "t", "--raw", "--json").stdout)["events"]
    assert [(each["what"], each["text"]) for each in shown[1:]] == [
        ("step", "weigh"),
        ("step", "pay: 2 failed, again until 2001-09-09T01:46:40.000Z"),
        ("step", "dry until 2001-09-09T01:46:40.500Z"),
        ("resumed", ""),  # it had stored steps
    ]


def test_events_that_the_log_has_no_more_are_counted(folder: Path) -> None:
    task = Task("long", "context", TaskStatus(WORKING, timestamp=at(1)))
    many, some = ([StatusChanged(TaskStatus(WORKING, timestamp=at(1)))] * count for count in (1500, 100))
    stored(folder, to_create(a_task("long")))
    for change in (
        change_to(task, 1, many),
        change_to(task, 1501, snapshot=True),
        change_to(task, 1501, some),
        change_to(task, 1601, snapshot=True),
    ):
        stored(folder, change)
    shown = json.loads(tasks(folder, "show", "long", "--json").stdout)
    numbers = [each["number"] for each in shown["events"]]
    assert numbers == [*range(numbers[0], 1602)]
    assert shown["missing"] == numbers[0] - 2 > 500  # this snapshot has no message, so the first is not known
    assert f"({shown['missing']} events are no longer in the log)" in tasks(folder, "show", "long").stdout


def test_tasks_are_exported_with_their_events_as_json_lines(folder: Path) -> None:
    stored(folder, *spoken(), to_create(a_task("other"), scope="ada"))
    lines = [json.loads(line) for line in tasks(folder, "export").stdout.splitlines()]
    assert [(line["type"], line["task"] if line["type"] == "event" else line["task"]["id"]) for line in lines] == [
        ("task", "other"),
        ("task", "talk"),
        *[("event", "talk")] * 9,
    ]
    assert (lines[0]["caller"], lines[0]["generation"], lines[1]["generation"]) == ("ada", 1, 10)
    assert [line["number"] for line in lines[2:]] == [*range(2, 11)]
    assert TOKEN not in json.dumps(lines)
    raw = tasks(folder, "export", "talk", "--raw").stdout
    assert TOKEN in raw and len(raw.splitlines()) == 10


def test_the_tail_of_a_task_that_has_ended_ends(folder: Path) -> None:
    stored(folder, *spoken())
    done = tasks(folder, "tail", "talk", "--limit", "2", "--json")
    assert [json.loads(line)["what"] for line in done.stdout.splitlines()] == ["resumed", "failed"]


def test_the_tail_of_all_tasks_shows_what_happens_until_it_is_interrupted(folder: Path) -> None:
    old = a_task("old")
    stored(folder, to_create(old), *spoken())
    command = [*DISCREET, "tasks", "tail", "--store", "sqlite:tasks.db", "--json"]
    with subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None

        def seen(count: int) -> list[tuple[str, str]]:
            assert process.stdout is not None
            lines = [json.loads(process.stdout.readline()) for _ in range(count)]
            return [(line["task"], line["what"]) for line in lines]

        assert seen(2) == [("old", "created"), ("talk", "failed")]
        new = a_task(new_id())
        fresh = Task(new.id, "context", TaskStatus(TaskState.SUBMITTED, timestamp=now()), history=new.history)
        stored(folder, to_create(fresh, StatusChanged(TaskStatus(WORKING, timestamp=now()))))
        assert seen(2) == [(new.id, "created"), (new.id, "working")]
        stored(folder, change_to(old, 1, [status_changed(WORKING, 1)]))
        assert seen(1) == [("old", "working")]
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == 130


def test_a_retry_and_a_fork_wait_in_the_queue_and_a_task_without_an_owner_is_cancelled(folder: Path) -> None:
    stored(folder, *spoken(), to_create(a_task("done", TaskState.COMPLETED)))
    done = tasks(folder, "retry", "talk")
    assert "talk has 2 messages of its caller, and the last one is tried again" in done.stderr
    assert "discreet tasks fork talk --message m1" in done.stderr
    (again,) = done.stdout.split()
    (row,) = rows(folder, "--state", "submitted")
    assert (row["id"], row["owner"], row["caller"]) == (again, "queue", "me")
    forked = json.loads(tasks(folder, "fork", "talk", "--message", "ask", "--text", "no", "--json").stdout)
    assert (forked["state"], forked["caller"]) == ("submitted", "me")
    shown = json.loads(tasks(folder, "export", forked["id"]).stdout.splitlines()[0])
    assert [message["messageId"] for message in shown["task"]["history"]][:2] == ["m1", "ask"]
    said = [("user", "created"), ("agent", "message"), ("user", "message")]
    events = json.loads(tasks(folder, "show", forked["id"], "--json").stdout)["events"]
    assert [(each["who"], each["what"]) for each in events] == said
    assert [each["message"] for each in events][:2] == ["m1", "ask"] and events[-1]["text"] == "no"
    assert tasks(folder, "cancel", again).stdout == f"{again} canceled\n"
    assert rows(folder, "--state", "canceled")[0]["id"] == again
    events = json.loads(tasks(folder, "show", again, "--json").stdout)["events"]
    assert [each["what"] for each in events] == ["created", "message", "message", "canceled"]


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["show", "nothing"], 4, "nothing: the store has no such task"),
        (["tail", "nothing"], 4, "nothing: the store has no such task"),
        (["export", "nothing"], 4, "nothing: the store has no such task"),
        (["cancel", "nothing"], 4, "nothing: the store has no such task"),
        (["retry", "nothing"], 4, "nothing: the store has no such task"),
        (["cancel", "done"], 6, "done has ended: it is completed"),
        (["retry", "done"], 6, "done is completed"),
        (["fork", "done", "--message", "x"], 6, "done has no message x"),
        (["show", "done", "--message", "x"], 2, "--message and --text are for fork, not for show"),
        (["show"], 2, "show: which task?"),
        (["show", "a\udcff"], 2, "the arguments must be UTF-8"),
        (["list", "--caller", "a\udcff"], 2, "the arguments must be UTF-8"),
        (["fork", "done", "--text", ""], 2, "--text: what shall the message say? It is empty"),
        (["list", "done"], 2, "done: list takes no task"),
        (["list", "--state", "sleeping"], 2, "--state"),
        (["list", "--newer", "1w"], 2, "1w: must be a number above 0"),
        (["list", "--limit", "-1"], 2, "--limit"),
        (["drop"], 2, "drop"),
    ],
)
def test_what_can_not_be_done_is_one_line_and_a_status(folder: Path, words: list[str], status: int, says: str) -> None:
    stored(folder, to_create(a_task("done", TaskState.COMPLETED)))
    done = tasks(folder, *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1)
    assert says in done.stderr


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ("memory", "--store: tasks in memory are those of one daemon"),
        ("sqlite:nowhere.db", "does not exist"),
        ("nosuch:x", "nosuch"),
        ("postgresql://u:secret-word-1@127.0.0.1:1/t", "can't be reached"),
        ("redis://:secret-word-1@127.0.0.1:1/0", "can't be reached"),
    ],
)
@pytest.mark.parametrize("action", [["list"], ["cancel", "t"]])
def test_a_store_that_can_not_be_opened_is_one_line_without_its_password(
    folder: Path, store: str, says: str, action: list[str]
) -> None:
    done = in_process("tasks", *action, "--store", store, folder=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert says in done.stderr
    assert "secret-word-1" not in done.stderr
    assert [*folder.iterdir()] == []


def test_the_store_may_be_named_by_the_variable_of_the_daemon(folder: Path) -> None:
    stored(folder, to_create(a_task("t")))
    done = in_process("tasks", "list", "--json", folder=folder, DISCREET_STORE="sqlite:tasks.db")
    assert json.loads(done.stdout)["id"] == "t"
    assert in_process("tasks", "list", folder=folder).returncode == 2
