"""How results, events and notifications are written where the two versions differ."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from discreet.a2a.types import (
    Artifact,
    ArtifactChanged,
    Message,
    MessageAdded,
    Part,
    PushConfig,
    Role,
    StatusChanged,
    Task,
    TaskCreated,
    TaskEvent,
    TaskPage,
    TaskQuery,
    TaskState,
    TaskStatus,
    TaskUpdate,
    UnreadableTask,
)
from discreet.a2a.v03 import V03
from discreet.a2a.v10 import V10, encode_task_page
from discreet.a2a.version import ListRequest, ProtocolVersion

BOTH = pytest.mark.parametrize("version", [V10, V03], ids=["1.0", "0.3"])


def said(number: int) -> Message:
    return Message(f"m-{number}", Role.USER, (Part(text=str(number)),), task_id="t-1")


TASK = Task("t-1", "c-1", TaskStatus(TaskState.WORKING), (Artifact("a-1", ()),), tuple(said(n) for n in range(3)))


def loaded(text: Raw | None) -> Any:
    assert text is not None
    return json.loads(bytes(text))


def happened(event: TaskEvent) -> TaskUpdate:
    return TaskUpdate("t-1", "c-1", event)


def not_asked() -> Task:
    raise AssertionError("nobody needs the task for this")


@BOTH
@pytest.mark.parametrize(
    ("history", "left"),
    [(None, ["m-0", "m-1", "m-2"]), (0, []), (1, ["m-2"]), (3, ["m-0", "m-1", "m-2"]), (9, ["m-0", "m-1", "m-2"])],
)
def test_a_history_is_cut_to_its_last_messages(version: ProtocolVersion, history: int | None, left: list[str]) -> None:
    tasks = [
        loaded(version.encode_task(TASK, history_length=history)),
        loaded(version.encode_send_result(TASK, history_length=history)),
        loaded(version.encode_stream_item(TASK, history_length=history)),
    ]
    for task in (each.get("task", each) for each in tasks):
        assert [message["messageId"] for message in task.get("history", [])] == left
        assert ("history" in task) is bool(left)


def test_a_result_is_told_by_its_member_in_1_0_and_by_its_kind_in_0_3() -> None:
    assert loaded(V10.encode_send_result(TASK)) == {"task": loaded(V10.encode_task(TASK))}
    assert list(loaded(V10.encode_send_result(said(1)))) == ["message"]
    assert loaded(V03.encode_send_result(TASK))["kind"] == "task"
    assert loaded(V03.encode_send_result(said(1)))["kind"] == "message"


@BOTH
def test_a_stream_begins_with_what_was_sent(version: ProtocolVersion) -> None:
    assert (
        version.encode_stream_item(TASK)
        == version.encode_send_result(TASK)
        == version.encode_stream_item(happened(TaskCreated(TASK)))
    )
    assert version.encode_stream_item(said(1)) == version.encode_send_result(said(1))


@BOTH
def test_client_messages_are_not_sent_to_subscribers(version: ProtocolVersion) -> None:
    assert version.encode_stream_item(happened(MessageAdded(said(1)))) is None
    assert version.encode_notification(happened(MessageAdded(said(1))), not_asked) is None


def test_a_notification_of_1_0_is_the_event_of_a_stream() -> None:
    for event in (TaskCreated(TASK), StatusChanged(TaskStatus(TaskState.FAILED)), ArtifactChanged(Artifact("a-1", ()))):
        assert V10.encode_notification(happened(event), not_asked) == V10.encode_stream_item(happened(event))


def test_a_notification_of_0_3_is_the_whole_task_at_each_new_status() -> None:
    whole = V03.encode_task(TASK)
    assert V03.encode_notification(happened(TaskCreated(TASK)), lambda: TASK) == whole
    assert V03.encode_notification(happened(StatusChanged(TaskStatus(TaskState.FAILED))), lambda: TASK) == whole
    assert V03.encode_notification(happened(ArtifactChanged(Artifact("a-1", ()))), not_asked) is None


@BOTH
def test_required_arrays_are_written_also_when_empty(version: ProtocolVersion) -> None:
    assert loaded(version.encode_task(TASK))["artifacts"] == [{"artifactId": "a-1", "parts": []}]


def test_a_page_always_has_all_members() -> None:
    request = ListRequest(TaskQuery(scope="me", page_size=7))
    empty = {"tasks": [], "nextPageToken": "", "pageSize": 7, "totalSize": 0}
    assert loaded(encode_task_page(TaskPage((), "", 0), request)) == empty
    full = loaded(encode_task_page(TaskPage((TASK, TASK), "next", 9), ListRequest(TaskQuery(scope="me"), 0)))
    assert (full["nextPageToken"], full["pageSize"], full["totalSize"]) == ("next", 50, 9)
    assert [list(task) for task in full["tasks"]] == [["id", "contextId", "status", "artifacts"]] * 2


def test_push_configs_come_in_an_object_in_1_0_and_bare_in_0_3() -> None:
    config = PushConfig("https://example.com", "p-1", "t-1")
    assert loaded(V10.encode_push_configs([config])) == {"configs": [loaded(V10.encode_push_config(config))]}
    assert loaded(V10.encode_push_configs([])) == {"configs": []}
    assert loaded(V03.encode_push_configs([config])) == [loaded(V03.encode_push_config(config))]
    assert loaded(V03.encode_push_configs([])) == []


def test_an_empty_result_is_an_object_in_1_0_and_null_in_0_3() -> None:
    assert loaded(V10.empty_result) == {}
    assert loaded(V03.empty_result) is None


def test_each_version_has_its_names_of_states() -> None:
    assert [V10.states[state] for state in TaskState] == [state.value for state in TaskState]
    assert [V03.states[state] for state in TaskState] == [
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
    ("version", "asked", "spoken"),
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
def test_a_version_covers_its_patch_releases(version: ProtocolVersion, asked: str, spoken: bool) -> None:
    assert version.covers(asked) is spoken


def test_a_task_that_can_not_be_read_is_listed_without_content_and_its_metadata_say_so() -> None:
    page = TaskPage((TASK,), "", 2, (UnreadableTask("t-2", "c-2", TaskState.COMPLETED),))
    listed = loaded(encode_task_page(page, ListRequest(TaskQuery(scope=""))))
    assert listed.keys() == {"tasks", "nextPageToken", "pageSize", "totalSize"}  # the official clients take no other
    assert listed["tasks"][1] == {
        "id": "t-2",
        "contextId": "c-2",
        "status": {"state": "TASK_STATE_COMPLETED"},
        "metadata": {"urn:discreet:a2a:stdio:1:unreadable": True},
    }
