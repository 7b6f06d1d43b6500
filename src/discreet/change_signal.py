"""An event that may be set again and again. Holds nothing of what has changed."""

from __future__ import annotations

from typing import final

from .lazy import anyio


@final
class ChangeSignal:
    """Wakes everybody who waits for something to change."""

    __slots__ = ("_changed",)

    def __init__(self) -> None:
        self._changed: anyio.Event | None = None

    def notify(self) -> None:
        """Wake everybody in `wait`."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def wait(self) -> None:
        """Wait for the next `notify`."""
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()
