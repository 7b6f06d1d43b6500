"""One request on its way through the daemon: what was asked, who asked, how far it has got, and the queue in which it waits.

Runs nothing and writes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...errors.failures import Failure

if TYPE_CHECKING:
    import threading

    from ...lazy import anyio
    from ..documents import Documents
    from ..logs.logger import Bound
    from ..tracing import Span
    from .identity import Identity
    from .spec import OperationSpec

_Result = TypeVar("_Result")

Outcome: TypeAlias = bytes | Failure
"""The result's JSON text, or why there is none."""

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""The levels of RFC 5424, from least to most severe."""

LOOP, THREADS = 0, 1
"""The pools in which requests run: on the event loop, and in worker threads. Each has slots of its own."""

MAX_REQUESTS: Final = 1024
MAX_BYTES: Final = 16 * 1024 * 1024
"""Limits of the requests of one client that wait, whichever is reached first (section 4 of docs/protocol.md)."""

STRETCH: Final = 4
"""How many times that, while a handler waits for a response of the client, which stands behind other requests."""

BACKSLASH: Final = 0x5C


def id_key(raw: bytes) -> bytes:
    """The key of an id's JSON text.

    Texts that spell one string differently share a key. Numbers are compared as they are written: `1` and `1.0` are
    two ids here, as the response to each echoes its own spelling.
    """
    if BACKSLASH in raw:
        return msgspec.json.encode(msgspec.json.decode(raw))
    return raw


class Rendering(Protocol):
    """How the outcome of a forwarded request is written, where a method of a dialect wraps that of an operation."""

    def result(self, result: bytes) -> bytes:
        """The result of the dialect's method, for this result of the operation. Both are JSON texts."""
        ...

    def failure(self, failure: Failure) -> bytes | Failure | None:
        """The result that tells this failure, or the failure to tell instead; None where it is told as it is."""
        ...


class EventSink(Protocol):
    """Takes the events of one subscription. `events` counts them."""

    events: int
    discarded: bool

    @property
    def full(self) -> bool: ...

    def put(self, value: bytes, number: int | None = None) -> None:
        """Take the next event; `value` is a JSON text. `number` is its own in the log that it comes from."""
        ...

    async def wait_for_room(self) -> None:
        """Return when it is not full any more."""
        ...


class Requester(Protocol):
    """Makes a request and gets its outcome: a client, or a handler that calls another operation."""

    def deliver(self, request: Request, outcome: Outcome) -> None:
        """Take the one outcome of the request. Called on the loop, exactly once."""
        ...

    def sink_of(self, request: Request) -> EventSink:
        """Return the sink for the events of a subscription. Called once, when its handler begins."""
        ...


class Sending(Protocol):
    """Something on its way out: awaiting it waits until the reader keeps up, and for room if there was none."""

    def __await__(self) -> Generator[Any, Any, None]: ...


class ClientInfo(msgspec.Struct, frozen=True):
    """The facts that the client sent of itself in `initialize`; empty if it sent none.

    `protocol_version` is the version of its protocol that is spoken. `capabilities` are as they were sent.
    """

    name: str = ""
    version: str = ""
    protocol_version: str | int | None = None
    capabilities: Mapping[str, Any] = {}  # Any: JSON


class ResourceWatcher(msgspec.Struct, frozen=True):
    """Clients that may want to hear of resources. `tell(uri)` tells them of one that has changed, from any thread.
    `subscriptions()` lists the URIs of which they want to hear, on the loop."""

    tell: Callable[[str], Sending | None]
    subscriptions: Callable[[], Iterable[str]] = tuple


class DaemonServices(Protocol):
    """The services of the daemon for handlers, the same for every client."""

    def run_from_thread(self, request: Request | None, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Run something on the loop, as a part of this request, and wait for it in a worker thread."""
        ...

    async def call(self, parent: Request, name: str, params: object, *, continue_running: bool) -> bytes:
        """The result of another operation that the handler of `parent` calls."""
        ...

    def hold_memory(self, size: int) -> None:
        """Count what a handler keeps. Raises `FailureError(Overloaded)` where there is no room."""
        ...

    def state_of(self, namespace: str) -> Any: ...

    async def enter_late(self, namespace: str) -> None:
        """Wait until the lifespan of a service is entered that is entered late."""
        ...

    def credentials_of(self, namespace: str) -> Mapping[str, str]: ...


class ContextBackend(Protocol):
    """The services of the daemon for a handler, on behalf of one client."""

    @property
    def process(self) -> DaemonServices: ...

    @property
    def client(self) -> ClientInfo: ...

    @property
    def documents(self) -> Documents: ...

    @property
    def url(self) -> str: ...

    @property
    def rests(self) -> bool:
        """Whether the call only waits for its client, and what it waits for is stored: it goes on after an end of the daemon."""
        ...

    @property
    def progress_cancels(self) -> dict[str | int, Callable[[], None]]:
        """The functions to call when the client cancels a progress, by its token."""
        ...

    def notify(self, method: str, params: object) -> Sending:
        """Send a notification from any thread."""
        ...

    async def notify_all(self, method: str, params: Iterable[object]) -> None:
        """Send several notifications from an async handler in one write: when it waits or ends, at the latest."""

    def progress_token(self, request: Request) -> str | int | None:
        """The token with which the request asks for progress; None where it does not."""
        ...

    def progress(self, token: str | int, value: object) -> Sending | None: ...

    def log(self, request: Request, level: LogLevel, data: object) -> Sending | None: ...

    def resource_updated(self, uri: str) -> Sending | None: ...

    async def ask(self, method: str, params: object, timeout: float) -> bytes: ...

    def identify(self, metadata: Mapping[str, str]) -> Identity | None: ...


class Endable(Protocol):
    """Work that ends with a request: a call of another operation, or a wait of its thread."""

    def end(self, failure: Failure) -> None: ...


class Request(msgspec.Struct, eq=False):
    """A request, or a notification when `id` is None. One object, from the envelope to the response.

    `id` and `params` are JSON texts as they came; `params` is None when absent or null. `metadata` holds the string
    members of `serviceParams` under lower-case keys. `prefix` is where in the caller's own params these stand. `size` is
    that of the whole body in bytes, which is held as long as the request waits.
    """

    method: str
    id: bytes | None
    params: Raw | None
    metadata: dict[str, str]
    prefix: str = ""
    size: int = 0

    rendering: Rendering | None = None
    """How the outcome of one that was forwarded is written."""
    progress_token: str | int | UnsetType | None = UNSET
    """The one that stood beside the params of one that was forwarded; UNSET where it stands in the params."""
    arguments: tuple[Any, ...] | None = None
    """The params as the operation's input decodes them, where that was done already."""
    diagnosed: bool = False
    """Whether why it failed is in the log."""
    span: Span | None = None
    """Its span, if one is recorded. The code that tells the outcome ends it."""
    task: str | None = None
    """The agent's task that it names, for the log."""
    origin: Bound | None = None
    """For the log, what a request was made for that was made in the daemon."""

    # Set by the router, once it is known what is called and that the caller may call it.
    spec: OperationSpec = None  # type: ignore[assignment]
    context_backend: ContextBackend = None  # type: ignore[assignment]

    # Set by the scheduler, for what is not answered where it is read; the key by the dispatcher.
    requester: Requester = None  # type: ignore[assignment]
    backlog: Backlog | None = None
    """The queue of the client that sent it; None for a call between operations."""
    key: bytes = b""
    answered: bool = False
    since: float = 0.0
    """When it came."""
    large: bool = False
    """Whether its decoded form may take so much that the memory budget is asked before it runs."""
    takes_slot: bool = False
    """Whether it counts among those of its pool that run at the same time.

    Subscriptions don't, nor what only waits, or a handful of watchers would stop all calls. Calls between operations
    don't either: their caller has a slot already, and would wait for ever for a second one.
    """

    identity: Identity | None = None
    """The caller, if it is known without a look at the credentials."""
    parent: Request | None = None
    """Made the call and waits for it, where it is one between operations that ends with its caller."""
    depth: int = 0
    children: list[Endable] | None = None

    ended_by: Failure | None = None
    """Why the outcome was delivered before the handler had one (cancelled, timed out, unavailable): the handler's own
    outcome is then dropped. It is set on the loop and read in worker threads."""
    limit: float | None = None
    deadline: float | None = None
    group: object = None
    pool: int = LOOP
    scope: anyio.CancelScope | None = None
    stopped: threading.Event | None = None
    decoded_size: int = 0
    """How many bytes of the memory budget it takes, once it runs in decoded form."""
    withdraw: Callable[[Request], None] | None = None
    """Takes it out of the concurrency group in which it waits for its turn."""
    behind: list[Request] | None = None
    """For a notification: the requests that wait until it was handled."""

    @property
    def name(self) -> str:
        """The operation's name."""
        return self.spec.name

    @property
    def bound(self) -> Bound:
        """For the log: lines of its handler name it."""
        return self

    def is_inside(self, group: object) -> bool:
        """Whether this call was made, directly or not, by one of that concurrency group, which waits for it."""
        caller = self.parent
        while caller is not None and caller.group != group:
            caller = caller.parent
        return caller is not None

    def adopt(self, child: Endable) -> None:
        """From now on the child ends when this request is ended, at once if it has been."""
        if self.children is None:
            self.children = []
        self.children.append(child)
        if self.ended_by is not None:
            child.end(self.ended_by)

    def release(self, child: Endable) -> None:
        """The child has ended by itself."""
        if self.children is not None:
            self.children.remove(child)

    def stop_event(self) -> threading.Event:
        """An event that is set when the request is ended. For the worker thread that runs it."""
        if self.stopped is None:
            import threading  # late: only handlers that wait in threads need it

            self.stopped = threading.Event()
            if self.ended_by is not None:  # ended between the two lines above
                self.stopped.set()
        return self.stopped

    def end(self, failure: Failure) -> None:
        """Deliver a failure now and tell the handler to stop, and its children too. Only the first reason counts."""
        ending: list[Endable] = [self]
        while ending:  # no recursion: calls may be nested as deep as a setting allows
            part = ending.pop()
            if not isinstance(part, Request):
                part.end(failure)
            elif part.ended_by is None:
                part.ended_by = failure
                part.requester.deliver(part, failure)
                if part.withdraw is not None:
                    part.withdraw(part)
                if part.scope is not None:
                    part.scope.cancel()
                if part.stopped is not None:
                    part.stopped.set()
                ending += part.children or ()


class Congestible(Protocol):
    """The way to the client."""

    @property
    def congested(self) -> bool: ...

    async def wait_for_room(self) -> None:
        """Return when it is not congested any more."""
        ...


@final
class Backlog:
    """The requests of one client that wait to be started, in the order in which they were read, counted from `add` to `take`.

    Those that no other request holds back are ready, first in, first out for each pool. Full means that reading should stop,
    which is back-pressure by the pipe; nothing is dropped. While `output` is congested nothing of it may start, because the
    client does not read.
    """

    __slots__ = ("_waiting", "bytes", "full", "last_notification", "notifications", "open", "output", "ready")

    def __init__(self, output: Congestible) -> None:
        self.output = output
        self.open = 0
        """Requests that were added and have not ended, running ones among them. The scheduler counts it down."""
        self.notifications = 0
        """How many of them are notifications, which are handled one at a time."""
        self.last_notification: Request | None = None
        """The last one of a plain `def` that has not ended: requests that come now wait for it."""
        self.ready: tuple[deque[Request], deque[Request]] = deque(), deque()
        """Requests that may start, for each pool, in the order in which they became ready. `take` removes the first."""
        self.bytes = 0
        """The size of all that wait."""
        self.full = False
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def overfull(self) -> bool:
        """Whether `STRETCH` times the bound is reached."""
        return self._waiting >= STRETCH * MAX_REQUESTS or self.bytes >= STRETCH * MAX_BYTES

    def add(self, request: Request) -> None:
        """Count a request that waits, whether it is ready or held back by its concurrency group."""
        self.open += 1
        self._waiting += 1
        self.bytes += request.size
        self.full = self._waiting >= MAX_REQUESTS or self.bytes >= MAX_BYTES

    def take(self, pool: int) -> Request:
        """Remove the first request of this pool: it does not wait any more."""
        request = self.ready[pool].popleft()
        self.withdraw(request)
        return request

    def withdraw(self, request: Request) -> None:
        """It does not wait any more."""
        self._waiting -= 1
        self.bytes -= request.size
        self.full = self._waiting >= MAX_REQUESTS or self.bytes >= MAX_BYTES
