"""Notes which operations ran and which errors they raised, wherever the calls came from. Changes nothing of either."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import msgspec

from ..daemon.operations.decoders import Arguments
from ..daemon.operations.service import Service
from ..daemon.operations.spec import OperationSpec
from ..errors.exceptions import OperationError
from ..errors.failures import DomainFailure
from ..errors.wire import failure_of


@final
class ContractRecorder:
    """What was seen of the services that came out of `recorded`.

    `exercised` holds the names of operations whose handlers ran, `raised` the declared errors that left them as
    declared, `undeclared` those that their operations do not declare, `unfit` those with facts of other types.
    Errors are pairs of an operation's name and a code.
    """

    def __init__(self) -> None:
        self.exercised: set[str] = set()
        self.raised: set[tuple[str, str]] = set()
        self.undeclared: set[tuple[str, str]] = set()
        self.unfit: set[tuple[str, str]] = set()

    def recorded(self, service: Service) -> Service:
        """The same service, observed."""
        twin = Service(
            service.namespace,
            description=service.description,
            uses=tuple(service.uses),
            authority=tuple(service.authority),
            capabilities=tuple(service.capabilities),
        )
        twin.operations.extend(
            msgspec.structs.replace(spec, invoke=self._observed(spec)) for spec in service.operations
        )
        return twin

    def _observed(self, spec: OperationSpec) -> Callable[[Any, Arguments], Any]:
        def call(ctx: Any, values: Arguments) -> Any:
            with self._noting(spec):
                return spec.invoke(ctx, values)

        async def wait(ctx: Any, values: Arguments) -> Any:
            with self._noting(spec):
                return await spec.invoke(ctx, values)

        async def stream(ctx: Any, values: Arguments) -> AsyncGenerator[Any]:
            with self._noting(spec):
                events = spec.invoke(ctx, values)
                try:
                    async for event in events:
                        yield event
                finally:
                    await events.aclose()

        match spec.mode:
            case "inline" | "thread" | "forward":
                return call
            case "async":
                return wait
            case "stream":
                return stream

    @contextmanager
    def _noting(self, spec: OperationSpec) -> Iterator[None]:
        self.exercised.add(spec.name)
        try:
            yield
        except (OperationError, BaseExceptionGroup) as exc:
            self._note(spec, exc)
            raise

    def _note(self, spec: OperationSpec, exc: BaseException) -> None:
        while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
            exc = exc.exceptions[0]  # a group of exactly one is that one, to the daemon as well
        if not isinstance(exc, OperationError):
            return
        own = spec.name, exc.definition.code
        try:
            failure = failure_of(exc, spec.errors)
        except (msgspec.ValidationError, TypeError):
            self.unfit.add(own)
            return
        if isinstance(failure, DomainFailure):
            self.raised.update((spec.name, cls.definition.code) for cls in spec.errors if isinstance(exc, cls))
        else:
            self.undeclared.add(own)
