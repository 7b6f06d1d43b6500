"""Observes which operations run and which errors they raise, in calls from clients and from other operations. Changes neither."""

from __future__ import annotations

import copy
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
class OperationObserver:
    """What was seen of the services that `observed` returned.

    `exercised` holds the names of operations whose handlers ran. The others hold errors, as pairs of an operation's name
    and a code: `raised` were raised as declared, `undeclared` are not declared by their operation, `invalid_details` have
    details of other types than declared.
    """

    def __init__(self) -> None:
        self.exercised: set[str] = set()
        self.raised: set[tuple[str, str]] = set()
        self.undeclared: set[tuple[str, str]] = set()
        self.invalid_details: set[tuple[str, str]] = set()

    def observed(self, service: Service) -> Service:
        """Return a copy of the service whose handlers are observed. The service itself is not changed."""
        twin = copy.copy(service)
        twin.operations = [
            msgspec.structs.replace(spec, invoke=self._observed_handler(spec)) for spec in service.operations
        ]
        return twin

    def _observed_handler(self, spec: OperationSpec) -> Callable[[Any, Arguments], Any]:
        def call(ctx: Any, values: Arguments) -> Any:
            with self._observing(spec):
                return spec.invoke(ctx, values)

        async def wait(ctx: Any, values: Arguments) -> Any:
            with self._observing(spec):
                return await spec.invoke(ctx, values)

        async def stream(ctx: Any, values: Arguments) -> AsyncGenerator[Any]:
            with self._observing(spec):
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
    def _observing(self, spec: OperationSpec) -> Iterator[None]:
        self.exercised.add(spec.name)
        try:
            yield
        except (OperationError, BaseExceptionGroup) as exc:
            self._record(spec, exc)
            raise

    def _record(self, spec: OperationSpec, exc: BaseException) -> None:
        while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
            exc = exc.exceptions[0]  # the daemon, too, treats a group of exactly one as that one
        if not isinstance(exc, OperationError):
            return
        error = spec.name, exc.definition.code
        try:
            failure = failure_of(exc, spec.errors)
        except (msgspec.ValidationError, TypeError):
            self.invalid_details.add(error)
            return
        if isinstance(failure, DomainFailure):
            self.raised.update((spec.name, cls.definition.code) for cls in spec.errors if isinstance(exc, cls))
        else:
            self.undeclared.add(error)
