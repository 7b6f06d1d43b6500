"""Stores tasks in a Redis server, or a cluster, which daemons of several machines may share. Committed tasks survive `kill -9` of
a daemon, and of the server as far as its settings say: the server's append-only file is what makes it durable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, TypeVar, final

import msgspec
import redis

from ....daemon.logs import log
from ..checks import DEFAULT_RETENTION, Retention
from ..interface import StoreError
from ..server_store import LISTEN_SECONDS, OpenServerStore, ServerStore
from ..threaded_store import WriteJobs
from . import reader
from .schema import check_settings, has_store, log_volatility, open_store
from .session import Address, Server, Session, read_address, translate_errors, why_not_connected
from .writer import LEASE_MS, LEAVE, NOTHING, SURE_SECONDS, RedisWriter

T = TypeVar("T")

READ_ENTRIES: Final = 512
"""Entries of the wake-up stream read at once."""

_unpack: Final = msgspec.msgpack.Decoder(tuple[str, list[str] | bool, list[str], bool]).decode


@final
class RedisStore(ServerStore["_OpenStore", Session]):
    """A `TaskStore` and its `EventLog`. `clock` is in seconds since 1970 and the same for all daemons; by default that of the
    server.

    It is durable as all stores that outlive their process are. Whether the server outlives a crash of its own, it says in the
    log, as `store.volatile`. Raises `StoreError` for an address that is wrong.
    """

    SURE_SECONDS = SURE_SECONDS

    def __init__(
        self, url: str, retention: Retention = DEFAULT_RETENTION, *, clock: Callable[[], float] | None = None
    ) -> None:
        self._address = read_address(url)
        super().__init__(self._address.label, reader, retention)
        self._clock = clock

    def _open(self) -> _OpenStore:
        return _OpenStore(self._address, RedisWriter(self._label, self._retention, self._retained, self._clock))

    def _connect(self) -> tuple[Callable[[Callable[[Session], Any]], Any], Callable[[], None]]:
        label = self._address.label
        try:
            session = Server(self._address).open()
        except redis.RedisError as exc:
            raise StoreError(f"{label} can't be reached: {why_not_connected(exc)}") from None

        def run(read: Callable[[Session], Any]) -> Any:  # Any: as there
            with translate_errors(label):
                return read(session)

        with ExitStack() as stack:
            stack.callback(session.close)
            if not run(has_store):
                raise StoreError(f"{label} holds no store yet")
            stack.pop_all()
        return run, session.close

    async def list_orphans(self) -> Sequence[str]:
        owner_id = self.owner_id
        return await self._read(lambda session: reader.list_orphans(session, owner_id, LEASE_MS))


@final
class _OpenStore(OpenServerStore[Session, Session]):
    """Its listener follows the wake-up stream, to which every transaction adds an entry that says what it changed.

    Every daemon reads the whole stream, and leaves out what it wrote itself. Entries are numbered without gaps: where one is
    missing, the stream has lost it, and everything may have changed.
    """

    errors = redis.RedisError

    def __init__(self, address: Address, writer: RedisWriter) -> None:
        self._server = Server(address)
        self.writer = writer
        self._last = 0
        super().__init__(address.label)

    @property
    def owner_id(self) -> str:
        return self.writer.owner_id

    # -- sessions ----------------------------------------------------------------------------------------------

    def open_session(self) -> Session:
        return self._server.open()

    def begin(self, writing: Session, reading: Session, listening: Session) -> None:
        settings = check_settings(writing)
        open_store(writing)
        self.writer.begin(writing)
        log_volatility(settings, self.label)  # last: a store that is refused says one line
        self.begin_listening(listening)

    def reopen_writing(self) -> Session:
        session = self.open_session()
        try:
            if open_store(session):
                log.error("store.forgotten", server=self.label)
        except BaseException:
            session.close()
            raise
        return session

    def is_stuck(self, exc: Exception) -> bool:
        return isinstance(exc, redis.TimeoutError)

    def why(self, exc: redis.RedisError) -> str:
        return why_not_connected(exc)

    def translate_errors(self) -> AbstractContextManager[None]:
        return translate_errors(self.label)

    # -- in the threads ----------------------------------------------------------------------------------------

    def read(self, read: Callable[[Session], T]) -> T:
        with self.translate_errors():
            return self.reading.run(read)

    def write(self, jobs: WriteJobs) -> None:
        self.writer.process(self.writing, jobs)

    def beat(self) -> None:
        self.writer.write(self.writing, [NOTHING])

    def delete_expired(self) -> bool:
        return self.writer.delete_expired(self.writing)

    def leave(self) -> None:
        self.writer.write(self.writing, [LEAVE])

    # -- in the listener's thread ------------------------------------------------------------------------------

    def begin_listening(self, session: Session) -> None:
        self._last = self._last_entry(session)

    def _last_entry(self, session: Session) -> int:
        """The number of the last one that was added."""
        return int(session.call("HGET", session.key("store"), "wake") or 0)

    def listen(self, session: Session) -> None:
        wake = session.key("wake")
        wait_ms = int(LISTEN_SECONDS * 1000)
        reply = session.call("XREAD", "COUNT", READ_ENTRIES, "BLOCK", wait_ms, "STREAMS", wake, f"{self._last}-0")
        if reply is None:
            last = self._last_entry(session)
            if last < self._last:  # the server has forgotten the store, or a part of it
                self._last = last
                self.inbox.add_everything()
            return
        try:
            for entry_id, (_, message) in reply[0][1]:
                self._hear_entry(int(entry_id.partition(b"-")[0]), message)
        except ValueError:  # no entry of ours
            raise redis.InvalidResponse from None

    def _hear_entry(self, number: int, message: bytes) -> None:
        if number != self._last + 1:
            self.inbox.add_everything()
        self._last = number
        owner_id, changed, asked, queued = _unpack(message)
        if owner_id != self.owner_id:
            tasks = None if isinstance(changed, bool) else changed
            self.inbox.add(tasks, requests=self.owner_id in asked, queued=queued)
