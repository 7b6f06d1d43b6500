"""The errors of A2A 1.0 (sections 3.3.2, 9.5 and 11.6): what their details hold, and that nothing is lost on the way."""

from __future__ import annotations

import json
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
    DomainFailure,
    Failure,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    OperationTypeMismatch,
    Overloaded,
    ParseFailure,
    TaskNotFound,
    TimedOut,
    Unavailable,
    VersionNotSupported,
)
from discreet.errors.failures import Cancelled, ParseReason, RequestReason
from discreet.errors.wire import decode_error, encode_error_response, encode_status, error_object

TYPES = "type.googleapis.com/google."


def details_of(failure: Failure) -> list[dict[str, Any]]:
    response = json.loads(encode_error_response(b"1", failure, version="1.0"))
    details: list[dict[str, Any]] = response["error"]["data"]
    return details


def info(name: str, domain: str, /, **metadata: str) -> dict[str, Any]:
    return {"@type": f"{TYPES}rpc.ErrorInfo", "reason": name, "domain": domain, "metadata": metadata}


A2A, OWN = "a2a-protocol.org", "discreet"

CASES: list[tuple[Failure, list[dict[str, Any]]]] = [
    (ParseFailure("invalid-utf8"), [info("PARSE_ERROR", A2A, reason="invalid-utf8")]),
    (InvalidRequest("oversize"), [info("INVALID_REQUEST", A2A, reason="oversize")]),
    (OperationTypeMismatch(), [info("INVALID_REQUEST", A2A, reason="invalid-operation-type")]),
    (MethodNotFound(), [info("METHOD_NOT_FOUND", A2A)]),
    (
        InvalidParams("message.role", "one of", "agent", ("user", 1, None)),
        [
            info(
                "INVALID_PARAMS",
                A2A,
                param="message.role",
                expected="one of",
                received="agent",
                accepted='["user",1,null]',
            ),
            {
                "@type": f"{TYPES}rpc.BadRequest",
                "fieldViolations": [
                    {"field": "message.role", "description": "expected one of: user, 1, null; received agent"}
                ],
            },
        ],
    ),
    (Internal(), [info("INTERNAL_ERROR", A2A)]),
    (Internal("UNDECLARED"), [info("INTERNAL_ERROR", A2A, code="UNDECLARED")]),
    (
        AuthenticationRequired(("Bearer", "ApiKey"), "agents"),
        [info("FORBIDDEN", OWN, retryable="false", authSchemes="Bearer,ApiKey", realm="agents")],
    ),
    (InsufficientPermissions(), [info("FORBIDDEN", OWN, retryable="false")]),
    (TimedOut(), [info("TIMEOUT", OWN, retryable="true")]),
    (Unavailable(), [info("UNAVAILABLE", OWN, retryable="true")]),
    (Overloaded(), [info("OVERLOADED", OWN, retryable="true")]),
    (
        Overloaded(1250),
        [
            info("OVERLOADED", OWN, retryable="true"),
            {"@type": f"{TYPES}rpc.RetryInfo", "retryDelay": "1.250s"},
        ],
    ),
    (
        DomainFailure("TASK_NOT_FOUND", "Not what A2A means", True, Raw(b'{"at":18446744073709551615}')),
        [
            info("TASK_NOT_FOUND", OWN, retryable="true"),
            {"@type": f"{TYPES}protobuf.Value", "value": {"at": 18446744073709551615}},
        ],
    ),
    (DomainFailure("BUSY", "Busy", number=-31999), [info("BUSY", OWN, retryable="false")]),
    (Cancelled(), [info("CANCELLED", OWN)]),
    (
        TaskNotFound(task_id="t", suggestion="Send it."),
        [info("TASK_NOT_FOUND", A2A, taskId="t", suggestion="Send it.")],
    ),
    (VersionNotSupported(accepted=("1.0", "1.1")), [info("VERSION_NOT_SUPPORTED", A2A, accepted="1.0,1.1")]),
]


@pytest.mark.parametrize(("failure", "details"), CASES, ids=lambda value: repr(value)[:50])
def test_9_5_the_details_of_a_failure_are_typed_and_their_metadata_are_strings(
    failure: Failure, details: list[dict[str, Any]]
) -> None:
    assert details_of(failure) == details


@pytest.mark.parametrize("failure", [failure for failure, _ in CASES], ids=lambda value: repr(value)[:50])
def test_11_6_a_status_has_the_same_details_as_the_error_of_json_rpc(failure: Failure) -> None:
    status = json.loads(encode_status(failure, 418))
    assert [*status] == ["error"]
    assert (status["error"]["code"], status["error"]["details"]) == (418, details_of(failure))
    assert status["error"]["message"] == json.loads(msgspec.json.encode(error_object(failure)))["message"]


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


JSON = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["@type", "reason", "domain", "metadata", "fieldViolations", "retryDelay", "value"])
            | st.text(),
            inner | st.sampled_from([f"{TYPES}rpc.{name}" for name in ("ErrorInfo", "BadRequest", "RetryInfo")]),
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from([row.code for row in ERROR_TABLE]) | st.integers(-40000, 1), st.lists(JSON, max_size=4))
def test_any_list_of_details_reads_as_a_failure_with_the_meaning_of_its_number(code: int, data: list[Any]) -> None:
    _, failure = decode_error(msgspec.json.encode({"code": code, "message": "x", "data": data}))
    assert isinstance(failure, get_args(Failure))
    kinds = tuple(row.failure for row in ERROR_TABLE if row.code == code and code != -32000)
    assert not kinds or isinstance(failure, kinds)


def test_the_violation_of_another_server_names_the_param() -> None:
    violation = {"field": "message.parts", "description": "At least one part is required"}
    data = [{"@type": f"{TYPES}rpc.BadRequest", "fieldViolations": [violation]}]
    _, failure = decode_error(msgspec.json.encode({"code": -32602, "message": "Invalid parameters", "data": data}))
    assert failure == InvalidParams("message.parts", "At least one part is required", "")


@pytest.mark.parametrize("delay", ["", "s", "nan", "infs", "-1s", "1e400s", "soons"])
def test_a_delay_that_is_none_says_nothing_of_when_to_try_again(delay: str) -> None:
    data = [info("OVERLOADED", OWN, retryable="true"), {"@type": f"{TYPES}rpc.RetryInfo", "retryDelay": delay}]
    _, failure = decode_error(msgspec.json.encode({"code": -32000, "message": "x", "data": data}))
    assert failure == Overloaded()


def test_the_declared_error_of_another_server_is_internal() -> None:
    data = [info("RATE_LIMITED", "example.com")]
    assert decode_error(msgspec.json.encode({"code": -32000, "message": "x", "data": data}))[1] == Internal()
