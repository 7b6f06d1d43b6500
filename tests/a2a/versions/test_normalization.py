"""Deviations that params may have: null, missing kinds, the forms of ProtoJSON; and that normalization is bounded."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Raw

from discreet.a2a.protojson import decode_base64, encode_base64
from discreet.a2a.types import Message, Part, Role, SendConfiguration, SendRequest, TaskState
from discreet.a2a.v03 import V03
from discreet.a2a.v10 import V10
from discreet.a2a.version import ProtocolVersion, TaskRequest
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import InvalidParams

STATES = tuple(state.value for state in TaskState)

BOTH = pytest.mark.parametrize("version", [V10, V03], ids=["1.0", "0.3"])


def decode(version: ProtocolVersion, method: str, params: Any) -> Any:
    return version.inputs[method].decode(Raw(json.dumps(params).encode()))[0]


def fault(version: ProtocolVersion, method: str, params: Any) -> InvalidParams:
    with pytest.raises(FailureError) as caught:
        decode(version, method, params)
    assert isinstance(caught.value.failure, InvalidParams)
    return caught.value.failure


def message_v03(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messageId": "m-1", "role": "user", "parts": parts}


PLAIN = SendRequest(Message("m-1", Role.USER, (Part(text="Hello"),)))


NULLS = dict.fromkeys(["contextId", "taskId", "metadata", "extensions", "referenceTaskIds"])
NULLS_V10 = {
    "message": NULLS | {"messageId": "m-1", "role": "ROLE_USER"},
    "part": dict.fromkeys(["raw", "url", "metadata", "filename", "mediaType"]),
    "configuration": dict.fromkeys(
        ["acceptedOutputModes", "taskPushNotificationConfig", "historyLength", "returnImmediately"]
    ),
}
NULLS_V03 = {
    "message": NULLS | {"kind": None, "messageId": "m-1", "role": "user"},
    "part": dict.fromkeys(["kind", "file", "data", "metadata"]),
    "configuration": dict.fromkeys(["acceptedOutputModes", "blocking", "historyLength", "pushNotificationConfig"]),
}


@pytest.mark.parametrize(
    ("version", "method", "nulls"), [(V10, "SendMessage", NULLS_V10), (V03, "message/send", NULLS_V03)]
)
def test_null_counts_as_absent(version: ProtocolVersion, method: str, nulls: dict[str, Any]) -> None:
    message = nulls["message"] | {"parts": [nulls["part"] | {"text": "Hello"}]}
    assert decode(version, method, {"message": message, "configuration": None, "metadata": None}) == PLAIN
    assert decode(version, method, {"message": message, "configuration": nulls["configuration"]}) == PLAIN


def snake(value: Any) -> Any:
    """A message with the names that its members have in the protobuf, at every depth but in free-form JSON."""
    if isinstance(value, list | tuple):
        return [*map(snake, value)]
    if not isinstance(value, dict):
        return value
    return {
        re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name): inner if name in FREE else snake(inner)
        for name, inner in value.items()
    }


FREE = ("metadata", "data")
FREE_FORM = {"task_id": {"context_id": [1, {"mediaType": 2, "media_type": 3}]}}

BOTH_SPELLINGS: dict[str, Any] = {
    "SendMessage": {
        "message": {
            "messageId": "m-1",
            "role": "ROLE_USER",
            "contextId": "c-1",
            "taskId": "t-1",
            "referenceTaskIds": ["t-2"],
            "extensions": ["urn:x"],
            "metadata": FREE_FORM,
            "parts": [
                {"text": "Hello", "mediaType": "text/plain", "metadata": FREE_FORM},
                {"data": FREE_FORM, "mediaType": "application/json", "filename": "x.json"},
            ],
        },
        "configuration": {
            "acceptedOutputModes": ["text/plain"],
            "historyLength": 3,
            "returnImmediately": True,
            "taskPushNotificationConfig": {
                "id": "p-1",
                "taskId": "t-1",
                "url": "https://example.org/",
                "authentication": {"scheme": "Bearer", "credentials": "c"},
            },
        },
        "metadata": FREE_FORM,
        "tenant": "n",
    },
    "GetTask": {"id": "t-1", "historyLength": 2, "tenant": "n"},
    "ListTasks": {
        "contextId": "c-1",
        "status": "TASK_STATE_WORKING",
        "pageSize": 7,
        "pageToken": "9",
        "historyLength": 1,
        "statusTimestampAfter": "2026-01-31T23:59:59.999Z",
        "includeArtifacts": True,
    },
    "CancelTask": {"id": "t-1", "metadata": FREE_FORM},
    "SubscribeToTask": {"id": "t-1"},
    "CreateTaskPushNotificationConfig": {"taskId": "t-1", "url": "https://example.org/", "id": "p-1", "token": "x"},
    "GetTaskPushNotificationConfig": {"taskId": "t-1", "id": "p-1"},
    "ListTaskPushNotificationConfigs": {"taskId": "t-1", "pageSize": 1},
    "DeleteTaskPushNotificationConfig": {"taskId": "t-1", "id": "p-1"},
    "GetExtendedAgentCard": {"tenant": "n"},
}


def names_of(wire: Any) -> set[str]:
    """The names of all members of a type, at every depth."""
    found: set[str] = set()
    for field in msgspec.structs.fields(wire):
        found.add(field.encode_name)
        for inner in [field.type, *get_args(field.type), *(a for each in get_args(field.type) for a in get_args(each))]:
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                found |= names_of(inner)
    return found


@pytest.mark.parametrize("method", BOTH_SPELLINGS)
def test_members_may_have_the_names_of_the_protobuf_at_every_depth(method: str) -> None:
    params = BOTH_SPELLINGS[method]
    assert V10.inputs[method].decode(Raw(json.dumps(snake(params)).encode())) == V10.inputs[method].decode(
        Raw(json.dumps(params).encode())
    )


def test_the_table_of_both_spellings_has_every_name_that_differs() -> None:
    said = set(re.findall(r'"(\w+)":', json.dumps(BOTH_SPELLINGS)))
    assert {*BOTH_SPELLINGS, "SendStreamingMessage"} == {*V10.inputs}
    differing = {name for model in V10.inputs.values() for name in names_of(model.type) if name.lower() != name}
    assert "taskPushNotificationConfig" in differing
    assert differing <= said


@pytest.mark.parametrize("text", ['{"id":"t","history_length":2}', '{"id":"t","history\\u005flength":"2"}'])
def test_of_both_names_of_a_member_the_last_counts_and_faults_have_its_path(text: str) -> None:
    assert V10.inputs["GetTask"].decode(Raw(text.encode()))[0].history_length == 2
    both = text[:-1] + ',"historyLength":3}'
    assert V10.inputs["GetTask"].decode(Raw(both.encode()))[0].history_length == 3
    assert fault(V10, "GetTask", {"id": "t", "history_length": -1}).param == "historyLength"
    found = fault(
        V10, "SendMessage", {"message": {"message_id": "m", "role": "ROLE_USER", "parts": [{"media_type": 7}]}}
    )
    assert found.param == "message.parts[0].mediaType"


@BOTH
def test_an_empty_list_of_output_modes_counts_as_absent(version: ProtocolVersion) -> None:
    method, role = ("SendMessage", "ROLE_USER") if version is V10 else ("message/send", "user")
    message = {"messageId": "m-1", "role": role, "parts": [{"text": "Hello"}]}
    assert decode(version, method, {"message": message, "configuration": {"acceptedOutputModes": []}}) == PLAIN


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
def test_a_part_of_0_3_may_lack_its_kind(part: dict[str, Any], expected: Part) -> None:
    assert decode(V03, "message/send", {"message": message_v03(part)}).message.parts == (expected,)


def test_enumerations_of_1_0_may_be_numbers() -> None:
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
    assert fault(V10, "ListTasks", {"status": 9}) == InvalidParams("status", "one of", "number", (*STATES, None))


@pytest.mark.parametrize("length", ["3", 3.0])
def test_integers_of_1_0_may_be_in_strings(length: object) -> None:
    assert decode(V10, "GetTask", {"id": "t-1", "historyLength": length}) == TaskRequest("t-1", history_length=3)


@pytest.mark.parametrize("length", ["-3", "three", "", " 3", "99999999999999999999", True])
def test_strings_that_hold_no_integer_are_refused(length: object) -> None:
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


def test_a_fault_is_found_beside_normalized_values() -> None:
    message = {"extensions": None, "role": 1, "messageId": "m-1", "parts": [{"raw": "YQ"}, {"text": 1}]}
    assert fault(V10, "SendMessage", {"message": message}).param == "message.parts[1].text"


def test_normalization_is_bounded() -> None:
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"raw": "YQ"}] * 30_000}
    assert fault(V10, "SendMessage", {"message": message}).param.startswith("message.parts[")
    params = b'{"message":{"extensions":null,"parts":[%b1]}}' % (b"1," * 2_500_000)
    with pytest.raises(FailureError):
        V10.inputs["SendMessage"].decode(Raw(params))


@pytest.mark.parametrize("text", ["+/8=", "-_8=", "+/8", "-_8", "+_8"])
@BOTH
def test_base64_may_be_of_either_alphabet_and_without_padding(version: ProtocolVersion, text: str) -> None:
    part: dict[str, Any] = {"raw": text} if version is V10 else {"file": {"bytes": text}}
    role = "ROLE_USER" if version is V10 else "user"
    params = {"message": {"messageId": "m-1", "role": role, "parts": [part]}}
    assert decode(version, "SendMessage" if version is V10 else "message/send", params).message.parts == (
        Part(raw=b"\xfb\xff"),
    )


@pytest.mark.parametrize("text", ["A", "AAAAA", "AA=A", "AA===", "A A=", "AA\n==", "Ä", "AA==AA=="])
def test_invalid_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode_base64(text)


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(range(256))])
def test_base64_is_written_as_it_is_read(data: bytes) -> None:
    assert decode_base64(encode_base64(data)) == data


@pytest.mark.parametrize(
    ("given", "expected"),
    [(True, SendConfiguration(return_immediately=False)), (False, SendConfiguration(return_immediately=True))],
)
def test_blocking_is_the_opposite_of_returning_immediately(given: bool, expected: SendConfiguration) -> None:
    params = {"message": message_v03({"text": "Hello"}), "configuration": {"blocking": given}}
    assert decode(V03, "message/send", params).configuration == expected


def test_data_that_was_wrapped_is_unwrapped() -> None:
    def part(given: dict[str, Any]) -> Part:
        message = message_v03({"kind": "data", **given})
        found: Part = decode(V03, "message/send", {"message": message}).message.parts[0]
        return found

    mark = {"data_part_compat": True}
    assert part({"data": {"value": [1]}, "metadata": mark}) == Part(data=[1])
    assert part({"data": {"value": None}, "metadata": {**mark, "k": 1}}) == Part(data=None, metadata={"k": 1})
    assert part({"data": {"other": 1}, "metadata": mark}) == Part(data={"other": 1}, metadata=mark)
    assert part({"data": {"value": 1}, "metadata": {"k": 1}}) == Part(data={"value": 1}, metadata={"k": 1})
