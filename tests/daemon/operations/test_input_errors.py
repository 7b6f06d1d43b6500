"""Which fault is found, for every kind of type that an operation may take, and what is never said of it."""

import datetime
import enum
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Meta, Raw, Struct, UnsetType

from discreet.daemon.operations.input_errors import find_input_error
from discreet.daemon.operations.msgspec_errors import DECODE_ERRORS
from discreet.errors.failures import InvalidParams

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

SECRET = "AKIA" + "Q3ZT7XWLMR5NBK2V"  # in the shape of a cloud key


def fault_of(tp: Any, text: str | bytes, prefix: str = "") -> InvalidParams:
    raw = text.encode() if isinstance(text, str) else text
    with pytest.raises(DECODE_ERRORS):
        msgspec.json.decode(raw, type=tp)
    return find_input_error(tp, raw, prefix=prefix)


def fault(param: str, expected: str, received: str, accepted: tuple[str, ...] | None = None) -> InvalidParams:
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


@pytest.mark.parametrize(("tp", "text", "expected", "received"), LEAVES)
def test_a_value_is_named_by_its_type_and_what_came(tp: Any, text: str, expected: str, received: str) -> None:
    assert fault_of(tp, text) == fault("$", expected, received)
    assert fault_of(dict[str, tp], f'{{"zq":{text}}}') == fault("*", expected, received)
    assert fault_of(list[tp], f"[{text}]") == fault("$[0]", expected, received)


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


@pytest.mark.parametrize(("tp", "text", "expected"), PATHS)
def test_the_path_names_the_first_fault(tp: Any, text: str, expected: InvalidParams) -> None:
    assert fault_of(tp, text) == expected


CLOSED: list[tuple[Any, str, InvalidParams]] = [
    (Literal["a", "b"], '"c"', fault("$", "one of", "c", ("a", "b"))),
    (Literal["a", "b"], '"two words"', fault("$", "one of", "string", ("a", "b"))),
    (Literal["a", "b"], f'"{"z" * 33}"', fault("$", "one of", "string", ("a", "b"))),
    (Literal["a", "b"], '"caf\\u00e9"', fault("$", "one of", "string", ("a", "b"))),
    (Literal["a", "b"], '""', fault("$", "one of", "string", ("a", "b"))),
    (Literal["a", "b"], "null", fault("$", "one of", "null", ("a", "b"))),
    (Literal[1, 2], "3", fault("$", "one of", "number", ("1", "2"))),
    (Literal[1] | None, "2", fault("$", "one of", "number", ("1", "null"))),
    (Literal[True], "false", fault("$", "one of", "boolean", ("true",))),
    (Level, '"medium"', fault("$", "one of", "medium", ("low", "high"))),
    (Level, "1", fault("$", "one of", "number", ("low", "high"))),
    (Priority, "3", fault("$", "one of", "number", ("1", "2"))),
    (Priority, '"NOW"', fault("$", "one of", "NOW", ("1", "2"))),
    (Literal["a"] | None, '"c"', fault("$", "one of", "c", ("a", "null"))),
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
    (One | Two, '{"type":3}', fault("type", "one of", "number", ("1", "2"))),
    (One | Two, '{"type":2}', fault("two", "integer", "missing")),
    (Line | Arc, '["cow",1]', fault("$[0]", "one of", "cow", ("line", "arc"))),
    (Line | Arc, "[]", fault("$[0]", "one of", "missing", ("line", "arc"))),
    (Line | Arc, '["arc","zq"]', fault("$[1]", "integer", "string")),
    (Line, '["arc",1]', fault("$[0]", "one of", "arc", ("line",))),
]


@pytest.mark.parametrize(("tp", "text", "expected"), CLOSED)
def test_a_closed_list_is_said_and_a_plain_word_is_repeated(tp: Any, text: str, expected: InvalidParams) -> None:
    assert fault_of(tp, text) == expected


def test_attrs_classes_are_walked_as_dataclasses_are() -> None:
    attrs = pytest.importorskip("attrs")
    tp = attrs.make_class("Owned", {"owner": attrs.field(type=str), "tags": attrs.field(type=list[str], factory=list)})
    assert fault_of(tp, '{"owner":"a","tags":[1]}') == fault("tags[0]", "string", "number")
    assert fault_of(tp, "{}") == fault("owner", "string", "missing")


KNOWN = ("parts", "role", "labels")


@pytest.mark.parametrize("name", ["rle", "x-y_z9", "z" * 32])
def test_an_unknown_field_is_refused_by_its_name_when_that_is_a_plain_word(name: str) -> None:
    text = f'{{"parts":[],"{name}":1}}'
    assert fault_of(Message, text) == fault(name, "one of", "unknown field", KNOWN)
    assert fault_of(Envelope, f'{{"message":{text}}}') == fault(f"message.{name}", "one of", "unknown field", KNOWN)


@pytest.mark.parametrize("name", ["two words", "z" * 33, "caf\\u00e9", "", "a.b", SECRET])
def test_an_unknown_field_of_any_other_name_is_not_repeated(name: str) -> None:
    text = f'{{"parts":[],"{name}":1}}'
    assert fault_of(Message, text) == fault("$", "one of", "unknown field", KNOWN)
    assert fault_of(Envelope, f'{{"message":{text}}}') == fault("message", "one of", "unknown field", KNOWN)


def test_a_secret_in_place_of_an_enumerated_word_is_not_repeated() -> None:
    assert fault_of(Level, f'"{SECRET}"') == fault("$", "one of", "string", ("low", "high"))


def test_a_struct_without_fields_says_that_it_has_no_members() -> None:
    empty = msgspec.defstruct("Empty", [], forbid_unknown_fields=True)
    assert fault_of(empty, '{"zq":1}') == fault("zq", "no members", "unknown field")


def test_the_prefix_stands_before_every_path() -> None:
    assert fault_of(Message, "1", "input") == fault("input", "object", "number")
    assert fault_of(Message, "{}", "input") == fault("input.parts", "array of object", "missing")
    assert fault_of(list[int], '["zq"]', "input") == fault("input[0]", "integer", "string")


def test_of_a_repeated_key_the_last_value_counts() -> None:
    assert fault_of(Part, '{"text":"a","text":1}') == fault("text", "string", "number")
    assert fault_of(Part, '{"text":1,"text":"a"}') == fault("$", "valid object", "object")


@pytest.mark.parametrize("text", ["", " ", "x", "[", '{"text":', '"\\ud800"', b'"\xff"', b'{"\xff":1}'])
@pytest.mark.parametrize("tp", [int, list[int], Message, Literal["a"], Any, dict[str, int], Cat | Dog])
def test_a_text_that_is_no_json_is_a_fault_of_the_whole(tp: Any, text: str | bytes) -> None:
    assert fault_of(tp, text).param == "$"


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "tp", [Any, list[Any], dict[str, Any], Message, int, Tree, Raw, list[Raw], Cat | Dog | list[Any]]
)
def test_a_hundred_thousand_nested_arrays_are_a_fault_like_any_other(tp: Any) -> None:
    assert fault_of(tp, DEEP).param == "$"
    assert fault_of(Box[tp], b'{"content":' + DEEP + b"}").param in ("$", "content")


def test_a_fault_below_many_levels_is_found() -> None:
    text = '{"children":[' * 100 + '{"name":1}' + "]}" * 100
    assert fault_of(Tree, text) == fault("children[0]." * 100 + "name", "string", "number")


def test_the_search_is_bounded_and_then_names_the_level_that_it_reached() -> None:
    wide = b'{"content":[' + b"0," * 4_000_000 + b'"zq"]}'
    assert fault_of(Box[list[int]], wide) == fault("$", "object", "object")
    deep = b'{"children":[' * 200 + b'{"name":1,"zq":"' + b"z" * 4_000_000 + b'"}' + b"]}" * 200
    found = fault_of(Tree, deep)
    assert found.param.startswith("children[0].children[0]")
    assert (found.expected, found.received) == ("object", "object")


# Types and documents at random. Every key and every text in a document has the mark, which no type knows.

MARK = "zq "

Shape = tuple[Any, ...]  # (kind, …parts); see `annotated`


def shapes(depth: int) -> st.SearchStrategy[Shape]:
    scalars = st.sampled_from([("int",), ("bool",), ("str",), ("date",), ("natural",), ("level",)])
    if depth == 0:
        return scalars
    inner = shapes(depth - 1)
    fields = st.lists(st.tuples(inner, st.booleans()), max_size=3)
    return st.one_of(
        scalars,
        st.tuples(st.just("list"), inner),
        st.tuples(st.just("dict"), inner),
        st.tuples(st.just("optional"), inner.filter(lambda shape: shape[0] != "optional")),
        st.tuples(st.just("tuple"), st.lists(inner, max_size=3)),
        st.tuples(st.just("struct"), fields, st.booleans()),
    )


SCALARS: dict[str, Any] = {
    "int": int,
    "bool": bool,
    "str": str,
    "date": datetime.date,
    "natural": Annotated[int, Meta(ge=0)],
    "level": Level,
}


def annotated(shape: Shape) -> Any:
    match shape:
        case ("list", inner):
            return list[annotated(inner)]  # type: ignore[misc]
        case ("dict", inner):
            return dict[str, annotated(inner)]  # type: ignore[misc]
        case ("optional", inner):
            return annotated(inner) | None
        case ("tuple", items):
            return tuple[tuple(map(annotated, items))]  # type: ignore[misc]
        case ("struct", fields, strict):
            declared = [
                (f"f{i}", annotated(inner)) if required else (f"f{i}", annotated(inner), None)
                for i, (inner, required) in enumerate(fields)
            ]
            return msgspec.defstruct("Random", declared, kw_only=True, forbid_unknown_fields=strict)
        case (scalar,):
            return SCALARS[scalar]


def documents(shape: Shape) -> st.SearchStrategy[Any]:
    """What fits the shape."""
    match shape:
        case ("list", inner):
            return st.lists(documents(inner), max_size=3)
        case ("dict", inner):
            return st.dictionaries(st.integers(0, 9).map(lambda n: f"{MARK}{n}"), documents(inner), max_size=2)
        case ("optional", inner):
            return st.none() | documents(inner)
        case ("tuple", items):
            return st.tuples(*map(documents, items)).map(list)
        case ("struct", fields, _):
            values = {f"f{i}": documents(inner) for i, (inner, _) in enumerate(fields)}
            needed = {
                name: values.pop(name) for name, (_, required) in zip(list(values), fields, strict=True) if required
            }
            return st.fixed_dictionaries(needed, optional=values)
        case ("int",):
            return st.integers(-(2**70), 2**70)
        case ("natural",):
            return st.integers(0, 2**70)
        case ("bool",):
            return st.booleans()
        case ("str",):
            return st.text(max_size=3).map(lambda text: MARK + text)
        case ("date",):
            return st.just("2020-02-02")
        case _:
            return st.sampled_from(["low", "high"])


def scalars_of(shape: Shape, value: Any, path: str = "") -> list[tuple[str, tuple[Any, ...]]]:
    """Declared path and steps of every scalar in a fitting document that is none that its type could do without."""
    match shape, value:
        case ("optional", inner), _:
            return [] if value is None else scalars_of(inner, value, path)
        case ("list", inner), list():
            found = [(index, f"{path or '$'}[{index}]", inner, item) for index, item in enumerate(value)]
        case ("dict", inner), dict():
            found = [(key, f"{path}.*" if path else "*", inner, item) for key, item in value.items()]
        case ("tuple", items), list():
            found = [(i, f"{path or '$'}[{i}]", items[i], item) for i, item in enumerate(value)]
        case ("struct", fields, _), dict():
            found = [
                (name, f"{path}.{name}" if path else name, fields[int(name[1:])][0], item)
                for name, item in value.items()
            ]
        case _:
            return [(path or "$", ())]
    return [
        (deeper, (step, *steps))
        for step, where, inner, item in found
        for deeper, steps in scalars_of(inner, item, where)
    ]


def replaced(document: Any, steps: tuple[Any, ...], value: Any) -> Any:
    if not steps:
        return value
    copied = dict(document) if isinstance(document, dict) else list(document)
    copied[steps[0]] = replaced(document[steps[0]], steps[1:], value)
    return copied


def paths_of(shape: Shape, path: str = "") -> set[str]:
    """Every declared path, with `[]` for all indices of a list."""
    paths = {path or "$"}
    match shape:
        case ("list", inner):
            return paths | paths_of(inner, f"{path or '$'}[]")
        case ("dict", inner):
            return paths | paths_of(inner, f"{path}.*" if path else "*")
        case ("optional", inner):
            return paths | paths_of(inner, path)
        case ("tuple", items):
            return paths.union(*(paths_of(inner, f"{path or '$'}[]") for inner in items))
        case ("struct", fields, _):
            named = ((f"{path}.f{i}" if path else f"f{i}", inner) for i, (inner, _) in enumerate(fields))
            return paths.union(*(paths_of(inner, name) for name, inner in named))
        case _:
            return paths


def without_indices(path: str) -> str:
    return "".join("[]" if part.startswith("[") else part for part in _split(path))


def _split(path: str) -> list[str]:
    parts = path.replace("]", "]\0").replace("[", "\0[").split("\0")
    return [part for part in parts if part]


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3).map(MARK.__add__),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2).map(MARK.__add__), inner, max_size=3)
    ),
    max_leaves=6,
)

RANDOM = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@RANDOM
@given(shapes(3), st.data())
def test_one_broken_scalar_in_a_fitting_document_is_the_one_that_is_named(shape: Shape, data: st.DataObject) -> None:
    document = data.draw(documents(shape))
    scalars = scalars_of(shape, document)
    if not scalars:
        return
    path, steps = data.draw(st.sampled_from(scalars))
    text = msgspec.json.encode(replaced(document, steps, data.draw(st.sampled_from([{}, [], 1.5]))))
    assert fault_of(annotated(shape), text).param == path


@RANDOM
@given(shapes(3), st.data())
def test_whatever_is_refused_is_named_by_a_declared_path_and_nothing_of_it_is_repeated(
    shape: Shape, data: st.DataObject
) -> None:
    document = data.draw(documents(shape))
    scalars = scalars_of(shape, document)
    steps = data.draw(st.sampled_from(scalars))[1] if scalars else ()
    cut = data.draw(st.integers(0, len(steps)))
    text = msgspec.json.encode(replaced(document, steps[:cut], data.draw(ANY_JSON)))
    tp = annotated(shape)
    try:
        msgspec.json.decode(text, type=tp)
    except DECODE_ERRORS:
        found = find_input_error(tp, text)
        assert without_indices(found.param) in paths_of(shape)
        assert MARK not in repr(found)


@RANDOM
@given(st.sampled_from([case[0] for case in [*LEAVES, *PATHS, *CLOSED]]), ANY_JSON)
def test_every_kind_of_type_answers_for_any_document_and_repeats_nothing(tp: Any, document: Any) -> None:
    text = msgspec.json.encode(document)
    try:
        msgspec.json.decode(text, type=tp)
    except DECODE_ERRORS:
        assert MARK not in repr(find_input_error(tp, text))


@RANDOM
@given(st.binary(max_size=40), shapes(2))
def test_any_bytes_that_are_refused_give_a_fault(text: bytes, shape: Shape) -> None:
    tp = annotated(shape)
    try:
        msgspec.json.decode(text, type=tp)
    except DECODE_ERRORS:
        assert isinstance(find_input_error(tp, text), InvalidParams)
