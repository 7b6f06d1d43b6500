"""A conversation by Streamable HTTP, in both eras: with sessions up to 2025-11-25, without since 2026-07-28.

Each request is a POST, answered by one message or by a stream of them. A stream that was cut off is taken up again behind its
last event, where the server numbers them. Loads httpx. Redirects are not followed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final, final

import anyio
import anyio.abc
import httpx

from .....client.errors import ClientError, ConnectionFailed, ConnectionLoss, InvalidReply
from .....client.http.addresses import ServerAddress, parse_address
from .....client.http.exchange import read_body, read_pieces
from .....client.http.failures import FOREIGN_ERRORS, loss_of
from .....client.http.pool import open_client
from .....client.http.sse import SseEvent, SseParser, TooLarge
from .....client.task_group import background_tasks
from ....logs import log
from .conversation import MAX_REPLY_BYTES, Agreed, Conversation, Request
from .server_messages import ServerMessages

JSON: Final = "application/json"
SSE: Final = "text/event-stream"
SESSION: Final = "mcp-session-id"
PROBE: Final = "server/discover"
"""What servers of the legacy era refuse."""

MAX_POSTS: Final = 16
"""Messages without an answer that are under way at a time. More are dropped."""
POST_SECONDS: Final = 10.0
"""How long one of them may take."""
CLOSE_SECONDS: Final = 1.0
"""How long the server may take to end a session."""

MAX_RESUMED: Final = 5
"""How often in a row a stream is taken up again without an event in between."""
RESUME_SECONDS: Final = 1.0
"""Before that, where the server does not say."""
MAX_RESUME_SECONDS: Final = 30.0

MAX_SESSION_ID: Final = 1024
_MIRRORED_SINCE: Final = "2025-06-18"
"""The first revision whose requests name it in a header."""


@asynccontextmanager
async def open_http(
    url: str, agreed: Agreed, server: ServerMessages, *, headers: Callable[[], Mapping[str, str]]
) -> AsyncGenerator[Conversation]:
    """A conversation for as long as the block runs. Nothing is sent before its first message."""
    address = parse_address(url)
    async with open_client(address, ssl_context=None) as client, background_tasks() as tasks:
        conversation = Conversation(agreed, server)
        link = HttpLink(client, address, conversation, tasks, headers)
        conversation.begin(link)
        try:
            yield conversation
        finally:
            conversation.end(ConnectionLoss("the connection was closed by this side"))
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await link.end_session()


@final
class _Stream:
    """Where a stream of events stands: behind which event, and how long to wait before it is taken up again."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry_seconds: float | None = None
        self.failures = 0

    @property
    def pause(self) -> float:
        if self.retry_seconds is not None:
            return min(self.retry_seconds, MAX_RESUME_SECONDS)
        return min(RESUME_SECONDS * (1 << max(0, self.failures - 1)), MAX_RESUME_SECONDS)


@final
class HttpLink:
    """Implements `Link`."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        address: ServerAddress,
        conversation: Conversation,
        tasks: anyio.abc.TaskGroup,
        headers: Callable[[], Mapping[str, str]],
    ) -> None:
        self._client = client
        self._address = address
        self._conversation = conversation
        self._tasks = tasks
        self._headers = headers
        self._session: str | None = None
        self._posts = 0

    # -- requests -------------------------------------------------------------------------------------------------

    async def exchange(self, request: Request) -> None:
        stream = _Stream()
        async with self._open("POST", self._headers_of(request), request.body) as response:
            self._note_session(response, request)
            if not _is_events(response) or not response.is_success:
                await self._take_body(response, request)
                return
            await self._read_events(response, stream, request.answered.is_set)
        while not request.answered.is_set():
            if stream.last_id is None or self._session is None or stream.failures >= MAX_RESUMED:
                raise ConnectionFailed(self._loss("the answer was cut off"))
            await anyio.sleep(stream.pause)
            if not await self._resume(stream, request.answered.is_set):
                raise ConnectionFailed(self._loss("the answer was cut off"))

    async def _resume(self, stream: _Stream, done: Callable[[], bool]) -> bool:
        """Take up a stream, or begin one. False where the server has none."""
        stream.failures += 1
        headers = {**self._common(), "accept": SSE}
        if stream.last_id is not None:
            headers["last-event-id"] = stream.last_id
        try:
            async with self._open("GET", headers) as response:
                if response.status_code == HTTPStatus.NOT_FOUND:
                    self._end_session()
                if not (response.is_success and _is_events(response)):
                    return response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
                await self._read_events(response, stream, done)
        except (ConnectionFailed, InvalidReply):
            return True  # it may be there again soon
        return True

    async def _take_body(self, response: httpx.Response, request: Request) -> None:
        status = response.status_code
        if status == HTTPStatus.NOT_FOUND and self._session is not None and not self._conversation.agreed.modern:
            self._end_session()
            raise ConnectionFailed(self._loss("the session has ended"), sent=False)
        body = await read_body(response, MAX_REPLY_BYTES)
        if _media_type(response) == JSON and body:
            self._conversation.receive(body)
        if request.answered.is_set():
            return
        if response.is_success:
            raise InvalidReply("the server's answer holds none to the request")
        if request.method != PROBE:
            log.warning("import.http_refused", import_=self._conversation.server.import_name, status=status)
        if status in _NOT_RUN:
            raise ConnectionFailed(self._loss(f"HTTP {status}"), sent=False)
        raise InvalidReply(f"HTTP {status}")

    async def _read_events(self, response: httpx.Response, stream: _Stream, done: Callable[[], bool]) -> None:
        """Take the messages of a stream until `done`, or until it ends or is lost."""
        parser = SseParser(limit=MAX_REPLY_BYTES)

        async def take(piece: bytes) -> bool:
            for event in _parsed(parser, piece):
                stream.last_id = event.id if event.id is not None else stream.last_id
                stream.failures = 0
                if event.data.strip():
                    self._conversation.receive(event.data)
            stream.retry_seconds = parser.retry_seconds
            return not done()

        try:
            await read_pieces(response, take)
        except FOREIGN_ERRORS as exc:
            if stream.last_id is None:
                raise ConnectionFailed(loss_of(exc, self._address.shown)) from exc

    # -- what has no answer -----------------------------------------------------------------------------------------

    async def send(self, body: bytes) -> None:
        headers = {**self._common(), "accept": f"{JSON}, {SSE}", "content-type": JSON}
        async with self._open("POST", headers, body) as response:
            if response.status_code == HTTPStatus.NOT_FOUND and self._session is not None:
                self._end_session()

    def post(self, body: bytes) -> None:
        if self._posts >= MAX_POSTS or not self._conversation.usable:
            log.warning("import.message_dropped", import_=self._conversation.server.import_name)
            return
        self._posts += 1
        self._tasks.start_soon(self._post, body)

    async def _post(self, body: bytes) -> None:
        try:
            with anyio.move_on_after(POST_SECONDS):
                await self.send(body)
        except ClientError:
            log.warning("import.message_dropped", import_=self._conversation.server.import_name)
        finally:
            self._posts -= 1

    def give_up(self, request: Request) -> None:
        if not self._conversation.agreed.modern and self._conversation.usable:  # since 2026-07-28 going away says it
            self.post(
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,'
                b'"reason":"the caller no longer waits"}}' % request.id
            )

    async def listen(self) -> None:
        stream = _Stream()
        while self._conversation.usable and await self._resume(stream, lambda: not self._conversation.usable):
            await anyio.sleep(stream.pause)
            if stream.last_id is None and self._conversation.agreed.tells_changes:
                self._conversation.server.note_gap()

    # -- sessions -------------------------------------------------------------------------------------------------

    def _note_session(self, response: httpx.Response, request: Request) -> None:
        given = response.headers.get(SESSION)
        if request.method == "initialize" and given and len(given) <= MAX_SESSION_ID and given.isascii():
            self._session = given

    def _end_session(self) -> None:
        self._session = None
        self._conversation.end(self._loss("the session has ended"))

    async def end_session(self) -> None:
        """Tell the server that the session is no longer needed. Whatever it answers."""
        if self._session is not None:
            try:
                async with self._open("DELETE", self._common()):
                    self._session = None
            except ClientError:
                return  # the server forgets it by itself

    # -- HTTP -------------------------------------------------------------------------------------------------------

    def _headers_of(self, request: Request) -> dict[str, str]:
        headers = {**self._common(), "accept": f"{JSON}, {SSE}", "content-type": JSON}
        if self._conversation.agreed.modern:
            headers["mcp-method"] = request.method
            if request.name:
                headers["mcp-name"] = encoded(request.name)
            headers |= {name.lower(): encoded(value) for name, value in request.mirrored.items()}
        elif request.method == "initialize":
            headers.pop("mcp-protocol-version", None)
        return headers

    def _common(self) -> dict[str, str]:
        headers = {**self._headers(), "accept-encoding": "identity"}
        if self._conversation.agreed.revision >= _MIRRORED_SINCE:
            headers["mcp-protocol-version"] = self._conversation.agreed.revision
        if self._session is not None:
            headers[SESSION] = self._session
        return headers

    @asynccontextmanager
    async def _open(self, method: str, headers: Mapping[str, str], body: bytes = b"") -> AsyncGenerator[httpx.Response]:
        """The response, whose body has not been read. Errors of httpx within the block are translated, too."""
        sent = False

        async def trace(name: str, _: object) -> None:
            nonlocal sent
            sent = sent or name.endswith(".send_request_headers.started")

        request = self._client.build_request(
            method, self._address.url, content=body or None, headers=dict(headers), extensions={"trace": trace}
        )
        try:
            response = await self._client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
        except FOREIGN_ERRORS as exc:
            raise ConnectionFailed(loss_of(exc, self._address.shown), sent=sent) from exc

    def _loss(self, reason: str) -> ConnectionLoss:
        return ConnectionLoss(f"{self._address.shown}: {reason}")


_NOT_RUN: Final = frozenset({401, 403, 404, 405, 406, 415, 429, 503})
"""What a server answers that has not taken the request."""


def encoded(value: str) -> str:
    """A value as a header may hold it (2026-07-28, basic/transports/streamable-http, section Value Encoding)."""
    plain = value.isascii() and value.isprintable() and value == value.strip()
    if plain and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return f"=?base64?{b64encode(value.encode()).decode()}?="


def _media_type(response: httpx.Response) -> str:
    given: str = response.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower()


def _is_events(response: httpx.Response) -> bool:
    return _media_type(response) == SSE


def _parsed(parser: SseParser, piece: bytes) -> list[SseEvent]:
    try:
        return parser.feed(piece)
    except TooLarge:
        raise InvalidReply(f"an event of the server is larger than {MAX_REPLY_BYTES} bytes") from None
