"""Answers as Server-Sent Events (WHATWG HTML, section 9.2): one event per value, comments while nothing happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..lazy import anyio
from .answers import NO_SNIFFING, Answer

if TYPE_CHECKING:
    from starlette.types import Send

    from .answers import AnswerWriter
    from .exchange import Exchange

HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    NO_SNIFFING,
]
"""Proxies must neither store nor hold back events; nginx is told so by the last one."""

FIRST_SECONDS: Final = 1.0
"""How long the first event, or a failure in its place, is waited for before the response begins without."""

KEEP_ALIVE: Final = b": keep-alive\n\n"


def encode_event(data: bytes, number: int | str | None = None, name: str = "") -> bytes:
    """One event with the id `number`. `data` is a JSON text: its line ends, if any, stand between tokens, not in a value."""
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\r", b" ").replace(b"\n", b" ")
    head = b"event: %b\n" % name.encode() if name else b""
    tail = b"" if number is None else b"id: %b\n" % str(number).encode()
    return b"%b%bdata: %b\n\n" % (head, tail, data)


async def send_events(exchange: Exchange, writer: AnswerWriter, send: Send, *, keep_alive: float) -> Answer | None:
    """Send the events of a subscription as they come, until it ends.

    Returns instead the answer to send where it failed before its first event and the client expects no stream then.
    `keep_alive` is in seconds. Cancelling it leaves the response unfinished.
    """
    events = await exchange.next_events(min(FIRST_SECONDS, keep_alive))
    outcome = exchange.outcome
    if not (events or outcome is None or isinstance(outcome, bytes) or writer.fails_in_stream):
        return writer.failure(outcome)
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    while True:
        outcome = exchange.outcome
        if events:
            await _send(send, b"".join(encode_event(writer.event(each.value), each.number) for each in events))
            exchange.delivered(events)
        elif outcome is None:
            await _send(send, KEEP_ALIVE)
        else:
            if isinstance(outcome, bytes):
                if writer.completion_event:
                    await _send(send, encode_event(outcome, name=writer.completion_event))
            else:
                await _send(send, encode_event(writer.last_event(outcome), name=writer.failure_event))
            await send({"type": "http.response.body", "body": b""})
            return None
        # A producer that never waits has events ready whenever this would wait: then asyncio would not cancel it.
        await anyio.lowlevel.checkpoint_if_cancelled()
        events = await exchange.next_events(keep_alive)


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
