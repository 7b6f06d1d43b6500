"""Which fault is found, for every kind of type that an operation may take, and what is never said of it."""

from typing import Any, Literal

import msgspec
import pytest
from msgspec import Raw

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
