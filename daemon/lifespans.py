"""Enters what the services declare around the serving, and leaves it at the end. Each service's value is its `ctx.state`.

Each is held by a task of its own, so that it may hold a task group. One that is late is entered when the first handler of its
service asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, final

from ..lazy import anyio
from .dispatch.execution import Raised, attempt
from .logs import log
from .operations.service import source_of

if TYPE_CHECKING:
    from .operations.service import Service


@final
class _Held:
    """A lifespan: the events are set when it is entered or has failed before, when it is to end, and when it has ended."""

    def __init__(self, service: Service) -> None:
        self.service: Final = service
        self.entered, self.end, self.left = anyio.Event(), anyio.Event(), anyio.Event()
        self.fault: BaseException | None = None


@final
class Lifespans:
    """One per process. `fault` is what the lifespan of `failed` raised before the serving began; then nothing can be served.

    `leaving` is the namespace of the service whose lifespan was left last.
    """

    def __init__(self, services: Sequence[Service]) -> None:
        declared = [service for service in services if service.lifespan is not None]
        self._services: Final = [service for service in declared if not service.enters_late]
        self._late: Final = {service.namespace: service for service in declared if service.enters_late}
        self._entered_late: dict[str, _Held] = {}
        self._held: list[_Held] = []
        self._tasks: anyio.abc.TaskGroup | None = None
        self._states: dict[str, Any] = {}
        self._entered: anyio.Event | None = None
        self._ending = False
        self.leaving = ""
        self.failed: Service | None = None
        self.fault: BaseException | None = None

    def __bool__(self) -> bool:
        """Whether any service has a lifespan that is not late. Then no request may be read before `entered`."""
        return bool(self._services)

    def state_of(self, namespace: str) -> Any:
        """Return the value that the lifespan of this namespace's service yielded; None if it has none."""
        return self._states.get(namespace)

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Enter all of them but the late ones, in the order of declaration, in tasks of this group."""
        self._tasks = tasks
        if self._services:
            self._entered = anyio.Event()
            tasks.start_soon(self._enter_all, self._entered)

    async def _enter_all(self, entered: anyio.Event) -> None:
        for service in self._services:
            if self._ending:
                break
            held = self._begin(service)
            await held.entered.wait()
            if held.fault is not None:
                self.failed, self.fault = service, held.fault
                break
        entered.set()

    def _begin(self, service: Service) -> _Held:
        assert self._tasks is not None, "handlers run after the start"
        held = _Held(service)
        self._held.append(held)
        self._tasks.start_soon(self._hold, held)
        return held

    async def entered(self) -> bool:
        """Wait until all are entered; False where one failed. After `start`."""
        if self._entered is not None:
            await self._entered.wait()
        return self.fault is None

    async def enter_late(self, namespace: str) -> None:
        """Wait until the late lifespan of this namespace's service is entered, if it has one.

        Raises what it raises; the next call tries again.
        """
        service = self._late.get(namespace)
        if service is None:
            return
        held = self._entered_late.get(namespace)
        if held is None:
            held = self._entered_late[namespace] = self._begin(service)
        await held.entered.wait()
        if held.fault is not None:
            if self._entered_late.get(namespace) is held:
                del self._entered_late[namespace]
            raise held.fault

    async def leave(self) -> None:
        """Leave them, the last one first, and wait until that is done."""
        self._ending = True
        for held in reversed(self._held):
            self.leaving = held.service.namespace
            held.end.set()
            await held.left.wait()

    async def _hold(self, held: _Held) -> None:
        try:
            outcome = await attempt(lambda: self._run(held), step="lifespan")
        finally:
            held.left.set()
        if not isinstance(outcome, Raised):
            return
        if held.entered.is_set():
            service = held.service
            log.error("lifespan.failed", service=service.namespace, at=source_of(service.lifespan), exc=outcome.exc)
        else:
            held.fault = outcome.exc
            held.entered.set()

    async def _run(self, held: _Held) -> None:
        assert held.service.lifespan is not None
        async with held.service.lifespan() as state:
            self._states[held.service.namespace] = state
            held.entered.set()
            await held.end.wait()
