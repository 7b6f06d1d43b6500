"""Failures as error objects and back: the table decides, and nothing but declared facts goes out."""

from __future__ import annotations

import json
import pickle
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import (
    ERROR_TABLE,
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
from discreet.errors.wire import decode_error, encode_error, encode_error_response


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


def error_info(reason: str, **metadata: str) -> dict[str, Any]:
    return {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "a2a-protocol.org",
        "metadata": metadata,
    }


EXPECTED: list[tuple[Failure, int, str, Any]] = [
    *((ParseFailure(reason), -32700, "Parse error", {"reason": reason}) for reason in get_args(ParseReason)),
    *(
        (InvalidRequest(reason), -32600, "Invalid Request", {"reason": reason})
        for reason in get_args(RequestReason)
        if reason != "batch-not-supported"
    ),
    (
        InvalidRequest("batch-not-supported"),
        -32600,
        "Batch requests not supported",
        {"reason": "batch-not-supported"},
    ),
    (OperationTypeMismatch(), -32600, "Invalid Request", {"reason": "invalid-operation-type"}),
    (MethodNotFound(), -32601, "Method not found", None),
    (
        InvalidParams("a.b[0]", "one of", "string", ("x", "y")),
        -32602,
        "Invalid params",
        {"param": "a.b[0]", "expected": "one of", "received": "string", "accepted": ["x", "y"]},
    ),
    (
        InvalidParams("$", "object", "array"),
        -32602,
        "Invalid params",
        {"param": "$", "expected": "object", "received": "array"},
    ),
    (Internal(), -32603, "Internal error", None),
    (Internal("UNDECLARED"), -32603, "Internal error", {"code": "UNDECLARED"}),
    (
        DomainFailure("FILE_NOT_FOUND", "The file does not exist", False, msgspec.Raw(b'{"path":"a"}'), 404),
        -32000,
        "The file does not exist",
        {"code": "FILE_NOT_FOUND", "retryable": False, "details": {"path": "a"}},
    ),
    (DomainFailure("BARE", "Bare", True), -32000, "Bare", {"code": "BARE", "retryable": True}),
    (
        AuthenticationRequired(("bearer",), "files"),
        -32000,
        "Authentication required",
        {"code": "FORBIDDEN", "retryable": False, "details": {"authSchemes": ["bearer"], "realm": "files"}},
    ),
    (InsufficientPermissions(), -32000, "Insufficient permissions", {"code": "FORBIDDEN", "retryable": False}),
    (TimedOut(), -32000, "Request timed out", {"code": "TIMEOUT", "retryable": True}),
    (Overloaded(), -32000, "Server overloaded", {"code": "OVERLOADED", "retryable": True}),
    (
        Overloaded(250),
        -32000,
        "Server overloaded",
        {"code": "OVERLOADED", "retryable": True, "details": {"retryAfterMs": 250}},
    ),
    (Unavailable(), -32000, "Shutting down", {"code": "UNAVAILABLE", "retryable": True}),
    (
        Unavailable(500),
        -32000,
        "Store unavailable",
        {"code": "UNAVAILABLE", "retryable": True, "details": {"retryAfterMs": 500}},
    ),
    (Cancelled(), -32800, "Request cancelled", None),
    *(
        (kind(version=version), code, message, data)
        for kind, code, message, name in (
            (TaskNotFound, -32001, "Task not found", "TASK_NOT_FOUND"),
            (TaskNotCancelable, -32002, "Task cannot be canceled", "TASK_NOT_CANCELABLE"),
            (
                PushNotificationNotSupported,
                -32003,
                "Push notifications not supported",
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
            ),
            (UnsupportedOperation, -32004, "Operation not supported", "UNSUPPORTED_OPERATION"),
            (ContentTypeNotSupported, -32005, "Incompatible content types", "CONTENT_TYPE_NOT_SUPPORTED"),
            (InvalidAgentResponse, -32006, "Invalid agent response", "INVALID_AGENT_RESPONSE"),
            (
                ExtendedAgentCardNotConfigured,
                -32007,
                "Extended agent card not configured",
                "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            ),
            (ExtensionSupportRequired, -32008, "Extension support required", "EXTENSION_SUPPORT_REQUIRED"),
            (VersionNotSupported, -32009, "Version not supported", "VERSION_NOT_SUPPORTED"),
        )
        for version, data in (("0.3", {}), ("1.0", [error_info(name)]))
    ),
    (
        TaskNotCancelable(
            version="0.3", task_id="t-1", current_state="completed", reason="It has ended.", suggestion="Get it."
        ),
        -32002,
        "Task cannot be canceled",
        {"taskId": "t-1", "currentState": "completed", "reason": "It has ended.", "suggestion": "Get it."},
    ),
    (
        UnsupportedOperation(task_id="t-1", current_state="TASK_STATE_FAILED"),
        -32004,
        "Operation not supported",
        [error_info("UNSUPPORTED_OPERATION", taskId="t-1", currentState="TASK_STATE_FAILED")],
    ),
    (
        VersionNotSupported(accepted=("1.0", "1.1")),
        -32009,
        "Version not supported",
        [error_info("VERSION_NOT_SUPPORTED", accepted="1.0,1.1")],
    ),
]


@pytest.mark.parametrize(("failure", "code", "message", "data"), EXPECTED, ids=lambda value: repr(value)[:60])
def test_a_failure_becomes_its_row_of_the_table(failure: Failure, code: int, message: str, data: Any) -> None:
    wanted: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        wanted["data"] = data
    assert error(failure) == wanted


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


@pytest.mark.parametrize("failure", [failure for failure, *_ in EXPECTED], ids=lambda failure: type(failure).__name__)
def test_a_peer_reads_back_the_failure_that_was_sent(failure: Failure) -> None:
    decoded, read = decode_error(encode_error(failure))
    if isinstance(failure, DomainFailure):
        failure = msgspec.structs.replace(failure, http_status=500)  # statuses are for gateways and do not travel
    assert read == failure
    assert decoded.code == row_of(failure).code


@given(
    st.binary()
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda s: (
            st.lists(s)
            | st.dictionaries(st.sampled_from(["code", "message", "data", "reason", "retryable", "details"]), s)
        ),
    ).map(msgspec.json.encode)
)
def test_any_bytes_read_as_some_failure(raw: bytes) -> None:
    _, failure = decode_error(raw)
    assert isinstance(failure, get_args(Failure))


@pytest.mark.parametrize("code", [-32010, -32099, 1, 0, -32604])
def test_an_unknown_code_is_internal_and_keeps_its_number(code: int) -> None:
    decoded, failure = decode_error(msgspec.json.encode({"code": code, "message": "x", "data": {"a": 1}}))
    assert (decoded.code, failure) == (code, Internal())
    assert not row_of(failure).retryable


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (-32700, ParseFailure),
        (-32600, InvalidRequest),
        (-32602, InvalidParams),
        (-32603, Internal),
        (-32001, TaskNotFound),
        (-32009, VersionNotSupported),
    ],
)
@pytest.mark.parametrize(
    "data", [None, "text", {"of": "another make"}, [], [{"reason": 1}], [{"metadata": {"accepted": 1}}]]
)
def test_a_standard_number_keeps_its_meaning_whatever_data_comes_with_it(code: int, kind: type, data: Any) -> None:
    _, failure = decode_error(msgspec.json.encode({"code": code, "message": "x", "data": data}))
    assert isinstance(failure, kind)


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
