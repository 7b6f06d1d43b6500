"""The promise itself: whatever bytes come between, every valid request is answered exactly once."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Service
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.framing.encoder import encode_frame
from discreet.framing.events import END_OF_INPUT, NEED_DATA, Frame, FrameLimits
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import memory_pair

REST = None
"""In a script: the input rests until the daemon has taken note of it."""


def services() -> Service:
    service = Service("s")

    @service.query(inline=True)
    def inline(**params: Any) -> dict[str, Any]:
        return params

    @service.query()
    async def coroutine(**params: Any) -> dict[str, Any]:
        await anyio.lowlevel.checkpoint()
        return params

    @service.query()
    def thread(**params: Any) -> dict[str, Any]:
        return params

    return service


async def converse(script: list[bytes | None]) -> list[dict[str, Any]]:
    """Send the script, read everything that comes back until the daemon has ended."""
    ours, theirs = memory_pair()
    daemon = Daemon(Host([services()], Settings(max_message_bytes=4096, max_header_bytes=128), version="0"), ours)
    parser = parser_for("content-length", FrameLimits(max_body=1 << 20))
    replies: list[dict[str, Any]] = []

    async def serve() -> None:
        daemon.begin()
        assert await daemon.run() == 0
        ours.close()

    async def send() -> None:
        for part in script:
            if part is REST:
                await anyio.sleep(0.3)
            else:
                await theirs.send(part)
        theirs.send_eof()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        tasks.start_soon(send)
        with anyio.fail_after(30):
            while (event := parser.next_event()) is not END_OF_INPUT:
                if event is NEED_DATA:
                    data = await theirs.receive()
                    parser.receive_data(data) if data else parser.end_of_input()
                else:
                    assert isinstance(event, Frame), event
                    replies.append(json.loads(event.body))
    return replies


def request(number: int, method: str) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {"n": number}}).encode()
    return encode_frame(body, "content-length")


METHODS = ("s/inline", "s/coroutine", "s/thread", "version", "no/such")

in_step = st.sampled_from(
    [
        b"\r\n\n",
        encode_frame(b"", "content-length"),
        encode_frame(b"not json", "content-length"),
        encode_frame(b'{"a":\xff}', "content-length"),
        encode_frame(b"[]", "content-length"),
        encode_frame(b'{"jsonrpc":"2.0","method":"s/thread","params":{}}', "content-length"),
        encode_frame(b"x" * 5000, "content-length"),
        encode_frame(request(999_999, "s/inline"), "content-length"),
        b"Content-Length: abc\r\n\r\n",
        b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
        b'{"jsonrpc":"2.0","id":999999,"method":"s/inline"}\n',
        b"X: " + b"y" * 300 + b"\r\n\r\n",
    ]
)
"""Faults after which the very next frame must be read, with no rest between."""

junk = st.binary(max_size=300).map(lambda data: (b"\0" + data, REST))
"""Begins with a byte that no header line can hold: without a fault a rest would mean nothing."""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_valid_request_between_faults_is_answered_exactly_once(backend: str, data: st.DataObject) -> None:
    script: list[bytes | None] = []
    expected = 0
    for fault in data.draw(st.lists(st.just(b"") | in_step, max_size=30)):
        script += [fault, request(expected, METHODS[expected % len(METHODS)])]
        expected += 1
    joined = b"".join(part for part in script if part)
    cut = data.draw(st.integers(min_value=0, max_value=len(joined)))
    replies = anyio.run(converse, [joined[:cut] or b"\n", joined[cut:] or b"\n"], backend=backend)
    answered = Counter(reply["id"] for reply in replies if reply["id"] is not None)
    assert answered == Counter(range(expected))


@settings(max_examples=12, deadline=None)
@given(st.lists(junk, min_size=1, max_size=3))
def test_after_any_junk_and_a_rest_the_next_request_is_answered(parts: list[tuple[bytes, None]]) -> None:
    script: list[bytes | None] = []
    for number, part in enumerate(parts):
        script += [*part, request(number, METHODS[number])]
    replies = anyio.run(converse, script)
    answered = Counter(reply["id"] for reply in replies if reply["id"] is not None)
    assert all(answered[number] == 1 for number in range(len(parts)))
