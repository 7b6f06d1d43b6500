"""One HTTP request and its response, for a call or for one stretch of a stream. Knows nothing of retries."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, final

import anyio
import httpx
from msgspec import Raw

from ..connection.error_replies import type_mismatch
from ..connection.pending import PendingCall, PendingStream
from ..errors import ConnectionFailed, InvalidReply
from ..messages import MAX_MESSAGE_BYTES, OutgoingRequest
from .addresses import ServerAddress
from .failures import FOREIGN_ERRORS, loss_of
from .headers import EVENT_STREAM, JSON, headers_of
from .responses import read_result, result_of
from .sse import SseEvent, SseParser, TooLarge

_SENDING: Final = ".send_request_headers.started"
"""The end of the name that httpcore gives to the moment before the first byte leaves."""

OnEvent = Callable[[Raw, str | None], Awaitable[bool]]
"""Takes an event and its id; False if no more are wanted."""


@final
class Exchange:
    """`scope` is cancelled to end it. `sent` says whether a byte may have left. Each try of a stream is one `open`."""

    def __init__(self, client: httpx.AsyncClient, address: ServerAddress) -> None:
        self.scope: Final = anyio.CancelScope()
        self.sent = False
        self.opened = False
        """Whether a stream has begun."""
        self.retry_seconds: float | None = None
        """What the stream's server asks to wait before a reconnection."""
        self._client = client
        self._address = address

    async def call(self, request: PendingCall, message: OutgoingRequest) -> Raw:
        """The result. Raises `ClientError`."""
        async with self._open(message, headers_of(message, accept=JSON)) as response:
            if _is_events(response):
                raise type_mismatch()
            return await _whole_result(response, message, request)

    async def stream(self, request: PendingStream, message: OutgoingRequest, on_event: OnEvent) -> None:
        """Take events until the stream ends. Raises `ClientError`; `ConnectionFailed` where it was cut off."""
        async with self._open(message, headers_of(message, accept=f"{EVENT_STREAM}, {JSON};q=0.5")) as response:
            if not (_is_events(response) and response.is_success):
                raise type_mismatch(await _whole_result(response, message, request))
            self.opened = True
            parser = SseParser(limit=MAX_MESSAGE_BYTES)
            async for event in _events(response, parser):
                self.retry_seconds = parser.retry_seconds
                value = result_of(event.data, request_id=message.id, errors=request.errors)
                if not await on_event(value, event.id):
                    return

    @asynccontextmanager
    async def _open(self, message: OutgoingRequest, headers: dict[str, str]) -> AsyncGenerator[httpx.Response]:
        """The response, whose body has not been read. Errors of httpx within the block are translated, too."""
        body = message.encode(service_params=False)
        try:
            async with self._client.stream(
                "POST", self._address.url, content=body, headers=headers, extensions={"trace": self._trace}
            ) as response:
                yield response
        except FOREIGN_ERRORS as exc:
            raise ConnectionFailed(loss_of(exc, self._address.shown), sent=self.sent) from exc

    async def _trace(self, name: str, _: dict[str, Any]) -> None:
        self.sent = self.sent or name.endswith(_SENDING)


def _is_events(response: httpx.Response) -> bool:
    media_type: str = response.headers.get("content-type", "")
    return media_type.partition(";")[0].strip().lower() == EVENT_STREAM


async def _whole_result(
    response: httpx.Response, message: OutgoingRequest, request: PendingCall | PendingStream
) -> Raw:
    body = await read_body(response)
    return read_result(response.status_code, response.headers, body, request_id=message.id, errors=request.errors)


async def read_body(response: httpx.Response, limit: int = MAX_MESSAGE_BYTES) -> bytes:
    """The body as it came. Raises `InvalidReply` for a larger one and for a compressed one, which nobody asked for."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in _raw(response):
        size += len(chunk)
        if size > limit:
            raise InvalidReply(f"the server's answer is larger than {limit} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


async def _events(response: httpx.Response, parser: SseParser) -> AsyncIterator[SseEvent]:
    async for chunk in _raw(response):
        try:
            events = parser.feed(chunk)
        except TooLarge:
            raise InvalidReply(f"an event of the server is larger than {MAX_MESSAGE_BYTES} bytes") from None
        for event in events:
            yield event


def _raw(response: httpx.Response) -> AsyncIterator[bytes]:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise InvalidReply("the server's answer is compressed, although none was asked for")
    return response.aiter_raw()
