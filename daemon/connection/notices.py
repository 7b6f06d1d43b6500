"""Sends messages to one client: requests of the daemon, notifications of handlers, and those of the contexts of its requests.

Notifications come from the loop or from worker threads, and a client that does not read slows them down. Worker threads wait.
On the loop only a handler that awaits a notification waits. A notification that is not awaited and has no room is dropped.
"""

from __future__ import annotations

import math
import threading
from _thread import get_ident
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, final, get_args

import msgspec

from ...errors.codes import METHOD_NOT_FOUND, SERVER_ERROR, row_of
from ...errors.failures import MethodNotFound, Unavailable
from ...errors.wire import decode_error
from ...lazy import anyio
from ..dispatch.thread_pool import ThreadPool
from ..logs import log
from ..operations.context import ClientRefused
from ..operations.request import ClientInfo, LogLevel
from ..rpc import envelope
from ..rpc.envelope import ClientResponse

if TYPE_CHECKING:
    from ..documents import Documents
    from ..host import Host
    from ..memory import MemoryBudget
    from ..operations.access import Access
    from ..operations.identity import Identity
    from ..operations.request import Request, Sending
    from .session import ClientConnection


# Requests that the daemon sends to its client, and the answers to them.


@final
class _Pending:
    __slots__ = ("answered", "response")

    def __init__(self, answered: anyio.Event) -> None:
        self.answered = answered
        self.response: ClientResponse | None = None


@final
class ClientRequests:
    """Used on the loop's thread. Ids are integers above `last`. They have nothing to do with the ids of the client's requests."""

    def __init__(self, on_open: Callable[[], None], last: int = 0) -> None:
        self._on_open = on_open
        self.last = last
        self._open: dict[bytes, _Pending] = {}
        self._closed = False

    async def ask(
        self,
        output: Output,
        method: str,
        params: object,
        timeout: float,
        encode_cancel: Callable[[int], bytes],
        service_params: Mapping[str, str] | None = None,
    ) -> bytes:
        """The client's result as JSON text. Raises `ClientRefused` with the client's error; the rest is as in `exchange`."""
        return _result(await self.exchange(output, method, params, timeout, encode_cancel, service_params))

    async def exchange(
        self,
        output: Output,
        method: str,
        params: object,
        timeout: float,
        encode_cancel: Callable[[int], bytes],
        service_params: Mapping[str, str] | None = None,
    ) -> ClientResponse:
        """The client's response. `output` leads to it. `encode_cancel(id)` is the message that cancels the request.

        Raises `TimeoutError` after `timeout` seconds. The client is told to cancel what is no longer awaited. Once no
        answer can come, `ClientRefused` is raised with UNAVAILABLE.
        """
        if self._closed:
            raise _unanswerable()
        self.last += 1
        pending = _Pending(anyio.Event())
        key = b"%d" % self.last
        message = envelope.encode_request(self.last, method, params, service_params)
        self._open[key] = pending
        output.post(message)
        output.flush()
        self._on_open()
        try:
            with anyio.fail_after(timeout):
                await pending.answered.wait()
        finally:
            if self._open.pop(key, None) is not None and pending.response is None:
                output.post(encode_cancel(int(key)))
                output.flush()
        if pending.response is None:
            raise _unanswerable()
        return pending.response

    def close(self) -> None:
        """Tell all waiting callers that no answer can come, as the input has ended."""
        self._closed = True
        for pending in self._open.values():
            pending.answered.set()

    def __len__(self) -> int:
        """How many answers are still to come."""
        return len(self._open)

    def take(self, response: ClientResponse) -> bool:
        """Take a response; False when no request waits for it."""
        pending = self._open.pop(response.id, None)
        if pending is None:
            return False
        pending.response = response
        pending.answered.set()
        return True


def _unanswerable() -> ClientRefused:
    failure = Unavailable()
    return ClientRefused(SERVER_ERROR, row_of(failure).message, failure)


def _result(response: ClientResponse) -> bytes:
    if response.result is not None:
        return bytes(response.result)
    error, failure = decode_error(b"" if response.error is None else response.error, a2a=False)
    raise ClientRefused(error.code, error.message, failure)


# The way to a client, for code that sends it messages: the connection's writer, or the answer to one HTTP request.


class Output(Protocol):
    """Used on the loop's thread only."""

    @property
    def congested(self) -> bool:
        """True while producers should wait."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """How much the client has not taken, although it could."""
        ...

    def post(self, body: bytes, /) -> None:
        """Queue one message for the next flush. Never blocks."""
        ...

    def flush(self) -> None:
        """Send what the client takes now. Never blocks, never raises."""
        ...

    async def wait_for_room(self) -> None:
        """Return when it is not congested any more, or at once when the client has gone."""
        ...


MAX_UNSENT: Final = 64
"""Notifications of all worker threads that may be unsent before the next one waits."""

MAX_UNSENT_BYTES: Final = 4 * 1024 * 1024
"""Bytes of notifications that may be unsent before the next one waits or is dropped; of the loop, and of all worker threads.
Some ten thousand small ones: who does not await them may send that many without a pause."""


@final
class PostedNotice:
    """Awaiting it waits until the client has read enough; it returns at once if the client keeps up.

    `body` could not be posted yet. It is posted when there is room for it, and dropped if it is not awaited.
    """

    __slots__ = ("_body", "_method", "_notices")

    def __init__(self, notices: Notices, method: str, body: bytes | None) -> None:
        self._notices = notices
        self._method = method
        self._body = body

    def __await__(self) -> Generator[Any, Any, None]:
        yield from self._notices.wait_for_room().__await__()
        body, self._body = self._body, None
        if body is not None:
            self._notices.post(body)

    def __del__(self) -> None:
        if self._body is not None:
            self._notices.note_dropped(self._method)


@final
class Notices:
    """`send` may be called on the thread that made this object (the loop's) and in worker threads."""

    def __init__(self, output: Output, threads: ThreadPool, memory: MemoryBudget) -> None:
        self.output: Final = output
        self._threads = threads
        self._memory = memory
        self._loop_thread = get_ident()
        self._room = threading.Condition()  # guards the next two
        self._taken = 0  # notifications of worker threads
        self._taken_bytes = 0
        self._arrived: list[int] = []  # sizes of those among them that were posted
        self._posted = 0  # bytes of the loop's notifications since everything was sent
        self._dropped = 0

    def send(self, method: str, body: bytes) -> PostedNotice:
        """Post one message. On the loop it returns at once; a worker thread waits while the client does not read."""
        if get_ident() != self._loop_thread:
            self._take_place(len(body))
            self._threads.call_on_loop(self._post_of_thread, body)
        elif not self._has_room(len(body)):
            return PostedNotice(self, method, body)
        else:
            self.post(body)
        return PostedNotice(self, method, None)

    async def send_all(self, bodies: Iterable[bytes]) -> None:
        """Post messages in an async handler, which flushes when it waits or ends. Waits as who awaits each of them would."""
        for body in bodies:
            if self.output.congested or not self._has_room(len(body)):
                self.output.flush()
                await self.output.wait_for_room()
            self._post(body)

    def _has_room(self, size: int) -> bool:
        unsent = self.output.unsent_bytes
        if not unsent:
            self._posted = 0
        return min(self._posted, unsent) < MAX_UNSENT_BYTES and self._memory.fits(size)

    def post(self, body: bytes) -> None:
        """Post one message, whatever waits. On the loop."""
        self._post(body)
        self.output.flush()

    def _post(self, body: bytes) -> None:
        if self._dropped:
            self._report_dropped()
        self._posted += len(body)
        self.output.post(body)

    async def wait_for_room(self) -> None:
        """Return when the client has read enough, or has gone."""
        await self.output.wait_for_room()

    def note_dropped(self, method: str) -> None:
        """Log the first notification that is dropped; the others are counted and reported when the client reads again."""
        self._dropped += 1
        if self._dropped == 1:
            log.warning("notification.dropped", method=method)

    def _report_dropped(self) -> None:
        if self._dropped and not self.output.congested:
            log.warning("notifications.dropped", count=self._dropped)
            self._dropped = 0

    def _take_place(self, size: int) -> None:
        with self._room:
            while self._taken >= MAX_UNSENT or self._taken_bytes >= MAX_UNSENT_BYTES:
                self._room.wait()
            self._taken += 1
            self._taken_bytes += size

    def _post_of_thread(self, body: bytes) -> None:
        self.output.post(body)
        self._arrived.append(len(body))
        self.give_room()

    def give_room(self) -> None:
        """The client may have read: let waiting threads go on. On the loop."""
        self._report_dropped()
        if self._arrived and not self.output.congested:
            with self._room:
                self._taken -= len(self._arrived)
                self._taken_bytes -= sum(self._arrived)
                self._room.notify_all()
            self._arrived.clear()


@final
class Together:
    """Several messages as one to wait for."""

    def __init__(self, sent: Sequence[Sending]) -> None:
        self._sent = sent

    def __await__(self) -> Generator[Any, Any, None]:
        for each in self._sent:
            yield from each.__await__()


@final
class ClientContextBackend:
    """The `ContextBackend` of one client, or of one of its requests. `access` says who calls, and `url` is the address
    under which the client reaches the daemon, where it has one.
    """

    @property
    def rests(self) -> bool:
        return False

    def __init__(
        self,
        host: Host,
        peer: ClientConnection,
        notices: Notices,
        client_requests: ClientRequests,
        access: Access | None = None,
        url: str = "",
    ) -> None:
        self.process = host
        self._peer = peer
        self._notices = notices
        self._client_requests = client_requests
        self._access = access or host.access
        self.url = url
        self.progress_cancels: dict[str | int, Callable[[], None]] = {}

    @property
    def client(self) -> ClientInfo:
        return self._peer.client

    @property
    def documents(self) -> Documents:
        documents = self._peer.session.documents
        if documents is None:
            from ..documents import Documents  # late: most clients have none

            documents = Documents()
        return documents

    def notify(self, method: str, params: object) -> Sending:
        return self._notices.send(method, envelope.encode_notification(method, params))

    async def notify_all(self, method: str, params: Iterable[object]) -> None:
        await self._notices.send_all(envelope.encode_notification(method, each) for each in params)

    def progress_token(self, request: Request) -> str | int | None:
        token = request.progress_token
        return (
            self._peer.session.dialect.progress_token(request.params) if isinstance(token, msgspec.UnsetType) else token
        )

    def progress(self, token: str | int, value: object) -> Sending | None:
        dialect = self._peer.session.dialect
        return self._send(dialect.progress_method, dialect.encode_progress(token, value))

    def log(self, request: Request, level: LogLevel, data: object) -> Sending | None:
        if level not in get_args(LogLevel):
            raise ValueError(f"the level is one of {', '.join(get_args(LogLevel))}, not {level!r}")
        dialect = self._peer.session.dialect
        return self._send(dialect.log_method, dialect.encode_log(request.rendering, level, data))

    def resource_updated(self, uri: str) -> Sending | None:
        return self.process.resource_updated(uri, self._peer.tell_updated)

    def _send(self, method: str, message: bytes | None) -> Sending | None:
        return None if message is None else self._notices.send(method, message)

    async def ask(self, method: str, params: object, timeout: float) -> bytes:
        dialect, output = self._peer.session.dialect, self._notices.output
        if not dialect.asks:
            raise ClientRefused(METHOD_NOT_FOUND, "the client takes no requests", MethodNotFound())
        requests, cancel = self._client_requests, dialect.encode_cancel
        if self.process.tracing is None:
            return await requests.ask(output, method, params, timeout, cancel)
        with self.process.tracing.asking(method, dialect.method_attribute) as headers:
            params, service_params = dialect.with_trace(params, headers)
            return await requests.ask(output, method, params, timeout, cancel, service_params)

    async def relay(self, method: str, params: object) -> ClientResponse:
        """The client's response to a request of another server, as it is. Raises `ClientRefused` where none can come."""
        cancel = self._peer.session.dialect.encode_cancel
        return await self._client_requests.exchange(self._notices.output, method, params, math.inf, cancel)

    def identify(self, metadata: Mapping[str, str]) -> Identity | None:
        return self._access.identify(metadata)
