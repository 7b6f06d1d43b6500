"""Enters what the services declare around the serving, and leaves it at the end. Each service's value is its `ctx.state`.

They run in one task of its own, so that a lifespan may hold a task group. One that is late is entered when the first handler of
its service asks for it, in a task of its own.
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
        declared = [service for service in services if service.lifespan is not None]
        self._services: Final = [service for service in declared if not service.enters_late]
        self._late: Final = {service.namespace: service for service in declared if service.enters_late}
        self._entered_late: dict[str, _Late] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._states: dict[str, Any] = {}
        self._current = ""
        self._failed: Service | None = None
        self._events: tuple[anyio.Event, anyio.Event, anyio.Event] | None = None
        self.fault: BaseException | None = None

    def __bool__(self) -> bool:
        """Whether any service has a lifespan that is not late. Then no request may be read before `entered`."""
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
        """Enter all of them but the late ones, in the order of declaration, in a task of this group."""
        self._tasks = tasks
        if self._services:
            self._events = anyio.Event(), anyio.Event(), anyio.Event()
            tasks.start_soon(self._run, *self._events)

    async def entered(self) -> bool:
        """Wait until all are entered; False where one failed. After `start`."""
        if self._events is not None:
            await self._events[0].wait()
        return self.fault is None

    async def enter_late(self, namespace: str) -> None:
        """Wait until the late lifespan of this namespace's service is entered, if it has one.

        Raises what it raises; the next call tries again.
        """
        service = self._late.get(namespace)
        if service is None:
            return
        late = self._entered_late.get(namespace)
        if late is None:
            assert self._tasks is not None, "handlers run after the start"
            late = self._entered_late[namespace] = _Late(service, anyio.Event(), anyio.Event(), anyio.Event())
            self._tasks.start_soon(self._run_late, late)
        await late.entered.wait()
        if late.fault is not None:
            raise late.fault

    async def leave(self) -> None:
        """Leave them, the last one first, and wait until that is done."""
        for late in [*reversed(self._entered_late.values())]:
            self._current = late.service.namespace
            late.end.set()
            await late.left.wait()
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

    async def _run_late(self, late: _Late) -> None:
        try:
            outcome = await attempt(lambda: _hold_late(late), step="lifespan")
        finally:
            late.left.set()
        if not isinstance(outcome, Raised):
            return
        if late.entered.is_set():
            service = late.service
            log.error("lifespan.failed", service=service.namespace, at=source_of(service.lifespan), exc=outcome.exc)
        else:
            late.fault = outcome.exc
            self._entered_late.pop(late.service.namespace)
            late.entered.set()

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


class _Late:
    """A lifespan that is entered: the events are set when it is, when it is to end, and when it has ended."""

    def __init__(self, service: Service, entered: anyio.Event, end: anyio.Event, left: anyio.Event) -> None:
        self.service: Final = service
        self.entered: Final = entered
        self.end: Final = end
        self.left: Final = left
        self.fault: BaseException | None = None


async def _hold_late(late: _Late) -> None:
    assert late.service.lifespan is not None
    async with late.service.lifespan():
        late.entered.set()
        await late.end.wait()
