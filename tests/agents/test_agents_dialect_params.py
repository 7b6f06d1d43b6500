"""How params are read: what every method takes, what is forgiven, and where a fault is said to be."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from discreet import Service
from discreet.daemon.agents.base64_text import decode_base64, encode_base64
from discreet.daemon.agents.dialect import ConfigRequest, Dialect, ListRequest, TaskRequest
from discreet.daemon.agents.dialect_v03 import V03
from discreet.daemon.agents.dialect_v10 import V10
from discreet.daemon.agents.handler import Sending
from discreet.daemon.agents.model import Authentication, Message, Part, PushConfig, Role, SendConfiguration, TaskState
from discreet.daemon.agents.names import V03 as METHODS_V03
from discreet.daemon.agents.names import V10 as METHODS_V10
from discreet.daemon.agents.store import Query
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import InvalidParams

STATES = tuple(state.value for state in TaskState)
CONTENT = ("text", "raw", "url", "data")


def method_of(dialect: Dialect, *, send: bool = True) -> str:
    methods = METHODS_V10 if dialect is V10 else METHODS_V03
    return methods[0 if send else 2]


def decode(dialect: Dialect, method: str, params: Any, prefix: str = "") -> Any:
    values = dialect.inputs[method].decode(None if params is None else Raw(json.dumps(params).encode()), prefix)
    return values[0] if values else None


def fault(dialect: Dialect, method: str, params: Any, prefix: str = "") -> InvalidParams:
    with pytest.raises(FailureError) as caught:
        decode(dialect, method, params, prefix)
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
    "configuration": {"taskPushNotificationConfig": {"url": "https://example.com", "authentication": {"scheme": "Bearer"}}},
}
SEND_V03 = {
    "message": {"kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": "Hello"}]},
    "configuration": {
        "pushNotificationConfig": {"url": "https://example.com", "authentication": {"schemes": ["Bearer"]}}
    },
}
CONFIG_V03 = {"taskId": "t-1", "pushNotificationConfig": {"url": "https://example.com"}}
REQUIRED: list[tuple[Dialect, str, dict[str, Any], list[str]]] = [
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
PLACES = [(dialect, method, params, place) for dialect, method, params, places in REQUIRED for place in places]
IDS = [f"{method} {place}" for _, method, _, place in PLACES]


@pytest.mark.parametrize(("dialect", "method", "params", "place"), PLACES, ids=IDS)
def test_a_required_member_that_is_missing_is_named(
    dialect: Dialect, method: str, params: dict[str, Any], place: str
) -> None:
    found = fault(dialect, method, put(params, place, ...))
    assert (found.param, found.received) == (place, "missing")


@pytest.mark.parametrize(("dialect", "method", "params", "place"), PLACES, ids=IDS)
@pytest.mark.parametrize("value", [None, True, 7.5], ids=["null", "boolean", "number"])
def test_a_required_member_of_another_type_is_named(
    dialect: Dialect, method: str, params: dict[str, Any], place: str, value: Any
) -> None:
    assert fault(dialect, method, put(params, place, value)).param == place


@pytest.mark.parametrize(
    ("dialect", "place", "value", "expected"),
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
            InvalidParams("message.parts[0].raw", "base64 string or null", "string"),
        ),
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
            InvalidParams("message.parts[0].kind", "one of", "image", ("data", "file", "text", "null")),
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
        (V03, "message.kind", "task", InvalidParams("message.kind", "one of", "task", ("message", "null"))),
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
def test_a_fault_is_told_with_its_place(dialect: Dialect, place: str, value: Any, expected: InvalidParams) -> None:
    params = put(SEND_V10 if dialect is V10 else SEND_V03, place, value)
    assert fault(dialect, method_of(dialect), params) == expected


@pytest.mark.parametrize("dialect", [V10, V03], ids=["1.0", "0.3"])
@pytest.mark.parametrize("parts", [[{}], [{"text": 1}]])
def test_a_place_begins_where_the_params_stand(dialect: Dialect, parts: list[Any]) -> None:
    params = put(SEND_V10 if dialect is V10 else SEND_V03, "message.parts", parts)
    assert fault(dialect, method_of(dialect), params, "params").param.startswith("params.message.parts[0]")


@pytest.mark.parametrize("dialect", [V10, V03], ids=["1.0", "0.3"])
@pytest.mark.parametrize(("params", "expected"), [(["t-1"], ("$", "array")), (None, ("id", "missing"))])
def test_params_are_one_object(dialect: Dialect, params: Any, expected: tuple[str, str]) -> None:
    found = fault(dialect, method_of(dialect, send=False), params)
    assert (found.param, found.received) == expected


def _with_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return {**{name: _with_unknown(inner) for name, inner in value.items()}, "x-unknown": {"a": [1]}}
    return [_with_unknown(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("dialect", "method", "params"), [case[:3] for case in REQUIRED])
def test_unknown_members_are_ignored_at_every_level(dialect: Dialect, method: str, params: dict[str, Any]) -> None:
    assert decode(dialect, method, _with_unknown(params)) == decode(dialect, method, params)


@pytest.mark.parametrize("dialect", [V10, V03], ids=["1.0", "0.3"])
def test_every_method_has_its_input(dialect: Dialect) -> None:
    assert tuple(dialect.inputs) == (METHODS_V10 if dialect is V10 else METHODS_V03)


def test_an_operation_takes_the_input_of_its_method() -> None:
    service = Service("")

    @service.query(name="GetTask", inline=True)
    def get(params: dict[str, str]) -> str:
        return repr(params)

    spec = msgspec.structs.replace(service.operations[0], input=V10.inputs["GetTask"])
    values = spec.input.decode(Raw(b'{"id":"t-1","historyLength":0}'))
    assert spec.invoke(None, values) == repr(TaskRequest("t-1", history=0))


@pytest.mark.parametrize(
    ("dialect", "method", "params", "expected"),
    [
        (V10, "GetTask", {"id": "t-1"}, TaskRequest("t-1")),
        (V10, "GetTask", {"id": "t-1", "historyLength": 0}, TaskRequest("t-1", history=0)),
        (V10, "CancelTask", {"id": "t-1", "metadata": {"k": None}}, TaskRequest("t-1", {"k": None})),
        (V10, "SubscribeToTask", {"id": "t-1", "tenant": "x"}, TaskRequest("t-1")),
        (
            V10,
            "CreateTaskPushNotificationConfig",
            {"taskId": "t-1", "url": "https://example.com", "id": "", "token": ""},
            PushConfig("https://example.com", task_id="t-1"),
        ),
        (V10, "GetTaskPushNotificationConfig", {"taskId": "t-1", "id": "p-1"}, ConfigRequest("t-1", "p-1")),
        (V10, "ListTaskPushNotificationConfigs", {"taskId": "t-1", "pageSize": 1}, ConfigRequest("t-1")),
        (V10, "DeleteTaskPushNotificationConfig", {"taskId": "t-1", "id": "p-1"}, ConfigRequest("t-1", "p-1")),
        (V10, "GetExtendedAgentCard", None, None),
        (V10, "GetExtendedAgentCard", {"tenant": "x"}, None),
        (V10, "ListTasks", None, ListRequest(Query(scope="", artifacts=False))),
        (
            V10,
            "ListTasks",
            {"contextId": "", "status": "TASK_STATE_UNSPECIFIED", "pageToken": "", "includeArtifacts": False},
            ListRequest(Query(scope="", artifacts=False)),
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
                Query(
                    scope="",
                    context_id="c-1",
                    state=TaskState.WORKING,
                    after="2026-01-31T21:59:59.000Z",
                    size=100,
                    token="p",
                ),
                3,
            ),
        ),
        (V03, "tasks/get", {"id": "t-1", "historyLength": 3, "metadata": None}, TaskRequest("t-1", history=3)),
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
        (V03, "tasks/pushNotificationConfig/get", {"id": "t-1"}, ConfigRequest("t-1")),
        (
            V03,
            "tasks/pushNotificationConfig/get",
            {"id": "t-1", "pushNotificationConfigId": "p-1"},
            ConfigRequest("t-1", "p-1"),
        ),
        (V03, "tasks/pushNotificationConfig/list", {"id": "t-1"}, ConfigRequest("t-1")),
        (
            V03,
            "tasks/pushNotificationConfig/delete",
            {"id": "t-1", "pushNotificationConfigId": "p-1"},
            ConfigRequest("t-1", "p-1"),
        ),
        (V03, "agent/getAuthenticatedExtendedCard", None, None),
    ],
)
def test_params_become_the_request_of_the_core(dialect: Dialect, method: str, params: Any, expected: Any) -> None:
    assert decode(dialect, method, params) == expected


@pytest.mark.parametrize("size", [0, 101, -1, 1.5])
def test_a_page_holds_1_to_100_tasks(size: float) -> None:
    assert fault(V10, "ListTasks", {"pageSize": size}).param == "pageSize"


@pytest.mark.parametrize("stamp", ["yesterday", "2026-01-31T23:59:59", "", 7])
def test_a_moment_without_an_offset_is_refused(stamp: object) -> None:
    assert fault(V10, "ListTasks", {"statusTimestampAfter": stamp}).param == "statusTimestampAfter"


@pytest.mark.parametrize(
    ("dialect", "params"),
    [
        (V10, {"historyLength": -1}),
        (V03, {"historyLength": -1}),
    ],
)
def test_there_is_no_history_of_less_than_nothing(dialect: Dialect, params: dict[str, Any]) -> None:
    method = method_of(dialect, send=False)
    assert fault(dialect, method, {"id": "t-1", **params}).param == "historyLength"


# -- what is forgiven ----------------------------------------------------------------------------------------------------

PLAIN = Sending(Message("m-1", Role.USER, (Part(text="Hello"),)))


def test_null_is_as_if_absent_in_1_0() -> None:
    nothing = {"contextId": None, "taskId": None, "metadata": None, "extensions": None, "referenceTaskIds": None}
    part = {"text": "Hello", "raw": None, "url": None, "metadata": None, "filename": None, "mediaType": None}
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [part], **nothing}
    configuration = {
        "acceptedOutputModes": None,
        "taskPushNotificationConfig": None,
        "historyLength": None,
        "returnImmediately": None,
    }
    assert decode(V10, "SendMessage", {"message": message, "configuration": None, "metadata": None}) == PLAIN
    assert decode(V10, "SendMessage", {"message": message, "configuration": configuration}) == PLAIN


def test_null_is_as_if_absent_in_0_3() -> None:
    nothing = {"contextId": None, "taskId": None, "metadata": None, "extensions": None, "referenceTaskIds": None}
    part = {"kind": None, "text": "Hello", "file": None, "data": None, "metadata": None}
    message = {"kind": None, "messageId": "m-1", "role": "user", "parts": [part], **nothing}
    configuration = {
        "acceptedOutputModes": None,
        "blocking": None,
        "historyLength": None,
        "pushNotificationConfig": None,
    }
    assert decode(V03, "message/send", {"message": message, "configuration": None, "metadata": None}) == PLAIN
    assert decode(V03, "message/send", {"message": message, "configuration": configuration}) == PLAIN


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"text": "a"}, Part(text="a")),
        ({"file": {"bytes": "YQ"}}, Part(raw=b"a")),
        ({"file": {"uri": "u"}}, Part(url="u")),
        ({"data": {"k": 1}}, Part(data={"k": 1})),
        ({"kind": "text", "text": "a", "data": {}}, Part(text="a")),
    ],
)
def test_a_part_of_0_3_may_leave_its_kind_to_its_content(part: dict[str, Any], expected: Part) -> None:
    params = {"message": {"messageId": "m-1", "role": "user", "parts": [part]}}
    assert decode(V03, "message/send", params).message.parts == (expected,)


def test_enumerations_of_1_0_may_come_by_number() -> None:
    message = {"messageId": "m-1", "role": 1, "parts": [{"text": "Hello"}]}
    assert decode(V10, "SendMessage", {"message": message}) == PLAIN
    states = [decode(V10, "ListTasks", {"status": number}).query.state for number in range(9)]
    assert [None if state is None else state.value for state in states] == [
        None,
        "TASK_STATE_SUBMITTED",
        "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",
        "TASK_STATE_FAILED",
        "TASK_STATE_CANCELED",
        "TASK_STATE_INPUT_REQUIRED",
        "TASK_STATE_REJECTED",
        "TASK_STATE_AUTH_REQUIRED",
    ]
    assert fault(V10, "ListTasks", {"status": 9}) == InvalidParams("status", "one of", "number", (*STATES, "null"))


@pytest.mark.parametrize("length", ["3", 3.0])
def test_integers_of_1_0_may_be_in_strings(length: object) -> None:
    assert decode(V10, "GetTask", {"id": "t-1", "historyLength": length}) == TaskRequest("t-1", history=3)


@pytest.mark.parametrize("length", ["-3", "three", "", " 3", "99999999999999999999", True])
def test_what_is_no_integer_is_refused_in_strings_too(length: object) -> None:
    assert fault(V10, "GetTask", {"id": "t-1", "historyLength": length}).param == "historyLength"


def test_free_form_data_is_never_rewritten() -> None:
    data = {"role": 1, "extensions": None, "raw": "_-8", "historyLength": "3", "big": 12345678901234567890123}
    message = {
        "messageId": "m-1",
        "role": 1,
        "parts": [{"data": data, "metadata": data}, {"data": None}],
        "extensions": None,
    }
    sending = decode(V10, "SendMessage", {"message": message, "metadata": data})
    assert sending.message.parts[0] == Part(data=data, metadata=data)
    assert sending.message.parts[1].data is None
    assert sending.metadata == data


def test_a_fault_is_found_behind_what_is_forgiven() -> None:
    message = {"extensions": None, "role": 1, "messageId": "m-1", "parts": [{"raw": "YQ"}, {"text": 1}]}
    assert fault(V10, "SendMessage", {"message": message}).param == "message.parts[1].text"


def test_what_is_forgiven_is_bounded() -> None:
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"raw": "YQ"}] * 30_000}
    assert fault(V10, "SendMessage", {"message": message}).param.startswith("message.parts[")
    params = b'{"message":{"extensions":null,"parts":[%b1]}}' % (b"1," * 2_500_000)
    with pytest.raises(FailureError):
        V10.inputs["SendMessage"].decode(Raw(params))


@pytest.mark.parametrize("text", ["+/8=", "-_8=", "+/8", "-_8", "+_8"])
@pytest.mark.parametrize("dialect", [V10, V03], ids=["1.0", "0.3"])
def test_base64_may_be_of_either_alphabet_and_without_padding(dialect: Dialect, text: str) -> None:
    part: dict[str, Any] = {"raw": text} if dialect is V10 else {"file": {"bytes": text}}
    role = "ROLE_USER" if dialect is V10 else "user"
    params = {"message": {"messageId": "m-1", "role": role, "parts": [part]}}
    assert decode(dialect, method_of(dialect), params).message.parts == (Part(raw=b"\xfb\xff"),)


@pytest.mark.parametrize("text", ["A", "AAAAA", "AA=A", "AA===", "A A=", "AA\n==", "Ä", "AA==AA=="])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode_base64(text)


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(range(256))])
def test_base64_is_written_as_it_is_read(data: bytes) -> None:
    assert decode_base64(encode_base64(data)) == data


@pytest.mark.parametrize(
    ("given", "expected"), [(True, SendConfiguration(return_immediately=False)), (False, SendConfiguration(return_immediately=True))]
)
def test_blocking_is_the_contrary_of_returning_immediately(given: bool, expected: SendConfiguration) -> None:
    params = {**put(SEND_V03, "configuration", {"blocking": given})}
    assert decode(V03, "message/send", params).configuration == expected


def test_data_that_was_wrapped_is_unwrapped() -> None:
    def part(given: dict[str, Any]) -> Part:
        params = put(SEND_V03, "message.parts", [{"kind": "data", **given}])
        found: Part = decode(V03, "message/send", params).message.parts[0]
        return found

    mark = {"data_part_compat": True}
    assert part({"data": {"value": [1]}, "metadata": mark}) == Part(data=[1])
    assert part({"data": {"value": None}, "metadata": {**mark, "k": 1}}) == Part(data=None, metadata={"k": 1})
    assert part({"data": {"other": 1}, "metadata": mark}) == Part(data={"other": 1}, metadata=mark)
    assert part({"data": {"value": 1}, "metadata": {"k": 1}}) == Part(data={"value": 1}, metadata={"k": 1})
