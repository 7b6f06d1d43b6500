"""Section 1.1 of docs/protocol.md, rule 9: who has read an error may send at once, and the next request is read.

Every kind of fault meets everything that may follow it in the same write. The driver is a client that writes, waits for the
first error, and sends its request on seeing it: over the parser alone, with silence in the place of time.
"""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from discreet.daemon.rpc.envelope import NoJson, Refused, Scalar, decode
from discreet.framing.events import NEED_DATA, Fault, Frame
from discreet.framing.parser import Parser, parser_for
from support.frames import LIMITS, WHOLE, chunks, f

MOST_WAITS = 4
"""Time-outs and silences until a client that waits has its error: a frame's time, and what follows it."""


def declared(length: int, body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (length, body)


ONE = b'{"id":1,"method":"a/b","params":["some text"]}'
NEXT = b'{"id":2}'

SCALARS = [b"12345", b"-1.5e+3", b" 1 ", b'"a b"', b"true"]
"""JSON, but no messages. A beginning of a number may be a number too, and a client may cut the text at any place."""

FAULTS: dict[str, bytes] = {
    **{f"too long by {n}": declared(len(ONE) + n, ONE) for n in (1, 5, 14, 20, 30)},
    **{f"too short by {n}": declared(len(ONE) - n, ONE) for n in (1, 2, 10, len(ONE))},
    "no JSON": f(b"{bad"),
    "no JSON, whole": f(b"{]}"),
    "no text": f(b"hello"),
    "empty": f(b""),
    "no UTF-8": f(b'"\xff"'),
    "oversize": f(b"x" * 201),
    "other type": b"Content-Type: a/b\r\nContent-Length: 2\r\n\r\n{}",
    "other charset": b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc;charset=x\r\n\r\n{}",
    "no length": b"X: y\r\n\r\n",
    "no length and a text": b"X: y\r\n\r\n" + ONE,
    "bad length": b"Content-Length: x\r\n\r\n" + ONE,
    "length twice": b"Content-Length: 46\r\nContent-Length: 46\r\n\r\n" + ONE,
    "two lengths": b"Content-Length: 46\r\nContent-Length: 40\r\n\r\n" + ONE,
    "huge length": b"Content-Length: %d\r\n\r\n" % 10**30 + ONE,
    "malformed block": b"no header\r\n\r\n",
    "malformed block with a length": b"log Content-Length: 46\r\n\r\n" + ONE,
    "block without an end": b"no header",
    "block that is too large": b"X: " + b"x" * 200 + b"\r\n\r\n",
    "text": ONE,
    "half a text": ONE[:20],
    **{f"{n} of {text.decode()}": declared(n, text) for text in SCALARS for n in range(1, len(text) + 1)},
    "text with a frame in it": b'{"a":"' + f(ONE) + b'"}',
}  # fmt: skip

FOLLOWING: dict[str, bytes] = {
    "nothing": b"",
    "a line end": b"\r\n",
    "a frame": f(ONE),
    "two frames": f(ONE) * 2,
    "junk": b"junk\r\n\r\n",
    "junk without an end": b"junk",
    "a block without a length": b"X: y\r\n\r\n",
    "a text": ONE,
    "half a block": b"Content-Le",
    "half a frame": f(ONE)[:40],
    "another bad body": f(b"{bad"),
    "a length that is too long": declared(len(ONE) + 7, ONE),
    "an oversize frame": f(b"x" * 201),
    "another type": b"Content-Type: a/b\r\nContent-Length: 2\r\n\r\n{}",
    "a declaration behind a log line": b"log Content-Length: 46\r\n\r\n" + ONE,
}


IN_STEP = ["oversize", "other type", "other charset"]
"""Refusals after which nothing is in doubt: what follows them is no part of their loss."""

UNFINISHED = ["junk without an end", "half a block", "half a frame", "a length that is too long"]
"""Losses of their own, if what is before them is in step; a client that waits has to wait for their error too."""


class Client:
    """Writes to a parser, and reads what a daemon answers: bodies for frames, reasons for faults."""

    def __init__(self, parser: Parser, split: int) -> None:
        self.parser, self.split = parser, split
        self.answers: list[bytes | str] = []

    def read(self) -> None:
        while (event := self.parser.next_event()) is not NEED_DATA:
            if isinstance(event, Fault):
                self.answers.append(event.failure.reason)
            elif isinstance(event, Frame) and event.body in (ONE, NEXT):
                self.answers.append(event.body)
            elif isinstance(event, Frame):
                self.take_other(decode(event.body))

    def take_other(self, message: object) -> None:
        """As the reader of a connection does."""
        assert isinstance(message, NoJson | Refused)
        if isinstance(message, NoJson | Scalar):
            self.parser.refuse_body(message.failure)
        else:
            self.answers.append(message.failure.reason)

    def write(self, data: bytes) -> None:
        for chunk in chunks(data, Random(self.split) if self.split < 0 else self.split):
            self.parser.receive_data(chunk)
            self.read()

    def wait(self) -> None:
        """As long as the channel would before something changes."""
        self.parser.clock_expired()
        self.read()

    @property
    def errors(self) -> list[str]:
        return [answer for answer in self.answers if isinstance(answer, str)]


SPLITS = [WHOLE, 1, -1, -2]
"""Sizes of chunks; the seeds of random ones where they are negative."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_request_that_is_sent_on_seeing_the_error_is_read(fault: str) -> None:
    for following in FOLLOWING:
        for split in SPLITS:
            send_on_seeing_the_error(fault, following, split)


def send_on_seeing_the_error(fault: str, following: str, split: int) -> None:
    client = Client(parser_for("content-length", LIMITS), split)
    client.write(FAULTS[fault] + FOLLOWING[following])
    losses = 2 if fault in IN_STEP and following in UNFINISHED else 1
    for _ in range(MOST_WAITS):
        if len(client.errors) >= losses:
            break
        client.wait()
    assert client.errors, (following, split)
    client.write(f(NEXT))
    assert client.answers[-1] == NEXT, (following, split)
    assert client.answers.count(NEXT) == 1, (following, split)


@pytest.mark.parametrize("fault", FAULTS)
def test_chunks_change_no_answer(fault: str) -> None:
    for following, data in FOLLOWING.items():
        answers = []
        for split in SPLITS:
            client = Client(parser_for("content-length", LIMITS), split)
            client.write(FAULTS[fault] + data)
            client.wait()
            client.write(f(NEXT))
            answers.append(client.answers)
        assert all(one == answers[0] for one in answers), following


def test_each_refusal_that_keeps_the_stream_in_step_is_an_error_of_its_own() -> None:
    for first, second in product(IN_STEP, repeat=2):
        client = Client(parser_for("content-length", LIMITS), WHOLE)
        client.write(FAULTS[first] + FAULTS[second])
        assert len(client.errors) == 2, (first, second)


def test_a_megabyte_of_junk_is_one_error() -> None:
    client = Client(parser_for("content-length", LIMITS), 1)
    client.write((b"garbage\r\n\r\n" + ONE + b"\nX: y\r\n\r\n") * 2000 + f(NEXT))
    assert client.answers == ["malformed-header", NEXT]
