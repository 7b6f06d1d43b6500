"""Texts are changed as LSP says, in all three encodings: compared with a model that starts anew with every change."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.daemon.documents import ENCODINGS, PositionEncoding, Text, index_of, units

WIDTHS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
SIZES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}

ALPHABET = "ab\r\n\té€😀\u2028\x0b\x0c\x85"
texts = st.text(st.sampled_from(ALPHABET), max_size=40)
halves = st.text(st.sampled_from("ab\n😀\ud83d\ude00"), max_size=6)
encodings = st.sampled_from(ENCODINGS)


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def joined(text: str) -> str:
    """Two surrogates that are a pair are one character."""
    return utf16(text).decode("utf-16-le", "surrogatepass")


class Naive:
    """The specification, read word by word. The value has surrogates of pairs that were cut."""

    def __init__(self, value: str, encoding: PositionEncoding) -> None:
        self.value, self.encoding = joined(value), encoding

    def change(self, start: tuple[int, int], end: tuple[int, int], inserted: str) -> None:
        """UTF-16 counts units, and so a change may take half a pair or bring one."""
        if self.encoding != "utf-16":
            a, b = self.offset(*start), self.offset(*end)
            self.value = joined(self.value[:a] + inserted + self.value[b:])
            return
        begins = [len(utf16(self.value[: m.end()])) for m in re.finditer(r"^|\r\n|\n|\r", self.value)]
        ends = [len(utf16(self.value[: m.start()])) for m in re.finditer(r"\r\n|\n|\r|\Z", self.value)]
        units = utf16(self.value)
        a, b = (
            min(begins[line] + 2 * character, ends[line]) if line < len(begins) else len(units)
            for line, character in (start, end)
        )
        self.value = (units[:a] + utf16(inserted) + units[b:]).decode("utf-16-le", "surrogatepass")

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
            width += len(char.encode(WIDTHS[self.encoding], "surrogatepass")) // SIZES[self.encoding]
            if width > character:
                break
            offset += 1
        return offset


@pytest.mark.parametrize(("encoding", "count"), [("utf-8", 1 + 2 + 3 + 4), ("utf-16", 1 + 1 + 1 + 2), ("utf-32", 4)])
def test_characters_count_as_units_of_the_encoding(encoding: PositionEncoding, count: int) -> None:
    assert units("aé€😀", encoding) == count
    assert index_of("aé€😀", count, encoding) == 4


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 2), ("utf-8", 4), ("utf-16", 2)])
def test_a_unit_within_a_character_is_its_beginning(encoding: PositionEncoding, character: int) -> None:
    assert index_of("a😀b", character, encoding) == 1


def test_what_python_takes_for_a_line_end_is_none() -> None:
    assert Text("a\u2028b\x0bc\x85d", "utf-16").lines() == ["a\u2028b\x0bc\x85d"]


def test_beyond_the_end_is_the_end() -> None:
    text = Text("one\r\ntwo", "utf-16")
    assert (text.offset(0, 99), text.offset(9, 0), text.line(9)) == (3, 8, "")


@pytest.mark.parametrize(
    ("before", "changes", "value"),
    [
        ("a😀b", [((1, 2), "")], "a\ufffdb"),
        ("a😀b", [((2, 3), "\ude01")], "a😁b"),
        ("ab", [((1, 1), "\ud83d"), ((2, 2), "\ude00")], "a😀b"),
        ("a😀b", [((2, 2), "x")], "a\ufffdx\ufffdb"),
        ("a😀b", [((2, 2), "x"), ((2, 3), "")], "a😀b"),
    ],
)
def test_the_halves_of_a_pair_find_each_other(
    before: str, changes: list[tuple[tuple[int, int], str]], value: str
) -> None:
    text = Text(before, "utf-16").changed([(((0, start), (0, end)), inserted) for (start, end), inserted in changes])
    assert text.value == value
    assert text.line(0) == value


long_texts = st.builds(
    lambda head, part, times: head + part * times,
    texts,
    st.text(st.sampled_from(ALPHABET), min_size=5),
    st.integers(0, 600),
)
positions = st.tuples(st.integers(0, 12), st.integers(0, 50))
far = st.tuples(st.integers(0, 2000), st.integers(0, 9000))
inserted_texts = st.one_of(texts, halves, st.builds(lambda part: part * 3000, texts))


@settings(max_examples=50)
@given(
    texts | long_texts,
    encodings,
    st.lists(st.tuples(positions | far, positions | far, inserted_texts), max_size=6),
    st.integers(0, 45) | st.integers(0, 40_000),
)
def test_changes_leave_what_the_naive_model_has(
    value: str, encoding: PositionEncoding, changes: list[tuple[tuple[int, int], tuple[int, int], str]], offset: int
) -> None:
    text, naive = Text(value, encoding), Naive(value, encoding)
    for start, end, inserted in changes:
        start, end = min(start, end), max(start, end)
        assert (text.offset(*start), text.offset(*end)) == (naive.offset(*start), naive.offset(*end))
        text = text.changed([((start, end), joined(inserted))])
        naive.change(start, end, inserted)
        assert text.exact == naive.value
        shown_value = re.sub("[\ud800-\udfff]", "\ufffd", naive.value)
        assert text.value == shown_value
        lines = re.split(r"\r\n|\n|\r", shown_value)
        assert text.lines() == lines
        assert [text.line(number) for number in (0, start[0], len(lines) - 1, len(lines))] == [
            lines[0],
            lines[start[0]] if start[0] < len(lines) else "",
            lines[-1],
            "",
        ]
        at = min(offset, len(shown_value))
        line, character = text.position(at)
        assert text.offset(line, character) == at - (shown_value[at - 1 : at + 1] == "\r\n")
