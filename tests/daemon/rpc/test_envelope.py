"""Bodies to messages: every shape of envelope, ids as they came, and texts that are nested too deeply for the decoder."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from discreet import Service
from discreet.daemon.operations.request import Request
from discreet.daemon.rpc.envelope import (
    NESTED_TOO_DEEPLY,
    NO_OBJECT,
    ClientResponse,
    Dropped,
    Message,
    NoJson,
    Refused,
    decode,
    encode_notification,
    encode_result,
    flattened,
    json_failure,
)
from discreet.errors import InvalidRequest
from discreet.errors.decoders import SURE_LEVELS
from discreet.testing import in_memory
from support.inputs import TOO_DEEP

DEEP = b"[" * TOO_DEEP + b"]" * TOO_DEEP


def call(**members: object) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "m", **members})


@pytest.mark.parametrize(
    "text",
    ["1", "-0", "1.0", "1e400", "9007199254740993", "1" * 5000, '"1"', '""', '"\\u0061"', '"\\ud83d\\ude00"', "null"],
)
def test_an_id_is_echoed_byte_for_byte(text: str) -> None:
    message = decode(b'{"jsonrpc":"2.0","id": %b ,"method":"m"}' % text.encode())
    assert isinstance(message, Request)
    assert message.id == text.encode()
    assert encode_result(message.id, b"null") == b'{"jsonrpc":"2.0","id":%b,"result":null}' % text.encode()


def test_without_the_member_id_it_is_a_notification() -> None:
    message = decode(call())
    assert isinstance(message, Request)
    assert message.id is None


def test_params_stay_the_text_that_came_and_null_counts_as_absent() -> None:
    with_params = decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a" : [1, 2]}}')
    assert isinstance(with_params, Request)
    assert with_params.params is not None
    assert bytes(with_params.params) == b'{"a" : [1, 2]}'
    for body in (call(id=1), call(id=1, params=None)):
        without = decode(body)
        assert isinstance(without, Request)
        assert without.params is None


def test_duplicate_keys_the_last_wins() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":1,"method":"a","id":2,"method":"b"}')
    assert isinstance(message, Request)
    assert (message.id, message.method) == (b"2", "b")


def test_service_params_travel_with_keys_in_lower_case() -> None:
    message = decode(call(id=1, serviceParams={"Authorization": "Bearer x", "TraceParent": "t"}))
    assert isinstance(message, Request)
    assert message.metadata == {"authorization": "Bearer x", "traceparent": "t"}


REFUSED: list[tuple[bytes, bytes, str, str | InvalidRequest | None]] = [
    (b"[]", b"null", "batch-not-supported", None),
    (b' [{"jsonrpc":"2.0","id":1,"method":"m"}]', b"null", "batch-not-supported", None),
    (DEEP, b"null", "batch-not-supported", None),
    (call(id=[1]), b"null", "invalid-id-type", None),
    (call(id={"a": 1}), b"null", "invalid-id-type", None),
    (call(id=True), b"null", "invalid-id-type", None),
    (b"5", b"null", "malformed-envelope", NO_OBJECT),
    (b'"text"', b"null", "malformed-envelope", NO_OBJECT),
    (b"null", b"null", "malformed-envelope", NO_OBJECT),
    (b"{}", b"null", "malformed-envelope", "jsonrpc"),
    (b'{"id":7}', b"7", "malformed-envelope", "jsonrpc"),
    (b'{"jsonrpc":"1.0","id":7,"method":"m"}', b"7", "malformed-envelope", "jsonrpc"),
    (b'{"jsonrpc":2.0,"id":7,"method":"m"}', b"7", "malformed-envelope", "jsonrpc"),
    (b'{"id":7,"method":"m"}', b"7", "malformed-envelope", "jsonrpc"),
    (b'{"jsonrpc":"2.0","id":7}', b"7", "malformed-envelope", "method"),
    (b'{"jsonrpc":"2.0","id":7,"method":1}', b"7", "malformed-envelope", "method"),
    (b'{"jsonrpc":"2.0","method":1,"params":"bar"}', b"null", "malformed-envelope", "method"),
    (call(id=7, params="text"), b"7", "malformed-envelope", "params"),
    (call(id=7, params=1), b"7", "malformed-envelope", "params"),
    (call(id=7, serviceParams={"a": 1}), b"7", "malformed-envelope", "serviceParams"),
    (call(id=7, serviceParams=[]), b"7", "malformed-envelope", "serviceParams"),
    (
        b'{"jsonrpc":"2.0","id":"deep","method":"m","params":%b}' % DEEP,
        b'"deep"',
        "malformed-envelope",
        NESTED_TOO_DEEPLY,
    ),
    (b'{"jsonrpc":"2.0","method":"m","params":{"id":1,"x":%b},"id":[2]}' % DEEP, b"null", "invalid-id-type", None),
]


@pytest.mark.parametrize(
    ("body", "call_id", "reason", "member"), REFUSED, ids=[body[:50].decode() for body, *_ in REFUSED]
)
def test_a_broken_envelope_is_refused_under_the_id_that_it_has(
    body: bytes, call_id: bytes, reason: str, member: str | InvalidRequest | None
) -> None:
    message = decode(body)
    assert isinstance(message, Refused)
    failure = member if isinstance(member, InvalidRequest) else InvalidRequest(reason, member)  # type: ignore[arg-type]
    assert (message.id, message.failure) == (call_id, failure)


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","method":"m","params":5}',
        b'{"jsonrpc":"1.0","method":"m"}',
        b'{"method":"m"}',
        b'{"jsonrpc":"2.0","method":"m","serviceParams":5}',
        b'{"jsonrpc":"2.0","result":1}',
        b'{"jsonrpc":"2.0","result":%b}' % DEEP,
        b'{"jsonrpc":"2.0","method":"m","params":%b}' % DEEP,
    ],
)
def test_a_broken_notification_or_response_is_dropped_without_an_answer(body: bytes) -> None:
    assert isinstance(decode(body), Dropped)


NO_JSON = [
    (b"", "invalid-json"),
    (b"hello", "invalid-json"),
    (b'{"a":', "invalid-json"),
    (b'{"jsonrpc":"2.0","id":1,"method":"m"} x', "invalid-json"),
    (b'{"jsonrpc":5} x', "invalid-json"),
    (b"[1,", "invalid-json"),
    (b"[" * 100_000, "invalid-json"),
    (b'{"params":' + b"[" * 100_000, "invalid-json"),
    (b"\xef\xbb\xbf{}", "invalid-json"),
    (b'{"jsonrpc":"2.0","id":"\xff","method":"m"}', "invalid-utf8"),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xc3\x28"}}', "invalid-utf8"),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xed\xa0\x80"}}', "invalid-utf8"),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud800"}}', "invalid-utf8"),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\uDC00\\ud800"}}', "invalid-utf8"),
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\\\\\ud800"}}', "invalid-utf8"),
    ('{"a":1}'.encode("utf-16"), "invalid-utf8"),
]


@pytest.mark.parametrize(("body", "reason"), NO_JSON, ids=[repr(body[:40]) for body, _ in NO_JSON])
def test_what_is_no_json_text_says_why(body: bytes, reason: str) -> None:
    message = decode(body)
    assert isinstance(message, NoJson)
    assert message.failure.reason == reason


@pytest.mark.parametrize("text", [r"\\ud800", r"\ud83d\ude00", r"\uD83D\uDE00 \\\\udc00"])
def test_an_escaped_backslash_before_ud800_is_no_surrogate(text: str) -> None:
    assert isinstance(decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"%b"}}' % text.encode()), Request)


@pytest.mark.parametrize(
    ("members", "result", "error"),
    [
        (b'"result":null', b"null", None),
        (b'"error":{}', None, b"{}"),
        (b'"result":1,"error":null', b"1", None),
        (b'"result":null,"error":null', b"null", None),
        (b'"result":null,"error":{}', None, b"{}"),
        (b'"result":1,"error":{}', None, None),
        (b'"result":%b' % DEEP, None, None),
        (b'"error":{"data":%b}' % DEEP, None, None),
    ],
    ids=["result", "error", "null error", "two nulls", "null result", "both", "deep result", "deep error"],
)
def test_a_response_is_one_however_odd_it_is(members: bytes, result: bytes | None, error: bytes | None) -> None:
    reply = decode(b'{"jsonrpc":"2.0","id":3,%b}' % members)
    assert isinstance(reply, ClientResponse)
    assert reply.id == b"3"
    assert [part and bytes(part) for part in (reply.result, reply.error)] == [result, error]


@given(st.binary(max_size=200))
def test_any_bytes_give_a_message(body: bytes) -> None:
    assert isinstance(decode(body), Request | ClientResponse | Refused | Dropped | NoJson)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(json_values.filter(lambda value: isinstance(value, dict | list)), st.booleans())
def test_any_json_params_come_through_whatever_their_escapes(params: object, ascii_only: bool) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params}, ensure_ascii=ascii_only)
    message = decode(text.encode())
    assert isinstance(message, Request)
    assert message.params is not None
    assert json.loads(bytes(message.params)) == params


def test_encoders_write_json_that_reads_back() -> None:
    assert json.loads(encode_notification('odd"name', {"a": 1})) == {
        "jsonrpc": "2.0", "method": 'odd"name', "params": {"a": 1},
    }  # fmt: skip


@pytest.mark.parametrize("text", [b"[1", b'{"a":1}}\n{"jsonrpc":"2.0","id":1,"result":{}', b"{]", b"nul"])
def test_what_is_no_json_never_leaves_in_params(text: bytes) -> None:
    for params in (Raw(text), {"a": Raw(text)}, [Raw(text)]):
        with pytest.raises(ValueError, match=r"JSON|truncated"):
            encode_notification("x", params)


decode_raw = msgspec.json.Decoder(msgspec.Raw).decode

LEVELS = 20_000
NESTED = b"[" * LEVELS + b"]" * LEVELS


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


@settings(max_examples=400, deadline=None)
@given(text=nested_texts())
def test_a_text_is_json_in_levels_exactly_if_the_decoder_takes_it_whole(text: bytes) -> None:
    assert is_json_in_levels(text) == is_json(text)


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=400, deadline=None)
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

    flat, deep = shown(decode(envelope(b"[]"))), shown(decode(envelope(NESTED)))
    if flat[0] == "Request":
        flat = ("Refused", flat[1], "malformed-envelope") if flat[1] is not None else ("Dropped", None, None)
    assert deep == flat


@pytest.mark.parametrize(
    ("inside", "reason"), [(b"1", "malformed-envelope"), (b"01", "invalid-json"), (b'"\xff"', "invalid-utf8")]
)
def test_a_value_that_is_nested_too_deeply_is_told_from_one_that_is_no_json(inside: bytes, reason: str) -> None:
    failure = json_failure(b"[" * LEVELS + inside + b"]" * LEVELS)
    assert failure is not None
    assert failure.reason == reason


@pytest.mark.anyio
async def test_as_many_levels_as_an_error_names_are_read() -> None:
    service = Service("app")

    @service.query
    def plain(value: Any) -> int:
        return 1

    @service.query
    async def typed(value: list[list[Any]]) -> int:
        return 1

    value = Raw(b"[" * (SURE_LEVELS - 2) + b"]" * (SURE_LEVELS - 2))  # in the params, in the message
    async with in_memory(service) as peer:
        assert [await peer.call(f"app/{name}", {"value": value}) for name in ("plain", "typed")] == [1, 1]


HOSTILE = {
    "brackets": (b"[" * 1000, b"[", b""),
    "members": (b"", b'{"a":', b""),
    "quotes": (b"", b'["]"', b""),
    "open string": (b'["', b"[[[", b""),
    "wide behind depth": (NESTED[:-1] + b",", b"[[[[]]]],", b"0]"),
    "wide before depth": (b"[" * 63, b"[[[[]]]],", NESTED + b"]" * 63),
    "depths side by side": (b"[", b"[" * 70 + b"]" * 70 + b",", b"0]"),
    "not closed": (b"[" * 1500, b"x", b""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_costs_time_in_proportion(name: str) -> None:
    """A megabyte; quadratic time would take hours."""
    before, piece, after = HOSTILE[name]
    flattened(before + piece * (1_000_000 // len(piece)) + after)
