"""Every example fits its schema; where none is known there is none."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import UNSET, Meta

from discreet.gateway.openapi.examples import example_of
from discreet.schemas.json_schema import json_schema


class Color(enum.Enum):
    RED = "red"


class Pair(NamedTuple):
    a: int
    b: str = ""


class Tree(msgspec.Struct):
    n: int
    below: list[Tree] = []


class Endless(msgspec.Struct):
    inner: Endless


class EndlessList(msgspec.Struct):
    inner: Annotated[list[EndlessList], Meta(min_length=1)]


class Shown(msgspec.Struct):
    name: Annotated[str, Meta(examples=["Ada"])]
    age: Annotated[int, Meta(examples=[36])] = 0
    hidden: str = ""


class Slots(msgspec.Struct, array_like=True):
    a: int
    b: str = ""


@pytest.mark.parametrize(
    ("tp", "example"),
    [
        (str, "text"),
        (int, 1),
        (bool, True),
        (None, None),
        (int | None, 1),
        (Literal["b"], "b"),
        (Color, "red"),
        (Tree, {"n": 1}),
        (Shown, {"name": "Ada", "age": 36}),
        (Slots, [1, "text"]),
        (Pair, [1, ""]),
        (list[int], [1]),
        (dict[str, int], {}),
        (datetime.date, "2026-01-31"),
    ],
)
def test_the_plainest_value_that_fits(tp: Any, example: Any) -> None:
    schema = json_schema(tp)
    if tp is not Slots and tp is not Pair:
        assert example_of(schema, schema) == example
    Draft202012Validator(schema).validate(example_of(schema, schema))


@pytest.mark.parametrize(
    "tp",
    [
        Endless,
        EndlessList,
        Annotated[str, Meta(pattern="^x{40}$")],
        Annotated[str, Meta(pattern=r"\Aa++")],
        Annotated[str, Meta(min_length=10**9)],
        Annotated[list[int], Meta(min_length=10**9)],
    ],
)
def test_where_none_is_known_there_is_none(tp: Any) -> None:
    schema = json_schema(tp)
    assert example_of(schema, schema) is UNSET


def test_a_keyword_that_is_not_ours_leaves_no_example() -> None:
    schema = {"type": "string", "not": {"const": "text"}}
    assert example_of(schema, schema) is UNSET


LIMITS = st.fixed_dictionaries(
    {}, optional={"ge": st.integers(-30, 30), "multiple_of": st.integers(1, 7), "lt": st.integers(31, 90)}
)
LENGTHS = st.fixed_dictionaries({}, optional={"min_length": st.integers(0, 9), "max_length": st.integers(9, 20)})
LEAVES = st.one_of(
    st.sampled_from(
        [
            *(str, int, float, bool, None, Any, Color, Tree, Shown, Slots, Pair, bytes, uuid.UUID, decimal.Decimal),
            *(datetime.datetime, datetime.date, datetime.time, datetime.timedelta),
            *(Literal[1, "a"], dict[int, int], tuple[int, str], frozenset[int]),
        ]
    ),
    LIMITS.map(lambda limits: Annotated[int, Meta(**limits)]),
    LENGTHS.map(lambda lengths: Annotated[str, Meta(**lengths)]),
)
TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, LENGTHS).map(lambda two: Annotated[list[two[0]], Meta(**two[1])]),  # type: ignore[name-defined]
        inner.map(lambda tp: dict[str, tp]),  # type: ignore[valid-type]
        inner.map(lambda tp: msgspec.defstruct("Made", [("a", tp)])),
        inner.filter(lambda tp: tp is not None).map(lambda tp: tp | None),
    ),
    max_leaves=4,
)


@given(TYPES)
@settings(max_examples=80, deadline=None)
def test_an_example_fits_whatever_the_type(tp: Any) -> None:
    schema = json_schema(tp)
    example = example_of(schema, schema)
    if example is not UNSET:
        Draft202012Validator(schema).validate(example)
        msgspec.json.Decoder(tp).decode(msgspec.json.encode(example))
