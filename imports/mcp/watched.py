"""Holds the resources of a server whose updates clients want to hear of. Asks no server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, final

from ...lazy import anyio

ANSWER_SECONDS: Final = 10.0
"""How long a client that subscribes waits for the server's answer."""


@final
class WatchedResources:
    """The URIs, as the server has them, each for as many as watch it. `held` is whether a session was told of any before."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._tell: Callable[[str], object] = lambda _: None
        self._changed: anyio.Event | None = None
        self.held = False
        self._answered: dict[str, bytes | None] = {}
        self._subscribes = False

    @property
    def uris(self) -> frozenset[str]:
        """Return the URIs that are watched now."""
        return frozenset(self._counts)

    def watch(self, uri: str, tell: Callable[[str], object]) -> None:
        """From now on `tell(uri)` is called after each update. A daemon has one `tell` for all its clients."""
        self._tell = tell
        self._counts[uri] += 1
        self._announce()

    def leave(self, uri: str) -> None:
        """One fewer watches it."""
        self._counts[uri] -= 1
        if self._counts[uri] <= 0:
            del self._counts[uri]
            self._announce()

    @contextmanager
    def subscribing(self) -> Iterator[None]:
        """A session subscribes to each of them during the block, and notes the answers."""
        self._subscribes = True
        try:
            yield
        finally:
            self._subscribes = False
            self._answered.clear()
            self._announce()

    def note_answer(self, uri: str, error: bytes | None) -> None:
        """The server has answered the subscription to a resource, with this error or without one."""
        self._answered[uri] = error
        self._announce()

    def drop_answers(self, uris: Iterable[str]) -> None:
        """The session does not subscribe to these any more."""
        for uri in uris:
            self._answered.pop(uri, None)

    async def refusal(self, uri: str) -> bytes | None:
        """Wait for the answer, for at most `ANSWER_SECONDS`, and return its error. None at once where no session subscribes."""
        with anyio.move_on_after(ANSWER_SECONDS):
            while self._subscribes and uri in self._counts and uri not in self._answered:
                await self._next_change()
        return self._answered.get(uri)

    def note_update(self, uri: str) -> None:
        """The server says that it has changed."""
        if uri in self._counts:
            self._tell(uri)

    def note_gap(self) -> None:
        """Updates of all of them may have been missed."""
        for uri in self.uris:
            self._tell(uri)

    async def changed_from(self, uris: frozenset[str]) -> frozenset[str]:
        """Wait until other URIs than these are watched, and return them."""
        while self.uris == uris:
            await self._next_change()
        return self.uris

    async def _next_change(self) -> None:
        self._changed = self._changed or anyio.Event()
        await self._changed.wait()

    def _announce(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
