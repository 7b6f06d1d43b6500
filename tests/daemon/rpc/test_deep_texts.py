"""Texts that are nested too deeply for the decoder are judged as it would judge them, had it no limit.

The decoder is the oracle: it takes some 900 levels, and `flattened` works on 64 at a time.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.daemon.rpc.envelope import (
    ClientResponse,
    Dropped,
    Message,
    NoJson,
    Refused,
    decode,
    flattened,
    json_failure,
)

decode_raw = msgspec.json.Decoder(msgspec.Raw).decode

LEVELS = 20_000
DEEP = b"[" * LEVELS + b"]" * LEVELS


def is_json(text: bytes) -> bool:
    try:
        decode_raw(text)
    except msgspec.DecodeError:
        return False
    return True


def is_json_in_levels(text: bytes) -> bool:
    flat = flattened(text)
    return flat is not None and is_json(flat)


TOKENS = [
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b" ", b"\n", b"\t", b"\r", b"\\", b"\x00", b"\x0b", b"\xef\xbb\xbf"),
    *(b'"id"', b'"a"', b'"\\u0069d"', b'"]"', b'"[{"', b'"\\""', b'"\\\\"', b'"\\q"', b'"\\u12"', b'"\x01"', b'"\n"'),
    *(b"0", b"01", b"-", b"1.5e3", b"1.", b"NaN", b"true", b"tru", b"null", b"hello", b"[]", b"{}", b"[[[]]]", b"[{]}"),
    *(b'{"a":1}', b'{"a":1,}', b"[1,]", b"[1 2]", b"[}", b"{]", b"1[]", b"[]1"),
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
texts = values.map(lambda value: json.dumps(value).encode())
pieces = st.lists(st.sampled_from(TOKENS), max_size=6).map(b"".join)
WRAPPINGS = [(b"[", b"]"), (b'{"a":', b"}"), (b'[0,{"id":7,"b":', b"},[[]]]"), (b'["[",', b',"]"]')]
wrappings = st.lists(st.tuples(st.sampled_from(WRAPPINGS), st.integers(1, 70)), max_size=4)


@st.composite
def nested_texts(draw: Any) -> bytes:
    """Up to 560 levels around a JSON text or what is none, some bytes of it changed, taken away or put in."""
    text = draw(texts | pieces)
    for (before, after), count in draw(wrappings):
        text = before * count + text + after * count
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(TOKENS) | st.just(b"")) + text[at + draw(st.integers(0, 2)) :]
    return text


@settings(max_examples=1500, deadline=None)
@given(text=nested_texts())
def test_a_text_is_json_in_levels_exactly_if_the_decoder_takes_it_whole(text: bytes) -> None:
    assert is_json_in_levels(text) == is_json(text)


@settings(max_examples=500, deadline=None)
@given(text=nested_texts(), wrapping=st.sampled_from(WRAPPINGS))
def test_a_text_that_no_decoder_takes_whole_is_json_exactly_if_its_inside_is(
    text: bytes, wrapping: tuple[bytes, bytes]
) -> None:
    before, after = wrapping
    whole = before * 1000 + text + after * 1000
    expected = is_json(before + text + after) and is_json(before + b"0" + after)
    assert is_json_in_levels(whole) == expected


MEMBERS = [
    b'"id":7', b'"id":"a"', b'"\\u0069d":8', b'"id":null', b'"id":{}', b'"id":true', b'"id":[[]]', b'"id":1e400',
    b'"jsonrpc":"2.0"', b'"method":"m"', b'"m\\u0065thod":"m"', b'"method":1', b'"result":1', b'"error":{}', b'"result":[]',
    b'"ID":9', b'"x":{"id":10,"method":"m"}', b'"params":["id",":"]',
    # none of which is JSON
    b'"id":hello', b'"id":"\\q"', b'"id":01', b'"id"7', b'"id":', b"id:7", b'"id":"\n"', b'"id":7 8',
]  # fmt: skip


def shown(message: Message) -> tuple[str, bytes | None, str | None]:
    """What a caller sees of a message that is no call: its kind, the id and the reason."""
    reason = message.failure.reason if isinstance(message, Refused | NoJson) else None
    return type(message).__name__, getattr(message, "id", None), reason


@settings(max_examples=1500, deadline=None)
@given(
    members=st.lists(st.sampled_from(MEMBERS), max_size=6),
    at=st.integers(0, 6),
    name=st.sampled_from([b'"params":', b'"x":', b'"id":', b'"p\\u0061rams":', b""]),
    space=st.sampled_from([b"", b" ", b"\r\n\t"]),
)
def test_an_envelope_with_a_deep_member_is_read_as_one_with_a_flat_member(
    members: list[bytes], at: int, name: bytes, space: bytes
) -> None:
    def envelope(value: bytes) -> bytes:
        return b"{" + (space + b",").join([*members[:at], name + value, *members[at:]]) + space + b"}"

    flat, deep = shown(decode(envelope(b"[]"))), shown(decode(envelope(DEEP)))
    if flat[0] == "Request":
        flat = ("Refused", flat[1], "malformed-envelope") if flat[1] is not None else ("Dropped", None, None)
    assert deep == flat


@pytest.mark.parametrize("value", [b"hello", b'"\\q"', b"01", b'"\x01"', b"1.", b"+1", b"'a'"])
def test_an_id_that_is_no_json_is_never_echoed(value: bytes) -> None:
    message = decode(b'{"jsonrpc":"2.0","method":"m","params":%b,"id":%b}' % (DEEP, value))
    assert isinstance(message, NoJson)


def test_an_id_with_an_escaped_name_is_found_beside_deep_params() -> None:
    message = decode(b'{"jsonrpc":"2.0","\\u0069d":7,"method":"m","params":%b}' % DEEP)
    assert message == Refused(b"7", message.failure) if isinstance(message, Refused) else pytest.fail(str(message))


@pytest.mark.parametrize(
    ("inside", "reason"), [(b"1", "malformed-envelope"), (b"01", "invalid-json"), (b'"\xff"', "invalid-utf8")]
)
def test_a_value_that_is_nested_too_deeply_is_told_from_one_that_is_no_json(inside: bytes, reason: str) -> None:
    failure = json_failure(b"[" * LEVELS + inside + b"]" * LEVELS)
    assert failure is not None
    assert failure.reason == reason


def test_a_deep_response_is_a_response() -> None:
    assert decode(b'{"jsonrpc":"2.0","id":1,"result":%b}' % DEEP) == ClientResponse(b"1", None, None)
    assert decode(b'{"jsonrpc":"2.0","result":%b}' % DEEP) == Dropped()


HOSTILE = {
    "brackets": (b"[" * 1000, b"[", b""),
    "members": (b"", b'{"a":', b""),
    "quotes": (b"", b'["]"', b""),
    "open string": (b'["', b"[[[", b""),
    "wide behind depth": (DEEP[:-1] + b",", b"[[[[]]]],", b"0]"),
    "wide before depth": (b"[" * 63, b"[[[[]]]],", DEEP + b"]" * 63),
    "depths side by side": (b"[", b"[" * 70 + b"]" * 70 + b",", b"0]"),
    "not closed": (b"[" * 1500, b"x", b""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_costs_time_in_proportion(name: str) -> None:
    """A megabyte; quadratic time would take hours."""
    before, piece, after = HOSTILE[name]
    flattened(before + piece * (1_000_000 // len(piece)) + after)
