"""How a watch waits for the next look: by the clock, or until the system tells of a change (the extra `watch`).

What the system tells is a hint and no more: it is never passed on, and without one a look follows all the same, later.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from time import monotonic
from typing import Any, Protocol, TypeAlias, final  # Any: watchfiles may not be installed

Names: TypeAlias = tuple[str, ...]

UNTOLD_SECONDS = 10.0
"""A look follows after so long even if the system told nothing: network file systems tell nothing at all."""


class Waiting(Protocol):
    """One per watch."""

    async def watch(self, directories: frozenset[Names]) -> None:
        """Changes of the entries of these directories, given by their names below the root, count from now on."""
        ...

    async def wait(self, interval: float) -> None:
        """Return when it is time to look again, `interval` seconds from now or later."""
        ...

    async def close(self) -> None: ...


def best_waiting(root: str) -> Waiting:
    """The better of the two ways that this installation has. `root` is the root's path."""
    from importlib.util import find_spec  # late: only a watch needs it

    return Notified(root) if find_spec("watchfiles") else Polled(root)


@final
class Polled:
    """Looks again after every interval."""

    def __init__(self, root: str) -> None:
        pass

    async def watch(self, directories: frozenset[Names]) -> None:
        pass

    async def wait(self, interval: float) -> None:
        import anyio  # late: the first replies leave without an event loop

        await anyio.sleep(interval)

    async def close(self) -> None:
        pass


@final
class Notified:
    """Looks again when the system has told of a change.

    Each directory is named by itself, and none recursively: `watchfiles` would follow symbolic links out of the root.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._directories: frozenset[Names] = frozenset()
        self._hints: AsyncGenerator[set[Any], None] | None = None
        self._fresh = False  # new watches stand, and something may have changed before they did

    async def watch(self, directories: frozenset[Names]) -> None:
        if directories == self._directories:
            return
        await self.close()
        self._directories = directories
        await self._next()  # the watches stand when the first hint, or its absence, has come
        self._fresh = True

    async def wait(self, interval: float) -> None:
        import anyio  # late: the first replies leave without an event loop

        due = monotonic() + interval
        at_last = monotonic() + (0 if self._fresh else max(UNTOLD_SECONDS, interval))
        self._fresh = False
        while not await self._next() and monotonic() < at_last:
            pass
        await anyio.sleep(max(0.0, due - monotonic()))

    async def close(self) -> None:
        if self._hints is not None:
            await self._hints.aclose()
            self._hints = None

    async def _next(self) -> bool:
        """Whether a change was told of, now or within a fifth of a second."""
        if self._hints is None:
            self._hints = self._open()
        try:
            return bool(await anext(self._hints))
        except (OSError, RuntimeError, ExceptionGroup):  # a directory has gone, or the system has no watches left
            await self.close()
            self._directories = frozenset()  # they are tried anew after the next look, which comes as if polled
            return True

    def _open(self) -> AsyncGenerator[set[Any], None]:
        from importlib import import_module  # late, and by name: an extra, unknown to type checkers without it

        awatch: Callable[..., AsyncGenerator[set[Any], None]] = import_module("watchfiles").awatch
        return awatch(
            *(os.path.join(self._root, *names) for names in self._directories),
            watch_filter=None,
            debounce=50,
            step=20,
            rust_timeout=200,
            yield_on_timeout=True,
            recursive=False,
            ignore_permission_denied=True,
        )
