"""Which fault is found, for every kind of type that an operation may take, and what is never said of it."""

import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Meta, Raw

from discreet.daemon.operations.input_errors import find_input_error
from discreet.errors.decoders import DECODE_ERRORS
from discreet.errors.failures import InvalidParams
from support.inputs import (
    CLOSED,
    LEAVES,
    PATHS,
    TOO_DEEP,
    Box,
    Cat,
    Dog,
    Envelope,
    Level,
    Message,
    Part,
    Tree,
    fault,
    fault_of,
)

SECRET = "AKIA" + "Q3ZT7XWLMR5NBK2V"  # in the shape of a cloud key


@pytest.mark.parametrize(("tp", "text", "expected", "received"), LEAVES)
def test_a_value_is_named_by_its_type_and_what_came(tp: Any, text: str, expected: str, received: str) -> None:
    assert fault_of(tp, text) == fault("$", expected, received)
    assert fault_of(dict[str, tp], f'{{"zq":{text}}}') == fault("*", expected, received)
    assert fault_of(list[tp], f"[{text}]") == fault("$[0]", expected, received)


@pytest.mark.parametrize(("tp", "text", "expected"), PATHS)
def test_the_path_names_the_first_fault(tp: Any, text: str, expected: InvalidParams) -> None:
    assert fault_of(tp, text) == expected


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


DEEP = b"[" * TOO_DEEP + b"]" * TOO_DEEP


@pytest.mark.parametrize(
    "tp", [Any, list[Any], dict[str, Any], Message, int, Tree, Raw, list[Raw], Cat | Dog | list[Any]]
)
def test_arrays_that_are_nested_too_deeply_are_a_fault_like_any_other(tp: Any) -> None:
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
