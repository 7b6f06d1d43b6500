"""The client's exceptions: one per row of the error table, and one for anything else that a server sends."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet.client
from discreet.client import ClientError, InvalidReply, OperationFailed, RemoteError
from discreet.client.errors import ERROR_CLASSES, remote_error
from discreet.errors import (
    ERROR_TABLE,
    AuthenticationRequired,
    Cancelled,
    DomainFailure,
    Failure,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    OperationError,
    OperationTypeMismatch,
    Overloaded,
    ParseFailure,
    TimedOut,
    Unavailable,
    row_of,
)
from discreet.errors.failures import AgentFailure
from discreet.errors.wire import encode_error

FAILURES: list[Failure] = [
    ParseFailure("invalid-json"),
    InvalidRequest("oversize"),
    OperationTypeMismatch(),
    MethodNotFound(),
    InvalidParams("limit", "integer >= 1", "string"),
    Internal("SOME_CODE"),
    DomainFailure("OUT_OF_STOCK", "None left", retryable=True, details=msgspec.Raw(b'{"sku":"x"}')),
    AuthenticationRequired(("bearer",), "shop"),
    InsufficientPermissions(),
    TimedOut(),
    Overloaded(250),
    Unavailable(),
    Cancelled(),
    *(agents() for agents in AgentFailure.__subclasses__()),
]


class OutOfStock(OperationError, code="OUT_OF_STOCK"):
    """None left."""

    sku: str


class OtherFacts(OperationError, code="OUT_OF_STOCK"):
    """None left."""

    count: int


@pytest.mark.parametrize(
    ("error", "number", "message", "data"),
    [
        ({"code": 12345, "message": "no", "data": {"a": [1]}}, 12345, "no", {"a": [1]}),
        ({"code": "E42", "message": "no", "data": 1}, 0, "no", {"code": "E42", "message": "no", "data": 1}),
        ({"message": "no"}, 0, "no", {"message": "no"}),
        ({"code": -32601}, -32601, "Method not found", {"code": -32601}),
        ({"code": -32050, "message": "it rains", "data": None}, -32050, "it rains", None),
        ({"code": -31999, "message": "odd", "data": {"retryable": True}}, -31999, "odd", {"retryable": True}),
        ("it went wrong", 0, "it went wrong", "it went wrong"),
        ([1], 0, "Internal error", [1]),
        (True, 0, "Internal error", True),
    ],
)
def test_a_foreign_error_keeps_everything(error: object, number: int, message: str, data: object) -> None:
    came = remote_error(msgspec.json.encode(error))
    assert isinstance(came, RemoteError)
    assert (came.number, came.message, came.data, came.retryable) == (number, message, data, False)


def wrong_params(param: str, received: str, accepted: list[str]) -> dict[str, object]:
    data = {"param": param, "expected": "one of", "received": received, "accepted": accepted}
    return {"code": -32602, "message": "Invalid params", "data": data}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ({"code": 12345, "message": "no", "data": {"a": [1]}}, 'INTERNAL: no (12345, {"a":[1]})'),
        ({"code": 7, "message": "no"}, "INTERNAL: no (7)"),
        ({"code": -32602, "message": "name: must be text"}, "INVALID_INPUT: name: must be text"),
        ({"code": -32602, "message": "no", "data": "n"}, 'INVALID_INPUT: no ("n")'),
        ({"code": -32600, "message": "no"}, "INVALID_REQUEST: no"),
        ({"code": -32603, "message": "Internal error"}, "INTERNAL: Internal error"),
        (
            {"code": -32602, "message": "", "data": {"param": "n", "expected": "string", "received": "null"}},
            "INVALID_INPUT: Invalid params (n: expected string, received null)",
        ),
        (
            wrong_params("a.cuont", "unknown field", ["item", "count"]),
            "INVALID_INPUT: Invalid params (a.cuont: unknown field; expected one of item, count; nearest: count)",
        ),
        (
            wrong_params("$", "unknown field", ["item", "count"]),
            "INVALID_INPUT: Invalid params ($: unknown field; expected one of item, count)",
        ),
        (
            {"code": -32005, "message": "Incompatible content types", "data": {"accepted": ["text/plain", "image/*"]}},
            "CONTENT_TYPE_NOT_SUPPORTED: Incompatible content types (accepted: text/plain, image/*)",
        ),
    ],
)
def test_the_text_of_a_foreign_error_has_its_number_and_data(error: object, text: str) -> None:
    assert str(remote_error(msgspec.json.encode(error))) == text


def test_the_text_of_an_error_is_bounded() -> None:
    came = remote_error(msgspec.json.encode({"code": 7, "message": "no", "data": "x" * 1_000_000}))
    assert isinstance(came, RemoteError)
    assert len(str(came)) < 2_000
    assert len(came.data) == 1_000_000


def test_every_row_of_the_table_has_a_class_of_its_own() -> None:
    assert set(ERROR_CLASSES) == {row.failure for row in ERROR_TABLE} == {type(failure) for failure in FAILURES}
    assert len(set(ERROR_CLASSES.values())) == len(ERROR_CLASSES)


def test_every_class_is_exported_and_drawn_in_the_tree() -> None:
    exported = {name for name, value in vars(discreet.client).items() if isinstance(value, type)}
    for cls in (*ERROR_CLASSES.values(), *ClientError.__subclasses__()):
        assert cls.__name__ in exported & set(discreet.client.__all__)
        assert f"─ {cls.__name__} " in f"{discreet.client.errors.__doc__} ".replace("\n", " ")


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_a_failure_is_raised_as_its_class_with_the_tables_facts(failure: Failure) -> None:
    error = remote_error(encode_error(failure))
    row = row_of(failure)
    assert type(error) is ERROR_CLASSES[type(failure)]
    assert isinstance(error, RemoteError)
    assert (error.code, error.number, error.retryable) == (row.protocol_code, row.code, row.retryable)
    assert error.message == row.message
    assert str(error).startswith(f"{row.protocol_code}: {row.message}")


def test_the_text_has_the_facts() -> None:
    texts = [str(remote_error(encode_error(failure))) for failure in FAILURES]
    for fact in ("invalid-json", "limit: expected integer >= 1, received string", "SOME_CODE", "sku", "250"):
        assert any(fact in text for text in texts), fact


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.binary()
    | st.builds(
        msgspec.json.encode,
        st.dictionaries(
            st.sampled_from(["code", "message", "data"]),
            st.none()
            | st.integers()
            | st.text()
            | st.dictionaries(st.sampled_from(["code", "retryable", "details"]), st.text() | st.booleans()),
        ),
    )
)
def test_any_json_as_an_error_makes_an_exception(raw: bytes) -> None:
    assert isinstance(remote_error(raw, [OutOfStock]), RemoteError | InvalidReply)


def test_details_are_decoded_into_the_declared_class() -> None:
    raw = encode_error(DomainFailure("OUT_OF_STOCK", "None left", details=msgspec.Raw(b'{"sku":"x"}')))
    known, unknown = remote_error(raw, [OutOfStock]), remote_error(raw)
    assert isinstance(known, OperationFailed)
    assert isinstance(unknown, OperationFailed)
    assert (known.details, unknown.details) == (OutOfStock.definition.details(sku="x"), {"sku": "x"})


def test_details_that_do_not_fit_their_class_are_an_invalid_reply_caused_by_the_error() -> None:
    raw = encode_error(DomainFailure("OUT_OF_STOCK", "None left", details=msgspec.Raw(b'{"sku":"x"}')))
    error = remote_error(raw, [OtherFacts])
    assert isinstance(error, InvalidReply)
    assert isinstance(error.__cause__, OperationFailed)
