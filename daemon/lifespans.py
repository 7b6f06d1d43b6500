"""Enters what the services declare around the serving, and leaves it at the end. Each service's value is its `ctx.state`.

Everything runs in one task of its own, so that a lifespan may hold a task group.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, final

from ..lazy import anyio
from .dispatch.execution import Raised, attempt
from .logs import log
from .operations.service import source_of

if TYPE_CHECKING:
    from .operations.service import Service


@final
class Lifespans:
    """One per process. `fault` is what a lifespan raised before the serving began; then nothing can be served."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services: Final = [service for service in services if service.lifespan is not None]
        self._states: dict[str, Any] = {}
        self._current = ""
        self._failed: Service | None = None
        self._events: tuple[anyio.Event, anyio.Event, anyio.Event] | None = None
        self.fault: BaseException | None = None

    def __bool__(self) -> bool:
        """Whether any service has a lifespan. Then no request may be read before `entered`."""
        return bool(self._services)

    @property
    def failed(self) -> Service | None:
        """The service whose lifespan raised first."""
        return self._failed

    @property
    def leaving(self) -> str:
        """The namespace of the service whose lifespan was entered or left last."""
        return self._current

    def state_of(self, namespace: str) -> Any:
        """What the lifespan of this namespace's service yielded; None where it has none."""
        return self._states.get(namespace)

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Enter all of them, in the order of declaration, in a task of this group."""
        if self._services:
            self._events = anyio.Event(), anyio.Event(), anyio.Event()
            tasks.start_soon(self._run, *self._events)

    async def entered(self) -> bool:
        """Wait until all are entered; False where one failed. After `start`."""
        if self._events is not None:
            await self._events[0].wait()
        return self.fault is None

    async def leave(self) -> None:
        """Leave them, the last one first, and wait until that is done."""
        if self._events is not None:
            _, end, left = self._events
            end.set()
            await left.wait()

    async def _run(self, entered: anyio.Event, end: anyio.Event, left: anyio.Event) -> None:
        try:
            outcome = await attempt(lambda: self._hold(entered, end), step="lifespan")
        finally:
            left.set()
        if not isinstance(outcome, Raised):
            return
        if entered.is_set():
            service, at = (
                ("", "") if self._failed is None else (self._failed.namespace, source_of(self._failed.lifespan))
            )
            log.error("lifespan.failed", service=service, at=at, exc=outcome.exc)
        else:
            self.fault = outcome.exc
            entered.set()

    async def _hold(self, entered: anyio.Event, end: anyio.Event) -> None:
        async with AsyncExitStack() as stack:
            for service in self._services:
                self._states[service.namespace] = await stack.enter_async_context(self._held(service))
            entered.set()
            await end.wait()

    @asynccontextmanager
    async def _held(self, service: Service) -> AsyncIterator[Any]:
        """One lifespan, from its entry to its end."""
        assert service.lifespan is not None
        self._current = service.namespace
        try:
            async with service.lifespan() as state:
                yield state
                self._current = service.namespace
        except BaseException:
            self._failed = self._failed or service
            raise
