"""The errors in an OpenAPI document: their statuses, their schemas, and that failures are written as it says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from discreet.errors.codes import row_of
from discreet.errors.exceptions import failure_of
from discreet.errors.failures import (
    AuthenticationRequired,
    Failure,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    OperationTypeMismatch,
    Overloaded,
    ParseFailure,
    TimedOut,
    Unavailable,
)
from discreet.errors.wire import PROTOCOL_DETAILS, encode_call_error
from discreet.gateway.openapi.errors import ALWAYS, OF_BODIES, OF_CALLERS, OF_DEADLINES, OF_SCOPES
from support.books import Lost, Page, Torn, Wet, book, described, operations, resolved, responses, validator


def codes(document: Any, response: Any) -> list[str]:
    schema = response["content"]["application/json"]["schema"]
    return [resolved(document, each)["properties"]["code"]["const"] for each in schema.get("oneOf", [schema])]


def test_several_errors_of_one_status_are_told_apart_by_their_code() -> None:
    document, found = responses("find")
    schema = found["409"]["content"]["application/json"]["schema"]
    assert codes(document, found["409"]) == ["TORN", "WET"]
    assert schema["discriminator"]["propertyName"] == "code"
    assert schema["discriminator"]["mapping"].keys() == {"TORN", "WET"}
    for code, reference in schema["discriminator"]["mapping"].items():
        assert {"$ref": reference} in schema["oneOf"]
        assert resolved(document, {"$ref": reference})["properties"]["code"]["const"] == code
    assert codes(document, found["404"]) == ["LOST", "NOT_FOUND"]


def test_each_response_says_what_its_codes_mean_and_shows_an_example_that_fits() -> None:
    document = described(book())
    seen = 0
    for _, _, operation in operations(document):
        for status, response in operation["responses"].items():
            response = resolved(document, response)
            if int(status) < 400 or status == "431":
                continue
            content = response["content"]["application/json"]
            assert content["examples"].keys() == set(codes(document, response))
            for code, example in content["examples"].items():
                assert f"{code}: " in response["description"]
                validator(document, content["schema"]).validate(example["value"])
                seen += 1
    assert seen > 40


def test_the_statuses_of_protocol_errors_are_those_of_the_operation() -> None:
    _, find = responses("find")
    assert find.keys() == {"200", *(f"{n}" for n in (400, 401, 403, 404, 408, 409, 413, 415, 429, 431, 500, 503, 504))}
    _, by_get = responses("find", "get")
    assert by_get.keys() == {"200", "304", *(f"{n}" for n in (400, 401, 403, 404, 409, 429, 431, 500, 503, 504))}
    for without_deadline in ("bind", "leaf"):
        _, found = responses(without_deadline)
        assert "504" not in found
        assert not found.keys() & {"401", "403"}


def test_the_rows_of_protocol_errors_are_those_of_the_table_or_of_the_message() -> None:
    own = {(408, TimedOut), (413, InvalidRequest), (415, InvalidRequest)}
    for status, failure in {*ALWAYS, *OF_CALLERS, *OF_SCOPES, *OF_BODIES, *OF_DEADLINES} - own:
        assert status == row_of(made(failure)).http_status


def made(kind: type) -> Failure:
    return next(failure for failure in FAILURES if type(failure) is kind)


FAILURES: list[Failure] = [
    ParseFailure("invalid-json"),
    InvalidRequest("oversize"),
    OperationTypeMismatch(),
    MethodNotFound(),
    InvalidParams("limit", "integer", "string"),
    InvalidParams("color", "one of", "string", ("red", 1, None)),
    Internal(),
    Internal("ODD"),
    AuthenticationRequired(("bearer",), "books"),
    InsufficientPermissions(),
    TimedOut(),
    Overloaded(),
    Overloaded(1500),
    Unavailable(),
]


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_errors_are_written_as_the_document_says(failure: Failure) -> None:
    document = described(book())
    schemas_of = document["components"]["schemas"].values()
    written = json.loads(encode_call_error(failure))
    assert written.keys() - {"details"} == {"code", "message", "retryable"}
    if isinstance(failure, OperationTypeMismatch):  # told with 405, which no operation of a document has
        return
    fitting = [each for each in schemas_of if validator(document, each).is_valid(written)]
    assert any(each["properties"].get("code", {}).get("const") == row_of(failure).protocol_code for each in fitting)


def test_every_failure_that_is_no_operation_s_own_has_a_type_of_its_details() -> None:
    assert {type(failure) for failure in FAILURES} == PROTOCOL_DETAILS.keys()


def test_a_declared_error_is_written_as_the_document_says() -> None:
    document, found = responses("find")
    for raised in (Torn(page=Page("one")), Wet(), Lost(title="two")):
        failure = failure_of(raised, [Torn, Wet, Lost])
        schema = found[str(row_of(failure).http_status)]["content"]["application/json"]["schema"]
        validator(document, schema).validate(json.loads(encode_call_error(failure)))
