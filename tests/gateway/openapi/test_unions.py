"""Unions of tagged structs, whose tags generators of clients must see, and members with defaults, which they may omit."""

from __future__ import annotations

from typing import Any

import msgspec

from discreet import Service
from discreet.dialects.mcp.tool_schemas import inlined
from discreet.gateway.openapi.document import About, Security, document_text, openapi_document
from discreet.gateway.openapi.snapshot import read_openapi
from discreet.schemas.documents import operation_schema
from discreet.schemas.json_schema import json_schema


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
