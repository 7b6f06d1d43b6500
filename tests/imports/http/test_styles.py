"""The styles of OpenAPI: the table "Style Examples" of the specification, and what no style can express."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.imports.http.model import Serialization
from discreet.imports.http.request import (
    Unwritable,
    cookie_pairs,
    header_text,
    path_text,
    query_pairs,
    scalar,
)

ARRAY = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}

PATHS: list[tuple[str, bool, Any, str]] = [
    ("matrix", False, None, ";color"),
    ("matrix", False, "blue", ";color=blue"),
    ("matrix", False, ARRAY, ";color=blue,black,brown"),
    ("matrix", False, OBJECT, ";color=R,100,G,200,B,150"),
    ("matrix", True, None, ";color"),
    ("matrix", True, "blue", ";color=blue"),
    ("matrix", True, ARRAY, ";color=blue;color=black;color=brown"),
    ("matrix", True, OBJECT, ";R=100;G=200;B=150"),
    ("matrix", True, [], ";color"),
    ("label", False, None, "."),
    ("label", False, "blue", ".blue"),
    ("label", False, ARRAY, ".blue,black,brown"),
    ("label", False, OBJECT, ".R,100,G,200,B,150"),
    ("label", True, "blue", ".blue"),
    ("label", True, ARRAY, ".blue.black.brown"),
    ("label", True, OBJECT, ".R=100.G=200.B=150"),
    ("simple", False, "blue", "blue"),
    ("simple", False, ARRAY, "blue,black,brown"),
    ("simple", False, OBJECT, "R,100,G,200,B,150"),
    ("simple", True, ARRAY, "blue,black,brown"),
    ("simple", True, OBJECT, "R=100,G=200,B=150"),
    ("simple", False, "a/b?c#d", "a%2Fb%3Fc%23d"),
    ("simple", False, ["a,b", "c"], "a%2Cb,c"),
]

QUERIES: list[tuple[str, bool, Any, str]] = [
    ("form", False, "", "color="),
    ("form", False, "blue", "color=blue"),
    ("form", False, ARRAY, "color=blue,black,brown"),
    ("form", False, OBJECT, "color=R,100,G,200,B,150"),
    ("form", True, "blue", "color=blue"),
    ("form", True, ARRAY, "color=blue&color=black&color=brown"),
    ("form", True, OBJECT, "R=100&G=200&B=150"),
    ("form", True, None, ""),
    ("form", True, [], ""),
    ("form", False, {}, ""),
    ("form", True, ["a", None, "b"], "color=a&color=b"),
    ("form", False, ["a,b", "c&d"], "color=a%2Cb,c%26d"),
    ("spaceDelimited", False, ARRAY, "color=blue%20black%20brown"),
    ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
    ("spaceDelimited", True, ARRAY, "color=blue&color=black&color=brown"),
    ("pipeDelimited", False, ARRAY, "color=blue%7Cblack%7Cbrown"),
    ("pipeDelimited", False, OBJECT, "color=R%7C100%7CG%7C200%7CB%7C150"),
    ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
    ("deepObject", True, {"a": {"b": [1, True]}}, "color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D=true"),
]

COOKIES: list[tuple[str, bool, Any, str]] = [
    ("cookie", False, "blue", "color=blue"),
    ("cookie", False, ARRAY, "color=blue,black,brown"),
    ("cookie", False, OBJECT, "color=R,100,G,200,B,150"),
    ("cookie", True, ARRAY, "color=blue; color=black; color=brown"),
    ("cookie", True, OBJECT, "R=100; G=200; B=150"),
    ("form", True, "a b;c", "color=a%20b%3Bc"),
]


@pytest.mark.parametrize(("style", "explode", "value", "text"), PATHS)
def test_paths_are_written_as_the_specification_shows(style: Any, explode: bool, value: Any, text: str) -> None:
    assert path_text("color", value, Serialization(style, explode)) == text


@pytest.mark.parametrize(("style", "explode", "value", "text"), QUERIES)
def test_queries_are_written_as_the_specification_shows(style: Any, explode: bool, value: Any, text: str) -> None:
    assert "&".join(query_pairs("color", value, Serialization(style, explode), required=False)) == text


@pytest.mark.parametrize(("style", "explode", "value", "text"), COOKIES)
def test_cookies_are_written_as_the_specification_shows(style: Any, explode: bool, value: Any, text: str) -> None:
    assert "; ".join(cookie_pairs("color", value, Serialization(style, explode))) == text


@pytest.mark.parametrize(
    ("explode", "value", "text"),
    [
        (False, "blue", "blue"),
        (False, ARRAY, "blue,black,brown"),
        (False, OBJECT, "R,100,G,200,B,150"),
        (True, OBJECT, "R=100,G=200,B=150"),
        (False, "a, b=c", "a, b=c"),
    ],
)
def test_headers_are_written_as_the_specification_shows(explode: bool, value: Any, text: str) -> None:
    assert header_text(value, explode=explode) == text


def test_a_required_value_that_is_undefined_leaves_its_name() -> None:
    assert query_pairs("color", [], Serialization("form", True), required=True) == ["color="]


def test_reserved_characters_stay_where_they_are_allowed_but_for_those_that_end_a_value() -> None:
    how = Serialization("form", False, allow_reserved=True)
    assert query_pairs("u", "http://a/?b=c&d#e+f%41%zz", how, required=False) == ["u=http://a/?b=c%26d%23e%2Bf%41%25zz"]
    assert query_pairs("u", ["a,b", "c:d"], how, required=False) == ["u=a%2Cb,c:d"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (1.0, "1"),
        (1.5, "1.5"),
        (2**80, str(2**80)),
        ({"a": [1]}, '{"a":[1]}'),
        (None, "null"),
    ],
)
def test_scalars_are_written_as_json_writes_them(value: Any, text: str) -> None:
    assert scalar(value) == text


@pytest.mark.parametrize(
    "value", ["a\r\nb", "a\nb", "\0", "é", " a", "a ", "\x7f", ["a,b"], [""], ["a\n"], {"a": "\r"}]
)
def test_what_a_header_can_not_hold_is_refused(value: Any) -> None:
    with pytest.raises(Unwritable):
        header_text(value, explode=False)


@pytest.mark.parametrize("value", ["a;b", "a b", "a,b", "a\r\n", '"', "\\", "é"])
def test_what_a_cookie_can_not_hold_is_refused(value: str) -> None:
    for wrapped in (value, [value], {"k": value}):
        for explode in (False, True):
            with pytest.raises(Unwritable):
                cookie_pairs("c", wrapped, Serialization("cookie", explode))


@pytest.mark.parametrize(
    ("style", "value"), [("spaceDelimited", ["a b"]), ("pipeDelimited", ["a|b"]), ("pipeDelimited", {"|": 1})]
)
def test_a_value_with_its_delimiter_in_it_is_refused(style: Any, value: Any) -> None:
    with pytest.raises(Unwritable):
        query_pairs("c", value, Serialization(style, False), required=False)
