"""A transport that sends the head of an answer together with the beginning of its body. uvicorn writes them one by one, and each
write is a call of the system, which takes a tenth of the time of a small request."""

from __future__ import annotations

import asyncio
from typing import Any, Final, final

MAX_JOINED: Final = 64 * 1024
"""Bytes of a body that are copied to stand behind the head. Larger ones are written by themselves."""

_HEAD: Final = b"HTTP/1.1 "
"""How each head begins. A body that begins so waits as a head does, which harms nothing."""


@final
class JoinedWrites:
    """The transport of one connection, as uvicorn uses it. A head waits for the next write, or for the next turn of the loop."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._head: bytes | None = None
        self.is_closing: Final = transport.is_closing

    def write(self, data: bytes) -> None:
        head = self._head
        if head is not None:
            self._head = None
            if len(data) > MAX_JOINED:
                self._transport.write(head)
            else:
                data = head + data
        elif data.startswith(_HEAD):
            self._head = data
            self._loop.call_soon(self._send_head)
            return
        self._transport.write(data)

    def _send_head(self) -> None:
        head, self._head = self._head, None
        if head is not None:
            self._transport.write(head)

    def close(self) -> None:
        self._send_head()
        self._transport.close()

    def abort(self) -> None:
        self._head = None
        self._transport.abort()

    def __getattr__(self, name: str) -> Any:  # all else is the transport's own
        return getattr(self._transport, name)
