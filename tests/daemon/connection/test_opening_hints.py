"""What the log tells the author of a client that framed not even its first message as is expected."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from support.logged_events import LoggedEvents

pytestmark = pytest.mark.anyio

CALL = b'{"jsonrpc":"2.0","id":1,"method":"version"}'
FRAMED = b"Content-Length: %d\r\n\r\n%b" % (len(CALL), CALL)


@pytest.mark.parametrize(
    ("framing", "sent", "hint"),
    [
        ("content-length", CALL + b"\n", "--framing newline"),
        ("newline", FRAMED + b"\n", "--framing content-length"),
        ("content-length", FRAMED.replace(b"\r", b""), "CR LF"),
        ("content-length", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP request"),
        ("newline", b"POST /rpc HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP request"),
        ("newline", b"\xef\xbb\xbf" + CALL + b"\n", "byte order mark"),
        ("content-length", b"\xef\xbb\xbf" + FRAMED, "byte order mark"),
        ("newline", CALL.decode().encode("utf-16") + b"\n", "byte order mark"),
        ("newline", b"{'id': 1}\n", None),
        ("newline", CALL + b"\n{\n", None),
    ],
)
async def test_the_first_loss_is_told_with_what_was_meant(
    serving: Callable[..., AbstractAsyncContextManager[Any]],
    logged: LoggedEvents,
    framing: str,
    sent: bytes,
    hint: str | None,
) -> None:
    async with serving(framing=framing) as wire:
        for byte in sent:
            await wire.transport.send(bytes([byte]))
        await wire.end()
    first = next(fields for name, fields in logged() if name == "frame.dropped")
    assert (hint or "") in first.get("hint", "")
    assert ("hint" in first) == (hint is not None)
