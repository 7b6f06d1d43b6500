"""How params are read: what every method accepts, and which path an error names."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from discreet import Service
from discreet.a2a.methods import V03_METHODS, V10_METHODS
from discreet.a2a.types import Authentication, PushConfig, TaskQuery, TaskState
from discreet.a2a.v03 import V03
from discreet.a2a.v10 import V10
from discreet.a2a.version import ListRequest, ProtocolVersion, PushConfigRequest, TaskRequest
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import InvalidParams

CONTENT = ("text", "raw", "url", "data")


def method_of(version: ProtocolVersion, *, send: bool = True) -> str:
    methods = V10_METHODS if version is V10 else V03_METHODS
    return methods[0 if send else 2]


def decode(version: ProtocolVersion, method: str, params: Any, prefix: str = "") -> Any:
    values = version.inputs[method].decode(None if params is None else Raw(json.dumps(params).encode()), prefix)
    return values[0] if values else None


def fault(version: ProtocolVersion, method: str, params: Any, prefix: str = "") -> InvalidParams:
    with pytest.raises(FailureError) as caught:
        decode(version, method, params, prefix)
    assert caught.value.__cause__ is None
    assert isinstance(caught.value.failure, InvalidParams)
    return caught.value.failure


def put(document: Any, place: str, value: Any) -> Any:
    """A copy of the document with another value at a place; without one where the value is `...`."""
    document = copy.deepcopy(document)
    *way, last = [int(step) if step.isdigit() else step for step in place.replace("[", ".").replace("]", "").split(".")]
    holder = document
    for step in way:
        holder = holder[step]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return document


SEND_V10 = {
    "message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "Hello"}]},
    "configuration": {
        "taskPushNotificationConfig": {"url": "https://example.com", "authentication": {"scheme": "Bearer"}}
    },
}
SEND_V03 = {
    "message": {"kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": "Hello"}]},
    "configuration": {
        "pushNotificationConfig": {"url": "https://example.com", "authentication": {"schemes": ["Bearer"]}}
    },
}
CONFIG_V03 = {"taskId": "t-1", "pushNotificationConfig": {"url": "https://example.com"}}
MESSAGE_MEMBERS = "message message.messageId message.role message.parts"
HOOK_V10, HOOK_V03 = "configuration.taskPushNotificationConfig", "configuration.pushNotificationConfig"
TASK, CONFIG, CONFIG_V10 = (
    {"id": "t-1"},
    {"taskId": "t-1", "id": "p-1"},
    {"taskId": "t-1", "url": "https://example.com"},
)
DELETE_V03 = {"id": "t-1", "pushNotificationConfigId": "p-1"}
REQUIRED: list[tuple[ProtocolVersion, str, dict[str, Any], str]] = [
    (V10, "SendMessage", SEND_V10, f"{MESSAGE_MEMBERS} {HOOK_V10}.url {HOOK_V10}.authentication.scheme"),
    (V10, "GetTask", TASK, "id"),
    (V10, "CancelTask", TASK, "id"),
    (V10, "SubscribeToTask", TASK, "id"),
    (V10, "CreateTaskPushNotificationConfig", CONFIG_V10, "taskId url"),
    (V10, "GetTaskPushNotificationConfig", CONFIG, "taskId id"),
    (V10, "ListTaskPushNotificationConfigs", {"taskId": "t-1"}, "taskId"),
    (V10, "DeleteTaskPushNotificationConfig", CONFIG, "taskId id"),
    (
        V03,
        "message/send",
        SEND_V03,
        f"{MESSAGE_MEMBERS} message.parts[0].text {HOOK_V03}.url {HOOK_V03}.authentication.schemes",
    ),
    (V03, "tasks/get", TASK, "id"),
    (V03, "tasks/cancel", TASK, "id"),
    (V03, "tasks/resubscribe", TASK, "id"),
    (
        V03,
        "tasks/pushNotificationConfig/set",
        CONFIG_V03,
        "taskId pushNotificationConfig pushNotificationConfig.url",
    ),
    (V03, "tasks/pushNotificationConfig/get", TASK, "id"),
    (V03, "tasks/pushNotificationConfig/list", TASK, "id"),
    (V03, "tasks/pushNotificationConfig/delete", DELETE_V03, "id pushNotificationConfigId"),
]
"""Methods, params that they take, and the members that these may not lack."""

PLACES = [(version, method, params, place) for version, method, params, places in REQUIRED for place in places.split()]
IDS = [f"{method} {place}" for _, method, _, place in PLACES]


@pytest.mark.parametrize(("version", "method", "params", "place"), PLACES, ids=IDS)
def test_a_required_member_that_is_missing_is_named(
    version: ProtocolVersion, method: str, params: dict[str, Any], place: str
) -> None:
    found = fault(version, method, put(params, place, ...))
    assert (found.param, found.received) == (place, "missing")


@pytest.mark.parametrize(("version", "method", "params", "place"), PLACES, ids=IDS)
@pytest.mark.parametrize("value", [None, 7.5], ids=["null", "number"])
def test_a_required_member_of_another_type_is_named(
    version: ProtocolVersion, method: str, params: dict[str, Any], place: str, value: Any
) -> None:
    assert fault(version, method, put(params, place, value)).param == place


PARTS, ROLE, AUTHENTICATION = "message.parts", "message.role", f"{HOOK_V03}.authentication"
ONE_OF, NOT_EMPTY, BASE64 = "object with exactly one of", "array of object with at least 1 item", "base64 string"
IN_FILE = ("bytes", "uri")
FAULTS: list[tuple[ProtocolVersion, str, Any, tuple[Any, ...]]] = [
    (V10, PARTS, [], (PARTS, NOT_EMPTY, "array")),
    (V10, PARTS, [1], (f"{PARTS}[0]", "object", "number")),
    (V10, PARTS, [{"text": 1}], (f"{PARTS}[0].text", "string or null", "number")),
    (V10, PARTS, [{"text": "a"}, {}], (f"{PARTS}[1]", ONE_OF, "object", CONTENT)),
    (V10, PARTS, [{"text": "a", "data": None}], (f"{PARTS}[0]", ONE_OF, "object", CONTENT)),
    (V10, PARTS, [{"raw": "not base64!"}], (f"{PARTS}[0].raw", BASE64, "string")),
    (V10, ROLE, "ROLE_AGENT", (ROLE, "one of", "ROLE_AGENT", ("ROLE_USER",))),
    (V10, ROLE, 2, (ROLE, "one of", "ROLE_AGENT", ("ROLE_USER",))),
    (V10, ROLE, "user", (ROLE, "one of", "user", ("ROLE_USER", "ROLE_AGENT"))),
    (V10, ROLE, "ROLE_UNSPECIFIED", (ROLE, "one of", "missing", ("ROLE_USER", "ROLE_AGENT"))),
    (V10, "message.messageId", "", ("message.messageId", "string of at least 1 character", "string")),
    (V03, ROLE, "agent", (ROLE, "one of", "agent", ("user",))),
    (V03, ROLE, "ROLE_USER", (ROLE, "one of", "ROLE_USER", ("agent", "user"))),
    (V03, "message.kind", "task", ("message.kind", "one of", "task", ("message", None))),
    (V03, PARTS, [], (PARTS, NOT_EMPTY, "array")),
    (V03, PARTS, [{"kind": "text", "text": "a"}, {}], (f"{PARTS}[1]", ONE_OF, "object", ("text", "file", "data"))),
    (V03, PARTS, [{"kind": "image"}], (f"{PARTS}[0].kind", "one of", "image", ("data", "file", "text", None))),
    (V03, PARTS, [{"kind": "data"}], (f"{PARTS}[0].data", "object", "missing")),
    (V03, PARTS, [{"kind": "file"}], (f"{PARTS}[0].file", "object", "missing")),
    (V03, PARTS, [{"kind": "file", "file": {"name": "a"}}], (f"{PARTS}[0].file", ONE_OF, "object", IN_FILE)),
    (V03, PARTS, [{"file": {"bytes": "YQ==", "uri": "a:b"}}], (f"{PARTS}[0].file", ONE_OF, "object", IN_FILE)),
    (V03, PARTS, [{"file": {"bytes": "not base64!"}}], (f"{PARTS}[0].file.bytes", BASE64, "string")),
    (
        V03,
        AUTHENTICATION,
        {"schemes": [], "credentials": "c"},
        (f"{AUTHENTICATION}.schemes", "array with at least 1 item", "array"),
    ),
]


@pytest.mark.parametrize(("version", "place", "value", "expected"), FAULTS)
def test_a_fault_is_reported_with_its_path(
    version: ProtocolVersion, place: str, value: Any, expected: tuple[Any, ...]
) -> None:
    params = put(SEND_V10 if version is V10 else SEND_V03, place, value)
    assert fault(version, method_of(version), params) == InvalidParams(*expected)


@pytest.mark.parametrize("version", [V10, V03], ids=["1.0", "0.3"])
@pytest.mark.parametrize("parts", [[{}], [{"text": 1}]])
def test_a_path_begins_with_the_path_of_the_params(version: ProtocolVersion, parts: list[Any]) -> None:
    params = put(SEND_V10 if version is V10 else SEND_V03, "message.parts", parts)
    assert fault(version, method_of(version), params, "params").param.startswith("params.message.parts[0]")


@pytest.mark.parametrize("version", [V10, V03], ids=["1.0", "0.3"])
@pytest.mark.parametrize(("params", "expected"), [(["t-1"], ("$", "array")), (None, ("id", "missing"))])
def test_params_are_one_object(version: ProtocolVersion, params: Any, expected: tuple[str, str]) -> None:
    found = fault(version, method_of(version, send=False), params)
    assert (found.param, found.received) == expected


def _with_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return {**{name: _with_unknown(inner) for name, inner in value.items()}, "x-unknown": {"a": [1]}}
    return [_with_unknown(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("version", "method", "params"), [case[:3] for case in REQUIRED])
def test_unknown_members_are_ignored_at_every_level(
    version: ProtocolVersion, method: str, params: dict[str, Any]
) -> None:
    assert decode(version, method, _with_unknown(params)) == decode(version, method, params)


@pytest.mark.parametrize("version", [V10, V03], ids=["1.0", "0.3"])
def test_every_method_has_its_input(version: ProtocolVersion) -> None:
    assert tuple(version.inputs) == (V10_METHODS if version is V10 else V03_METHODS)


def test_an_operation_takes_the_input_of_its_method() -> None:
    service = Service("")

    @service.query(name="GetTask", inline=True)
    def get(params: dict[str, str]) -> str:
        return repr(params)

    spec = msgspec.structs.replace(service.operations[0], input=V10.inputs["GetTask"])
    values = spec.input.decode(Raw(b'{"id":"t-1","historyLength":0}'))
    assert spec.invoke(None, values) == repr(TaskRequest("t-1", history_length=0))


@pytest.mark.parametrize(
    ("version", "method", "params", "expected"),
    [
        (V10, "GetTask", {"id": "t-1"}, TaskRequest("t-1")),
        (V10, "GetTask", {"id": "t-1", "historyLength": 0}, TaskRequest("t-1", history_length=0)),
        (V10, "CancelTask", {"id": "t-1", "metadata": {"k": None}}, TaskRequest("t-1", {"k": None})),
        (V10, "SubscribeToTask", {"id": "t-1", "tenant": "x"}, TaskRequest("t-1")),
        (
            V10,
            "CreateTaskPushNotificationConfig",
            {"taskId": "t-1", "url": "https://example.com", "id": "", "token": ""},
            PushConfig("https://example.com", task_id="t-1"),
        ),
        (V10, "GetTaskPushNotificationConfig", {"taskId": "t-1", "id": "p-1"}, PushConfigRequest("t-1", "p-1")),
        (V10, "ListTaskPushNotificationConfigs", {"taskId": "t-1", "pageSize": 1}, PushConfigRequest("t-1")),
        (V10, "DeleteTaskPushNotificationConfig", {"taskId": "t-1", "id": "p-1"}, PushConfigRequest("t-1", "p-1")),
        (V10, "GetExtendedAgentCard", None, None),
        (V10, "GetExtendedAgentCard", {"tenant": "x"}, None),
        (V10, "ListTasks", None, ListRequest(TaskQuery(scope="", include_artifacts=False))),
        (
            V10,
            "ListTasks",
            {"contextId": "", "status": "TASK_STATE_UNSPECIFIED", "pageToken": "", "includeArtifacts": False},
            ListRequest(TaskQuery(scope="", include_artifacts=False)),
        ),
        (
            V10,
            "ListTasks",
            {
                "contextId": "c-1",
                "status": "TASK_STATE_WORKING",
                "pageSize": 100,
                "pageToken": "p",
                "historyLength": 3,
                "statusTimestampAfter": "2026-01-31T23:59:59+02:00",
                "includeArtifacts": True,
            },
            ListRequest(
                TaskQuery(
                    scope="",
                    context_id="c-1",
                    state=TaskState.WORKING,
                    status_timestamp_after="2026-01-31T21:59:59.000Z",
                    page_size=100,
                    page_token="p",
                ),
                3,
            ),
        ),
        (V03, "tasks/get", {"id": "t-1", "historyLength": 3, "metadata": None}, TaskRequest("t-1", history_length=3)),
        (V03, "tasks/get", {"id": "t-1", "historyLength": 0}, TaskRequest("t-1")),
        (V03, "tasks/cancel", {"id": "t-1", "metadata": {"k": 1}}, TaskRequest("t-1", {"k": 1})),
        (V03, "tasks/resubscribe", {"id": "t-1", "metadata": None}, TaskRequest("t-1")),
        (
            V03,
            "tasks/pushNotificationConfig/set",
            {
                "taskId": "t-1",
                "pushNotificationConfig": {
                    "url": "https://example.com",
                    "id": None,
                    "authentication": {"schemes": ["Bearer", "Basic"], "credentials": "c"},
                },
            },
            PushConfig("https://example.com", task_id="t-1", authentication=Authentication("Bearer", "c")),
        ),
        (
            V03,
            "tasks/pushNotificationConfig/set",
            {
                "taskId": "t-1",
                "pushNotificationConfig": {"url": "https://example.com", "authentication": {"schemes": []}},
            },
            PushConfig("https://example.com", task_id="t-1"),
        ),
        (V03, "tasks/pushNotificationConfig/get", {"id": "t-1"}, PushConfigRequest("t-1")),
        (
            V03,
            "tasks/pushNotificationConfig/get",
            {"id": "t-1", "pushNotificationConfigId": "p-1"},
            PushConfigRequest("t-1", "p-1"),
        ),
        (V03, "tasks/pushNotificationConfig/list", {"id": "t-1"}, PushConfigRequest("t-1")),
        (
            V03,
            "tasks/pushNotificationConfig/delete",
            {"id": "t-1", "pushNotificationConfigId": "p-1"},
            PushConfigRequest("t-1", "p-1"),
        ),
        (V03, "agent/getAuthenticatedExtendedCard", None, None),
    ],
)
def test_params_become_the_same_request_in_both_versions(
    version: ProtocolVersion, method: str, params: Any, expected: Any
) -> None:
    assert decode(version, method, params) == expected


@pytest.mark.parametrize("size", [0, 101, -1, 1.5])
def test_a_page_holds_1_to_100_tasks(size: float) -> None:
    assert fault(V10, "ListTasks", {"pageSize": size}).param == "pageSize"


@pytest.mark.parametrize("stamp", ["yesterday", "2026-01-31T23:59:59", "", 7])
def test_a_timestamp_without_an_offset_is_refused(stamp: object) -> None:
    assert fault(V10, "ListTasks", {"statusTimestampAfter": stamp}).param == "statusTimestampAfter"


@pytest.mark.parametrize("version", [V10, V03], ids=["1.0", "0.3"])
def test_a_negative_history_length_is_refused(version: ProtocolVersion) -> None:
    method = method_of(version, send=False)
    assert fault(version, method, {"id": "t-1", "historyLength": -1}).param == "historyLength"
