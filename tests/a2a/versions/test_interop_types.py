"""What we send is read by the types of the protocol's own SDKs, and what they write is read here.

`DISCREET_A2A_V1` and `DISCREET_A2A_V03` name Python interpreters that have `a2a-sdk` of 1.x and of 0.3.x.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from discreet.a2a.types import (
    Artifact,
    ArtifactChanged,
    Authentication,
    Message,
    Part,
    PushConfig,
    Role,
    StatusChanged,
    Task,
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

INTERPRETERS = {"1.0": os.environ.get("DISCREET_A2A_V1"), "0.3": os.environ.get("DISCREET_A2A_V03")}
NOW = "2026-01-31T23:59:59.999Z"
DOCUMENTS = json.loads((Path(__file__).parent / "data" / "documents.json").read_text(encoding="utf-8"))

PARTS = (
    Part(text="Grüße"),
    Part(text="", metadata={"a": None, "b": [1, 2.5]}),
    Part(raw=b"\xfb\xff", filename="a.bin", media_type="application/octet-stream"),
    Part(raw=b""),
    Part(url="https://example.com/a.png", media_type="image/png"),
    Part(data={"n": 1, "deep": [{"x": None}]}),
    Part(data=[1, "two"]),
    Part(data=None),
)
MESSAGE = Message("m-1", Role.AGENT, PARTS, "c-1", "t-1", {"k": 1}, ("urn:x",), ("t-0",))
BARE = Message("m-2", Role.USER, (Part(text="x"),))
TASKS = [Task(f"t-{state.name}", "c-1", TaskStatus(state, MESSAGE, NOW)) for state in TaskState] + [
    Task("t-1", "c-1", TaskStatus(TaskState.SUBMITTED)),
    Task(
        "t-2",
        "c-1",
        TaskStatus(TaskState.COMPLETED, timestamp=NOW),
        (Artifact("a-1", PARTS, "n", "d", {"k": 1}, ("urn:x",)),),
        (BARE, MESSAGE),
        {"k": "v"},
    ),
    Task("t-3", "c-1", TaskStatus(TaskState.WORKING), (Artifact("a-2", ()),)),
]
UNREADABLE = UnreadableTask("t-4", "", TaskState.WORKING)
EVENTS = [
    *(TaskUpdate("t-1", "c-1", StatusChanged(TaskStatus(state, BARE, NOW), {"k": 1})) for state in TaskState),
    TaskUpdate("t-1", "c-1", ArtifactChanged(Artifact("a-1", PARTS))),
    TaskUpdate("t-1", "c-1", ArtifactChanged(Artifact("a-1", PARTS), append=True, last_chunk=True, metadata={"k": 1})),
]
CONFIGS = [
    PushConfig("https://example.com", "p-1", "t-1"),
    PushConfig("https://example.com", "p-2", "t-1", "tok", Authentication("Bearer", "c")),
]

READ_V10 = """
import json, sys
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToJson, Parse
answers = []
for name, text in json.load(sys.stdin):
    read = Parse(text, getattr(a2a_pb2, name)(), ignore_unknown_fields=False)
    answers.append(MessageToJson(read))
json.dump(answers, sys.stdout)
"""
READ_V03 = """
import json, sys
from a2a import types
from pydantic import BaseModel, RootModel
for each in vars(types).values():
    if isinstance(each, type) and issubclass(each, BaseModel) and not issubclass(each, RootModel):
        each.model_config["extra"] = "forbid"
for each in vars(types).values():
    if isinstance(each, type) and issubclass(each, BaseModel) and each is not BaseModel and each is not RootModel:
        each.model_rebuild(force=True)
try:
    types.Task.model_validate({"id": "t", "contextId": "c", "status": {"state": "working"}, "nobody": 1})
except ValueError:
    pass
else:
    raise SystemExit("surplus members are not refused")
answers = []
for name, text in json.load(sys.stdin):
    read = getattr(types, name).model_validate_json(text)
    answers.append(read.model_dump_json(by_alias=True, exclude_none=True))
json.dump(answers, sys.stdout)
"""


def read_by_sdk(version: ProtocolVersion, batch: list[tuple[str, str]]) -> list[str]:
    """Every text as the SDK writes what it has read. A text that it refuses fails the test."""
    interpreter = INTERPRETERS[version.name]
    if interpreter is None:
        pytest.skip("no interpreter with the SDK is named")
    script = READ_V10 if version is V10 else READ_V03
    done = subprocess.run(
        [interpreter, "-P", "-c", script], input=json.dumps(batch), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    answers: list[str] = json.loads(done.stdout)
    return answers


def texts(version: ProtocolVersion, names: tuple[str, str, str, str]) -> list[tuple[str, str]]:
    task, result, event, config = names
    outputs: list[tuple[str, Raw | None]] = [
        *((task, version.encode_task(each)) for each in TASKS),
        *((result, version.encode_send_result(each)) for each in (*TASKS, MESSAGE, BARE)),
        *((event, version.encode_stream_item(each)) for each in (*TASKS, BARE, *EVENTS)),
        *((config, version.encode_push_config(each)) for each in CONFIGS),
    ]
    return [(name, bytes(text or b"").decode()) for name, text in outputs]


def test_the_sdk_of_1_0_reads_every_result() -> None:
    batch = texts(V10, ("Task", "SendMessageResponse", "StreamResponse", "TaskPushNotificationConfig"))
    listed = encode_task_page(TaskPage(tuple(TASKS), "next", 99, (UNREADABLE,)), ListRequest(TaskQuery(scope="")))
    batch.append(("ListTasksResponse", bytes(listed).decode()))
    batch.append(("ListTaskPushNotificationConfigsResponse", bytes(V10.encode_push_configs(CONFIGS)).decode()))
    answers = read_by_sdk(V10, batch)
    assert len(answers) == len(batch)
    for (name, text), answer in zip(batch, answers, strict=True):
        assert _normal(json.loads(answer)) == _normal(json.loads(text)), name


def test_the_sdk_of_0_3_reads_every_result() -> None:
    event = "SendStreamingMessageSuccessResponse"
    batch = texts(V03, ("Task", "SendMessageSuccessResponse", event, "TaskPushNotificationConfig"))
    batch = [
        (name, f'{{"jsonrpc":"2.0","id":1,"result":{text}}}' if name.endswith("SuccessResponse") else text)
        for name, text in batch
    ]
    configs = bytes(V03.encode_push_configs(CONFIGS)).decode()
    listing = f'{{"jsonrpc":"2.0","id":1,"result":{configs}}}'
    batch.append(("ListTaskPushNotificationConfigSuccessResponse", listing))
    answers = read_by_sdk(V03, batch)
    assert len(answers) == len(batch)
    for (name, text), answer in zip(batch, answers, strict=True):
        assert json.loads(answer) == json.loads(text), name


def test_what_the_sdk_of_1_0_writes_is_read_here() -> None:
    sent = [("SendMessageRequest", json.dumps(case["v10"])) for case in DOCUMENTS if case["what"] == "params"]
    tasks = [task for task in TASKS if all(artifact.parts for artifact in task.artifacts)]  # it writes no empty lists
    answers = read_by_sdk(V10, sent + [("Task", bytes(V10.encode_task(task)).decode()) for task in tasks])
    for (_, text), answer in zip(sent, answers, strict=False):
        decode = V10.inputs["SendMessage"].decode
        assert decode(Raw(answer.encode())) == decode(Raw(text.encode()))
    assert [msgspec.json.decode(answer, type=Task) for answer in answers[len(sent) :]] == tasks


def test_what_the_sdk_of_0_3_writes_is_read_here() -> None:
    sent = [("MessageSendParams", json.dumps(case["v03"])) for case in DOCUMENTS if case["what"] == "params"]
    for (_, text), answer in zip(sent, read_by_sdk(V03, sent), strict=True):
        decode = V03.inputs["message/send"].decode
        assert decode(Raw(answer.encode())) == decode(Raw(text.encode()))


def _normal(value: Any) -> Any:
    """ProtoJSON leaves out empty lists and default values, and every number of free-form data is a float."""
    if isinstance(value, dict):
        members = {name: _normal(inner) for name, inner in value.items()}
        return {
            name: inner for name, inner in members.items() if inner not in ([], "", False, 0) or name in ("text", "raw")
        }
    return [_normal(inner) for inner in value] if isinstance(value, list) else value
