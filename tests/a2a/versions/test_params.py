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
REQUIRED: list[tuple[ProtocolVersion, str, dict[str, Any], list[str]]] = [
    (
        V10,
        "SendMessage",
        SEND_V10,
        [
            "message",
            "message.messageId",
            "message.role",
            "message.parts",
            "configuration.taskPushNotificationConfig.url",
            "configuration.taskPushNotificationConfig.authentication.scheme",
        ],
    ),
    (V10, "GetTask", {"id": "t-1"}, ["id"]),
    (V10, "CancelTask", {"id": "t-1"}, ["id"]),
    (V10, "SubscribeToTask", {"id": "t-1"}, ["id"]),
    (V10, "CreateTaskPushNotificationConfig", {"taskId": "t-1", "url": "https://example.com"}, ["taskId", "url"]),
    (V10, "GetTaskPushNotificationConfig", {"taskId": "t-1", "id": "p-1"}, ["taskId", "id"]),
    (V10, "ListTaskPushNotificationConfigs", {"taskId": "t-1"}, ["taskId"]),
    (V10, "DeleteTaskPushNotificationConfig", {"taskId": "t-1", "id": "p-1"}, ["taskId", "id"]),
    (
        V03,
        "message/send",
        SEND_V03,
        [
            "message",
            "message.messageId",
            "message.role",
            "message.parts",
            "message.parts[0].text",
            "configuration.pushNotificationConfig.url",
            "configuration.pushNotificationConfig.authentication.schemes",
        ],
    ),
    (V03, "tasks/get", {"id": "t-1"}, ["id"]),
    (V03, "tasks/cancel", {"id": "t-1"}, ["id"]),
    (V03, "tasks/resubscribe", {"id": "t-1"}, ["id"]),
    (
        V03,
        "tasks/pushNotificationConfig/set",
        CONFIG_V03,
        ["taskId", "pushNotificationConfig", "pushNotificationConfig.url"],
    ),
    (V03, "tasks/pushNotificationConfig/get", {"id": "t-1"}, ["id"]),
    (V03, "tasks/pushNotificationConfig/list", {"id": "t-1"}, ["id"]),
    (
        V03,
        "tasks/pushNotificationConfig/delete",
        {"id": "t-1", "pushNotificationConfigId": "p-1"},
        ["id", "pushNotificationConfigId"],
    ),
]
PLACES = [(version, method, params, place) for version, method, params, places in REQUIRED for place in places]
IDS = [f"{method} {place}" for _, method, _, place in PLACES]


@pytest.mark.parametrize(("version", "method", "params", "place"), PLACES, ids=IDS)
def test_a_required_member_that_is_missing_is_named(
    version: ProtocolVersion, method: str, params: dict[str, Any], place: str
) -> None:
    found = fault(version, method, put(params, place, ...))
    assert (found.param, found.received) == (place, "missing")


@pytest.mark.parametrize(("version", "method", "params", "place"), PLACES, ids=IDS)
@pytest.mark.parametrize("value", [None, True, 7.5], ids=["null", "boolean", "number"])
def test_a_required_member_of_another_type_is_named(
    version: ProtocolVersion, method: str, params: dict[str, Any], place: str, value: Any
) -> None:
    assert fault(version, method, put(params, place, value)).param == place


@pytest.mark.parametrize(
    ("version", "place", "value", "expected"),
    [
        (V10, "message.parts", [], InvalidParams("message.parts", "array of object with at least 1 item", "array")),
        (V10, "message.parts", [1], InvalidParams("message.parts[0]", "object", "number")),
        (V10, "message.parts", [{"text": 1}], InvalidParams("message.parts[0].text", "string or null", "number")),
        (
            V10,
            "message.parts",
            [{"text": "a"}, {}],
            InvalidParams("message.parts[1]", "object with exactly one of", "object", CONTENT),
        ),
        (
            V10,
            "message.parts",
            [{"text": "a", "data": None}],
            InvalidParams("message.parts[0]", "object with exactly one of", "object", CONTENT),
        ),
        (
            V10,
            "message.parts",
            [{"raw": "not base64!"}],
            InvalidParams("message.parts[0].raw", "base64 string", "string"),
        ),
        (V10, "message.role", "ROLE_AGENT", InvalidParams("message.role", "one of", "ROLE_AGENT", ("ROLE_USER",))),
        (V10, "message.role", 2, InvalidParams("message.role", "one of", "ROLE_AGENT", ("ROLE_USER",))),
        (V03, "message.role", "agent", InvalidParams("message.role", "one of", "agent", ("user",))),
        (V10, "message.role", "user", InvalidParams("message.role", "one of", "user", ("ROLE_USER", "ROLE_AGENT"))),
        (
            V10,
            "message.role",
            "ROLE_UNSPECIFIED",
            InvalidParams("message.role", "one of", "missing", ("ROLE_USER", "ROLE_AGENT")),
        ),
        (V10, "message.messageId", "", InvalidParams("message.messageId", "string of at least 1 character", "string")),
        (V03, "message.parts", [], InvalidParams("message.parts", "array of object with at least 1 item", "array")),
        (
            V03,
            "message.parts",
            [{"kind": "text", "text": "a"}, {}],
            InvalidParams("message.parts[1]", "object with exactly one of", "object", ("text", "file", "data")),
        ),
        (
            V03,
            "message.parts",
            [{"kind": "image"}],
            InvalidParams("message.parts[0].kind", "one of", "image", ("data", "file", "text", None)),
        ),
        (V03, "message.parts", [{"kind": "data"}], InvalidParams("message.parts[0].data", "object", "missing")),
        (V03, "message.parts", [{"kind": "file"}], InvalidParams("message.parts[0].file", "object", "missing")),
        (
            V03,
            "message.parts",
            [{"kind": "file", "file": {"name": "a"}}],
            InvalidParams("message.parts[0].file", "object with exactly one of", "object", ("bytes", "uri")),
        ),
        (
            V03,
            "message.parts",
            [{"kind": "file", "file": {"bytes": "YQ==", "uri": "https://example.com"}}],
            InvalidParams("message.parts[0].file", "object with exactly one of", "object", ("bytes", "uri")),
        ),
        (
            V03,
            "message.parts",
            [{"kind": "file", "file": {"bytes": "not base64!"}}],
            InvalidParams("message.parts[0].file.bytes", "base64 string", "string"),
        ),
        (V03, "message.kind", "task", InvalidParams("message.kind", "one of", "task", ("message", None))),
        (V03, "message.role", "ROLE_USER", InvalidParams("message.role", "one of", "ROLE_USER", ("agent", "user"))),
        (
            V03,
            "configuration.pushNotificationConfig.authentication",
            {"schemes": [], "credentials": "c"},
            InvalidParams(
                "configuration.pushNotificationConfig.authentication.schemes", "array with at least 1 item", "array"
            ),
        ),
    ],
)
def test_a_fault_is_reported_with_its_path(
    version: ProtocolVersion, place: str, value: Any, expected: InvalidParams
) -> None:
    params = put(SEND_V10 if version is V10 else SEND_V03, place, value)
    assert fault(version, method_of(version), params) == expected


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


@pytest.mark.parametrize(
    ("version", "params"),
    [
        (V10, {"historyLength": -1}),
        (V03, {"historyLength": -1}),
    ],
)
def test_a_negative_history_length_is_refused(version: ProtocolVersion, params: dict[str, Any]) -> None:
    method = method_of(version, send=False)
    assert fault(version, method, {"id": "t-1", **params}).param == "historyLength"
