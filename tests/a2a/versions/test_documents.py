"""Whole documents of both versions: each is read into the model, written again, and validated by schemas of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import UNSET, Raw

from discreet.a2a.types import (
    INACTIVE,
    Artifact,
    ArtifactChanged,
    Authentication,
    Message,
    Part,
    PushConfig,
    Role,
    StatusChanged,
    Task,
    TaskState,
    TaskStatus,
    TaskUpdate,
)
from discreet.a2a.v03 import V03
from discreet.a2a.v10 import V10
from discreet.a2a.version import ProtocolVersion

DATA = Path(__file__).parent / "data"
DOCUMENTS: list[dict[str, Any]] = json.loads((DATA / "documents.json").read_text(encoding="utf-8"))
SCHEMAS = {
    version.name: json.loads((DATA / name).read_text(encoding="utf-8"))
    for version, name in ((V10, "a2a_v10.schema.json"), (V03, "a2a_v03.schema.json"))
}
NAMES = {  # of what a document is, in the schema of each version
    "task": ("Task", "Task"),
    "message": ("Message", "Message"),
    "status": ("StreamResponse", "StreamResult"),
    "artifact": ("StreamResponse", "StreamResult"),
    "config": ("TaskPushNotificationConfig", "TaskPushNotificationConfig"),
    "params": ("SendMessageRequest", "MessageSendParams"),
}


def check(version: ProtocolVersion, name: str, document: Any) -> None:
    Draft202012Validator({**SCHEMAS[version.name], "$ref": f"#/$defs/{name}"}).validate(document)


READ_V03 = {"params": "message/send", "config": "tasks/pushNotificationConfig/set"}


def read_v10(what: str, text: bytes) -> Any:
    match what:
        case "task":
            return msgspec.json.decode(text, type=Task)
        case "message":
            return msgspec.json.decode(text, type=Message)
        case "status":
            given = json.loads(text)["statusUpdate"]
            event = StatusChanged(msgspec.convert(given["status"], TaskStatus), given.get("metadata"))
            return TaskUpdate(given["taskId"], given["contextId"], event)
        case "artifact":
            given = json.loads(text)["artifactUpdate"]
            artifact = msgspec.convert(given["artifact"], Artifact)
            more = (given.get("append", False), given.get("lastChunk", False), given.get("metadata"))
            return TaskUpdate(given["taskId"], given["contextId"], ArtifactChanged(artifact, *more))
        case "config":
            return V10.inputs["CreateTaskPushNotificationConfig"].decode(Raw(text))[0]
        case _:
            return V10.inputs["SendMessage"].decode(Raw(text))[0]


def write(version: ProtocolVersion, what: str, value: Any) -> Any:
    match what:
        case "task":
            return json.loads(bytes(version.encode_task(value)))
        case "message":
            sent = json.loads(bytes(version.encode_send_result(value)))
            return sent["message"] if version is V10 else sent
        case "config":
            return json.loads(bytes(version.encode_push_config(value)))
        case _:
            return json.loads(bytes(version.encode_stream_item(value) or b""))


@pytest.mark.parametrize("case", DOCUMENTS, ids=[case["name"] for case in DOCUMENTS])
def test_params_mean_the_same_in_both_versions(case: dict[str, Any]) -> None:
    if case["what"] in READ_V03:
        v03 = V03.inputs[READ_V03[case["what"]]].decode(Raw(json.dumps(case["v03"]).encode()))[0]
        assert v03 == read_v10(case["what"], json.dumps(case["v10"]).encode())


@pytest.mark.parametrize("case", DOCUMENTS, ids=[case["name"] for case in DOCUMENTS])
def test_a_document_matches_its_schema(case: dict[str, Any]) -> None:
    v10, v03 = NAMES[case["what"]]
    check(V10, v10, case["v10"])
    check(V03, v03, case["v03"])


WRITTEN = [case for case in DOCUMENTS if case["what"] != "params"]


@pytest.mark.parametrize("case", WRITTEN, ids=[case["name"] for case in WRITTEN])
def test_a_document_is_written_as_it_was_read(case: dict[str, Any]) -> None:
    value = read_v10(case["what"], json.dumps(case["v10"]).encode())
    assert write(V10, case["what"], value) == case["v10"]
    assert write(V03, case["what"], value) == case["v03"]


# -- any task at all -----------------------------------------------------------------------------------------------------

words = st.text(max_size=8)
names = st.text(min_size=1, max_size=8)
maybe_word = st.none() | names
scalars = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=5
)
metadata = st.none() | st.dictionaries(words, values, max_size=2)
labels = st.lists(names, max_size=2).map(tuple)
stamps = st.none() | st.just("2026-01-31T23:59:59.999Z")


def parts(named: st.SearchStrategy[str | None]) -> st.SearchStrategy[Part]:
    """`named` is the file name and the media type of what is no file."""
    return st.one_of(
        st.builds(Part, text=words, metadata=metadata, filename=named, media_type=named),
        st.builds(Part, raw=st.binary(max_size=8), metadata=metadata, filename=maybe_word, media_type=maybe_word),
        st.builds(Part, url=words, metadata=metadata, filename=maybe_word, media_type=maybe_word),
        st.builds(
            Part,
            data=values,
            metadata=metadata.filter(lambda given: given != {}),
            filename=named,
            media_type=named,
        ),
    )


def messages(named: st.SearchStrategy[str | None]) -> st.SearchStrategy[Message]:
    pieces = st.lists(parts(named), min_size=1, max_size=4).map(tuple)
    return st.builds(Message, names, st.sampled_from(Role), pieces, maybe_word, maybe_word, metadata, labels, labels)


def tasks(named: st.SearchStrategy[str | None]) -> st.SearchStrategy[Task]:
    pieces = st.lists(parts(named), max_size=3).map(tuple)
    artifacts = st.builds(Artifact, names, pieces, maybe_word, maybe_word, metadata, labels)
    statuses = st.builds(TaskStatus, st.sampled_from(TaskState), st.none() | messages(named), stamps)
    history = st.lists(messages(named), max_size=2).map(tuple)
    return st.builds(Task, names, names, statuses, st.lists(artifacts, max_size=2).map(tuple), history, metadata)


@given(tasks(maybe_word))
@settings(max_examples=60, deadline=None)
def test_any_task_survives_1_0(task: Task) -> None:
    text = bytes(V10.encode_task(task))
    assert msgspec.json.decode(text, type=Task) == task
    check(V10, "Task", json.loads(text))


@given(tasks(st.none()))
@settings(max_examples=60, deadline=None)
def test_any_task_is_one_in_0_3(task: Task) -> None:
    text = bytes(V03.encode_task(task))
    check(V03, "Task", json.loads(text))


@given(messages(st.none()))
@settings(max_examples=40, deadline=None)
def test_any_message_survives_being_sent(message: Message) -> None:
    message = msgspec.structs.replace(message, role=Role.USER)
    v10 = b'{"message":%b}' % msgspec.json.encode(message)
    v03 = b'{"message":%b}' % bytes(V03.encode_send_result(message))
    assert V10.inputs["SendMessage"].decode(Raw(v10))[0].message == message
    assert V03.inputs["message/send"].decode(Raw(v03))[0].message == message


@pytest.mark.parametrize("state", TaskState)
def test_an_update_is_final_in_every_inactive_state(state: TaskState) -> None:
    update = write(V03, "status", TaskUpdate("t-1", "c-1", StatusChanged(TaskStatus(state))))
    assert update["final"] is (state in INACTIVE)
    check(V03, "TaskStatusUpdateEvent", update)


def test_what_0_3_can_not_express_is_left_out() -> None:
    task = Task(
        "t-1",
        "c-1",
        TaskStatus(TaskState.COMPLETED),
        (
            Artifact(
                "a-1", (Part(text="x", filename="x.txt", media_type="text/plain"), Part(data={}, media_type="a/b"))
            ),
        ),
    )
    parts = [{"kind": "text", "text": "x"}, {"kind": "data", "data": {}}]
    assert write(V03, "task", task)["artifacts"][0]["parts"] == parts
    config = PushConfig("https://example.com", "p-1", "t-1", tenant="one", authentication=Authentication("Bearer"))
    assert "tenant" not in bytes(V03.encode_push_config(config)).decode()


def test_null_data_is_not_missing_data() -> None:
    text = b'{"artifactId":"a-1","parts":[{"data":null}]}'
    artifact = msgspec.json.decode(text, type=Artifact)
    assert artifact.parts[0].data is None
    assert artifact.parts[0].data is not UNSET
    assert msgspec.json.encode(artifact) == text
