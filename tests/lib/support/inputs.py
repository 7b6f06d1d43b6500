"""Types that an operation may take, and documents that do not fit them."""

import datetime
import enum
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import msgspec
import pytest
from msgspec import Meta, Raw, Struct, UnsetType

from discreet.daemon.operations.input_errors import find_input_error
from discreet.errors.decoders import DECODE_ERRORS
from discreet.errors.failures import InvalidParams, JsonScalar

TOO_DEEP = 1_000_000
"""Levels of nesting that no decoder goes down: some thousand up to Python 3.11, and in 3.14 as many as the stack holds."""

T = TypeVar("T")


class Part(Struct):
    text: str
    weight: Annotated[int, Meta(ge=1, le=9)] = 1


class Message(Struct, forbid_unknown_fields=True):
    parts: list[Part]
    role: Literal["user", "agent"] = "user"
    labels: dict[str, int] = {}


class Envelope(Struct):
    message: Message


class Renamed(Struct, rename="camel"):
    page_size: int


class Keyed(Struct, kw_only=True):
    first: int = 1
    second: str


class Point(Struct, array_like=True):
    x: int
    y: int
    z: int = 0


class StrictPoint(Struct, array_like=True, forbid_unknown_fields=True):
    x: int
    y: int = 0


class Cat(Struct, tag_field="kind", tag="cat"):
    lives: int


class Dog(Struct, tag_field="kind", tag="dog"):
    name: str


class One(Struct, tag=1):
    one: int


class Two(Struct, tag=2):
    two: int


class Line(Struct, array_like=True, tag="line"):
    length: int


class Arc(Struct, array_like=True, tag="arc"):
    angle: int


class Box(Struct, Generic[T]):
    content: T


class Tree(Struct):
    name: str = ""
    children: "list[Tree]" = []


class Even(Struct):
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError(f"odd zq {self.number}")


@dataclass
class Account:
    owner: str
    limit: int = 0
    tags: list[str] = field(default_factory=list)


class Options(TypedDict):
    depth: int
    follow: NotRequired[bool]


class Span(NamedTuple):
    start: int
    end: int = 0


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Priority(enum.IntEnum):
    LATER = 1
    NOW = 2


UserId = NewType("UserId", int)


def fault_of(tp: Any, text: str | bytes, prefix: str = "") -> InvalidParams:
    raw = text.encode() if isinstance(text, str) else text
    with pytest.raises(DECODE_ERRORS):
        msgspec.json.decode(raw, type=tp)
    return find_input_error(tp, raw, prefix=prefix)


def fault(param: str, expected: str, received: str, accepted: tuple[JsonScalar, ...] | None = None) -> InvalidParams:
    return InvalidParams(param, expected, received, accepted)


LEAVES: list[tuple[Any, str, str, str]] = [
    (int, "1.5", "integer", "number"),
    (int, "1.0", "integer", "number"),
    (int, '"zq"', "integer", "string"),
    (int, "true", "integer", "boolean"),
    (int, "null", "integer", "null"),
    (int, "[]", "integer", "array"),
    (int, "{}", "integer", "object"),
    (int, "9" * 10_000, "integer", "number"),
    (UserId, '"zq"', "integer", "string"),
    (Annotated[int, Meta(ge=1)], "0", "integer >= 1", "number"),
    (Annotated[int, Meta(gt=1, lt=5)], "5", "integer > 1 and < 5", "number"),
    (Annotated[int, Meta(le=-1)], "0", "integer <= -1", "number"),
    (Annotated[int, Meta(multiple_of=5)], "7", "integer a multiple of 5", "number"),
    (Annotated[int, Meta(ge=1, description="how many")], "0", "integer >= 1", "number"),
    (float, '"1"', "number", "string"),
    (float, "1e400", "number in range", "number"),
    (float, "9" * 10_000, "number in range", "number"),
    (Annotated[float, Meta(gt=0.5)], "0.5", "number > 0.5", "number"),
    (bool, "1", "boolean", "number"),
    (str, "1", "string", "number"),
    (Annotated[str, Meta(min_length=1)], '""', "string of at least 1 character", "string"),
    (Annotated[str, Meta(max_length=2)], '"zqz"', "string of at most 2 characters", "string"),
    (Annotated[str, Meta(min_length=1, max_length=10)], '""', "string of 1 to 10 characters", "string"),
    (Annotated[str, Meta(min_length=3, max_length=3)], '""', "string of 3 characters", "string"),
    (Annotated[str, Meta(pattern="^a")], '"zq"', "string matching a pattern", "string"),
    (bytes, '"zq!"', "base64 string", "string"),
    (bytearray, "1", "base64 string", "number"),
    (Annotated[bytes, Meta(max_length=1)], '"YWFh"', "base64 string of at most 1 byte", "string"),
    (datetime.datetime, '"zq"', "date-time", "string"),
    (Annotated[datetime.datetime, Meta(tz=True)], '"2020-01-01T00:00:00"', "date-time with time zone", "string"),
    (Annotated[datetime.time, Meta(tz=False)], '"00:00:00Z"', "time without time zone", "string"),
    (datetime.date, '"zq"', "date", "string"),
    (datetime.time, '"zq"', "time", "string"),
    (datetime.timedelta, "1", "duration", "number"),
    (uuid.UUID, '"zq"', "UUID", "string"),
    (Decimal, '"zq"', "decimal number", "string"),
    (Decimal, "true", "decimal number", "boolean"),
    (None, "1", "null", "number"),
    (Any, "1e400", "number in range", "number"),
    (complex, "1", "complex", "number"),
    (int | UnsetType, '"zq"', "integer", "string"),
    (int | str | None, "true", "integer or string or null", "boolean"),
    (int | str | None, "1.5", "integer", "number"),
    (int | float | str, "1e400", "integer or number or string", "number"),
    (Annotated[int, Meta(ge=1)] | None, "0", "integer >= 1", "number"),
    (Annotated[int, Meta(ge=1)] | None, '"zq"', "integer >= 1 or null", "string"),
    (Cat | Dog | None, "1", "object or null", "number"),
    (list[int], "1", "array of integer", "number"),
    (list[Any], "1", "array", "number"),
    (list[int | None], "1", "array of integer or null", "number"),
    (list[list[str]], "1", "array of array", "number"),
    (list[Literal["a", "b"]], "1", "array of string", "number"),
    (Annotated[list[str], Meta(min_length=1)], "[]", "array of string with at least 1 item", "array"),
    (Annotated[set[int], Meta(min_length=2)], "[1,1]", "array of integer with at least 2 items", "array"),
    (set[Any], "[[1]]", "array", "array"),
    (tuple[int, str], '[1,"a",2]', "array of 2 items", "array"),
    (tuple[()], "[1]", "array of 0 items", "array"),
    (Span, "[1,2,3]", "array of 1 to 2 items", "array"),
    (Point, "{}", "array of at least 2 items", "object"),
    (StrictPoint, "[1,2,3]", "array of 1 to 2 items", "array"),
    (dict[str, int], "[]", "object", "array"),
    (dict[int, int], "[]", "object with integer keys", "array"),
    (Annotated[dict[str, int], Meta(max_length=1)], '{"zq":1,"zr":2}', "object of at most 1 member", "object"),
    (Message, "[]", "object", "array"),
    (Account, "1", "object", "number"),
    (Options, "1", "object", "number"),
    (Even, '{"number":1}', "valid object", "object"),
]


PATHS: list[tuple[Any, str, InvalidParams]] = [
    (Envelope, '{"message":{"parts":[{"text":"a"},{"text":1}]}}', fault("message.parts[1].text", "string", "number")),
    (Envelope, '{"message":{"parts":[{}]}}', fault("message.parts[0].text", "string", "missing")),
    (Envelope, "{}", fault("message", "object", "missing")),
    (Envelope, '{"message":{"parts":[],"labels":{"zq":"x"}}}', fault("message.labels.*", "integer", "string")),
    (Message, '{"labels":{"zq":""},"parts":1}', fault("labels.*", "integer", "string")),
    (Message, '{"role":"user","parts":[{"text":"","weight":10}]}', fault("parts[0].weight", "integer >= 1 and <= 9", "number")),
    (Renamed, '{"page_size":1}', fault("pageSize", "integer", "missing")),
    (Renamed, '{"pageSize":"zq"}', fault("pageSize", "integer", "string")),
    (Keyed, '{"first":2}', fault("second", "string", "missing")),
    (Point, "[1]", fault("$[1]", "integer", "missing")),
    (list[Point], '[[1,2],[1,"zq"]]', fault("$[1][1]", "integer", "string")),
    (Account, '{"owner":"a","tags":["a",1]}', fault("tags[1]", "string", "number")),
    (Account, "{}", fault("owner", "string", "missing")),
    (Options, '{"follow":true}', fault("depth", "integer", "missing")),
    (Options, '{"depth":1,"follow":1}', fault("follow", "boolean", "number")),
    (Span, "[]", fault("$[0]", "integer", "missing")),
    (Span, '[1,"zq"]', fault("$[1]", "integer", "string")),
    (tuple[int, str], "[1]", fault("$[1]", "string", "missing")),
    (tuple[int, ...], '[1,"zq"]', fault("$[1]", "integer", "string")),
    (frozenset[str], '["a",1]', fault("$[1]", "string", "number")),
    (Sequence[int], '["zq"]', fault("$[0]", "integer", "string")),
    (Mapping[str, int], '{"zq":"zq"}', fault("*", "integer", "string")),
    (dict[str, list[Part]], '{"zq":[{"text":null}]}', fault("*[0].text", "string", "null")),
    (dict[int, int], '{"1":1,"zq":2}', fault("$", "object with integer keys", "unknown field")),
    (dict[Literal["a", "b"], int], '{"zq":2}', fault("$", "object with string keys", "unknown field", ("a", "b"))),
    (dict[str, Any], '{"zq":[1,{"zq":1e400}]}', fault("*[1].*", "number in range", "number")),
    (Box[int], '{"content":"zq"}', fault("content", "integer", "string")),
    (Box[list[Part]], '{"content":[{"text":1}]}', fault("content[0].text", "string", "number")),
    (Tree, '{"children":[{"children":[{"name":1}]}]}', fault("children[0].children[0].name", "string", "number")),
    (list[Even], '[{"number":2},{"number":3}]', fault("$[1]", "valid object", "object")),
    (Part | None, '{"text":1}', fault("text", "string", "number")),
    (Part | list[int] | str, '["zq"]', fault("$[0]", "integer", "string")),
    (dict[str, Raw], "[]", fault("$", "object", "array")),
]  # fmt: skip


CLOSED: list[tuple[Any, str, InvalidParams]] = [
    (Literal["a", "b"], '"c"', fault("$", "one of", "c", ("a", "b"))),
    (Literal["a", "b"], '"two words"', fault("$", "one of", "string", ("a", "b"))),
    (Literal["a", "b"], f'"{"z" * 33}"', fault("$", "one of", "string", ("a", "b"))),
    (Literal["a", "b"], '"caf\\u00e9"', fault("$", "one of", "string", ("a", "b"))),
    (Literal["a", "b"], '""', fault("$", "one of", "string", ("a", "b"))),
    (Literal["a", "b"], "null", fault("$", "one of", "null", ("a", "b"))),
    (Literal[1, 2], "3", fault("$", "one of", "number", (1, 2))),
    (Literal[1] | None, "2", fault("$", "one of", "number", (1, None))),
    (Literal[True], "false", fault("$", "one of", "boolean", (True,))),
    (Level, '"medium"', fault("$", "one of", "medium", ("low", "high"))),
    (Level, "1", fault("$", "one of", "number", ("low", "high"))),
    (Priority, "3", fault("$", "one of", "number", (1, 2))),
    (Priority, '"NOW"', fault("$", "one of", "NOW", (1, 2))),
    (Literal["a"] | None, '"c"', fault("$", "one of", "c", ("a", None))),
    (dict[Literal[1, 2], int], '{"3":1}', fault("$", "object with number keys", "unknown field", ("1", "2"))),
    (dict[Level, int], '{"zq":1}', fault("$", "object with string keys", "unknown field", ("low", "high"))),
    (Literal["auto"] | int, '"c"', fault("$", "one of", "c", ("auto",))),
    (Literal["auto"] | int, "true", fault("$", "one of or integer", "boolean")),
    (Message, '{"parts":[],"role":"root"}', fault("role", "one of", "root", ("agent", "user"))),
    (Box[Level], "{}", fault("content", "one of", "missing", ("low", "high"))),
    (Cat | Dog, '{"kind":"cow"}', fault("kind", "one of", "cow", ("cat", "dog"))),
    (Cat | Dog, '{"kind":"zq cow"}', fault("kind", "one of", "string", ("cat", "dog"))),
    (Cat | Dog, '{"kind":1}', fault("kind", "one of", "number", ("cat", "dog"))),
    (Cat | Dog, "{}", fault("kind", "one of", "missing", ("cat", "dog"))),
    (Cat | Dog | None, '{"name":1,"kind":"dog"}', fault("name", "string", "number")),
    (list[Cat | Dog], '[{"kind":"cat"}]', fault("$[0].lives", "integer", "missing")),
    (Cat, '{"kind":"cow","lives":9}', fault("kind", "one of", "cow", ("cat",))),
    (One | Two, '{"type":3}', fault("type", "one of", "number", (1, 2))),
    (One | Two, '{"type":2}', fault("two", "integer", "missing")),
    (Line | Arc, '["cow",1]', fault("$[0]", "one of", "cow", ("line", "arc"))),
    (Line | Arc, "[]", fault("$[0]", "one of", "missing", ("line", "arc"))),
    (Line | Arc, '["arc","zq"]', fault("$[1]", "integer", "string")),
    (Line, '["arc",1]', fault("$[0]", "one of", "arc", ("line",))),
]
