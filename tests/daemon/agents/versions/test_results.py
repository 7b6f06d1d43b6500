"""How results, events and notifications are written, where the two dialects go different ways."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from discreet.daemon.agents.model.types import (
    Artifact,
    ArtifactChanged,
    Created,
    Event,
    Message,
    MessageAdded,
    Part,
    PushConfig,
    Role,
    StatusChanged,
    Task,
    TaskState,
    TaskStatus,
)
from discreet.daemon.agents.requests import TaskUpdate
from discreet.daemon.agents.stores.interface import Listed, Query
from discreet.daemon.agents.versions.v03 import V03
from discreet.daemon.agents.versions.v10 import V10, page
from discreet.daemon.agents.versions.version import Dialect, ListRequest

BOTH = pytest.mark.parametrize("dialect", [V10, V03], ids=["1.0", "0.3"])


def said(number: int) -> Message:
    return Message(f"m-{number}", Role.USER, (Part(text=str(number)),), task_id="t-1")


TASK = Task("t-1", "c-1", TaskStatus(TaskState.WORKING), (Artifact("a-1", ()),), tuple(said(n) for n in range(3)))


def loaded(text: Raw | None) -> Any:
    assert text is not None
    return json.loads(bytes(text))


def happened(event: Event) -> TaskUpdate:
    return TaskUpdate("t-1", "c-1", event)


def not_asked() -> Task:
    raise AssertionError("nobody needs the task for this")


@BOTH
@pytest.mark.parametrize(
    ("history", "left"),
    [(None, ["m-0", "m-1", "m-2"]), (0, []), (1, ["m-2"]), (3, ["m-0", "m-1", "m-2"]), (9, ["m-0", "m-1", "m-2"])],
)
def test_a_history_is_cut_to_its_last_messages(dialect: Dialect, history: int | None, left: list[str]) -> None:
    tasks = [
        loaded(dialect.task(TASK, history=history)),
        loaded(dialect.sent(TASK, history=history)),
        loaded(dialect.streamed(TASK, history=history)),
    ]
    for task in (each.get("task", each) for each in tasks):
        assert [message["messageId"] for message in task.get("history", [])] == left
        assert ("history" in task) is bool(left)


def test_a_result_says_in_1_0_what_it_is_by_its_member_and_in_0_3_by_its_kind() -> None:
    assert loaded(V10.sent(TASK)) == {"task": loaded(V10.task(TASK))}
    assert list(loaded(V10.sent(said(1)))) == ["message"]
    assert loaded(V03.sent(TASK))["kind"] == "task"
    assert loaded(V03.sent(said(1)))["kind"] == "message"


@BOTH
def test_a_stream_begins_with_what_was_sent(dialect: Dialect) -> None:
    assert dialect.streamed(TASK) == dialect.sent(TASK) == dialect.streamed(happened(Created(TASK)))
    assert dialect.streamed(said(1)) == dialect.sent(said(1))


@BOTH
def test_what_the_client_said_is_not_told_to_subscribers(dialect: Dialect) -> None:
    assert dialect.streamed(happened(MessageAdded(said(1)))) is None
    assert dialect.pushed(happened(MessageAdded(said(1))), not_asked) is None


def test_a_notification_of_1_0_is_what_subscribers_are_told() -> None:
    for event in (Created(TASK), StatusChanged(TaskStatus(TaskState.FAILED)), ArtifactChanged(Artifact("a-1", ()))):
        assert V10.pushed(happened(event), not_asked) == V10.streamed(happened(event))


def test_a_notification_of_0_3_is_the_whole_task_whenever_its_status_is_new() -> None:
    whole = V03.task(TASK)
    assert V03.pushed(happened(Created(TASK)), lambda: TASK) == whole
    assert V03.pushed(happened(StatusChanged(TaskStatus(TaskState.FAILED))), lambda: TASK) == whole
    assert V03.pushed(happened(ArtifactChanged(Artifact("a-1", ()))), not_asked) is None


@BOTH
def test_required_arrays_are_there_though_they_are_empty(dialect: Dialect) -> None:
    assert loaded(dialect.task(TASK))["artifacts"] == [{"artifactId": "a-1", "parts": []}]


def test_a_page_has_all_of_its_members_always() -> None:
    request = ListRequest(Query(scope="me", size=7))
    empty = {"tasks": [], "nextPageToken": "", "pageSize": 7, "totalSize": 0}
    assert loaded(page(Listed((), "", 0), request)) == empty
    full = loaded(page(Listed((TASK, TASK), "next", 9), ListRequest(Query(scope="me"), 0)))
    assert (full["nextPageToken"], full["pageSize"], full["totalSize"]) == ("next", 50, 9)
    assert [list(task) for task in full["tasks"]] == [["id", "contextId", "status", "artifacts"]] * 2


def test_push_configs_come_in_an_object_in_1_0_and_bare_in_0_3() -> None:
    config = PushConfig("https://example.com", "p-1", "t-1")
    assert loaded(V10.push_configs([config])) == {"configs": [loaded(V10.push_config(config))]}
    assert loaded(V10.push_configs([])) == {"configs": []}
    assert loaded(V03.push_configs([config])) == [loaded(V03.push_config(config))]
    assert loaded(V03.push_configs([])) == []


def test_no_result_is_an_empty_object_in_1_0_and_null_in_0_3() -> None:
    assert loaded(V10.nothing) == {}
    assert loaded(V03.nothing) is None


def test_states_have_their_names_by_dialect() -> None:
    assert [V10.state_name(state) for state in TaskState] == [state.value for state in TaskState]
    assert [V03.state_name(state) for state in TaskState] == [
        "submitted",
        "working",
        "input-required",
        "auth-required",
        "completed",
        "failed",
        "canceled",
        "rejected",
    ]


@pytest.mark.parametrize(
    ("dialect", "version", "spoken"),
    [
        (V10, "1.0", True),
        (V10, "1.0.7", True),
        (V10, "1.01", False),
        (V10, "1", False),
        (V10, "0.3", False),
        (V10, "", False),
        (V03, "0.3", True),
        (V03, "0.3.0", True),
        (V03, "0.30", False),
        (V03, "1.0", False),
    ],
)
def test_a_version_is_spoken_whatever_its_patch(dialect: Dialect, version: str, spoken: bool) -> None:
    assert dialect.speaks(version) is spoken
