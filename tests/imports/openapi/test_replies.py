"""Responses become the output, and every other than a success a declared error."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.imports.http.model import Reply
from discreet.imports.model import ImportedError
from support.openapi_documents import document, only, read, reasons, with_operation

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
JSON = "application/json"


def response(schema: Any = None, media_type: str = JSON, **members: Any) -> dict[str, Any]:
    return {"description": "", **({} if schema is None else {"content": {media_type: {"schema": schema}}}), **members}


def found(responses: Any, method: str = "get") -> Any:
    return only(with_operation({"responses": responses}, method=method))


@pytest.mark.parametrize(
    ("responses", "output"),
    [
        ({"200": response(TEXT)}, TEXT),
        ({"200": response(TEXT), "201": response(TEXT)}, TEXT),
        (
            {"200": response(TEXT), "201": response(NUMBER), "204": response()},
            {"anyOf": [TEXT, NUMBER, {"type": "null"}]},
        ),
        ({"2XX": response(TEXT)}, TEXT),
        ({"2xx": response(TEXT)}, TEXT),
        ({"200": response()}, {"type": "null"}),
        ({"204": response(TEXT)}, {"type": "null"}),
        ({"200": {"description": "", "content": {JSON: {}}}}, True),
        ({"200": {"description": "", "content": {}}}, {"type": "null"}),
        ({"default": response(TEXT)}, TEXT),
        ({}, True),
        (None, True),
        ({"302": response()}, True),
        ({"200": response({"type": "object"}, "text/plain")}, TEXT),
        ({"200": response({**TEXT, "maxLength": 3}, "text/plain")}, {**TEXT, "maxLength": 3}),
        ({"200": response({}, "image/png")}, {**TEXT, "contentEncoding": "base64", "contentMediaType": "image/png"}),
        ({"200": response(NUMBER, "*/*")}, NUMBER),
    ],
)
def test_the_output_is_what_succeeds(responses: Any, output: Any) -> None:
    assert found(responses).output == output


def test_every_response_that_is_no_success_is_a_declared_error() -> None:
    statuses = ["302", "404", "408", "425", "429", "500", "503", "3XX", "4XX", "5xx", "default"]
    operation = found(
        {"200": response(), **{each: response({"const": each}, description=f"It is\n {each}.") for each in statuses}}
    )
    assert {each.code: (each.http_status, each.retryable) for each in operation.errors} == {
        "HTTP_302": (302, False),
        "HTTP_404": (404, False),
        "HTTP_408": (408, True),
        "HTTP_425": (425, True),
        "HTTP_429": (429, True),
        "HTTP_500": (500, True),
        "HTTP_503": (503, True),
        "HTTP_3XX": (300, False),
        "HTTP_4XX": (400, False),
        "HTTP_5XX": (500, True),
        "HTTP_DEFAULT": (500, False),
    }
    assert operation.errors[1] == ImportedError("HTTP_404", 404, "It is 404.", {"const": "404"})
    assert operation.replies[0] == Reply("200")
    assert Reply("5XX", {JSON: "json"}, "HTTP_5XX") in operation.replies


def test_a_default_alone_is_success_and_error() -> None:
    operation = found({"default": response(TEXT)})
    assert operation.replies == (Reply("2XX", {JSON: "json"}), Reply("default", {JSON: "json"}, "HTTP_DEFAULT"))
    assert (operation.output, operation.errors[0].schema) == (TEXT, TEXT)


def test_an_error_without_content_has_no_schema() -> None:
    assert found({"200": response(), "404": response()}).errors[0].schema is None


def test_errors_may_be_texts_and_of_several_types() -> None:
    content = {"text/plain": {"schema": TEXT}, "image/png": {}}
    (error,) = found({"200": response(), "400": {"description": "", "content": content}}).errors
    assert error.schema == {"anyOf": [TEXT, {**TEXT, "contentEncoding": "base64", "contentMediaType": "image/png"}]}


EVENT = {"type": "object", "properties": {"data": TEXT}}


@pytest.mark.parametrize(
    ("media_type", "content", "form", "output"),
    [
        ("text/event-stream", {"itemSchema": EVENT}, "events", EVENT),
        ("text/event-stream", {"schema": NUMBER}, "event-data", NUMBER),
        ("text/event-stream", {"schema": {"type": "array", "items": NUMBER}}, "event-data", NUMBER),
        ("text/event-stream; charset=utf-8", {"schema": TEXT}, "event-data", True),
        ("text/event-stream", {}, "event-data", True),
        ("application/jsonl", {"itemSchema": NUMBER}, "lines", NUMBER),
        ("application/x-ndjson", {"schema": NUMBER}, "lines", NUMBER),
        ("application/json-seq", {"schema": {"type": "array", "items": NUMBER}}, "lines", NUMBER),
        ("application/jsonl", {"schema": TEXT}, "lines", True),
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_stream_makes_a_subscription(method: str, media_type: str, content: Any, form: Any, output: Any) -> None:
    operation = found({"200": {"description": "", "content": {media_type: content}}, "204": response()}, method)
    assert (operation.kind, operation.output) == ("subscription", output)
    assert operation.replies == (Reply("200", {media_type: form}), Reply("204"))


def test_a_stream_of_another_status_than_the_result_is_left_out_with_a_note() -> None:
    responses = {"200": response({}), "202": response({}, "text/event-stream")}
    imported = read(with_operation({"responses": responses}))
    assert imported.operations[0].kind == "query"
    assert imported.operations[0].replies == (Reply("200", {JSON: "json"}),)
    assert len(imported.notes) == 1


def test_what_may_come_instead_of_json_can_be_asked_for_and_a_stream_is_all_of_its_text() -> None:
    content = {"text/event-stream": {"schema": NUMBER}, "image/png": {}, JSON: {"schema": NUMBER}}
    imported = read(with_operation({"responses": {"200": {"description": "", "content": content}}}))
    [operation] = imported.operations
    assert operation.kind == "query"
    forms = {JSON: "json", "text/event-stream": "text", "image/png": "binary"}
    assert operation.replies == (Reply("200", forms, asked=("text/event-stream", "image/png")),)
    assert operation.accept == "accept"
    assert operation.input["properties"]["accept"]["enum"] == [JSON, "text/event-stream", "image/png"]
    assert isinstance(operation.output, dict)
    assert [each.get("type") for each in operation.output["anyOf"]] == ["integer", "string", "string"]
    assert [note.kind for note in imported.notes] == ["changed"]


def test_the_param_that_chooses_an_answer_has_a_name_of_its_own() -> None:
    parameters = [{"name": name, "in": "query", "schema": TEXT} for name in ("accept", "accept_")]
    content = {"text/plain": {}, JSON: {}}
    item = {"parameters": parameters, "responses": {"200": {"description": "", "content": content}}}
    [operation] = read(with_operation(item)).operations
    assert operation.accept == "accept__"


@pytest.mark.parametrize(("method", "kind"), [("get", "query"), ("head", "query"), ("query", "query"), ("post", "mutation"), ("delete", "mutation"), ("trace", "mutation")])  # fmt: skip
def test_the_method_says_what_kind_an_operation_is(method: str, kind: str) -> None:
    operation = found({"200": response(TEXT)}, method)
    assert (operation.method, operation.kind) == (method.upper(), kind)
    assert operation.idempotent is (method in ("delete", "trace"))
    assert operation.output == ({"type": "null"} if method == "head" else TEXT)


def test_additional_operations_have_methods_of_their_own() -> None:
    item = {"additionalOperations": {"COPY": {"operationId": "copy", "responses": {"204": response()}}, "a b": {}}}
    imported = read(document({"/x": item}, version="3.2.0"))
    assert [(each.name, each.method, each.kind) for each in imported.operations] == [("copy", "COPY", "mutation")]
    assert reasons(imported) == {"/paths/~1x/additionalOperations/a b": "left-out"}


@pytest.mark.parametrize("status", ["20", "600", "2X", "1XX", "100", "ok", "²00"])
def test_what_is_no_status_is_left_out_with_a_note(status: str) -> None:
    imported = read(with_operation({"responses": {"200": response(TEXT), status: response()}}))
    assert (imported.operations[0].errors, list(reasons(imported).values())) == ((), ["left-out"])


@pytest.mark.parametrize("responses", [[], "x", {"200": []}, {"200": None}, {"404": "x"}, {"200": {"content": 1}}, {"200": {"content": {JSON: 1}}}, {"200": response("x")}, {"404": {"$ref": "#/none"}}])  # fmt: skip
def test_a_wrong_response_leaves_its_operation_out(responses: Any) -> None:
    imported = read(with_operation({"responses": responses}))
    assert (imported.operations, reasons(imported)) == ((), {"/paths/~1x/get": "left-out"})


def test_webhooks_and_callbacks_are_left_out_with_a_note() -> None:
    callbacks = {"onEvent": {"{$request.body#/url}": {"post": {"responses": {}}}}}
    imported = read(with_operation({"callbacks": callbacks}, webhooks={"new": {"post": {}}}))
    assert reasons(imported) == {"/paths/~1x/get/callbacks/onEvent": "left-out", "/webhooks/new": "left-out"}
