"""What daemons tell each other of their commits: the text of one notification for each, and what of it was heard and not yet
taken. Sends nothing and reads no task.

A notification names the tasks by short hashes, as it holds few bytes. Two tasks with one hash are both taken for changed.
"""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Final, final

from .....lazy import anyio
from ..interface import Changes
from .rows import to_text

MAX_PAYLOAD: Final = 7999
"""Bytes of a notification that PostgreSQL takes."""

MAX_HEARD: Final = 65536
"""Hashes that are collected before all tasks count as changed."""

_HASH_BYTES: Final = 6
_HASH_LENGTH: Final = 8  # in base64
_SEPARATOR: Final = ":"
_EVERY_TASK: Final = "*"
_REQUESTS: Final = "r"
_QUEUED: Final = "q"


def _hash_of(text: str) -> str:
    return b64encode(blake2b(text.encode(), digest_size=_HASH_BYTES).digest()).decode()


@lru_cache(maxsize=16_384)
def _hash_of_task(task_id: str) -> str:
    """The same for a task that is followed here: asked for with each notification."""
    return _hash_of(to_text(task_id))


@final
class Notice:
    """What one transaction has changed. `task_ids` are texts as in the database."""

    def __init__(self) -> None:
        self.task_ids: set[str] = set()
        self.requests = False
        self.queued = False

    def payload(self, base: str) -> str | None:
        """The notification of the daemon whose names begin with `base`; None where nothing has changed."""
        if not (self.task_ids or self.requests or self.queued):
            return None
        flags = _REQUESTS * self.requests + _QUEUED * self.queued
        room = MAX_PAYLOAD - len(base) - len(flags) - 2 * len(_SEPARATOR)
        fits = len(self.task_ids) * _HASH_LENGTH <= room
        return _SEPARATOR.join((base, flags, "".join(map(_hash_of, self.task_ids)) if fits else _EVERY_TASK))


@final
class Inbox:
    """Filled by one thread, and waited for and emptied on the event loop. `base` begins the names of this daemon, whose own
    commits are left out."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._lock = threading.Lock()
        self._hashes: set[str] = set()
        self._everything = self._requests = self._queued = False
        self._call_on_loop: Callable[[Callable[[], None]], None] | None = None
        self._waiting: anyio.Event | None = None

    def attach(self, call_on_loop: Callable[[Callable[[], None]], None]) -> None:
        """Wake whoever waits on the event loop that runs what is handed to this function."""
        self._call_on_loop = call_on_loop

    # -- from any thread ---------------------------------------------------------------------------------------

    def add(self, payload: str) -> None:
        """What a notification said. One that no daemon of this version has sent may mean anything."""
        base, _, rest = payload.partition(_SEPARATOR)
        if base == self._base:
            return
        flags, separator, hashes = rest.partition(_SEPARATOR)
        if not separator or hashes == _EVERY_TASK or len(hashes) % _HASH_LENGTH:
            return self._add(
                set(),
                everything=True,
                requests=not separator or _REQUESTS in flags,
                queued=not separator or _QUEUED in flags,
            )
        found = {hashes[at : at + _HASH_LENGTH] for at in range(0, len(hashes), _HASH_LENGTH)}
        self._add(found, everything=False, requests=_REQUESTS in flags, queued=_QUEUED in flags)

    def add_everything(self) -> None:
        """Anything may have happened."""
        self._add(set(), everything=True, requests=True, queued=True)

    def _add(self, hashes: set[str], *, everything: bool, requests: bool, queued: bool) -> None:
        with self._lock:
            is_first = not self._has_news()
            self._hashes |= hashes
            self._everything = self._everything or everything or len(self._hashes) > MAX_HEARD
            if self._everything:
                self._hashes.clear()
            self._requests = self._requests or requests
            self._queued = self._queued or queued
        if is_first and self._call_on_loop is not None:  # else it was woken, and has not come yet
            self._call_on_loop(self._wake)

    def _has_news(self) -> bool:
        return bool(self._everything or self._hashes or self._requests or self._queued)

    # -- on the event loop -------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.set()

    async def wait(self) -> Changes:
        """What was heard since this last returned. Where it is cancelled, that is kept."""
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
            hashes, everything = frozenset(self._hashes), self._everything
            changes = Changes(
                lambda task_id: everything or _hash_of_task(task_id) in hashes, self._requests, self._queued
            )
            self._hashes.clear()
            self._everything = self._requests = self._queued = False
        return changes
