"""The OpenAPI document: valid by the official meta-schema, and what it says of operations and callers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from discreet import Service
from discreet.a2a.card import AuthorizationCode
from discreet.agents import Agent, ApiKey, HttpAuth, OAuth2, OAuthFlows, requires
from discreet.daemon.operations.access import StaticTokens, Token
from discreet.dialects.mcp.tool_schemas import inlined
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
from discreet.files.service import file_service
from discreet.gateway.openapi.document import About, Security, document_text, openapi_document, security_of
from discreet.gateway.openapi.errors import ALWAYS, OF_BODIES, OF_CALLERS, OF_DEADLINES, OF_SCOPES
from discreet.gateway.openapi.keywords import to_openapi
from discreet.schemas.json_schema import json_schema
from support.books import Lost, Page, Torn, Wet, book, described, operations, resolved, responses, validator

META_SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parent / "openapi_3_1.schema.json").read_text(encoding="utf-8")
)
"""https://spec.openapis.org/oas/3.1/schema/2022-10-07, which leaves the schemas in a document to their own dialect."""


def schemas(value: Any) -> Iterator[Any]:
    """The schemas of a document, without those within them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("schema", "x-event"):
                yield inner
            elif key == "schemas":
                yield from inner.values()
            elif key not in ("example", "examples"):
                yield from schemas(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from schemas(inner)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from ([value["$ref"]] if isinstance(value.get("$ref"), str) else ())
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def require_valid(document: Any) -> None:
    Draft202012Validator(META_SCHEMA).validate(document)
    found = list(schemas(document))
    assert found
    for schema in found:
        Draft202012Validator.check_schema(schema)
    for reference in references(document):
        assert resolved(document, {"$ref": reference}) is not None


def test_the_document_is_valid_and_each_of_its_schemas_is_too() -> None:
    require_valid(described(book()))


def test_the_built_in_service_and_one_without_a_namespace_are_described_validly() -> None:
    plain = Service("")
    plain.query(name="$odd.name/that-is")(lambda: None)
    require_valid(described(plain))
    assert described(plain)["paths"].keys() == {"/operations/$odd.name/that-is"}
    require_valid(described(file_service(".", allow_write=True)))


def test_what_is_no_document_is_not_valid() -> None:
    """Else the tests above would prove nothing."""
    document = described(book())
    document["paths"]["/operations/book/find"]["post"]["responses"]["409"] = {"content": {}}
    assert not Draft202012Validator(META_SCHEMA).is_valid(document)


def test_every_external_operation_is_there_by_post_and_queries_by_get() -> None:
    found = [(path.removeprefix("/operations/"), verb) for path, verb, _ in operations(described(book()))]
    assert found == [
        ("book/find", "get"),
        ("book/find", "post"),
        ("book/leaf", "post"),
        ("book/mark", "post"),
        ("book/bind", "post"),
        ("book/anything", "get"),
        ("book/anything", "post"),
        ("book/turned", "post"),
    ]


def test_operations_have_ids_that_are_names_in_programs_and_all_different() -> None:
    twin = Service("book_find")
    for name in ("x/y", "x.y", "x_y"):
        twin.query(name=name)(lambda: None)
    ids = [operation["operationId"] for _, _, operation in operations(described(book(), twin))]
    assert len(ids) == len(set(ids))
    assert all(each.isidentifier() for each in ids)
    assert {"book_find", "get_book_find", "book_find_x_y", "book_find_x_y_2"} <= set(ids)


def test_the_server_its_version_and_its_namespaces_are_told() -> None:
    document = described(book())
    assert document["openapi"].startswith("3.1.")
    assert document["info"] == {"title": "book", "version": "1.2.3"}
    assert document["servers"] == [{"url": "https://book.example"}]
    assert document["tags"] == [{"name": "book", "description": "Has pages."}]
    versioned = Service("shop", version="7")
    versioned.query(name="get")(lambda: None)
    assert described(versioned)["info"] == {"title": "shop", "version": "7"}


def test_named_types_stand_in_one_place() -> None:
    document = described(book())
    assert {"Page"} <= document["components"]["schemas"].keys()
    found = {(path, verb): operation for path, verb, operation in operations(document)}
    bind = found["/operations/book/bind", "post"]["responses"]["200"]["content"]["application/json"]
    assert bind["schema"] == {"$ref": "#/components/schemas/Page"}
    assert not [schema for schema in schemas(document) if "$defs" in schema or "$schema" in schema]


# -- results, events, examples -------------------------------------------------------------------------------------


def test_without_a_result_the_status_is_204() -> None:
    for operation in ("mark", "turned"):
        _, found = responses(operation)
        assert "content" not in found["204"]
        assert "200" not in found


def test_the_events_of_a_subscription_are_described() -> None:
    document = described(book())
    leaf = document["paths"]["/operations/book/leaf"]["post"]
    content = leaf["responses"]["200"]["content"]
    assert content.keys() == {"text/event-stream"}
    assert content["text/event-stream"]["x-event"] == {"$ref": "#/components/schemas/Page"}
    assert [(each["name"], each["in"]) for each in leaf["parameters"]] == [("Last-Event-ID", "header")]
    assert leaf["x-kind"] == "subscription"


def test_a_query_with_an_etag_says_so_by_get_alone() -> None:
    document = described(book())
    find = document["paths"]["/operations/book/find"]
    assert "ETag" in find["get"]["responses"]["200"]["headers"]
    assert "If-None-Match" in {each["name"] for each in find["get"]["parameters"]}
    assert "headers" not in find["post"]["responses"]["200"]
    assert "304" not in find["post"]["responses"]


def test_examples_of_params_and_results_fit_their_schemas() -> None:
    document = described(book())
    seen = 0
    for _, _, operation in operations(document):
        for content in (operation.get("requestBody", {}), *operation["responses"].values()):
            media_type = content.get("content", {}).get("application/json", {})
            if "example" in media_type:
                validator(document, media_type["schema"]).validate(media_type["example"])
                seen += 1
    assert seen >= 8
    assert document["paths"]["/operations/book/find"]["post"]["requestBody"]["content"]["application/json"][
        "example"
    ] == {"title": "One"}


# -- callers -------------------------------------------------------------------------------------------------------


def token() -> Token:
    return Token("ann", hashlib.sha256(b"word").hexdigest(), frozenset())


def secured(security: Security) -> Any:
    document = described(book(), told=About(title="x", version="1", security=security))
    require_valid(document)
    return document


def test_without_an_identity_provider_no_scheme_is_told() -> None:
    document = secured(security_of(None, None))
    assert "securitySchemes" not in document["components"]
    assert "security" not in document["paths"]["/operations/book/find"]["post"]


def test_tokens_are_told_as_bearer_with_the_scopes_of_each_operation() -> None:
    document = secured(security_of(StaticTokens([token()]), None))
    assert document["components"]["securitySchemes"] == {"bearer": {"type": "http", "scheme": "bearer"}}
    find = document["paths"]["/operations/book/find"]["post"]
    assert find["security"] == [{"bearer": ["a", "book:read"]}, {"bearer": ["b", "book:read"]}]
    assert find["x-scopes"] == {"all": ["book:read"], "any": ["a", "b"]}
    assert document["paths"]["/operations/book/mark"]["post"]["security"] == [{"bearer": []}]
    assert document["paths"]["/operations/book/mark"]["post"]["responses"].keys() >= {"401"}


def test_json_web_tokens_are_told_by_their_format() -> None:
    class Jwt:
        schemes: Sequence[str] = ("Bearer",)
        realm = "x"
        bearer_format = "JWT"

        def resolve(self, authorization: str) -> None: ...

    document = secured(security_of(Jwt(), None))
    assert document["components"]["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    }


def test_the_schemes_of_the_agent_s_card_come_before_those_of_the_provider() -> None:
    class Executor:
        async def execute(self, context: Any, events: Any) -> None: ...
        async def cancel(self, context: Any, events: Any) -> None: ...

    flow = AuthorizationCode(authorization_url="https://a.example/", token_url="https://t.example/", scopes={"x": "X"})
    agent = Agent(
        Executor(),
        name="Reader",
        description="Reads.",
        security_schemes={
            "key": ApiKey(name="X-Key", location="header"),
            "token": HttpAuth("bearer"),
            "login": OAuth2(OAuthFlows(authorization_code=flow), oauth2_metadata_url="https://m.example/"),
        },
        security=[requires({"key": []}), requires({"login": ["x"]})],
    )
    document = secured(security_of(StaticTokens([token()], api_keys=True), agent.card))
    schemes = document["components"]["securitySchemes"]
    assert schemes["key"] == {"type": "apiKey", "name": "X-Key", "in": "header"}
    assert (schemes["token"]["type"], schemes["login"]["type"]) == ("http", "oauth2")
    assert document["paths"]["/operations/book/find"]["post"]["security"] == [
        {"key": ["a", "book:read"]},
        {"key": ["b", "book:read"]},
        {"login": ["a", "book:read", "x"]},
        {"login": ["b", "book:read", "x"]},
    ]


# -- Keywords of schemas that others have written, in documents of ours --


@pytest.mark.parametrize(
    "wrong",
    [
        {"propertyName": "kind", "type": "string"},
        {"mapping": {}},
        {"propertyName": 1},
        {"propertyName": "k", "mapping": []},
    ],
)
def test_a_discriminator_that_openapi_does_not_know_is_left_out(wrong: object) -> None:
    schema = {"oneOf": [{"type": "object"}], "discriminator": wrong}
    right = {"oneOf": [{"type": "object"}], "discriminator": {"propertyName": "kind", "mapping": {"a": "#/x"}}}
    left = to_openapi(schema)
    assert left == {"oneOf": [{"type": "object"}]}
    assert to_openapi(right) == right


# -- Unions of tagged structs, whose tags generators of clients must see, and members with defaults, which they may omit --


class Circle(msgspec.Struct, tag="circle"):
    r: float
    label: str = "no name"


class Square(msgspec.Struct, tag="square"):
    a: float


class One(msgspec.Struct, tag=1):
    pass


class Two(msgspec.Struct, tag=2):
    pass


Shape = Circle | Square
OF = "#/components/schemas/"


def document(service: Service) -> Any:
    about = About(title="Shapes", version="1", url="/", namespaces={}, security=Security({}, ()))
    return msgspec.json.decode(document_text(openapi_document(service.operations, about)))


def shapes() -> Service:
    service = Service("shapes")

    @service.mutation
    def area(shape: Shape | None, scale: int = 1) -> list[Shape]: ...

    return service


def test_the_tag_is_required_in_the_type_itself_and_the_alternatives_have_a_discriminator() -> None:
    made = document(shapes())
    body = made["paths"]["/operations/shapes/area"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    either = {
        "oneOf": [{"$ref": f"{OF}Circle"}, {"$ref": f"{OF}Square"}],
        "discriminator": {"propertyName": "type", "mapping": {"circle": f"{OF}Circle", "square": f"{OF}Square"}},
    }
    assert body["properties"]["shape"] == {"anyOf": [either, {"type": "null"}]}
    circle = made["components"]["schemas"]["Circle"]
    assert (circle["required"], circle["properties"]["type"]) == (["type", "r"], {"const": "circle"})
    assert circle["properties"]["label"] == {"type": "string", "x-default": "no name"}  # it is not always there
    assert not [name for name in made["components"]["schemas"] if name.endswith("_2")]


def test_tags_that_are_no_texts_have_no_discriminator_but_are_required() -> None:
    schema = json_schema(One | Two)
    assert "discriminator" not in schema
    assert [each["required"] for each in schema["$defs"].values()] == [["type"], ["type"]]


def test_alternatives_in_place_have_no_discriminator_that_leads_nowhere() -> None:
    assert "discriminator" not in str(inlined(json_schema(dict[str, Shape])))


# -- errors: their statuses, their schemas, and that failures are written as the document says --


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
