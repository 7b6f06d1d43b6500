"""The params of an operation become the members of its input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.imports.http.model import Serialization
from support.openapi_documents import OK, document, only, read, reasons, with_operation

TEXT = {"type": "string"}


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


def test_what_a_param_says_stands_beside_a_reference_too() -> None:
    member = {"$ref": "#/components/schemas/T"}
    operation = {"parameters": [param(schema=member, description="Which.")]}
    components = {"schemas": {"T": {"type": "object", "required": ["x"], "properties": {"x": {"readOnly": True}}}}}
    found = read(
        with_operation(
            {
                **operation,
                "responses": {"200": {"description": "", "content": {"application/json": {"schema": member}}}},
            },
            components=components,
        )
    )
    assert found.operations[0].input["properties"]["p"] == {"$ref": "#/$defs/T_input", "description": "Which."}


def test_params_of_the_path_are_joined_by_those_of_the_operation_which_count_more() -> None:
    item = {
        "parameters": [param(name="a"), param(name="b"), param(name="X-H", **{"in": "header"})],
        "get": {
            "operationId": "op",
            "responses": OK,
            "parameters": [
                param(name="b", schema={"type": "integer"}),
                param(name="x-h", **{"in": "header"}, required=True),
            ],
        },
    }
    found = only(document({"/x": item}))
    assert found.input["properties"] == {"a": TEXT, "b": {"type": "integer"}, "x-h": TEXT}
    assert found.input["required"] == ["x-h"]


def test_names_that_two_share_are_renamed_with_a_note() -> None:
    locations = ("query", "header", "path", "cookie")
    operation = {
        "parameters": [param(name="id", **{"in": each}) for each in locations]
        + [param(name="id_query"), param(name="_meta")]
    }
    found = read(with_operation(operation, path="/{id}"))
    assert {each.name: (each.location, each.wire_name) for each in found.operations[0].params} == {
        "id": ("path", "id"),
        "id_query": ("query", "id"),
        "id_query_query": ("query", "id_query"),
        "meta_query": ("query", "_meta"),
        "id_header": ("header", "id"),
        "id_cookie": ("cookie", "id"),
    }
    assert list(reasons(found).values()) == ["renamed"] * 5


def test_a_param_called_body_makes_way_for_the_body() -> None:
    body = {"content": {"application/json": {}}}
    found = only(with_operation({"parameters": [param(name="body")], "requestBody": body}, method="post"))
    assert (found.params[0].name, found.input["properties"]) == ("body_query", {"body_query": TEXT, "body": True})
    assert only(with_operation({"parameters": [param(name="body")]})).params[0].name == "body"


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
    places = {(each["in"], each["name"].lower() if each["in"] == "header" else each["name"]) for each in declared}
    assert {
        (each.location, each.wire_name.lower() if each.location == "header" else each.wire_name)
        for each in found.params
    } == places
