"""A conversation by Streamable HTTP, in both eras: with sessions up to 2025-11-25, without since 2026-07-28.

Each request is a POST, answered by one message or by a stream of them. A stream that was cut off is taken up again behind its
last event, where the server numbers them. Redirects are not followed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from http import HTTPStatus
from typing import Final, final

import anyio
import anyio.abc

from ....client.errors import ClientError, ConnectionFailed, ConnectionLoss, InvalidReply
from ....client.outbound.connection import PHRASES, HttpConnection, OutboundError, ResponseHead
from ....client.outbound.pool import ConnectionPool
from ....client.outbound.ssrf import Destination, parse_url
from ....client.task_group import background_tasks
from ....daemon.logs import log
from ....errors.backoff import exponential_backoff
from ....framing.http.sse import SseEvent, SseParser, TooLarge
from ..model import Url
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

DRAIN_SECONDS: Final = 1.0
DRAIN_BYTES: Final = 64 * 1024
"""How long, and how much, is read behind an answer."""

MAX_RESUMED: Final = 5
"""How often in a row a stream is taken up again without an event in between."""
RESUME_SECONDS: Final = 1.0
"""Before that, where the server does not say. It doubles with each time in a row."""
LEAST_RESUME_SECONDS: Final = 0.25
"""Before that, whatever the server says: one that cuts off its streams at once must not be asked thousands of times."""
MAX_RESUME_SECONDS: Final = 30.0

MAX_SESSION_ID: Final = 1024
_MIRRORED_SINCE: Final = "2025-06-18"
"""The first revision whose requests name it in a header."""


@asynccontextmanager
async def open_http(
    target: Url, agreed: Agreed, server: ServerMessages, *, headers: Callable[[], Mapping[str, str]]
) -> AsyncGenerator[Conversation]:
    """A conversation for as long as the block runs. Nothing is sent before its first message. Raises `ConnectionFailed`."""
    to = parse_url(target.url, allow_private=target.allow_private)
    if isinstance(to, str):
        raise ConnectionFailed(ConnectionLoss(f"the address must be {to}"), sent=False)
    pool = ConnectionPool(allow_private=target.allow_private)
    try:
        async with background_tasks() as tasks:
            conversation = Conversation(agreed, server)
            link = HttpLink(pool, to, target.shown, conversation, tasks, headers)
            conversation.begin(link)
            try:
                yield conversation
            finally:
                conversation.end(ConnectionLoss("the connection was closed by this side"))
                with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                    await link.end_session()
    finally:
        await pool.aclose()


@final
class _Response:
    """A response whose body has not been read."""

    def __init__(self, connection: HttpConnection, head: ResponseHead) -> None:
        self._connection = connection
        self._head = head
        self.status = head.status

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def media_type(self) -> str:
        return self._head.value(b"content-type").partition(";")[0].strip().lower()

    @property
    def session(self) -> str:
        return self._head.value(SESSION.encode())

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises `InvalidReply` for a compressed one, which nobody asked for, and `OutboundError`."""
        if self._head.value(b"content-encoding").lower() not in ("", "identity"):
            raise InvalidReply("the server's answer is compressed, although that was not asked for")
        while piece := await self._connection.read_body():
            yield piece

    async def drain(self) -> None:
        """Read what is left, if that is little and comes soon: then the connection can be used again."""
        size = 0
        with anyio.move_on_after(DRAIN_SECONDS):
            while size < DRAIN_BYTES and (piece := await self._connection.read_body()):
                size += len(piece)

    async def body(self) -> bytes:
        """The whole body. Raises the same, `InvalidReply` also for a larger one than is taken."""
        body = bytearray()
        async with aclosing(self.pieces()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > MAX_REPLY_BYTES:
                    raise InvalidReply(f"the server's answer is larger than {MAX_REPLY_BYTES} bytes")
        return bytes(body)


@final
class _Stream:
    """Where a stream of events stands: behind which event, and how long to wait before it is taken up again."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry_seconds: float | None = None
        self.failures = 0
        self.has_begun = False

    @property
    def pause(self) -> float:
        asked = RESUME_SECONDS if self.retry_seconds is None else max(self.retry_seconds, LEAST_RESUME_SECONDS)
        return min(max(asked, exponential_backoff(asked, MAX_RESUME_SECONDS, self.failures - 1)), MAX_RESUME_SECONDS)


@final
class HttpLink:
    """Implements `Link`."""

    def __init__(
        self,
        pool: ConnectionPool,
        to: Destination,
        shown: str,
        conversation: Conversation,
        tasks: anyio.abc.TaskGroup,
        headers: Callable[[], Mapping[str, str]],
    ) -> None:
        self._pool = pool
        self._to = to
        self._shown = shown
        self._conversation = conversation
        self._tasks = tasks
        self._headers = headers
        self._session: str | None = None
        self._posts = 0

    # -- requests -------------------------------------------------------------------------------------------------

    async def exchange(self, request: Request) -> None:
        scope = anyio.CancelScope()
        self._tasks.start_soon(self._run, request, scope)
        try:
            await request.answered.wait()
        finally:
            if not request.answered.is_set():
                scope.cancel()

    async def _run(self, request: Request, scope: anyio.CancelScope) -> None:
        """One exchange, which may go on behind the answer until its connection can be used again."""
        with scope:
            try:
                await self._exchange(request)
            except (ConnectionFailed, InvalidReply) as exc:
                request.settle(None, exc)
            else:
                request.settle(None, InvalidReply("the server did not answer"))

    async def _exchange(self, request: Request) -> None:
        stream = _Stream()
        async with self._open("POST", self._headers_of(request), request.body) as response:
            self._note_session(response, request)
            if response.media_type != SSE or not response.is_success:
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
                if response.status == HTTPStatus.NOT_FOUND and self._session is not None and stream.has_begun:
                    self._end_session()  # else the server has no such route
                if not (response.is_success and response.media_type == SSE):
                    return response.status >= HTTPStatus.INTERNAL_SERVER_ERROR
                await self._read_events(response, stream, done)
        except (ConnectionFailed, InvalidReply):
            return True  # it may be there again soon
        return True

    async def _take_body(self, response: _Response, request: Request) -> None:
        status = response.status
        if status == HTTPStatus.NOT_FOUND and self._session is not None and not self._conversation.agreed.modern:
            request.settle(None, ConnectionFailed(self._loss("the session has ended"), sent=False))
            self._end_session()
            return
        body = await response.body()
        if response.media_type == JSON and body:
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

    async def _read_events(self, response: _Response, stream: _Stream, done: Callable[[], bool]) -> None:
        """Take the messages of a stream until `done`, or until it ends or is lost."""
        parser = SseParser(limit=MAX_REPLY_BYTES)
        stream.has_begun = True
        try:
            async with aclosing(response.pieces()) as pieces:
                async for piece in pieces:
                    for event in _parsed(parser, piece):
                        stream.last_id = event.id if event.id is not None else stream.last_id
                        stream.failures = 0
                        if event.data.strip():
                            self._conversation.receive(event.data)
                    stream.retry_seconds = parser.retry_seconds
                    if done():
                        break
            await response.drain()
        except OutboundError as exc:
            if stream.last_id is None and not done():
                raise ConnectionFailed(self._loss(PHRASES[exc.reason])) from exc

    # -- what has no answer -----------------------------------------------------------------------------------------

    async def send(self, body: bytes) -> None:
        headers = {**self._common(), "accept": f"{JSON}, {SSE}", "content-type": JSON}
        async with self._open("POST", headers, body) as response:
            if response.status == HTTPStatus.NOT_FOUND and self._session is not None:
                self._end_session()
            await response.drain()

    def post(self, body: bytes) -> None:
        if self._posts >= MAX_POSTS or not self._conversation.usable:
            self._conversation.server.note_dropped()
            return
        self._posts += 1
        self._tasks.start_soon(self._post, body)

    async def _post(self, body: bytes) -> None:
        try:
            with anyio.move_on_after(POST_SECONDS):
                await self.send(body)
        except ClientError:
            self._conversation.server.note_dropped()
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

    def _note_session(self, response: _Response, request: Request) -> None:
        given = response.session
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
    async def _open(self, method: str, headers: Mapping[str, str], body: bytes = b"") -> AsyncGenerator[_Response]:
        """The response, whose body has not been read."""
        fixed = {"host": self._to.authority} | ({"content-length": str(len(body))} if method == "POST" else {})
        sent = False
        try:
            async with self._pool.connection(self._to) as connection:
                sent = True
                await connection.send(method, self._to.request_target, [*(fixed | dict(headers)).items()], body)
                yield _Response(connection, await connection.read_head())
        except OutboundError as exc:
            raise ConnectionFailed(self._loss(PHRASES[exc.reason]), sent=sent) from exc

    def _loss(self, reason: str) -> ConnectionLoss:
        return ConnectionLoss(f"{self._shown}: {reason}")


_NOT_RUN: Final = frozenset({401, 403, 404, 405, 406, 415, 429, 503})
"""What a server answers that has not taken the request."""


def encoded(value: str) -> str:
    """A value as a header may hold it (2026-07-28, basic/transports/streamable-http, section Value Encoding)."""
    plain = value.isascii() and value.isprintable() and value == value.strip()
    if plain and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return f"=?base64?{b64encode(value.encode()).decode()}?="


def _parsed(parser: SseParser, piece: bytes) -> list[SseEvent]:
    try:
        return parser.feed(piece)
    except TooLarge:
        raise InvalidReply(f"an event of the server is larger than {MAX_REPLY_BYTES} bytes") from None
