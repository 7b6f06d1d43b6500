"""What goes out is exactly one frame, on one line where lines are frames."""

from __future__ import annotations

import msgspec
import pytest

from discreet.framing.encoder import encode_frame


@pytest.mark.parametrize("body", [b"", b"{}", b'{"a":"\xc3\xa9"}', b"x" * 100_000])
def test_a_frame_has_one_header_with_the_length_in_bytes(body: bytes) -> None:
    frame = encode_frame(body, "content-length")
    assert frame == b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body


def test_a_line_ends_in_lf() -> None:
    assert encode_frame(b'{"a":1}', "newline") == b'{"a":1}\n'


def test_raw_line_ends_become_blanks_and_the_value_stays() -> None:
    raw = msgspec.Raw(b'{\r\n  "a": "x\\ny",\n  "b": [1,\r2]\n}')
    line = encode_frame(msgspec.json.encode({"result": raw}), "newline")
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    assert msgspec.json.decode(line) == {"result": {"a": "x\ny", "b": [1, 2]}}


def test_a_frame_keeps_raw_line_ends() -> None:
    assert encode_frame(b"[\r\n]", "content-length").endswith(b"[\r\n]")
