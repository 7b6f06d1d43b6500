"""What an operation takes and gives: params and the body become members of its input, responses its output and its errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.imports.http.model import Body, Reply, Serialization
from discreet.imports.model import ImportedError
from support.openapi_documents import OK, document, only, read, reasons, with_operation

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
JSON = "application/json"
OCTETS = "application/octet-stream"


def param(**members: Any) -> dict[str, Any]:
    return {"name": "p", "in": "query", "schema": TEXT, **members}


def one(declared: dict[str, Any], path: str = "/x", **members: Any) -> Any:
    (found,) = only(with_operation({"parameters": [declared]}, path=path, **members)).params
    return found


@pytest.mark.parametrize(
    ("declared", "serialization"),
    [
        (param(), Serialization("form", True)),
        (param(explode=False), Serialization("form", False)),
        (param(style="spaceDelimited"), Serialization("spaceDelimited", False)),
        (param(style="pipeDelimited", explode=True), Serialization("pipeDelimited", True)),
        (param(style="deepObject"), Serialization("deepObject", True)),
        (param(allowReserved=True), Serialization("form", True, True)),
        (param(**{"in": "header"}), Serialization("simple", False)),
        (param(**{"in": "header"}, explode=True), Serialization("simple", True)),
        (param(**{"in": "cookie"}), Serialization("form", True)),
        (param(**{"in": "cookie"}, style="cookie"), Serialization("cookie", True)),
        (param(**{"in": "path"}), Serialization("simple", False)),
        (param(**{"in": "path"}, style="label", explode=True), Serialization("label", True)),
        (param(**{"in": "path"}, style="matrix"), Serialization("matrix", False)),
        ({"name": "p", "in": "query", "content": {"application/json": {"schema": TEXT}}}, Serialization(content_type="application/json")),
        ({"name": "p", "in": "querystring", "content": {"application/x-www-form-urlencoded": {"schema": TEXT}}},
         Serialization(content_type="application/x-www-form-urlencoded")),
    ],
)  # fmt: skip
def test_a_param_says_how_it_is_written(declared: dict[str, Any], serialization: Serialization) -> None:
    found = one(declared, "/x/{p}" if declared["in"] == "path" else "/x")
    assert (found.name, found.location, found.serialization) == ("p", declared["in"], serialization)
    assert found.required is (declared["in"] == "path")


@pytest.mark.parametrize(
    ("location", "style"), [("path", "form"), ("query", "simple"), ("header", "deepObject"), ("cookie", "x")]
)
def test_a_style_that_the_location_does_not_have_is_replaced_with_a_note(location: str, style: str) -> None:
    path = "/x/{p}" if location == "path" else "/x"
    found = read(with_operation({"parameters": [param(**{"in": location}, style=style)]}, path=path))
    assert found.operations[0].params[-1].serialization.style in ("simple", "form")
    assert list(reasons(found).values()) == ["changed"]


def test_the_input_has_a_member_for_each_param_and_for_the_body() -> None:
    operation = {
        "parameters": [
            param(required=True, description="Which.", deprecated=True, example="a"),
            param(name="q", schema={"type": "integer"}),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
    }
    assert only(with_operation(operation, method="post")).input == {
        "type": "object",
        "properties": {
            "p": {"type": "string", "description": "Which.", "deprecated": True, "examples": ["a"]},
            "q": {"type": "integer"},
            "body": {"type": "object"},
        },
        "required": ["p", "body"],
        "additionalProperties": False,
    }


def test_params_of_the_path_are_joined_by_those_of_the_operation_which_count_more() -> None:
    own = [param(name="b", schema={"type": "integer"}), param(name="x-h", **{"in": "header"}, required=True)]
    shared = [param(name="a"), param(name="b"), param(name="X-H", **{"in": "header"})]
    get = {"operationId": "op", "responses": OK, "parameters": own}
    found = only(document({"/x": {"parameters": shared, "get": get}}))
    assert found.input["properties"] == {"a": TEXT, "b": {"type": "integer"}, "x-h": TEXT}
    assert found.input["required"] == ["x-h"]


def test_names_that_two_share_are_renamed_with_a_note() -> None:
    locations = ("query", "header", "path", "cookie")
    same = [param(name="id", **{"in": each}) for each in locations]
    declared = [*same, param(name="id_query"), param(name="_meta"), param(name="body")]
    body = {"content": {"application/json": {}}}
    found = read(with_operation({"parameters": declared, "requestBody": body}, path="/{id}"))
    assert {each.name: (each.location, each.wire_name) for each in found.operations[0].params} == {
        "id": ("path", "id"),
        "id_query": ("query", "id"),
        "id_query_query": ("query", "id_query"),
        "meta_query": ("query", "_meta"),
        "body_query": ("query", "body"),
        "id_header": ("header", "id"),
        "id_cookie": ("cookie", "id"),
    }
    assert list(reasons(found).values()) == ["renamed"] * 6


@pytest.mark.parametrize("name", ["Accept", "content-type", "AUTHORIZATION"])
def test_headers_that_no_param_describes_are_left_out(name: str) -> None:
    found = read(with_operation({"parameters": [param(name=name, **{"in": "header"})]}))
    assert (found.operations[0].params, list(reasons(found).values())) == ((), ["left-out"])
    assert one(param(name=name, **{"in": "query"})).name == name


def test_variables_of_a_path_and_path_params_are_the_same() -> None:
    found = read(with_operation({"parameters": [param(name="other", **{"in": "path"})]}, path="/{id}/x/{id}"))
    assert [each.wire_name for each in found.operations[0].params] == ["id"]
    assert sorted(reasons(found).values()) == ["changed", "left-out"]


@pytest.mark.parametrize(
    "declared",
    [
        None, [], "p", {}, {"name": "p"}, {"in": "query"}, param(**{"in": "body"}), param(name=1), param(name="a b", **{"in": "header"}),
        param(name="a\nb"), param(required="yes"), param(explode=1), param(style=[]), param(schema="string"),
        {"name": "p", "in": "query", "content": {}}, {"name": "p", "in": "query", "content": {"a/b": {}, "c/d": {}}},
        {"$ref": "#/none"},
    ],
)  # fmt: skip
def test_a_wrong_param_leaves_its_operation_out_and_no_other(declared: Any) -> None:
    paths = {
        "/x": {"get": {"parameters": [declared], "responses": OK}},
        "/y": {"get": {"operationId": "y", "responses": OK}},
    }
    found = read(document(paths))
    assert [operation.name for operation in found.operations] == ["y"]
    assert reasons(found)["/paths/~1x/get"] == "left-out"


DECLARED = st.builds(
    lambda name, place, more: {"name": name, "in": place, **more},
    st.sampled_from(["id", "id_query", "body", "X", "x", "_meta", "id_path"]),
    st.sampled_from(["path", "query", "header", "cookie"]),
    st.fixed_dictionaries(
        {}, optional={"required": st.booleans(), "schema": st.just(TEXT), "style": st.sampled_from(["form", "simple"])}
    ),
)


@given(st.lists(DECLARED, max_size=8), st.booleans())
def test_no_param_is_lost_and_no_two_share_a_name(declared: list[dict[str, Any]], has_body: bool) -> None:
    path = "/" + "/".join(f"{{{each['name']}}}" for each in declared if each["in"] == "path")
    body = {"requestBody": {"content": {"application/json": {}}}} if has_body else {}
    found = only(with_operation({"parameters": declared, **body}, path=path))

    def place(location: str, name: str) -> tuple[str, str]:
        return location, name.lower() if location == "header" else name

    places = {place(each["in"], each["name"]) for each in declared}
    assert {place(each.location, each.wire_name) for each in found.params} == places


# -- the body, in the one media type that is sent --


def with_body(content: Any, **members: Any) -> dict[str, Any]:
    return with_operation({"requestBody": {"content": content, **members}}, method="post")


@pytest.mark.parametrize(
    ("declared", "form", "sent"),
    [
        ("application/json", "json", "application/json"),
        ("application/vnd.api+json", "json", "application/vnd.api+json"),
        ("*/*", "json", "application/json"),
        ("application/*", "json", "application/json"),
        ("application/x-www-form-urlencoded", "form", "application/x-www-form-urlencoded"),
        ("multipart/form-data", "multipart", "multipart/form-data"),
        ("text/plain", "text", "text/plain"),
        ("text/*", "text", "text/plain"),
        ("application/xml", "text", "application/xml"),
        ("image/png", "binary", "image/png"),
        ("image/*", "binary", OCTETS),
        ("multipart/mixed", "binary", "multipart/mixed"),
    ],
)
def test_a_media_type_says_how_the_body_is_written(declared: str, form: Any, sent: str) -> None:
    found = only(with_body({declared: {"schema": {"type": "object"}}}))
    assert found.body == Body(sent, form)
    schema = found.input["properties"]["body"]
    assert schema["type"] == ("string" if form in ("text", "binary") else "object")
    assert ("contentEncoding" in schema) is (form == "binary")


@pytest.mark.parametrize(
    ("declared", "taken"),
    [
        (["text/xml", "application/json"], "application/json"),
        (["application/hal+json", "application/json"], "application/json"),
        (["*/*", "application/hal+json"], "application/hal+json"),
        (["image/png", "text/plain"], "text/plain"),
    ],
)
def test_of_several_media_types_one_is_sent_and_a_note_says_so(declared: list[str], taken: str) -> None:
    found = read(with_body({each: {} for each in declared}))
    body = found.operations[0].body
    assert body is not None and body.content_type == taken
    assert set(found.operations[0].bodies) == {each for each in declared if "*" not in each} - {taken}
    assert reasons(found) == {"/paths/~1x/post/requestBody/content": "changed"}


def test_an_alternative_that_is_wrong_does_not_take_the_operation_with_it() -> None:
    found = read(with_body({"application/json": {}, "text/plain": 1}))
    assert found.operations[0].bodies == {}
    assert "left-out" in {note.kind for note in found.notes}


@pytest.mark.parametrize(("required", "names"), [(True, ["body"]), (False, None), (None, None)])
def test_a_body_is_required_if_the_document_says_so(required: bool | None, names: Any) -> None:
    found = only(
        with_body({"application/json": {}}, **({} if required is None else {"required": required}), description="What.")
    )
    assert found.input.get("required") == names
    assert found.input["properties"]["body"] == {"description": "What."}


UPLOAD = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "files": {"type": "array", "items": {"$ref": "#/components/schemas/Bytes"}},
        "raw": {"type": "string", "contentMediaType": OCTETS},
        "encoded": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"},
        "x-name": {"type": "string"},
        "json": {"type": "string", "contentMediaType": "application/json"},
    },
}


def test_parts_of_a_form_say_how_they_are_written_where_that_is_not_plain() -> None:
    encoding = {
        "x-name": {"contentType": "text/csv"},
        "file": {"contentType": "image/png, image/jpeg"},
        "raw": {"headers": {"X": {"schema": {}}}},
        "json": {"style": "deepObject", "explode": True, "allowReserved": True},
    }
    media_type = {"schema": {"$ref": "#/components/schemas/Upload"}, "encoding": encoding}
    schemas = {"Upload": UPLOAD, "Bytes": {"type": "string", "format": "binary"}}
    found = read(with_body({"multipart/form-data": media_type}) | {"components": {"schemas": schemas}})
    body = found.operations[0].body
    assert body is not None and body.parts == {
        "file": Serialization("form", True, content_type="image/png"),
        "files": Serialization(content_type=OCTETS),
        "raw": Serialization(content_type=OCTETS),
        "x-name": Serialization("form", True, content_type="text/csv"),
        "json": Serialization("deepObject", True, True),
    }
    members = found.definitions["Upload"]["properties"]
    assert {name for name, schema in members.items() if "contentEncoding" in schema} == {"file", "raw", "encoded"}
    assert list(reasons(found).values()) == ["changed"]


@pytest.mark.parametrize("body", [[], "x", {}, {"content": {}}, {"content": []}, {"content": {"application/json": []}}, {"content": {"application/json": {"schema": 1}}}, {"content": {"application/json": {}}, "required": "yes"}])  # fmt: skip
def test_a_wrong_body_leaves_its_operation_out(body: Any) -> None:
    found = read(with_operation({"requestBody": body}, method="post"))
    assert (found.operations, reasons(found)) == ((), {"/paths/~1x/post": "left-out"})


# -- responses --


def response(schema: Any = None, media_type: str = JSON, **members: Any) -> dict[str, Any]:
    return {"description": "", **({} if schema is None else {"content": {media_type: {"schema": schema}}}), **members}


def answered(responses: Any, method: str = "get") -> Any:
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
        ({"2xx": response(TEXT)}, TEXT),
        ({"200": response()}, {"type": "null"}),
        ({"204": response(TEXT)}, {"type": "null"}),
        ({"200": {"description": "", "content": {JSON: {}}}}, True),
        ({"default": response(TEXT)}, TEXT),
        (None, True),
        ({"200": response({"type": "object"}, "text/plain")}, TEXT),
        ({"200": response({}, "image/png")}, {**TEXT, "contentEncoding": "base64", "contentMediaType": "image/png"}),
        ({"200": response(NUMBER, "*/*")}, NUMBER),
    ],
)
def test_the_output_is_what_succeeds(responses: Any, output: Any) -> None:
    assert answered(responses).output == output


def test_every_response_that_is_no_success_is_a_declared_error() -> None:
    statuses = ["302", "404", "408", "425", "429", "500", "503", "3XX", "4XX", "5xx", "default"]
    operation = answered(
        {"200": response(), **{each: response({"const": each}, description=f"It is\n {each}.") for each in statuses}}
    )
    assert {each.code: (each.http_status, each.retryable) for each in operation.errors} == {
        **{f"HTTP_{status}": (status, False) for status in (302, 404)},
        **{f"HTTP_{status}": (status, True) for status in (408, 425, 429, 500, 503)},
        "HTTP_3XX": (300, False),
        "HTTP_4XX": (400, False),
        "HTTP_5XX": (500, True),
        "HTTP_DEFAULT": (500, False),
    }
    assert operation.errors[1] == ImportedError("HTTP_404", 404, "It is 404.", {"const": "404"})
    assert operation.replies[0] == Reply("200")
    assert Reply("5XX", {JSON: "json"}, "HTTP_5XX") in operation.replies


def test_errors_may_be_texts_and_of_several_types() -> None:
    content = {"text/plain": {"schema": TEXT}, "image/png": {}}
    (error,) = answered({"200": response(), "400": {"description": "", "content": content}}).errors
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
    operation = answered({"200": {"description": "", "content": {media_type: content}}, "204": response()}, method)
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
    operation = answered({"200": response(TEXT)}, method)
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
