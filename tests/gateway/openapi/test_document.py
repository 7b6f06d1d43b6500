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
from discreet.files.service import file_service
from discreet.gateway.openapi.document import About, Security, document_text, openapi_document, security_of
from discreet.gateway.openapi.keywords import to_openapi
from discreet.gateway.openapi.snapshot import read_openapi
from discreet.schemas.documents import operation_schema
from discreet.schemas.json_schema import json_schema
from support.books import book, described, operations, resolved, responses, validator

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
    assert not [name for name in made["components"]["schemas"] if name.endswith("_2")]


def test_what_has_a_default_is_not_said_to_be_always_there() -> None:
    label = document(shapes())["components"]["schemas"]["Circle"]["properties"]["label"]
    assert label == {"type": "string", "x-default": "no name"}


def test_a_snapshot_is_read_back_as_it_was() -> None:
    service = shapes()
    made = read_openapi(msgspec.json.encode(document(service))).operations["shapes/area"]
    own = operation_schema(next(iter(service.operations)))
    for read, given in ((made.input_schema, own.input_schema), (made.output_schema, own.output_schema)):
        assert read["$defs"]["Circle"] == given["$defs"]["Circle"]
        assert {name: each for name, each in given.items() if name[0] != "$"} == {
            name: each for name, each in read.items() if name[0] != "$"
        }


def test_tags_that_are_no_texts_have_no_discriminator_but_are_required() -> None:
    schema = json_schema(One | Two)
    assert "discriminator" not in schema
    assert [each["required"] for each in schema["$defs"].values()] == [["type"], ["type"]]


def test_alternatives_in_place_have_no_discriminator_that_leads_nowhere() -> None:
    assert "discriminator" not in str(inlined(json_schema(dict[str, Shape])))
