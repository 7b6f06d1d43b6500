"""One HTTP request and its response, for a call or for one stretch of a stream. Knows nothing of retries."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, final

import anyio
import httpx
from msgspec import Raw

from ...framing.http.sse import SseEvent, SseParser, TooLarge
from ..connection.error_replies import type_mismatch
from ..connection.pending import PendingCall, PendingStream
from ..errors import ClientError, ConnectionFailed, InvalidReply
from ..messages import MAX_MESSAGE_BYTES, OutgoingRequest
from .addresses import ServerAddress
from .failures import FOREIGN_ERRORS, loss_of
from .headers import EVENT_STREAM, JSON, headers_of
from .responses import read_result, result_of

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

            async def take(piece: bytes) -> bool:
                for event in _parsed(parser, piece):
                    value = result_of(event.data, request_id=message.id, errors=request.errors)
                    if not await on_event(value, event.id):
                        return False
                self.retry_seconds = parser.retry_seconds
                return True

            await _read(response, take)

    @asynccontextmanager
    async def _open(self, message: OutgoingRequest, headers: dict[str, str]) -> AsyncGenerator[httpx.Response]:
        """The response, whose body has not been read. Errors of httpx within the block are translated, too."""
        body = message.encode(service_params=False)
        request = self._client.build_request(
            "POST", self._address.url, content=body, headers=headers, extensions={"trace": self._trace}
        )
        request.stream = _Body(body)
        try:
            response = await self._client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
        except FOREIGN_ERRORS as exc:
            raise ConnectionFailed(loss_of(exc, self._address.shown), sent=self.sent) from exc

    async def _trace(self, name: str, _: dict[str, Any]) -> None:
        self.sent = self.sent or name.endswith(_SENDING)


@final
class _Body(httpx.AsyncByteStream):
    """The body of a request, in one piece. httpx's own is an asynchronous generator that nobody closes if sending fails."""

    def __init__(self, data: bytes) -> None:
        self._pieces = [data]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._pieces:
            raise StopAsyncIteration
        return self._pieces.pop()


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
    body = bytearray()  # a list of its pieces would take many times their bytes, where they are small

    async def take(piece: bytes) -> bool:
        if len(body) + len(piece) > limit:
            raise InvalidReply(f"the server's answer is larger than {limit} bytes")
        body.extend(piece)
        return True

    await _read(response, take)
    return bytes(body)


def _parsed(parser: SseParser, chunk: bytes) -> list[SseEvent]:
    try:
        return parser.feed(chunk)
    except TooLarge:
        raise InvalidReply(f"an event of the server is larger than {MAX_MESSAGE_BYTES} bytes") from None


async def _read(response: httpx.Response, take: Callable[[bytes], Awaitable[bool]]) -> None:
    """Read the body as it comes, while `take` returns True. Raises what `take` raises.

    The rest is left by cancelling: httpx nests asynchronous generators, none of which is closed if one just stops.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise InvalidReply("the server's answer is compressed, although that was not asked for")
    failure: ClientError | None = None
    with anyio.CancelScope() as reading:
        async for piece in response.aiter_raw():
            if reading.cancel_called:
                continue
            try:
                if await take(piece):
                    continue
            except ClientError as exc:
                failure = exc
            reading.cancel()
    if failure is not None:
        raise failure
