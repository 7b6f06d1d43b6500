"""The client for plain scripts and threads: the same peer, which runs on an event loop in a thread of its own.

Every method hands its work over to that loop and waits; nothing of the client is written a second time. What may be
relied on is what `Peer` and `Subscription` say, except where a docstring here says more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from threading import get_ident
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NoReturn,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    final,
    overload,
)

from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal
from msgspec import UnsetType

from ..framing.events import Framing
from .connect import connect as connect_async
from .connection.connection import CLOSED
from .dialects import Dialect
from .errors import ConnectionFailed, DeclaredErrors, RemoteError
from .peer import Peer
from .policies.restart import RestartPolicy
from .policies.retry import RetryPolicy
from .process.process import EndBounds
from .process.stderr import StderrMode
from .subscription import Subscription
from .validation import StrPath

T = TypeVar("T")

Backend: TypeAlias = Literal["asyncio", "trio"]

Handler: TypeAlias = Callable[[Any], Any]  # JSON values in, anything that msgspec encodes out


class Options(TypedDict, total=False):
    """The options of `discreet.client.connect`."""

    cwd: StrPath | None
    env: Mapping[str, str] | None
    stderr: StderrMode
    bounds: EndBounds
    framing: Framing | None
    dialect: Dialect
    timeout: float | None
    errors: DeclaredErrors
    retry: RetryPolicy | None
    restart: RestartPolicy | None


class CallOptions(TypedDict, total=False):
    """The options of `Peer.call`."""

    timeout: float | None | UnsetType
    service_params: Mapping[str, str] | None
    errors: DeclaredErrors
    idempotent: bool | None


class StreamOptions(TypedDict, total=False):
    """The options of `Peer.subscribe`."""

    timeout: float | None
    service_params: Mapping[str, str] | None
    errors: DeclaredErrors


def connect(command: Sequence[StrPath], *, backend: Backend = "asyncio", **options: Unpack[Options]) -> Connecting:
    """Run a server and talk to it without async:

        with connect(["discreet", "serve", "app:files"]) as peer:
            content = peer.call("files/read", {"path": "README.md"}, type=FileContent)

    `backend` is the event loop that the thread runs. Callbacks among the options, and handlers of notifications, are
    called in that thread: they return at once, and use no peer.
    """
    return Connecting(_connected(command, backend, options))


@final
class Connecting(AbstractContextManager["BlockingPeer", None]):
    """A server that starts where the `with` block begins, and ends with it."""

    def __init__(self, block: AbstractContextManager[BlockingPeer]) -> None:
        self._block = block

    def __enter__(self) -> BlockingPeer:
        return self._block.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._block.__exit__(kind, exc, traceback)

    if not TYPE_CHECKING:  # type checkers find it by themselves

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"nothing is connected yet: `with connect(…) as peer:`, and in it `peer.{name}`")


@contextmanager
def _connected(command: Sequence[StrPath], backend: Backend, options: Options) -> Generator[BlockingPeer]:
    with start_blocking_portal(backend) as portal:
        loop = _Loop(portal)
        with portal.wrap_async_context_manager(connect_async(command, **options)) as peer:
            try:
                yield BlockingPeer(peer, loop)
            finally:
                loop.closed = True


@final
class BlockingPeer:
    """The server at the other end. Thread-safe: any number of threads may call and subscribe at once.

    A call that is interrupted (Ctrl-C) is cancelled on the server. Behind the end of its block every method raises
    `ConnectionFailed`.
    """

    def __init__(self, peer: Peer, loop: _Loop) -> None:
        self._peer = peer
        self._loop = loop

    @overload
    def call(self, method: str, params: object = None, *, type: type[T], **options: Unpack[CallOptions]) -> T: ...

    @overload
    def call(self, method: str, params: object = None, *, type: Any = Any, **options: Unpack[CallOptions]) -> Any: ...

    def call(self, method: str, params: object = None, *, type: Any = Any, **options: Unpack[CallOptions]) -> Any:
        """`Peer.call`."""
        return self._loop.wait(partial(self._peer.call, method, params, type=type, **options))

    def notify(self, method: str, params: object = None, *, service_params: Mapping[str, str] | None = None) -> None:
        """`Peer.notify`."""
        self._loop.wait(partial(self._peer.notify, method, params, service_params=service_params))

    @overload
    def subscribe(
        self, method: str, params: object = None, *, type: type[T], **options: Unpack[StreamOptions]
    ) -> BlockingSubscription[T]: ...

    @overload
    def subscribe(
        self, method: str, params: object = None, *, type: Any = Any, **options: Unpack[StreamOptions]
    ) -> BlockingSubscription[Any]: ...

    def subscribe(
        self, method: str, params: object = None, *, type: Any = Any, **options: Unpack[StreamOptions]
    ) -> BlockingSubscription[Any]:
        """`Peer.subscribe`: `for event in peer.subscribe(…)`."""
        return BlockingSubscription(self._peer.subscribe(method, params, type=type, **options), self._loop)

    def on_request(self, method: str, handler: Handler) -> None:
        """`Peer.on_request` with a plain function, which runs in a worker thread and may use this peer.

        When the server cancels the request or the block is left, nobody waits for the thread.
        """

        async def in_thread(params: Any) -> Any:  # JSON
            return await to_thread.run_sync(handler, params, abandon_on_cancel=True)

        self._loop.wait(partial(_at_once, self._peer.on_request, method, in_thread))

    def on_notification(self, method: str, handler: Handler) -> None:
        """`Peer.on_notification`."""
        self._loop.wait(partial(_at_once, self._peer.on_notification, method, handler))

    def on_unidentified_error(self, handler: Callable[[RemoteError], object]) -> None:
        """`Peer.on_unidentified_error`."""
        self._loop.wait(partial(_at_once, self._peer.on_unidentified_error, handler))

    def send_raw(self, data: bytes) -> None:
        """`Peer.send_raw`."""
        self._loop.wait(partial(self._peer.send_raw, data))


@final
class BlockingSubscription(Iterator[T], Generic[T]):
    """The events of one subscription, to be taken by one thread at a time. Ends as `Subscription` does."""

    def __init__(self, stream: Subscription[T], loop: _Loop) -> None:
        self._stream = stream
        self._loop = loop

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        event = self._loop.wait(partial(_next, self._stream))
        if isinstance(event, _End):
            raise StopIteration
        return event

    def close(self) -> None:
        """`Subscription.aclose`."""
        self._loop.wait(self._stream.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._loop.closed:
            self.close()


@final
class _End:
    """What no event can be."""


async def _next(stream: AsyncIterator[T]) -> T | _End:
    return await anext(stream, _End())


async def _at_once(register: Callable[..., None], *args: Any) -> None:  # the arguments of `register`
    register(*args)


@final
class _Loop:
    """The event loop's thread, as seen from the others."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal
        self._thread = portal.call(get_ident)
        self.closed = False

    def wait(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work` on the loop and wait for its result. Interrupted, it is cancelled."""
        future = self._start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # no effect on what has ended by itself
            raise

    def _start(self, work: Callable[[], Awaitable[T]]) -> Future[T]:
        try:
            future: Future[T] = self._portal.start_task_soon(work)
        except RuntimeError:
            if self.closed:
                raise ConnectionFailed(CLOSED, sent=False) from None
            if get_ident() != self._thread:
                raise
            raise RuntimeError(
                "a handler of notifications and a callback may not use the peer and wait: they run on the thread that"
                " would do the work; hand it to a thread of your own"
            ) from None
        return future
