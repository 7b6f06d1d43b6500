"""The client without async, for scripts and threads. Runs the asynchronous client on an event loop in its own thread.

Every method runs the method of `Peer` or `Subscription` on that loop and waits for it. The docstrings there apply here too;
the docstrings here only add to them. Never implements anything a second time.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import partial
from threading import get_ident
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar, Unpack, cast, final, get_args, overload

from anyio import CancelScope, to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from .connect import ConnectOptions
from .connect import connect as connect_async
from .connection import CLOSED
from .errors import ConnectionFailed, RemoteError
from .peer import CallOptions, Peer, SubscribeOptions
from .subscription import Subscription
from .validation import Backend, StrPath, check_callback, check_choice

T = TypeVar("T")

Handler: TypeAlias = Callable[[Any], Any]  # JSON values in, anything that msgspec encodes out


@contextmanager
def connect(
    server: Sequence[StrPath] | str, *, backend: Backend = "asyncio", **options: Unpack[ConnectOptions]
) -> Generator[BlockingPeer]:
    """Run a server, or connect to one at a URL, and call it without async:

        with connect(["discreet", "serve", "./app.py:files"]) as peer:
            content = peer.call("files/read", {"path": "README.md"}, type=FileContent)

    `backend` is the event loop that the thread runs. Callbacks in the options, handlers of notifications and `on_progress` run
    in that thread. They must return at once and must not use the peer. Raises `ValueError` for another `backend`.
    """
    with on_loop_thread(connect_async(server, **options), backend) as (peer, loop):
        yield BlockingPeer(peer, loop)


@contextmanager
def on_loop_thread(block: AbstractAsyncContextManager[T], backend: Backend) -> Generator[tuple[T, LoopThread]]:
    """Run a block on an event loop in a thread of its own. Yields its value, and what runs coroutines there. Raises `ValueError`
    for another `backend`."""
    check_choice("backend", backend, get_args(Backend))
    with start_blocking_portal(backend) as portal:
        loop = LoopThread(portal)
        with portal.wrap_async_context_manager(block) as value:
            try:
                yield value, loop
            finally:
                loop.closed = True


def in_thread(handler: Handler) -> Callable[[Any], Awaitable[Any]]:
    """Return a coroutine function that runs a plain handler of requests in a worker thread."""
    check_callback("handler", handler)

    async def run(params: Any) -> Any:  # JSON
        return await to_thread.run_sync(handler, params, abandon_on_cancel=True)

    return run


@final
class BlockingPeer:
    """The server at the other end. Thread-safe: any number of threads may call and subscribe at once.

    An interrupted call (Ctrl-C) is cancelled on the server. After the `with` block every method raises `ConnectionFailed`.
    """

    def __init__(self, peer: Peer, loop: LoopThread) -> None:
        self._peer = peer
        self._loop = loop

    @overload
    def call(self, method: str, params: object = None, *, type: type[T], **options: Unpack[CallOptions]) -> T: ...

    @overload
    def call(self, method: str, params: object = None, *, type: Any = Any, **options: Unpack[CallOptions]) -> Any: ...

    def call(self, method: str, params: object = None, *, type: Any = Any, **options: Unpack[CallOptions]) -> Any:
        """Call a method: see `Peer.call`."""
        return self._loop.run(partial(self._peer.call, method, params, type=type, **options))

    def notify(self, method: str, params: object = None, *, service_params: Mapping[str, str] | None = None) -> None:
        """Send a notification: see `Peer.notify`."""
        self._loop.run(partial(self._peer.notify, method, params, service_params=service_params))

    @overload
    def subscribe(
        self, method: str, params: object = None, *, type: type[T], **options: Unpack[SubscribeOptions]
    ) -> BlockingSubscription[T]: ...

    @overload
    def subscribe(
        self, method: str, params: object = None, *, type: Any = Any, **options: Unpack[SubscribeOptions]
    ) -> BlockingSubscription[Any]: ...

    def subscribe(
        self, method: str, params: object = None, *, type: Any = Any, **options: Unpack[SubscribeOptions]
    ) -> BlockingSubscription[Any]:
        """Subscribe to an operation's events, `for event in peer.subscribe(…)`: see `Peer.subscribe`."""
        return BlockingSubscription(self._peer.subscribe(method, params, type=type, **options), self._loop)

    def on_request(self, method: str, handler: Handler) -> None:
        """Answer requests with a plain function, which runs in a worker thread and may use this peer: see `Peer.on_request`.

        If the server cancels the request or the block ends, the thread goes on but its result is dropped.
        """
        self._loop.run(partial(_call, self._peer.on_request, method, in_thread(handler)))

    def on_notification(self, method: str, handler: Handler) -> None:
        """Call `handler(params)` for notifications: see `Peer.on_notification`."""
        self._loop.run(partial(_call, self._peer.on_notification, method, handler))

    def on_unidentified_error(self, handler: Callable[[RemoteError], object]) -> None:
        """Call `handler(error)` for errors that name no request: see `Peer.on_unidentified_error`."""
        self._loop.run(partial(_call, self._peer.on_unidentified_error, handler))

    def send_raw(self, data: bytes) -> None:
        """Write bytes unchanged between two frames: see `Peer.send_raw`."""
        self._loop.run(partial(self._peer.send_raw, data))


@final
class BlockingSubscription(Iterator[T], Generic[T]):
    """The events of one subscription. One thread at a time may take them. It ends as `Subscription` does."""

    def __init__(self, stream: Subscription[T], loop: LoopThread) -> None:
        self._stream = stream
        self._loop = loop

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        event = self._loop.run(partial(_next, self._stream))
        if event is _END:
            raise StopIteration
        return cast(T, event)

    def close(self) -> None:
        """End the subscription: see `Subscription.aclose`."""
        self._loop.run(self._stream.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._loop.closed:
            self.close()


_END: Final = object()
"""Marks the end of a stream: no event is it."""


async def _next(stream: AsyncIterator[object]) -> object:
    return await anext(stream, _END)


async def _call(func: Callable[..., None], *args: Any) -> None:  # the arguments of `func`
    func(*args)


@final
class LoopThread:
    """Runs coroutines on the event loop's thread, from any other thread."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal
        self._thread = portal.call(get_ident)
        self._process = os.getpid()
        self.closed = False

    def run(self, func: Callable[[], Awaitable[T]]) -> T:
        """Run `func` on the loop and wait for its result. An interrupt cancels it."""
        if os.getpid() != self._process:
            raise RuntimeError("the peer belongs to the process that connected it; a forked one connects anew")
        task = _Task(func)
        future: Future[T] | None = None
        try:
            future = self._start(task)
            return future.result()
        except BaseException:
            if future is None or not future.done():  # interrupted, perhaps before the future was there
                with suppress(RuntimeError):  # the loop has ended
                    self._portal.start_task_soon(task.cancel)
            raise

    def _start(self, task: _Task[T]) -> Future[T]:
        try:
            return self._portal.start_task_soon(task.run)
        except RuntimeError:
            if self.closed:
                raise ConnectionFailed(CLOSED, sent=False) from None
            if get_ident() != self._thread:
                raise
            raise RuntimeError(
                "a callback or a handler of notifications must not use the peer, because it runs on the event loop's"
                " thread; use a thread of your own"
            ) from None


@final
class _Task(Generic[T]):
    """A coroutine that may be cancelled before it has begun. Both methods run on the loop, in any order."""

    def __init__(self, func: Callable[[], Awaitable[T]]) -> None:
        self._func = func
        self._scope: CancelScope | None = None
        self._cancelled = False

    async def run(self) -> T:
        with CancelScope() as self._scope:
            if self._cancelled:
                self._scope.cancel()
            return await self._func()
        raise ConnectionFailed(CLOSED)  # for the future, which nothing reads: its caller was interrupted

    async def cancel(self) -> None:
        self._cancelled = True
        if self._scope is not None:
            self._scope.cancel()
