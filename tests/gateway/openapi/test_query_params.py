"""How the params of a query stand in a URL, type by type."""

from __future__ import annotations

import datetime
import enum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from discreet.daemon.operations.params import build_input
from discreet.gateway.openapi.query_params import QueryParam, query_params
from discreet.schemas.documents import input_schema


class Color(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Point(msgspec.Struct):
    x: int


def params_of(func: Any) -> tuple[QueryParam, ...] | None:
    return query_params(input_schema(build_input(func)))


def param(tp: Any, default: Any = UNSET) -> QueryParam:
    def handler(value: Any) -> None: ...

    if default is not UNSET:
        handler.__defaults__ = (default,)
    handler.__annotations__ = {"value": tp}
    found = params_of(handler)
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("tp", "form", "schema"),
    [
        (str, "text", {"type": "string"}),
        (str | None, "text", {"type": "string"}),
        (int | str, "text", {"type": "string"}),
        (
            Annotated[str, Meta(min_length=2, description="d")],
            "text",
            {"type": "string", "minLength": 2, "description": "d"},
        ),
        (datetime.date, "text", {"type": "string", "format": "date"}),
        (Literal["a", 1, None], "text", {"enum": ["a"]}),
        (Color, "text", {"$ref": "#/$defs/Color"}),
        (Color | None, "text", {"$ref": "#/$defs/Color"}),
        (int, "scalar", {"type": "integer"}),
        (float | None, "scalar", {"type": "number"}),
        (bool | int, "scalar", {"anyOf": [{"type": "boolean"}, {"type": "integer"}]}),
        (Literal[1, 2, None], "scalar", {"enum": [1, 2]}),
        (Size, "scalar", {"$ref": "#/$defs/Size"}),
        (int | UnsetType, "scalar", {"type": "integer"}),
        (dict[str, int], "json", {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Point, "json", {"$ref": "#/$defs/Point"}),
        (list[Point], "json", {"type": "array", "items": {"$ref": "#/$defs/Point"}}),
        (list[list[int]], "json", {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
        (list[int] | int, "json", {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "integer"}]}),
        (Any, "json", {}),
        (None, "json", {"type": "null"}),
    ],
)
def test_the_form_of_one_value_and_the_schema_of_what_can_be_written_so(tp: Any, form: str, schema: Any) -> None:
    found = param(tp)
    assert (found.form, found.repeated, found.schema) == (form, False, schema)


@pytest.mark.parametrize(
    ("tp", "form", "items", "least"),
    [
        (list[str], "text", {"type": "string"}, 1),
        (list[str] | None, "text", {"type": "string"}, 1),
        (frozenset[int], "scalar", {"type": "integer"}, 1),
        (tuple[str | int, ...], "text", {"type": "string"}, 1),
        (list[int | None], "scalar", {"type": "integer"}, 1),
        (Annotated[list[bool], Meta(min_length=3)], "scalar", {"type": "boolean"}, 3),
        (list[Color], "text", {"$ref": "#/$defs/Color"}, 1),
    ],
)
def test_lists_are_repeated_and_never_empty(tp: Any, form: str, items: Any, least: int) -> None:
    found = param(tp)
    assert (found.form, found.repeated) == (form, True)
    assert isinstance(found.schema, dict)
    assert (found.schema["items"], found.schema["minItems"]) == (items, least)


@pytest.mark.parametrize(
    ("tp", "default", "kept"),
    [
        (str | None, None, False),
        (str | int, 5, False),
        (str | int, "x", True),
        (int, 5, True),
        (list[int], [], False),
        (list[int] | None, None, False),
    ],
)
def test_a_default_is_told_where_it_can_be_written(tp: Any, default: Any, kept: bool) -> None:
    found = param(tp, default)
    assert isinstance(found.schema, dict)
    assert ("default" in found.schema) is kept
    assert not found.required


def test_examples_are_told_where_they_can_be_written() -> None:
    found = param(Annotated[str | int, Meta(examples=[1, "a"])])
    assert found.schema == {"type": "string", "examples": ["a"]}


def of_names(a: int, b: str = "") -> None: ...
def of_nothing() -> None: ...
def of_more(a: int, **more: int) -> None: ...
def of_any(**more: Any) -> None: ...
def of_a_whole(params: Point, /) -> None: ...
def of_a_mapping(params: dict[str, int], /) -> None: ...
def of_a_list(params: list[int], /) -> None: ...
def of_either(params: Point | list[int], /) -> None: ...


def test_params_have_names_of_their_own_or_can_t_stand_in_a_url() -> None:
    named = params_of(of_names)
    assert named is not None
    assert [(each.name, each.required) for each in named] == [("a", True), ("b", False)]
    assert params_of(of_nothing) == ()
    whole = params_of(of_a_whole)
    assert whole is not None and [each.name for each in whole] == ["x"]
    for func in (of_more, of_any, of_a_mapping, of_a_list, of_either):
        assert params_of(func) is None
