"""Shares code of the stores on a server: sessions that are opened again after a loss, with growing pauses, and a thread that
hears commits of other daemons. Knows no server.

A user of a session waits for the end of a short outage. During a longer one it is told at once when to try again.
"""

from __future__ import annotations

import math
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from time import monotonic
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar, final

from ...daemon.logs import log
from ...errors.backoff import exponential_backoff
from ...lazy import anyio
from .interface import Changes, StoreError, StoreUnavailableError
from .threaded_store import OpenStore, R, ThreadedStore, loop_caller


class ServerSession(Protocol):
    """A session with a server."""

    @property
    def closed(self) -> bool: ...

    def close(self) -> None: ...

    def shut_down(self) -> None:
        """Have the thread that waits for the server hear that the session is over. Any thread may."""


SessionT = TypeVar("SessionT", bound=ServerSession)
T = TypeVar("T")

BRIDGED_SECONDS: Final = 5.0
"""How long callers wait for the server from the moment that it is lost: about as long as a restart or a fail-over takes."""

WRITES_PATIENCE: Final = 4.0
"""How many times as long commits wait. What a task has published before that is lost to it; new calls are not let in then."""

FIRST_PAUSE_SECONDS: Final = 0.1
BRIDGED_PAUSE_SECONDS: Final = 0.5
MAX_PAUSE_SECONDS: Final = 5.0
"""Between two attempts to connect: while somebody waits for it, and later."""

MIN_RETRY_MS: Final = 500
"""The least that callers are told to wait."""

CLOSE_SECONDS: Final = 0.4
"""How long closing waits for what is queued, and then for the threads to notice that they wait in vain."""

MAX_LOSSES: Final = 8
"""How many sessions may be lost over one and the same piece of work."""

LISTEN_SECONDS: Final = 1.0
"""How long the listener waits at once, and its pause between two attempts to connect."""

HEARTBEAT_SECONDS: Final = 1.0
"""How often an idle daemon says that it is alive, and finds out whether it still has its session."""

EXPIRY_SECONDS: Final = 10.0
"""Between two looks for expired tasks."""

MAX_NAMES: Final = 65_536
"""Names of changed tasks that are collected before all tasks count as changed."""


@final
class ServerLink(Generic[SessionT]):
    """Used by one thread. `reopen()` gives a new session, and raises `StoreError` or one of the store's `errors`, which are also
    what work with a session raises when it is lost. Work waits for a session `patience` times as long as `BRIDGED_SECONDS`.
    """

    def __init__(
        self,
        store: OpenServerStore[SessionT, Any],  # Any: what it reads from
        session: SessionT,
        reopen: Callable[[], SessionT],
        *,
        patience: float = 1.0,
    ) -> None:
        self._store = store
        self._session: SessionT | None = session
        self._reopen = reopen
        self._patience = patience
        self._reason = ""
        self._closing = threading.Event()
        self._lost_at = 0.0
        self._reopened_at = -math.inf
        self.reached_at = monotonic()
        """When that was asked to which the server has answered last. Any thread may read it."""
        self._failures = 0
        self._next_try = 0.0
        self._busy = False
        self._told = False

    @property
    def away(self) -> bool:
        """Whether there is no session."""
        return self._session is None

    @property
    def seconds_since_reopened(self) -> float:
        """How long the present session has been there, if one was lost before. Any thread may ask."""
        return monotonic() - self._reopened_at

    def check(self) -> None:
        """Raises `StoreUnavailableError` where the server has been away for longer than `BRIDGED_SECONDS`. Any thread may ask."""
        if self._session is None and monotonic() > self._lost_at + BRIDGED_SECONDS:
            raise StoreUnavailableError(
                f"{self._store.label} {self._away}", retry_after_ms=self._retry_ms, repeated=True
            )

    @property
    def session(self) -> SessionT | None:
        """The present one. Any thread may ask."""
        return self._session

    @property
    def seconds_to_next_try(self) -> float:
        return max(self._next_try - monotonic(), 0.0)

    def run(self, work: Callable[[SessionT], T]) -> T:
        """Return the result of `work(session)`. If the session is lost, calls it again with another one."""
        losses = 0
        while True:
            session = self._open()
            self._busy = True
            asked_at = monotonic()
            try:
                result = work(session)
                self.reached_at = asked_at
                return result
            except self._store.errors as exc:
                if not session.closed:
                    raise
                self._lose()
                losses += 1
                if (
                    self._store.is_stuck(exc) or losses == MAX_LOSSES
                ):  # what has ended that many would end the next one, too
                    raise self._unavailable() from None
                if losses > 1:  # the server is there, and not ready: a cluster that is about to change
                    self._closing.wait(exponential_backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, losses - 2))
            finally:
                self._busy = False

    def _lose(self) -> None:
        self._session = None
        self._lost_at = monotonic()
        self._failures = 0
        self._next_try = 0.0
        self._told = False
        self._reason = ""

    def _open(self) -> SessionT:
        while self._session is None:
            end = self._lost_at + BRIDGED_SECONDS * self._patience
            self._closing.wait(min(self.seconds_to_next_try, max(end - monotonic(), 0.0)))
            if self._closing.is_set() or monotonic() < self._next_try:
                raise self._unavailable()
            try:
                self._session = self._reopen()
            except (self._store.errors, StoreError) as exc:
                self._reason = str(exc) if isinstance(exc, StoreError) else self._store.why(exc)
                longest = BRIDGED_PAUSE_SECONDS if monotonic() < end else MAX_PAUSE_SECONDS
                self._next_try = monotonic() + exponential_backoff(FIRST_PAUSE_SECONDS, longest, self._failures)
                self._failures += 1
                if monotonic() > end:
                    raise self._unavailable() from None
            else:
                self._reopened_at = monotonic()
                log.warning("store.reconnected", seconds=round(monotonic() - self._lost_at, 3))
        return self._session

    def _unavailable(self) -> StoreUnavailableError:
        repeated, self._told = self._told, True
        return StoreUnavailableError(
            f"{self._store.label} {self._away}", retry_after_ms=self._retry_ms, repeated=repeated
        )

    @property
    def _away(self) -> str:
        return f"can't be reached: {self._reason}" if self._reason else "does not answer"

    @property
    def _retry_ms(self) -> int:
        return max(int(self.seconds_to_next_try * 1000), MIN_RETRY_MS)

    def stop(self, *, at_once: bool = False) -> None:
        """Wait for no server any more; with `at_once` not even for the answer to what it was asked. Any thread may."""
        self._closing.set()
        session = self._session
        if at_once and self._busy and session is not None:
            session.shut_down()

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


@final
class ChangeFeed:
    """Collects changes of other daemons until they are taken. Bounded. Any thread may add.

    `name_of(task_id)` is the name of a task in these changes.
    """

    def __init__(self, name_of: Callable[[str], str] = str) -> None:
        self._name_of = name_of
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._everything = self._requests = self._queued = False
        self._call_on_loop: Callable[[Callable[[], None]], None] | None = None
        self._waiting: anyio.Event | None = None

    def attach(self, call_on_loop: Callable[[Callable[[], None]], None]) -> None:
        """Wake waiting tasks from now on by this function, which runs another one on their event loop."""
        self._call_on_loop = call_on_loop

    def add(self, names: Iterable[str] | None, *, requests: bool, queued: bool) -> None:
        """The tasks of these names have changed (None: any may have); there may be requests to this daemon, tasks to claim."""
        with self._lock:
            is_first = not self._has_news()
            self._everything = self._everything or names is None
            if names is not None and not self._everything:
                self._names.update(names)
                self._everything = len(self._names) > MAX_NAMES
            if self._everything:
                self._names.clear()
            self._requests = self._requests or requests
            self._queued = self._queued or queued
        if is_first and self._call_on_loop is not None:  # else it was woken, and has not come yet
            self._call_on_loop(self._wake)

    def add_everything(self) -> None:
        """Anything may have happened."""
        self.add(None, requests=True, queued=True)

    def _has_news(self) -> bool:
        return bool(self._everything or self._names or self._requests or self._queued)

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.set()

    async def wait(self) -> Changes:
        """Wait for changes and return those since the last return. A cancellation loses none."""
        while True:
            self._waiting = anyio.Event()  # before it looks: what comes afterwards wakes it
            changes = self._take()
            if changes is not None:
                return changes
            await self._waiting.wait()

    def _take(self) -> Changes | None:
        with self._lock:
            if not self._has_news():
                return None
            names, everything = frozenset(self._names), self._everything
            changes = Changes(
                lambda task_id: everything or self._name_of(task_id) in names,
                self._requests,
                self._queued,
                None if everything else names,
                self._name_of,
            )
            self._names.clear()
            self._everything = self._requests = self._queued = False
        return changes


class OpenServerStore(OpenStore[R], Generic[SessionT, R]):
    """The parts of an open store on a server: a session that writes, one that reads, one that listens, and their threads."""

    errors: ClassVar[type[Exception]]

    def __init__(self, label: str, name_of: Callable[[str], str] = str) -> None:
        self.label = label
        self.inbox = ChangeFeed(name_of)
        self._closing = threading.Event()
        with ExitStack() as stack:
            try:
                writing, reading, listening = (self._opened(stack) for _ in range(3))
            except self.errors as exc:
                raise StoreError(f"{label} can't be reached: {self.why(exc)}") from None
            with self.translate_errors():
                self.begin(writing, reading, listening)
            stack.pop_all()
        self.writing = ServerLink(self, writing, self.reopen_writing, patience=WRITES_PATIENCE)
        self.reading = ServerLink(self, reading, self.open_session)
        self.listening: SessionT | None = listening
        self._next_expiry = monotonic() + EXPIRY_SECONDS
        self._listener = threading.Thread(target=self._hear, name="discreet-store-listener", daemon=True)

    def _opened(self, stack: ExitStack) -> SessionT:
        session = self.open_session()
        stack.callback(session.close)
        return session

    # -- what a server does in its own way. Each raises `StoreError` and one of `errors` ------------------------

    @abstractmethod
    def open_session(self) -> SessionT: ...

    @abstractmethod
    def begin(self, writing: SessionT, reading: SessionT, listening: SessionT) -> None:
        """Check the server, create the store, and become alive."""

    @abstractmethod
    def reopen_writing(self) -> SessionT:
        """Open a session in the place of a lost one, in which this daemon is alive."""

    @abstractmethod
    def begin_listening(self, session: SessionT) -> None: ...

    @abstractmethod
    def listen(self, session: SessionT) -> None:
        """Wait for `LISTEN_SECONDS`, and add to the inbox what is heard meanwhile."""

    @abstractmethod
    def beat(self) -> None:
        """Say that this daemon is alive. As the next two, in the writer's thread."""

    @abstractmethod
    def delete_expired(self) -> bool:
        """Delete a batch of what has expired, and say the same. Whether there may be more."""

    @abstractmethod
    def leave(self) -> None:
        """Be dead at once, and not when the server notices."""

    @abstractmethod
    def is_stuck(self, exc: Exception) -> bool:
        """Whether the server did not answer."""

    @abstractmethod
    def why(self, exc: Any) -> str:  # Any: one of `errors`
        """Why there is no session, in one line without secrets."""

    @abstractmethod
    def translate_errors(self) -> AbstractContextManager[None]:
        """Turns `errors` into `StoreError`."""

    def look_after_sessions(self) -> None:
        """Called each second, in the listener's thread."""

    # -- the writer's thread -----------------------------------------------------------------------------------

    def maintain(self) -> float:
        try:
            if monotonic() < self._next_expiry:
                self.beat()
            elif not self.delete_expired():
                self._next_expiry = monotonic() + EXPIRY_SECONDS
        except (StoreError, self.errors):  # what fails is made up for later
            self._next_expiry = monotonic() + EXPIRY_SECONDS
        if self.writing.away:
            return self.writing.seconds_to_next_try
        return HEARTBEAT_SECONDS if monotonic() < self._next_expiry else 0.0

    def finish(self) -> None:
        with suppress(StoreError, self.errors):
            if not self.writing.away:
                self.leave()
        self.writing.close()

    def finish_reading(self) -> None:
        self.reading.close()

    # -- the listener's thread ---------------------------------------------------------------------------------

    def start(self) -> None:
        try:
            super().start()
        except RuntimeError:
            self._stop_listening()
            raise
        try:
            self._listener.start()
        except RuntimeError:
            self.close_unattached()
            raise

    def _hear(self) -> None:
        while not self._closing.is_set():
            self.look_after_sessions()
            session = self.listening
            try:
                if session is None:
                    self._listen_again()
                else:
                    self.listen(session)
            except (self.errors, StoreError, OSError):
                if session is not None:
                    session.close()
                    self.listening = None
        if self.listening is not None:
            self.listening.close()

    def _listen_again(self) -> None:
        """Count every task as changed, since changes may have been missed, and listen again."""
        self.inbox.add_everything()
        if not self._closing.wait(LISTEN_SECONDS):
            with ExitStack() as stack:
                session = self._opened(stack)
                self.begin_listening(session)
                stack.pop_all()
            self.listening = session
            self.inbox.add_everything()

    def _stop_listening(self) -> None:
        """An attempt to connect may take until its time-out: it is not waited for."""
        self._closing.set()
        session = self.listening
        if session is not None and self._listener.ident is None:
            session.close()
        elif session is not None:
            session.shut_down()
        if self._listener.ident is not None:
            self._listener.join(LISTEN_SECONDS / 2)

    # -- the end -----------------------------------------------------------------------------------------------

    def attach(self) -> None:
        super().attach()
        self.inbox.attach(loop_caller())

    def stop(self, *, at_once: bool = False) -> None:
        """Wait for the server no longer if it is away; with `at_once` not at all."""
        self.writing.stop(at_once=at_once)
        self.reading.stop(at_once=at_once)

    async def close(self) -> None:
        """Finish what is queued, as long as the server answers in time. Within 1.5 seconds."""
        self.stop()
        if not await self._close_in_time():
            self.stop(at_once=True)
            await self._close_in_time()
        await anyio.to_thread.run_sync(self._stop_listening)

    async def _close_in_time(self) -> bool:
        with anyio.move_on_after(CLOSE_SECONDS):
            await self.reader_thread.close()
            await self.writer_thread.close()
            return True
        return False

    def close_unattached(self) -> None:
        self.stop()
        super().close_unattached()
        self._stop_listening()


OpenS = TypeVar("OpenS", bound=OpenServerStore[Any, Any])


class ServerStore(ThreadedStore[OpenS, R]):
    """A store on a server. `SURE_SECONDS` is how long after it was heard last a daemon may be sure that it has its tasks."""

    SURE_SECONDS: ClassVar[float]

    def lease_end(self) -> float:
        return math.inf if self._opened is None else self._opened.writing.reached_at + self.SURE_SECONDS

    def check_reachable(self) -> None:
        if self._opened is not None:
            self._opened.writing.check()

    async def wait_for_changes(self, poll_seconds: float) -> Changes:
        if self._opened is None:
            await anyio.sleep_forever()
        return await self._open_store.inbox.wait()
