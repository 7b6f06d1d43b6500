"""A generated schema takes what the decoder takes and refuses what it refuses, over generated types and values."""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import json
import re
import string
import uuid
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker, validators
from msgspec import Meta

from discreet.compatibility.subschema import incompatibilities
from discreet.schemas.json_schema import json_schema

# -- a validator that reads formats as the decoder does, and patterns as ECMA 262 does -----------------------------

CHECKER = FormatChecker(formats=())
TIME = r"(\d\d:\d\d:\d\d)(?:\.\d+)?"
ZONE = r"(?:[Zz]|[+-](\d\d):?(\d\d))"


def _format(name: str, pattern: str) -> None:
    def check(value: object) -> bool:
        if not isinstance(value, str):
            return True
        found = re.fullmatch(pattern, value, re.ASCII)
        if found is None:
            return False
        for part in filter(None, found.groups()):
            if "-" in part:
                datetime.date.fromisoformat(part)
            elif ":" in part:
                if part.startswith("24"):  # which Python 3.14 reads as the next day's midnight
                    return False
                datetime.time.fromisoformat(part)
        hours, minutes = found.groups()[-2:] if "(?:[Zz]" in pattern else ("0", "0")
        return int(hours or 0) < 24 and int(minutes or 0) < 60

    CHECKER.checks(name, raises=ValueError)(check)


_format("date", r"(\d{4}-\d\d-\d\d)")
_format("date-time", rf"(\d{{4}}-\d\d-\d\d)[Tt ]{TIME}{ZONE}")
_format("date-time-local", rf"(\d{{4}}-\d\d-\d\d)[Tt ]{TIME}")
_format("time", TIME + ZONE)
_format("time-local", TIME)
_format("uuid", r"(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")
CHECKER.checks("decimal", raises=decimal.InvalidOperation)(
    lambda value: not isinstance(value, str) or decimal.Decimal(value) is not None
)


def _ecma(_: Any, pattern: str, value: Any, __: Any) -> Any:
    if isinstance(value, str) and not re.search(pattern.replace("$", r"\Z"), value, re.ASCII):
        yield jsonschema.ValidationError("pattern")


Validator = validators.extend(Draft202012Validator, {"pattern": _ecma})


def schema_takes(schema: dict[str, Any], value: Any) -> bool:
    return bool(Validator(schema, format_checker=CHECKER).is_valid(value))


def decoder_takes(decoder: msgspec.json.Decoder[Any], value: Any) -> bool:
    try:
        decoder.decode(json.dumps(value))
    except (msgspec.ValidationError, TypeError):
        return False
    return True


# -- types, each with values that are near to it -------------------------------------------------------------------

TEXT = st.text(string.ascii_letters + string.digits + string.punctuation + " é😀", max_size=5)
NUMBERS = st.integers(-5, 12) | st.integers(-(10**30), 10**30)
FRACTIONS = st.integers(-40, 40).map(lambda number: (2 * number + 1) / 8)  # never whole
SCALARS = st.none() | st.booleans() | NUMBERS | FRACTIONS | TEXT
NAMES = st.text(string.ascii_uppercase, min_size=1, max_size=2)  # never a name that a type below declares
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


class Plain(enum.Enum):
    ONE = "one"
    TWO = "two"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Guess(enum.Enum):
    ONE = "one"

    @classmethod
    def _missing_(cls, value: object) -> Guess:
        return cls.ONE


class Tagged(msgspec.Struct, tag=True):
    a: int


class TaggedToo(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    b: int = 1


class TaggedArray(msgspec.Struct, tag="x", array_like=True):
    a: int


class Pair(NamedTuple):
    a: int
    b: str = ""


class Half(TypedDict, total=False):
    a: int


@dataclasses.dataclass
class Data:
    a: int
    b: list[int] = dataclasses.field(default_factory=list)


class Tree(msgspec.Struct):
    a: int
    b: list[Tree] = []


def near(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values) | JSON


def members(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    optional = values | {"zz": JSON}
    return st.fixed_dictionaries({}, optional=optional) | JSON


INTS = NUMBERS | JSON
DATES = near("2020-02-29", "2021-02-29", "0000-01-01", "2020-1-1", "20200101")
TIMES = (
    "10:00:00",
    "10:00:00.5",
    "24:00:00",
    "10:00",
    "10:00:00Z",
    "10:00:00+05:30",
    "10:00:00+0530",
    "10:00:00-24:00",
)
STAMPS = near(*(f"2020-02-29{sep}{time}" for sep in "Tt _" for time in TIMES))
DURATIONS = (
    "P1D",
    "p1dt1h",
    "PT1.5S",
    "-P1D",
    "P1.5DT1H",
    "PT1H1.5M",
    "P",
    "PT",
    "P1W",
    "P1DT",
    "PT1M1H",
    "PT1,5S",
    "PT1",
)
BASE64 = st.binary(max_size=5).map(lambda data: base64.b64encode(data).decode())
KEYS = st.sampled_from(("1", "-1", "01", "1.5", "1e2", "-0", "+1", "true", "a", "2020-01-01", "2020-13-01"))

Case = tuple[Any, st.SearchStrategy[Any]]

LEAVES: list[Case] = [
    (Any, JSON),
    (object, JSON),
    (msgspec.Raw, JSON),
    (None, JSON),
    (bool, JSON),
    (int, INTS),
    (Annotated[int, Meta(ge=2, lt=7)], INTS),
    (Annotated[int, Meta(gt=2, le=7)], INTS),
    (Annotated[int, Meta(multiple_of=3)], INTS),
    (float, INTS),
    (Annotated[float, Meta(gt=2, le=7)], INTS | FRACTIONS),
    (str, JSON),
    (Annotated[str, Meta(min_length=2, max_length=3)], TEXT),
    (Annotated[str, Meta(pattern="b")], near("abc", "b", "B", "")),
    (Annotated[str, Meta(pattern=r"\A(?P<x>[a-c]){,2}\Z")], near("abc", "ab", "", "x")),
    (bytes, BASE64 | near("QQ", "QQ-_", "Q Q=", "=", "QR==")),
    (Annotated[bytes, Meta(min_length=3, max_length=6)], st.integers(0, 4).map(lambda count: "QUFB" * count)),
    (datetime.datetime, STAMPS),
    (Annotated[datetime.datetime, Meta(tz=True)], STAMPS),
    (Annotated[datetime.datetime, Meta(tz=False)], STAMPS),
    (datetime.date, DATES),
    (datetime.time, near(*TIMES)),
    (Annotated[datetime.time, Meta(tz=True)], near(*TIMES)),
    (Annotated[datetime.time, Meta(tz=False)], near(*TIMES)),
    (datetime.timedelta, near(*DURATIONS)),
    (uuid.UUID, near(str(uuid.UUID(int=7)), uuid.UUID(int=7).hex, "{" + str(uuid.UUID(int=7)) + "}")),
    (decimal.Decimal, near("1.5", " 1_0 ", "x", "", "NaN", 1, 1.5)),
    (Literal["a", 1, None], near("a", "b", 1, 2, True)),
    (Plain, near("one", "ONE")),
    (Number, near(1, 3, True)),
    (Guess, near("one", "any")),
    (Tagged, members(a=INTS, type=near("Tagged"))),
    (Tagged | TaggedToo, members(a=INTS, b=INTS, type=near("Tagged", "TaggedToo"))),
    (Tagged | None, members(a=INTS, type=near("Tagged", "TaggedToo"))),
    (TaggedArray, st.tuples(near("x", "y"), INTS).map(list) | JSON),
    (Pair, st.lists(INTS, max_size=3)),
    (Half, members(a=INTS)),
    (Data, members(a=INTS, b=st.lists(NUMBERS))),
    (Tree, members(a=INTS, b=st.lists(members(a=INTS, b=st.lists(members(a=INTS)))))),
    (int | float | str, JSON),
    (dict[int, Any], st.dictionaries(KEYS, JSON, max_size=2)),
    (dict[float, Any], st.dictionaries(KEYS, JSON, max_size=2)),
    (dict[bool, Any], st.dictionaries(NAMES, JSON, max_size=1)),
    (dict[Literal["a", 1], int], st.dictionaries(KEYS, NUMBERS, max_size=2)),
    (dict[datetime.date, Any], st.dictionaries(KEYS, JSON, max_size=2)),
    (set[Any], st.lists(JSON, max_size=3)),
    (Annotated[set[int], Meta(min_length=1, max_length=2)], st.lists(NUMBERS, unique=True, max_size=4)),
    (set[int], st.lists(INTS, max_size=3)),
]


def joins_a_union(case: Case) -> bool:
    """A raw value is no member of a union: msgspec then takes nothing for it but null."""
    return case[0] is not msgspec.Raw


def containers(inner: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    return st.one_of(
        inner.map(lambda case: (list[case[0]], st.lists(case[1], max_size=3) | JSON)),  # type: ignore[name-defined]
        inner.map(
            lambda case: (Annotated[list[case[0]], Meta(min_length=1, max_length=2)], st.lists(case[1], max_size=3))
        ),  # type: ignore[name-defined]
        inner.map(lambda case: (dict[str, case[0]], st.dictionaries(NAMES, case[1], max_size=2) | JSON)),  # type: ignore[name-defined]
        inner.filter(joins_a_union).map(lambda case: (Optional[case[0]], case[1] | st.none())),  # noqa: UP045 - made at run time
        st.tuples(inner, inner).map(lambda two: (tuple[two[0][0], two[1][0]], slots(two))),  # type: ignore[misc]
        st.tuples(inner, inner, st.booleans(), st.booleans(), st.booleans()).map(struct),
    )


def slots(two: tuple[Case, ...]) -> st.SearchStrategy[Any]:
    full = [case[1] for case in two]
    return st.one_of(*(st.tuples(*items).map(list) for items in (full, full[:1], [*full, JSON])))


def struct(drawn: tuple[Case, Case, bool, bool, bool]) -> Case:
    one, other, optional, closed, array = drawn
    fields = [("a", one[0], None)] if optional else [("a", one[0])]
    tp = msgspec.defstruct(
        "Made", [*fields, ("b", other[0])], kw_only=True, forbid_unknown_fields=closed, array_like=array, rename="camel"
    )
    return tp, slots((one, other)) if array else members(a=one[1], b=other[1])


CASES: st.SearchStrategy[Case] = st.recursive(st.sampled_from(LEAVES), containers, max_leaves=4)


@pytest.mark.parametrize("leaf", range(len(LEAVES)))
@given(st.data())
@settings(max_examples=15, deadline=None)
def test_every_single_type_agrees_with_its_decoder(leaf: int, data: st.DataObject) -> None:
    tp, values = LEAVES[leaf]
    schema, value = json_schema(tp), data.draw(values)
    assert schema_takes(schema, value) == decoder_takes(msgspec.json.Decoder(tp), value), (tp, value, schema)


def test_what_is_written_for_every_leaf_is_a_schema() -> None:
    for tp, _ in LEAVES:
        schema = json_schema(tp)
        Draft202012Validator.check_schema(schema)
        assert set(re.findall(r'"\$ref":"([^"]*)"', msgspec.json.encode(schema).decode())) <= {
            f"#/$defs/{name}" for name in schema.get("$defs", ())
        }


def test_the_values_near_a_type_are_some_taken_and_some_refused() -> None:
    """Else the tests above would prove little."""
    seen: collections.Counter[bool] = collections.Counter()

    @given(st.data())
    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    def count(data: st.DataObject) -> None:
        tp, values = data.draw(CASES)
        seen[decoder_takes(msgspec.json.Decoder(tp), data.draw(values))] += 1

    count()
    assert min(seen[True], seen[False]) > 5


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_compatible_schemas_still_accept_every_value(data: st.DataObject) -> None:
    old, values = data.draw(CASES)
    wider = Optional[old] if joins_a_union((old, values)) else old  # noqa: UP045 - as above
    new = data.draw(st.just(old) | st.just(wider) | CASES.map(lambda case: case[0]))
    if not incompatibilities(json_schema(old), json_schema(new), "sent"):
        before, after = msgspec.json.Decoder(old), msgspec.json.Decoder(new)
        for value in data.draw(st.lists(values, min_size=3, max_size=6)):
            assert decoder_takes(after, value) or not decoder_takes(before, value), (old, new, value)


@given(CASES.filter(joins_a_union))
@settings(max_examples=40, deadline=None)
def test_a_schema_is_compatible_with_itself_and_a_wider_one_breaks_receivers_only(case: Case) -> None:
    tp, _ = case
    schema, wider = json_schema(tp), json_schema(Optional[tp])  # noqa: UP045 - as above
    assert incompatibilities(schema, schema, "sent") == incompatibilities(schema, schema, "received") == []
    assert incompatibilities(schema, wider, "sent") == []
    takes_null = decoder_takes(msgspec.json.Decoder(tp), None)
    assert bool(incompatibilities(schema, wider, "received")) != takes_null
    assert bool(incompatibilities(wider, schema, "sent")) != takes_null
