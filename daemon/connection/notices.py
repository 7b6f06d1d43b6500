"""Notifications that handlers send, from the loop or from worker threads. A client that does not read slows them down."""

from __future__ import annotations

import threading
from _thread import get_ident
from collections.abc import Generator
from typing import Any, Final, final

from ..dispatch.thread_pool import ThreadPool
from .writer import Writer

MAX_UNSENT: Final = 64
"""Notifications of all worker threads that may be unsent before the next one waits."""


@final
class UntilRoom:
    """Awaiting it waits until the client has read enough; it returns at once if the client keeps up."""

    __slots__ = ("_writer",)

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def __await__(self) -> Generator[Any, Any, None]:
        return self._writer.wait_for_room().__await__()


@final
class Notices:
    """`send` may be called on the thread that made this object (the loop's) and in worker threads."""

    def __init__(self, writer: Writer, threads: ThreadPool) -> None:
        self._writer = writer
        self._threads = threads
        self._loop_thread = get_ident()
        self._places = threading.Semaphore(MAX_UNSENT)
        self._taken = 0

    def send(self, body: bytes) -> UntilRoom:
        """Post one message. On the loop it returns at once; a worker thread waits while the client does not read."""
        if get_ident() == self._loop_thread:
            self._writer.post(body)
            self._writer.flush()
        else:
            self._places.acquire()
            self._threads.call_on_loop(self._post, body)
        return UntilRoom(self._writer)

    def _post(self, body: bytes) -> None:
        self._writer.post(body)
        self._taken += 1
        self.give_room()

    def give_room(self) -> None:
        """The client may have read: let waiting threads go on."""
        if self._taken and not self._writer.congested:
            self._places.release(self._taken)
            self._taken = 0
