"""Texts are changed as LSP says, in all three encodings: compared with a model that starts anew with every change."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.daemon.documents.text import ENCODINGS, PositionEncoding, Text, index_of, units

WIDTHS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
SIZES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}

ALPHABET = "ab\r\n\té€😀\u2028\x0b\x0c\x85"
texts = st.text(st.sampled_from(ALPHABET), max_size=40)
encodings = st.sampled_from(ENCODINGS)


class Naive:
    """The specification, read word by word."""

    def __init__(self, value: str, encoding: PositionEncoding) -> None:
        self.value, self.encoding = value, encoding

    def lines(self) -> list[str]:
        return re.split(r"\r\n|\n|\r", self.value)

    def offset(self, line: int, character: int) -> int:
        ends = [(0, 0), *((m.start(), m.end()) for m in re.finditer(r"\r\n|\n|\r", self.value))]
        if line >= len(ends):
            return len(self.value)
        begin = ends[line][1]
        width = 0
        offset = begin
        for char in self.lines()[line]:
            width += len(char.encode(WIDTHS[self.encoding])) // SIZES[self.encoding]
            if width > character:
                break
            offset += 1
        return offset


positions = st.tuples(st.integers(0, 12), st.integers(0, 50))


@given(texts, encodings, st.lists(st.tuples(positions, positions, texts), max_size=12))
def test_changes_leave_what_the_naive_model_has(
    value: str, encoding: PositionEncoding, changes: list[tuple[tuple[int, int], tuple[int, int], str]]
) -> None:
    text, naive = Text(value, encoding), Naive(value, encoding)
    for start, end, inserted in changes:
        start, end = min(start, end), max(start, end)
        a, b = naive.offset(*start), naive.offset(*end)
        assert (text.offset(*start), text.offset(*end)) == (a, b)
        text.replace(a, b, inserted)
        naive.value = naive.value[:a] + inserted + naive.value[b:]
        assert text.value == naive.value
        assert text.lines() == naive.lines()


@given(texts, encodings, st.integers(0, 45))
def test_a_position_leads_back_to_its_offset(value: str, encoding: PositionEncoding, offset: int) -> None:
    text = Text(value, encoding)
    offset = min(offset, len(value))
    line, character = text.position(offset)
    inside = 0 < offset < len(value) and value[offset - 1 : offset + 1] == "\r\n"
    assert text.offset(line, character) == (offset - 1 if inside else offset)
    assert 0 <= line < text.line_count


@pytest.mark.parametrize(("encoding", "count"), [("utf-8", 1 + 2 + 3 + 4), ("utf-16", 1 + 1 + 1 + 2), ("utf-32", 4)])
def test_characters_count_as_units_of_the_encoding(encoding: PositionEncoding, count: int) -> None:
    assert units("aé€😀", encoding) == count
    assert index_of("aé€😀", count, encoding) == 4


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 2), ("utf-8", 4), ("utf-16", 2)])
def test_a_unit_within_a_character_is_its_beginning(encoding: PositionEncoding, character: int) -> None:
    assert index_of("a😀b", character, encoding) == 1


def test_what_python_takes_for_a_line_end_is_none() -> None:
    assert Text("a\u2028b\x0bc\x85d", "utf-16").line_count == 1


def test_beyond_the_end_is_the_end() -> None:
    text = Text("one\r\ntwo", "utf-16")
    assert (text.offset(0, 99), text.offset(9, 0), text.line(9)) == (3, 8, "")
