"""Header values, and the byte at which a block turns out to be none."""

from __future__ import annotations

import pytest

from discreet.framing.content_length import LARGEST_LENGTH, HeaderBlock, content_type_fault, parse_length

LIMIT = 200


@pytest.mark.parametrize(
    ("value", "length"),
    [
        (b"0", 0),
        (b"8", 8),
        (b"0008", 8),
        (b"0" * 5000, 0),
        (b"0" * 5000 + b"7", 7),
        (b"9223372036854775807", LARGEST_LENGTH),
        (b"9223372036854775808", "oversize"),
        (b"18446744073709551624", "oversize"),  # 2**64 + 8
        (b"9" * 8000, "oversize"),
        *((value, "invalid-content-length") for value in (b"", b"+5", b"-5", b"0x10", b"1_0", b"5.0", b"5, 5", b"5 5")),
        *(
            (value, "invalid-content-length")
            for value in (b"five", b"\xb2", b"\xd9\xa5", b"5\x00", b"5e0", b"\xef\xbc\x95")
        ),
    ],
)
def test_a_length_is_ascii_digits_and_nothing_else(value: bytes, length: int | str) -> None:
    assert parse_length(value) == length


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (b"application/vscode-jsonrpc", None),
        (b"Application/VSCode-JSONRPC", None),
        (b"application/vscode-jsonrpc; charset=utf-8", None),
        (b"application/vscode-jsonrpc; charset=utf8", None),
        (b"application/vscode-jsonrpc;CHARSET=UTF-8", None),
        (b'application/vscode-jsonrpc \t;\t charset="utf-8"', None),
        (b'application/vscode-jsonrpc; charset="UTF8"', None),
        (b"application/vscode-jsonrpc;", None),
        (b'application/vscode-jsonrpc; note=";charset=latin1"; charset=utf-8', None),
        (b'application/vscode-jsonrpc; note="a\\";charset=latin1"', None),
        (b'application/vscode-jsonrpc; note=";charset=utf-8"; charset=latin1', "bad-charset"),
        (b"application/vscode-jsonrpc; charset=utf-16", "bad-charset"),
        (b"application/vscode-jsonrpc; charset=", "bad-charset"),
        (b"application/vscode-jsonrpc; charset", "bad-charset"),
        (b'application/vscode-jsonrpc; charset="', "bad-charset"),
        (b"application/vscode-jsonrpc; charset='utf-8'", "bad-charset"),
        (b"application/vscode-jsonrpc; charset=utf-8; charset=latin-1", "bad-charset"),
        (b"application/vscode-jsonrpc; charset=utf-8; version=1", None),
        (b"application/vscode-jsonrpc; foo=bar; charset=latin-1", "bad-charset"),
        (b"application/vscode-jsonrpc; =utf-8", None),
        (b"application/vscode-jsonrpc charset=utf-8", "unsupported-content-type"),
        (b"application/vscode-jsonrpc2", "unsupported-content-type"),
        (b"application/json; charset=utf-8", "unsupported-content-type"),
        (b"text/plain; charset=latin-1", "unsupported-content-type"),
        (b"charset=utf-8", "unsupported-content-type"),
        (b"", "unsupported-content-type"),
    ],
)
def test_one_content_type_in_utf8_is_supported(value: bytes, fault: str | None) -> None:
    assert content_type_fault(value) == fault


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b" ", 0),
        (b"{", 0),
        (b":", 0),
        (b"\n", 0),
        (b"\rX", 1),
        (b"na me: x", 2),
        (b"name\r\n", 4),
        (b"name: x\x00", 7),
        (b"name: x\n", 7),
        (b"name: x\rX", 8),
        (b"name: x\r\n folded", 9),
        (b"name: x\r\n\rX", 10),
        (b"name: x\r\n\n", 9),
    ],
)
def test_the_first_byte_that_no_block_holds_is_the_fault(data: bytes, seen: int) -> None:
    block = HeaderBlock(LIMIT)
    assert block.read(data[:seen], 0) is None
    assert block.read(data, 0) == "malformed-header"
    assert block.seen == seen


def test_each_byte_is_judged_by_the_grammar_of_names_and_values() -> None:
    for octet in range(256):
        char = bytes([octet])
        in_name = char.isalnum() or char in {each.encode() for each in "!#$%&'*+-.^_`|~"}
        in_value = octet in {0x09, 0x20} or 0x21 <= octet <= 0x7E or octet >= 0x80
        assert (HeaderBlock(LIMIT).read(char, 0) is None) == (in_name or char == b"\r"), octet
        assert (HeaderBlock(LIMIT).read(b"X: " + char, 0) is None) == (in_value or char == b"\r"), octet


def test_a_block_may_start_anywhere_in_a_chunk_and_ends_after_its_blank_line() -> None:
    data = b"...Content-Length: 5\r\nX: y\r\n\r\nhello"
    block = HeaderBlock(LIMIT)
    assert block.read(data, 3) == 5
    assert data[3 + block.seen :] == b"hello"


def test_a_block_is_as_large_as_the_limit_at_most() -> None:
    data = b"X: y\r\n\r\n"
    assert HeaderBlock(len(data)).read(data, 0) == "missing-content-length"
    assert HeaderBlock(len(data) - 1).read(data, 0) == "header-too-large"


def test_a_block_that_comes_byte_by_byte_is_read_on_from_where_it_was_left() -> None:
    lines = b"Content-Length: 5\r\nContent-Type: text/plain\r\n\r\n"
    block = HeaderBlock(LIMIT)
    for end in range(1, len(lines)):
        assert block.read(lines[:end], 0) is None
        assert block.seen == end
    assert block.read(lines, 0) == 5
    assert block.type_fault == "unsupported-content-type"
