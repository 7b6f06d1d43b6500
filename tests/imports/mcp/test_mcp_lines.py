"""Lines of a server, however its output is divided."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from discreet.imports.mcp.connection.stdio import HEAD_BYTES, Line, LineSplitter, Oversize

LIMIT = 600


def split(data: bytes, cuts: list[int]) -> list[Line]:
    splitter = LineSplitter(LIMIT)
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [line for a, b in pairwise(places) for line in splitter.feed(data[a:b])]


@given(
    st.lists(st.binary(max_size=900).map(lambda text: text.replace(b"\n", b"")), max_size=6), st.lists(st.integers(0))
)
def test_lines_do_not_depend_on_how_they_are_divided(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    expected = [Oversize(line[:HEAD_BYTES]) if len(line) > LIMIT else line.strip(b" \t\r") for line in lines]
    assert split(data, cuts) == [line for line in expected if line]


def test_an_endless_line_is_told_once_and_takes_no_memory() -> None:
    splitter = LineSplitter(LIMIT)
    found = [line for _ in range(10) for line in splitter.feed(b"x" * LIMIT)]
    assert found == [Oversize(b"x" * HEAD_BYTES)]
    assert splitter.feed(b"\n{}\n") == [b"{}"]
