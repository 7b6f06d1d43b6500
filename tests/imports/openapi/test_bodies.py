"""The request body becomes the member `body`, in the one media type that is sent."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.imports.http.model import Body, Serialization
from support.openapi_documents import OK, document, only, read, reasons, with_operation

OCTETS = "application/octet-stream"


def operation(content: Any, **members: Any) -> dict[str, Any]:
    return with_operation({"requestBody": {"content": content, **members}}, method="post")


@pytest.mark.parametrize(
    ("declared", "form", "sent"),
    [
        ("application/json", "json", "application/json"),
        ("application/json; charset=utf-8", "json", "application/json; charset=utf-8"),
        ("application/vnd.api+json", "json", "application/vnd.api+json"),
        ("*/*", "json", "application/json"),
        ("application/*", "json", "application/json"),
        ("application/x-www-form-urlencoded", "form", "application/x-www-form-urlencoded"),
        ("multipart/form-data", "multipart", "multipart/form-data"),
        ("text/plain", "text", "text/plain"),
        ("text/*", "text", "text/plain"),
        ("application/xml", "text", "application/xml"),
        ("application/x-ndjson", "text", "application/x-ndjson"),
        ("image/png", "binary", "image/png"),
        ("image/*", "binary", OCTETS),
        ("multipart/mixed", "binary", "multipart/mixed"),
    ],
)
def test_a_media_type_says_how_the_body_is_written(declared: str, form: Any, sent: str) -> None:
    found = only(operation({declared: {"schema": {"type": "object"}}}))
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
        (
            ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"],
            "application/x-www-form-urlencoded",
        ),
        (["image/png", "text/plain"], "text/plain"),
    ],
)
def test_of_several_media_types_one_is_sent_and_a_note_says_so(declared: list[str], taken: str) -> None:
    found = read(operation({each: {} for each in declared}))
    body = found.operations[0].body
    assert body is not None and body.content_type == taken
    assert set(found.operations[0].bodies) == {each for each in declared if "*" not in each} - {taken}
    assert reasons(found) == {"/paths/~1x/post/requestBody/content": "changed"}


def test_an_alternative_that_is_wrong_does_not_take_the_operation_with_it() -> None:
    found = read(operation({"application/json": {}, "text/plain": 1}))
    assert found.operations[0].bodies == {}
    assert "left-out" in {note.kind for note in found.notes}


@pytest.mark.parametrize(("required", "names"), [(True, ["body"]), (False, None), (None, None)])
def test_a_body_is_required_if_the_document_says_so(required: bool | None, names: Any) -> None:
    found = only(
        operation({"application/json": {}}, **({} if required is None else {"required": required}), description="What.")
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
    found = read(
        document(
            {
                "/x": {
                    "post": {
                        "operationId": "op",
                        "requestBody": {"content": {"multipart/form-data": media_type}},
                        "responses": OK,
                    }
                }
            },
            components={"schemas": {"Upload": UPLOAD, "Bytes": {"type": "string", "format": "binary"}}},
        )
    )
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
