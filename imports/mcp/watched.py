"""Holds the resources of a server whose updates clients want to hear of. Asks no server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import final

from ...lazy import anyio


@final
class WatchedResources:
    """The URIs, as the server has them, each for as many as watch it. `held` is whether a session was told of any before."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._tell: Callable[[str], object] = lambda _: None
        self._changed: anyio.Event | None = None
        self.held = False

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
            self._changed = self._changed or anyio.Event()
            await self._changed.wait()
        return self.uris

    def _announce(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
