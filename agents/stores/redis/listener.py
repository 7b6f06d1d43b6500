"""Follows the wake-up stream, to which every transaction adds an entry that says what it changed. Reads no task.

Every daemon reads the whole stream on a connection of its own, and leaves out what it wrote itself. Entries are numbered without
gaps: where one is missing, the stream has lost it, and everything may have changed. So it may while the connection is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, final

import msgspec
import redis

from ..change_feed import ChangeFeed
from ..interface import StoreError
from .address import Address
from .connection import Session

WAIT_SECONDS: Final = 1.0
"""How long the server is asked to wait for an entry, and the pause between two attempts to connect."""

READ_ENTRIES: Final = 512
"""Entries read at once."""

_unpack: Final = msgspec.msgpack.Decoder(tuple[str, list[str] | bool, list[str], bool]).decode


@final
class Listener:
    """One thread. `reopen()` gives another session, and raises `StoreError` and `redis.RedisError`.

    Raises `RuntimeError` if the system provides no thread, and `redis.RedisError`.
    """

    def __init__(
        self, session: Session, reopen: Callable[[], Session], address: Address, owner_id: str, inbox: ChangeFeed
    ) -> None:
        self._session: Session | None = session
        self._reopen = reopen
        self._address = address
        self._owner_id = owner_id
        self._inbox = inbox
        self._closing = threading.Event()
        self._last = self._last_entry(session)
        self._thread = threading.Thread(target=self._main, name="discreet-store-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. An attempt to connect may take until its time-out: it is not waited for."""
        self._closing.set()
        session = self._session
        if session is not None:
            session.shut_down()
        self._thread.join(WAIT_SECONDS / 2)

    def _main(self) -> None:
        while not self._closing.is_set():
            try:
                if self._session is None:
                    self._reconnect()
                else:
                    self._listen(self._session)
            except (
                redis.RedisError,
                StoreError,
                msgspec.DecodeError,
                ValueError,
            ):  # the last two of what is no entry of ours
                if self._session is not None:
                    self._session.close()
                    self._session = None
        if self._session is not None:
            self._session.close()

    def _reconnect(self) -> None:
        self._inbox.add_everything()
        self._closing.wait(WAIT_SECONDS)
        if not self._closing.is_set():
            session = self._reopen()
            try:
                self._last = self._last_entry(session)
            except BaseException:
                session.close()
                raise
            self._session = session
            self._inbox.add_everything()  # what happened before it listened again, nobody has told

    def _last_entry(self, session: Session) -> int:
        """The number of the last one that was added."""
        return int(session.call("HGET", self._address.key("store"), "wake") or 0)

    def _listen(self, session: Session) -> None:
        wake = self._address.key("wake")
        wait_ms = int(WAIT_SECONDS * 1000)
        reply = session.call("XREAD", "COUNT", READ_ENTRIES, "BLOCK", wait_ms, "STREAMS", wake, f"{self._last}-0")
        if reply is None:
            last = self._last_entry(session)
            if last < self._last:  # the server has forgotten the store, or a part of it
                self._last = last
                self._inbox.add_everything()
            return
        for entry_id, (_, message) in reply[0][1]:
            number = int(entry_id.partition(b"-")[0])
            if number != self._last + 1:
                self._inbox.add_everything()
            self._last = number
            self._tell(message)

    def _tell(self, message: bytes) -> None:
        owner_id, changed, asked, queued = _unpack(message)
        if owner_id != self._owner_id:
            tasks = None if isinstance(changed, bool) else changed
            self._inbox.add(tasks, requests=self._owner_id in asked, queued=queued)
