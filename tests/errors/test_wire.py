"""Failures as error objects and back: the table decides, and nothing but declared facts goes out."""

from __future__ import annotations

import json
import pickle
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from discreet.errors import (
    ERROR_TABLE,
    AgentFailure,
    AuthenticationRequired,
    Cancelled,
    ContentTypeNotSupported,
    DomainFailure,
    ExtendedAgentCardNotConfigured,
    ExtensionSupportRequired,
    Failure,
    FailureError,
    InsufficientPermissions,
    Internal,
    InvalidAgentResponse,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    OperationError,
    OperationTypeMismatch,
    Overloaded,
    ParseFailure,
    PushNotificationNotSupported,
    TaskNotCancelable,
    TaskNotFound,
    TimedOut,
    Unavailable,
    UnsupportedOperation,
    VersionNotSupported,
    grpc_of_http,
    row_of,
)
from discreet.errors.exceptions import failure_of
from discreet.errors.failures import EnvelopeMember, ParseReason, RequestReason
from discreet.errors.wire import decode_error, encode_error, encode_error_response, encode_status, error_object


class FileNotFound(OperationError, code="FILE_NOT_FOUND", http_status=404):
    """The file does not exist."""

    path: str


class RateLimited(OperationError, code="RATE_LIMITED", http_status=429, retryable=True, message="Slow down"):
    """Too many calls."""

    limit: int = 10


class Bare(OperationError, code="BARE"):
    pass


def error(failure: Failure) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(encode_error(failure))
    return decoded


TYPES = "type.googleapis.com/google."
A2A, OWN = "a2a-protocol.org", "discreet"


def info(name: str, domain: str = A2A, /, **metadata: str) -> dict[str, Any]:
    return {"@type": f"{TYPES}rpc.ErrorInfo", "reason": name, "domain": domain, "metadata": metadata}


def server(code: str, *, retryable: bool = True, **details: Any) -> dict[str, Any]:
    return {"code": code, "retryable": retryable, **({"details": details} if details else {})}


def retry(delay: str) -> dict[str, Any]:
    return {"@type": f"{TYPES}rpc.RetryInfo", "retryDelay": delay}


def violation(field: str, description: str) -> dict[str, Any]:
    return {"@type": f"{TYPES}rpc.BadRequest", "fieldViolations": [{"field": field, "description": description}]}


def value(details: Any) -> dict[str, Any]:
    return {"@type": f"{TYPES}protobuf.Value", "value": details}


RULES = {
    "unsupported-content-type": ": Content-Type must be application/vscode-jsonrpc",
    "bad-charset": ": the charset must be utf-8",
    "invalid-id-type": ": id must be a string, a number or null",
}

# The failure, its code, its message, its data, and its details in A2A 1.0.
EXPECTED: list[tuple[Failure, int, str, Any, list[dict[str, Any]]]] = [
    *(
        (ParseFailure(reason), -32700, "Parse error", {"reason": reason}, [info("PARSE_ERROR", reason=reason)])
        for reason in get_args(ParseReason)
    ),
    *(
        (InvalidRequest(reason), -32600, f"Invalid Request{RULES.get(reason, '')}", {"reason": reason},
            [info("INVALID_REQUEST", reason=reason)])
        for reason in get_args(RequestReason)
        if reason != "batch-not-supported"
    ),
    (InvalidRequest("batch-not-supported"), -32600, "Batch requests not supported",
        {"reason": "batch-not-supported"}, [info("INVALID_REQUEST", reason="batch-not-supported")]),
    (OperationTypeMismatch(), -32600, "Invalid Request",
        {"reason": "invalid-operation-type"}, [info("INVALID_REQUEST", reason="invalid-operation-type")]),
    (MethodNotFound(), -32601, "Method not found", None, [info("METHOD_NOT_FOUND")]),
    (InvalidParams("a.b[0]", "one of", "agent", ("user", 1, None)), -32602, "Invalid params",
        {"param": "a.b[0]", "expected": "one of", "received": "agent", "accepted": ["user", 1, None]},
        [info("INVALID_PARAMS", param="a.b[0]", expected="one of", received="agent", accepted='["user",1,null]'),
         violation("a.b[0]", "expected one of: user, 1, null; received agent")]),
    (InvalidParams("$", "object", "array"), -32602, "Invalid params",
        {"param": "$", "expected": "object", "received": "array"},
        [info("INVALID_PARAMS", param="$", expected="object", received="array"),
         violation("$", "expected object; received array")]),
    (Internal(), -32603, "Internal error", None, [info("INTERNAL_ERROR")]),
    (Internal("UNDECLARED"), -32603, "Internal error", {"code": "UNDECLARED"}, [info("INTERNAL_ERROR", code="UNDECLARED")]),
    (DomainFailure("TASK_NOT_FOUND", "Not what A2A means", False, Raw(b'{"at":18446744073709551615}'), 404),
        -32000, "Not what A2A means", server("TASK_NOT_FOUND", retryable=False, at=18446744073709551615),
        [info("TASK_NOT_FOUND", OWN, retryable="false"), value({"at": 18446744073709551615})]),
    (DomainFailure("BARE", "Bare", True), -32000, "Bare", server("BARE"), [info("BARE", OWN, retryable="true")]),
    (DomainFailure("BUSY", "Busy", number=-31999), -31999, "Busy",
        server("BUSY", retryable=False), [info("BUSY", OWN, retryable="false")]),
    (AuthenticationRequired(("Bearer", "ApiKey"), "files"), -32000, "Authentication required",
        server("FORBIDDEN", retryable=False, authSchemes=["Bearer", "ApiKey"], realm="files"),
        [info("FORBIDDEN", OWN, retryable="false", authSchemes="Bearer,ApiKey", realm="files")]),
    (InsufficientPermissions(), -32000, "Insufficient permissions",
        server("FORBIDDEN", retryable=False), [info("FORBIDDEN", OWN, retryable="false")]),
    (TimedOut(), -32000, "Request timed out", server("TIMEOUT"), [info("TIMEOUT", OWN, retryable="true")]),
    (Overloaded(), -32000, "Server overloaded", server("OVERLOADED"), [info("OVERLOADED", OWN, retryable="true")]),
    (Overloaded(1250), -32000, "Server overloaded",
        server("OVERLOADED", retryAfterMs=1250), [info("OVERLOADED", OWN, retryable="true"), retry("1.250s")]),
    (Unavailable(), -32000, "Shutting down", server("UNAVAILABLE"), [info("UNAVAILABLE", OWN, retryable="true")]),
    (Unavailable(500), -32000, "Store unavailable",
        server("UNAVAILABLE", retryAfterMs=500), [info("UNAVAILABLE", OWN, retryable="true"), retry("0.500s")]),
    (Cancelled(), -32800, "Request cancelled", None, [info("CANCELLED", OWN)]),
    *(
        (kind(version="0.3"), code, message, {}, [info(name)])
        for kind, code, message, name in (
            (TaskNotFound, -32001, "Task not found", "TASK_NOT_FOUND"),
            (TaskNotCancelable, -32002, "Task cannot be canceled", "TASK_NOT_CANCELABLE"),
            (PushNotificationNotSupported, -32003, "Push notifications not supported", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
            (UnsupportedOperation, -32004, "Operation not supported", "UNSUPPORTED_OPERATION"),
            (ContentTypeNotSupported, -32005, "Incompatible content types", "CONTENT_TYPE_NOT_SUPPORTED"),
            (InvalidAgentResponse, -32006, "Invalid agent response", "INVALID_AGENT_RESPONSE"),
            (ExtendedAgentCardNotConfigured, -32007, "Extended agent card not configured",
                "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
            (ExtensionSupportRequired, -32008, "Extension support required", "EXTENSION_SUPPORT_REQUIRED"),
            (VersionNotSupported, -32009, "Version not supported", "VERSION_NOT_SUPPORTED"),
        )
    ),
    (TaskNotCancelable(version="0.3", task_id="t-1", current_state="completed", suggestion="Get it.", accepted=("1", "2")),
        -32002, "Task cannot be canceled",
        {"taskId": "t-1", "currentState": "completed", "suggestion": "Get it.", "accepted": ["1", "2"]},
        [info("TASK_NOT_CANCELABLE", taskId="t-1", currentState="completed", suggestion="Get it.", accepted="1,2")]),
]  # fmt: skip


def is_of_1_0(failure: Failure) -> Failure:
    return msgspec.structs.replace(failure, version="1.0") if isinstance(failure, AgentFailure) else failure


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: repr(row[0])[:60])
def test_a_failure_becomes_its_row_of_the_table_and_is_read_back(row: Any) -> None:
    failure, code, message, data, details = row
    assert error(failure) == {"code": code, "message": message, **({} if data is None else {"data": data})}
    in_1_0 = json.loads(encode_error_response(b"1", failure, version="1.0"))["error"]
    assert in_1_0 == {"code": code, "message": message, "data": details}
    if isinstance(failure, AgentFailure):
        assert error(is_of_1_0(failure))["data"] == details
    if isinstance(failure, DomainFailure):
        failure = msgspec.structs.replace(failure, http_status=500)  # statuses are for gateways and do not travel
    decoded, read = decode_error(encode_error(failure))
    assert (decoded.code, read) == (row_of(failure).code, failure)
    assert decode_error(msgspec.json.encode(in_1_0))[1] == is_of_1_0(failure)


@pytest.mark.parametrize("failure", [failure for failure, *_ in EXPECTED], ids=lambda value: repr(value)[:50])
def test_11_6_a_status_has_the_same_details_as_the_error_of_json_rpc(failure: Failure) -> None:
    status = json.loads(encode_status(failure, 418))
    error = json.loads(encode_error_response(b"1", failure, version="1.0"))["error"]
    assert status == {"error": {**status["error"], "code": 418, "message": error["message"], "details": error["data"]}}


def test_who_asks_to_wait_is_told_apart() -> None:
    texts = [encode_error(Unavailable(500, upstream=upstream)) for upstream in (False, True)]
    assert [b"Store unavailable" in bytes(text) for text in texts] == [True, False]
    assert [b"Upstream unavailable" in bytes(text) for text in texts] == [False, True]


@pytest.mark.parametrize("member", get_args(EnvelopeMember))
def test_a_wrong_member_of_an_envelope_is_named_behind_the_canonical_message(member: EnvelopeMember) -> None:
    sent = error(InvalidRequest("malformed-envelope", member))
    assert sent["message"].startswith(f"Invalid Request: {member} must be ")
    assert (sent["code"], sent["data"]) == (-32600, {"reason": "malformed-envelope"})


def test_every_member_of_the_union_is_covered_here_and_has_a_row() -> None:
    members = set(get_args(Failure))
    assert {type(failure) for failure, *_ in EXPECTED} == members == {row.failure for row in ERROR_TABLE}


def test_an_error_response_echoes_the_id_it_was_given() -> None:
    assert json.loads(encode_error_response(b'"a"', MethodNotFound())) == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32601, "message": "Method not found"},
    }


@given(st.binary())
def test_any_bytes_read_as_some_failure(raw: bytes) -> None:
    _, failure = decode_error(raw)
    assert isinstance(failure, get_args(Failure))


@pytest.mark.parametrize("code", [-32010, -32099, 1, 0, -32604])
def test_an_unknown_code_is_internal_and_keeps_its_number(code: int) -> None:
    decoded, failure = decode_error(msgspec.json.encode({"code": code, "message": "x", "data": {"a": 1}}))
    assert (decoded.code, failure) == (code, Internal())
    assert not row_of(failure).retryable


def test_a_declared_error_brings_its_checked_details() -> None:
    failure = failure_of(FileNotFound(path="notes.txt"), [FileNotFound])
    assert error(failure)["data"] == {
        "code": "FILE_NOT_FOUND", "retryable": False, "details": {"path": "notes.txt"},
    }  # fmt: skip
    assert row_of(failure).grpc_status == "NOT_FOUND"


def test_defaults_of_fields_count_and_can_be_read_from_the_exception() -> None:
    assert RateLimited().limit == 10
    assert RateLimited(limit=3).limit == 3
    assert error(failure_of(RateLimited(), [RateLimited]))["data"]["details"] == {"limit": 10}
    assert error(failure_of(RateLimited(), [RateLimited]))["message"] == "Slow down"


def test_an_error_without_fields_has_no_details() -> None:
    assert error(failure_of(Bare(), [Bare])) == {
        "code": -32000, "message": "Bare", "data": {"code": "BARE", "retryable": False},
    }  # fmt: skip


def test_an_undeclared_error_is_internal_and_tells_nothing_but_its_code() -> None:
    failure = failure_of(FileNotFound(path="/home/me/secret"), [RateLimited])
    assert error(failure) == {"code": -32603, "message": "Internal error", "data": {"code": "FILE_NOT_FOUND"}}


def test_details_of_the_wrong_type_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        failure_of(FileNotFound(path=5), [FileNotFound])  # type: ignore[arg-type]


def test_a_secret_in_details_is_replaced_but_a_path_stays() -> None:
    token = "ghp_" + "a1B2" * 9
    details = error(failure_of(FileNotFound(path=f"/srv/data?token={token}"), [FileNotFound]))["data"]["details"]
    assert token not in details["path"]
    assert details["path"].startswith("/srv/data")


def test_a_subclass_inherits_fields_but_has_to_be_declared_itself() -> None:
    class DeviceNotFound(FileNotFound, code="DEVICE_NOT_FOUND"):
        """The device does not exist."""

        bus: int

    raised = DeviceNotFound(path="a", bus=1)
    assert error(failure_of(raised, [DeviceNotFound]))["data"] == {
        "code": "DEVICE_NOT_FOUND", "retryable": False, "details": {"path": "a", "bus": 1},
    }  # fmt: skip
    assert failure_of(raised, [FileNotFound]) == Internal("DEVICE_NOT_FOUND")


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"code": "NOT_FOUND"},
        {"code": "lower"},
        {"code": "X", "http_status": 200},
        {"code": "X", "http_status": 600},
        {"code": ""},
    ],
)
def test_a_wrong_declaration_fails_where_it_is_written(keywords: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        type(OperationError)("Wrong", (OperationError,), {}, **keywords)


def test_a_field_may_not_hide_a_member_of_exceptions() -> None:
    with pytest.raises(TypeError, match="args"):
        type(OperationError)("Wrong", (OperationError,), {"__annotations__": {"args": str}}, code="X")


def test_missing_and_unknown_fields_fail_at_the_raise() -> None:
    with pytest.raises(TypeError):
        FileNotFound()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        FileNotFound(path="a", other=1)  # type: ignore[call-arg]


def test_an_error_survives_the_way_through_a_process_pool() -> None:
    copy = pickle.loads(pickle.dumps(FileNotFound(path="a")))
    assert isinstance(copy, FileNotFound)
    assert copy.path == "a"


def test_the_text_of_a_failure_error_shows_no_facts() -> None:
    assert str(FailureError(InvalidParams("secret-name", "x", "y"))) == "InvalidParams"


def test_http_statuses_have_their_usual_grpc_status() -> None:
    assert [grpc_of_http(status) for status in (404, 409, 412, 429, 503, 418)] == [
        "NOT_FOUND", "ABORTED", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL",
    ]  # fmt: skip


# -- A2A 1.0 ---------------------------------------------------------------------------------------------------------


def failures() -> st.SearchStrategy[Failure]:
    token = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,9}", fullmatch=True)
    listed = st.lists(token, max_size=3).map(tuple)
    scalars = st.text() | st.integers(-(2**63), 2**63) | st.booleans() | st.none()
    text = st.none() | st.text()
    agent_kinds = [row.failure for row in ERROR_TABLE if issubclass(row.failure, AgentFailure)]
    return st.one_of(
        st.sampled_from(get_args(ParseReason)).map(ParseFailure),
        st.sampled_from(get_args(RequestReason)).map(InvalidRequest),
        st.just(OperationTypeMismatch()),
        st.just(MethodNotFound()),
        st.builds(InvalidParams, st.text(), st.text(), st.text(), st.none() | st.lists(scalars).map(tuple)),
        st.builds(Internal, st.none() | st.text()),
        st.builds(
            DomainFailure,
            st.sampled_from(["BUSY", "TASK_NOT_FOUND", "INVALID_PARAMS"]),
            st.text(),
            st.booleans(),
            st.none() | st.dictionaries(st.text(), scalars).map(lambda value: Raw(msgspec.json.encode(value))),
            number=st.none() | st.integers(-31999, -31000),
        ),
        st.builds(AuthenticationRequired, listed, st.text()),
        st.just(InsufficientPermissions()),
        st.just(TimedOut()),
        st.just(Unavailable()),
        st.just(Cancelled()),
        st.builds(Overloaded, st.none() | st.integers(0, 10**9)),
        st.sampled_from(agent_kinds).flatmap(
            lambda kind: st.builds(
                kind, task_id=text, current_state=text, reason=text, suggestion=text, accepted=listed
            )
        ),
    )


@given(failures())
def test_a_client_reads_back_every_failure_that_was_sent_in_1_0(failure: Failure) -> None:
    error = error_object(failure, version="1.0")
    decoded, read = decode_error(msgspec.json.encode(error))
    assert (decoded, read) == (error, failure)


NAMES = (
    "code message data reason retryable details @type domain metadata fieldViolations retryDelay value accepted".split()
)
JSON = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(NAMES) | st.text(),
            inner | st.sampled_from([f"{TYPES}rpc.{name}" for name in ("ErrorInfo", "BadRequest", "RetryInfo")]),
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from([row.code for row in ERROR_TABLE]) | st.integers(-40000, 1), JSON | st.lists(JSON, max_size=4))
def test_any_data_reads_as_a_failure_with_the_meaning_of_its_number(code: int, data: Any) -> None:
    _, failure = decode_error(msgspec.json.encode({"code": code, "message": "x", "data": data}))
    assert isinstance(failure, get_args(Failure))
    kinds = tuple(row.failure for row in ERROR_TABLE if row.code == code and code != -32000)
    assert not kinds or isinstance(failure, kinds)
    assert isinstance(decode_error(msgspec.json.encode(data))[1], get_args(Failure))


def test_the_violation_of_another_server_names_the_param() -> None:
    data = [violation("message.parts", "At least one part is required")]
    _, failure = decode_error(msgspec.json.encode({"code": -32602, "message": "Invalid parameters", "data": data}))
    assert failure == InvalidParams("message.parts", "At least one part is required", "")


@pytest.mark.parametrize("delay", ["", "s", "nan", "infs", "-1s", "1e400s", "soons"])
def test_a_delay_that_is_none_says_nothing_of_when_to_try_again(delay: str) -> None:
    data = [info("OVERLOADED", OWN, retryable="true"), retry(delay)]
    _, failure = decode_error(msgspec.json.encode({"code": -32000, "message": "x", "data": data}))
    assert failure == Overloaded()


def test_the_declared_error_of_another_server_is_internal() -> None:
    data = [info("RATE_LIMITED", "example.com")]
    assert decode_error(msgspec.json.encode({"code": -32000, "message": "x", "data": data}))[1] == Internal()
