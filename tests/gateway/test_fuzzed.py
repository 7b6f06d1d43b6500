"""Requests of every kind, whole and faulty, one behind the other and in any pieces: each has one answer at most, in order, a fault
ends its connection alone, and nothing of it is left.

The oracle is h11, which shares no code with the server's parser.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
import pytest

pytest.importorskip("httptools")

import h11
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.daemon.memory import MemoryBudget
from discreet.daemon.settings import Settings
from discreet.gateway.asgi import Receive, Scope, Send
from discreet.gateway.requests import in_task
from discreet.gateway.server.protocol import HttpProtocol, HttpServer
from support.logged_events import logged_events

from .test_protocol import HalfClosing, Recording, answering

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
REFUSALS = {400, 408, 413, 421, 431, 501, 505}
HEALTHY = b"GET /now HTTP/1.1\r\nhost: a\r\n\r\n"
TURNS = 60
"""Turns of the loop that the longest input takes."""


class Sent(msgspec.Struct, frozen=True):
    """A request, and what becomes of it: `whole` ones are answered. One that is `closing` is the last of its connection; behind one
    that is not whole nothing is answered."""

    text: bytes
    method: str = "GET"
    whole: bool = True
    closing: bool = False
    begins: bool = False
    """Whether it may be answered before its body has come, so that it may have an answer although it is faulty."""


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer at once, in a task, piece by piece, or before the body has come, as the path says."""
    path = scope["path"]
    if "task" in path:
        await in_task()
        await asyncio.sleep(0)
    size, more = 0, "early" not in path
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    body = b"%d bytes" % size
    parts = (body[:1], body[1:]) if "pieces" in path else (body,)
    length = {} if "pieces" in path else {"content_length": str(len(body))}
    await answering(*parts, **length)(scope, receive, send)


def run(reads: list[bytes], *, transport: Recording) -> tuple[bytes, bool]:
    """What is written for these reads and the end of the input behind them, and whether the connection was cut. Nothing is left of
    it, and the server still answers."""

    async def connect(server: HttpServer, transport: Recording, reads: list[bytes]) -> None:
        protocol = HttpProtocol(server, counted=False)
        protocol.connection_made(transport)
        for read in reads:
            asyncio.get_running_loop().call_soon(protocol.data_received, read)
            await asyncio.sleep(0)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(protocol.eof_received)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        protocol.connection_lost(None)

    async def both() -> None:
        memory = MemoryBudget(1 << 24)
        server, healthy = HttpServer(app, Settings(), memory, None), Recording()  # type: ignore[arg-type]
        async with asyncio.TaskGroup() as server.tasks:
            await connect(server, transport, reads)
            await connect(server, healthy, [HEALTHY])
        assert healthy.written[0].endswith(b"\r\n\r\n0 bytes")
        assert (memory.used, server.open) == (0, set())

    with logged_events("error") as logged:
        asyncio.run(both())
        assert logged.names() == []
    said = [each for each in transport.written if isinstance(each, bytes)]
    if not isinstance(transport.written[-1] if transport.written else b"", bytes):
        assert isinstance(transport.written[len(said) - 1], bytes) or not said  # nothing is written behind the end
    return b"".join(said), "aborted" in transport.written


def answers(text: bytes, methods: list[str]) -> list[tuple[int, bytes]]:
    """The status and the body of each answer. Raises what h11 raises for bytes that are none."""
    found: list[tuple[int, bytes]] = []
    while text := text.removeprefix(CONTINUE):  # behind which the body may not come
        assert len(found) < len(methods), ("more answers than requests", text)
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method=methods[len(found)], target="/", headers=[("host", "a")]))
        client.send(h11.EndOfMessage())
        client.receive_data(text)
        client.receive_data(b"")
        status, body = 0, b""
        while not isinstance(event := client.next_event(), h11.EndOfMessage):
            match event:
                case h11.Response():
                    status = event.status_code
                    ends = (b"connection", b"close") in event.headers
                case h11.Data():
                    body += event.data
                case _:
                    raise AssertionError(event)
        found.append((status, body))
        text = b"" if client.trailing_data[0] == b"" else client.trailing_data[0]
        assert not (ends and text), ("an answer behind the last one", text)
    return found


def head(line: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join((line, b"host: a", *headers, b"", b""))


def chunked(body: bytes, size: int, *, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    chunks = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)
    return chunks + b"0\r\n" + trailer + b"\r\n"


CODING = b"transfer-encoding: chunked"
PATHS = (b"/now", b"/task", b"/pieces", b"/task/pieces", b"/early")


@st.composite
def whole(draw: Any) -> Sent:
    """A request that is answered with 200."""
    path = draw(st.sampled_from(PATHS))
    target = draw(st.sampled_from([path, path, b"http://b" + path, path + b"?q=%00&\\", b"/" + path + b"/../%ff"]))
    more = draw(
        st.lists(
            st.sampled_from([b"x: a\tb \t", b"y:", b"upgrade: h2c\r\nconnection: upgrade"]), max_size=2, unique=True
        )
    )
    body = b"b" * draw(st.sampled_from([0, 1, 70, 900]))
    early = b"early" in path
    match draw(st.sampled_from(["GET", "HEAD", "OPTIONS", "length", "chunks", "1.0", "close"])):
        case "length":
            expect = [b"expect: 100-Continue"] if draw(st.booleans()) and not early else []
            text = head(b"POST %b HTTP/1.1" % target, *more, *expect, b"content-length: %d" % len(body)) + body
            return Sent(text, "POST")
        case "chunks":
            coding = draw(st.sampled_from([CODING, b"Transfer-Encoding:\tCHUNKED\t", b"transfer-encoding:chunked \t "]))
            extension = draw(st.sampled_from([b"", b";a", b';a="b"']))
            trailer = draw(st.sampled_from([b"", b"x: y\r\n", b"host: evil\r\n"]))
            ending = chunked(body, draw(st.sampled_from([1, 60, 4096])), extension=extension, trailer=trailer)
            return Sent(head(b"POST %b HTTP/1.1" % target, *more, coding) + ending, "POST")
        case "1.0":
            return Sent(
                head(b"POST %b HTTP/1.0" % target, b"connection: keep-alive", b"content-length: 1") + b"b",
                "POST",
                closing=True,
            )
        case "close":
            return Sent(head(b"GET %b HTTP/1.1" % target, *more[:1], b"connection: close"), closing=True)
        case method:
            line = b"OPTIONS *" if method == "OPTIONS" else b"%b %b" % (method.encode(), target)
            return Sent(head(line + b" HTTP/1.1", *more), method)


def faulty(text: bytes, method: str = "POST", *, begins: bool = False) -> Sent:
    return Sent(text, method, whole=False, begins=begins)


LINE = b"POST /now HTTP/1.1"
FAULTS = {
    "no http": faulty(b"\x16\x03\x01\x02\x00\r\n\r\n"),
    "bare line feeds": faulty(head(LINE).replace(b"\r\n", b"\n")),
    "a bare line feed at the end": faulty(head(LINE)[:-2] + b"\n"),
    "a folded header": faulty(head(LINE, b"x: a\r\n b")),
    "no host": faulty(b"GET /now HTTP/1.1\r\n\r\n"),
    "two hosts": faulty(head(LINE, b"host: b")),
    "two lengths": faulty(head(LINE, b"content-length: 1", b"content-length: 1") + b"b"),
    "a list of lengths": faulty(head(LINE, b"content-length: 1, 1") + b"b"),
    "a length and chunks": faulty(head(LINE, b"content-length: 1", CODING) + chunked(b"b", 1)),
    "chunks and a length": faulty(head(LINE, CODING + b"\t", b"content-length: 1") + chunked(b"b", 1)),
    "chunks twice": faulty(head(LINE, b"transfer-encoding: chunked, chunked") + chunked(b"b", 1)),
    "another coding": faulty(head(LINE, b"transfer-encoding: xchunked\t") + chunked(b"b", 1)),
    "another version": faulty(head(b"GET /now HTTP/2.0")),
    "another scheme": faulty(head(b"GET https://a/now HTTP/1.1")),
    "a fragment": faulty(head(b"GET /now#a HTTP/1.1")),
    "an asterisk": faulty(head(b"GET * HTTP/1.1")),
    "a tunnel": faulty(head(b"CONNECT a:1 HTTP/1.1")),
    "a target in UTF-8": faulty(head("GET /ü HTTP/1.1".encode())),
    "a null byte": faulty(head(LINE, b"x: \0")),
    "many headers": faulty(head(LINE, *(b"h%d: x" % number for number in range(2000)))),
    "a head that is a little too large": faulty(head(LINE, b"x: %b" % (b"a" * 8192))),
    "a long target": faulty(head(b"GET /%b HTTP/1.1" % (b"a" * 20_000))),
    "a size that is none": faulty(head(LINE, CODING) + b"x\r\n"),
    "an endless size": faulty(head(LINE, CODING) + b"1" * 20 + b"\r\n"),
    "a chunk without its end": faulty(head(LINE, CODING) + b"1\r\nbXX"),
    "a long extension": faulty(head(LINE, CODING) + b"1;%b\r\nb\r\n" % (b"a" * 20_000)),
    "a long trailer": faulty(head(LINE, CODING) + chunked(b"b", 1, trailer=b"x: %b\r\n" % (b"a" * 20_000))),
    "a fault behind an early answer": faulty(head(b"POST /early HTTP/1.1", CODING) + b"x\r\n", begins=True),
    "half a head": faulty(head(LINE)[:-3]),
    "half a body": faulty(head(LINE, b"content-length: 9") + b"b"),
    "half a chunk": faulty(head(LINE, CODING + b"\t") + b"9\r\nb"),
    "half a body behind an early answer": faulty(head(b"POST /early HTTP/1.1", CODING) + b"9\r\nb", begins=True),
}  # fmt: skip


def splits(text: bytes, cuts: list[int]) -> list[bytes]:
    at = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[begin:end] for begin, end in pairwise(at) if begin < end]


def check(requests: list[Sent], cuts: list[int], *, closes: bool) -> None:
    text = b"".join(each.text for each in requests)
    said, cut = run(splits(text, cuts), transport=HalfClosing() if closes else Recording())
    found = answers(said, [each.method for each in requests])
    assert not cut
    last = next((at for at, each in enumerate(requests) if each.closing or not each.whole), len(requests) - 1)
    expected = requests[: last + 1] if requests[last].whole else requests[:last]
    assert [status for status, _ in found[: len(expected)]] == [200] * len(expected)
    behind = [status for status, _ in found[len(expected) :]]
    if requests[last].whole:
        assert behind == []
    else:
        assert (
            behind == [] or behind in [[status] for status in REFUSALS] or (requests[last].begins and behind == [200])
        )


cutting = st.lists(st.integers(0, 30_000), max_size=6)


@given(st.lists(whole(), min_size=1, max_size=4), cutting, st.booleans())
@settings(max_examples=80, deadline=None)
def test_whole_requests_are_answered_in_order_in_whatever_pieces_they_come(
    requests: list[Sent], cuts: list[int], closes: bool
) -> None:
    check(requests, cuts, closes=closes)


@pytest.mark.parametrize("fault", FAULTS)
@given(st.lists(whole(), max_size=2), st.lists(whole(), max_size=1), cutting, st.booleans())
@example([], [], [], False)
@settings(max_examples=5, deadline=None)
def test_a_fault_ends_its_connection_behind_the_answers_to_what_came_before(
    fault: str, before: list[Sent], behind: list[Sent], cuts: list[int], closes: bool
) -> None:
    if not FAULTS[fault].text.startswith(b"\x16") and fault.startswith("half"):
        behind = []  # it would be the other half
    check([*before, FAULTS[fault], *behind], cuts, closes=closes)


edits = st.lists(
    st.tuples(st.sampled_from(["flip", "drop", "double"]), st.integers(0, 20_000), st.integers(0, 255)), max_size=3
)


@given(st.lists(whole().filter(lambda each: each.method != "HEAD"), min_size=1, max_size=3), edits, cutting)
@settings(max_examples=120, deadline=None)
def test_damaged_requests_have_one_answer_at_most(
    requests: list[Sent], damage: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    text = bytearray(b"".join(each.text for each in requests))
    for kind, where, byte in damage:
        at = where % len(text)
        match kind:
            case "flip":
                text[at] = byte
            case "drop":
                del text[at : at + 1 + byte % 8]
            case _:
                text[at:at] = text[at : at + byte]
        text = text or bytearray(b"x")
    said, cut = run(splits(bytes(text), cuts), transport=Recording())
    assert not cut
    most = text.count(b"HTTP/1.") + 1
    found = answers(said, ["GET"] * most)
    assert {status for status, _ in found} <= {200, *REFUSALS}
