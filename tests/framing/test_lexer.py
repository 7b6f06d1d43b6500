"""Where a JSON text ends, in any chunks, and where it turns out to be none."""

from __future__ import annotations

import json
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.framing.lexer import JsonLexer

Layout: TypeAlias = tuple[bool, int | None]


def read(data: bytes, size: int) -> tuple[str, int]:
    """The phase in the end, and how many bytes belonged to the text."""
    lexer = JsonLexer()
    consumed = 0
    for at in range(0, len(data), size):
        chunk = data[at : at + size]
        consumed += lexer.feed(chunk)
        if not lexer.unfinished:
            break
    return lexer.phase, consumed


# (data, phase, bytes that belong to the text); None: all of them
CASES: dict[str, tuple[bytes, str, int | None]] = {
    "byte-order-mark": (b"\xef\xbb\xbf{}", "broken", 0),
    "escaped-letters": (b'["\\u0022]\\n\\r"]x', "ended", 15),
    "line-ends-between": (b'{\r\n"a"\n:\r[\n]}x', "ended", 13),
    "letters-and-a-string": (b'{x "}" y}z', "ended", 9),
    "non-ascii-letters": (b"{\xc3\xa9}x", "ended", 4),
    "letters-then-lf": (b"{not\n}", "broken", 4),
    "letters-then-cr": (b"{not\r}", "broken", 4),
    "letters-and-more-then-lf": (b'{not [1] "s" 2\n}', "broken", 14),
    "cr-in-a-string": (b'["a\r"]', "broken", 3),
    "escaped-line-end": (b'["a\\\n"]', "broken", 4),
    "many-escapes": (b'["' + b'\\"' * 2000 + b'"]x', "ended", 4004),
    "deep": (b"[" * 100_000 + b"]" * 100_000 + b"x", "ended", 200_000),
}


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 10**6])
@pytest.mark.parametrize("name", CASES)
def test_a_text_ends_where_its_brackets_do(name: str, size: int) -> None:
    data, phase, length = CASES[name]
    if size < 3 and len(data) > 10_000:
        data, length = b"[" * 1000 + b"]" * 1000 + b"x", 2000
    assert read(data, size) == (phase, len(data) if length is None else length)


def test_a_text_can_start_anywhere_in_a_chunk() -> None:
    lexer = JsonLexer()
    assert lexer.feed(b"xx[1]xx", 2) == 5
    assert lexer.feed(b"more") == 0


values = st.recursive(
    st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
containers = st.lists(values, max_size=4) | st.dictionaries(st.text(), values, max_size=4)
layouts = st.tuples(st.booleans(), st.none() | st.integers(0, 3))


@settings(max_examples=120)
@given(value=containers, layout=layouts, size=st.integers(1, 40), after=st.binary(max_size=9))
def test_every_json_text_ends_with_its_last_byte(value: object, layout: Layout, size: int, after: bytes) -> None:
    text = dumps(value, layout)
    assert read(text + after, size) == ("ended", len(text))


@settings(max_examples=120)
@given(data=st.data(), value=containers, layout=layouts)
def test_no_beginning_of_a_json_text_is_itself_complete(data: st.DataObject, value: object, layout: Layout) -> None:
    text = dumps(value, layout)
    lexer = JsonLexer()
    lexer.feed(text[: data.draw(st.integers(0, len(text) - 1))])
    assert lexer.unfinished


def dumps(value: object, layout: Layout) -> bytes:
    ascii_only, indent = layout
    return json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")


@settings(max_examples=120)
@given(beginning=st.lists(st.sampled_from([b"{", b"[", b'"', b"\\", b"1", b",", b"x"]), max_size=8), after=st.binary())
def test_no_text_goes_on_after_a_content_length_line(beginning: list[bytes], after: bytes) -> None:
    lexer = JsonLexer()
    lexer.feed(b"{" + b"".join(beginning))
    if lexer.unfinished:
        lexer.feed(b"Content-Length: 5\r\n\r\n" + after)
        assert lexer.phase == "broken"


def end_by_counting(text: bytes) -> int | None:
    """Where a text of brackets and strings without line ends is over, bracket by bracket."""
    depth, in_string = 0, False
    for at, byte in enumerate(text):
        in_string ^= byte == ord('"')
        if not in_string and byte in b"[]{}":
            depth += 1 if byte in b"[{" else -1
            if depth == 0:
                return at + 1
    return None


PIECES = [b"[", b"]", b"{", b"}", b"[]", b"]]", b"[" * 700, b"]" * 700, b"[]" * 400, b'"[{"', b'""' * 300, b"1, ", b"x"]


@settings(max_examples=120)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=30), size=st.sampled_from([1, 7, 1000, 10**6]))
def test_rows_of_brackets_end_where_counting_one_by_one_ends(pieces: list[bytes], size: int) -> None:
    text = b"[" + b"".join(pieces)
    end = end_by_counting(text)
    phase, read_to = read(text, size)
    assert (phase == "ended", read_to) == (end is not None, len(text) if end is None else end)
