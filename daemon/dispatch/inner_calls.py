"""Calls from one operation to another, inside the daemon: the service's own authority, never the caller's.

Such a call is a request like any other, with its own deadline and concurrency group, but its outcome goes to the handler that
made it. It is ended with its parent unless it was told to continue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...errors.failures import (
    Cancelled,
    DomainFailure,
    Failure,
    InsufficientPermissions,
    Internal,
    MethodNotFound,
    OperationTypeMismatch,
)
from ...lazy import anyio
from ..logs import log
from ..logs.logger import bound
from ..operations.context import MOUNT_DEPTH, CallFailed
from ..operations.identity import Identity
from ..operations.request import ContextBackend, EventSink, Outcome, Request

if TYPE_CHECKING:
    from ..operations.params import Arguments
    from ..operations.registry import Registry
    from ..operations.request import Rendering
    from ..operations.spec import OperationSpec
    from ..tracing import Tracing
    from .scheduler import Scheduler


CHAIN_ENDS: Final = 4
"""How many operations of a chain that is too deep the log names at either end."""


@final
class InnerCalls:
    """Makes calls between operations, on the loop's thread."""

    def __init__(self, scheduler: Scheduler, max_depth: int, tracing: Tracing | None = None) -> None:
        self._scheduler = scheduler
        self._max_depth = max_depth
        self._tracing = tracing

    async def call(self, spec: OperationSpec, params: object, parent: Request, *, continue_running: bool) -> bytes:
        """The result as JSON text. Raises the operation's own `OperationError`, or `CallFailed`: also where calls are nested
        deeper than `max_depth`.

        Cancelling it ends the operation too, unless that may continue running.
        """
        came_through = parent.metadata.get(MOUNT_DEPTH)
        metadata = {} if came_through is None else {MOUNT_DEPTH: came_through}
        request = Request(spec.name, None, Raw(msgspec.json.encode(params)), metadata, spec=spec, origin=bound())
        request.context_backend = parent.context_backend
        request.identity = authority_of(parent.spec)
        request.depth = parent.depth + 1
        if request.depth > self._max_depth:
            log.error("call.too_deep", method=spec.name, depth=self._max_depth, chain=_chain(parent))
            raise CallFailed(Internal())
        if continue_running:
            outcome = await self._outcome(request, None, continue_running=True)
        else:
            request.parent = parent
            parent.adopt(request)
            try:
                outcome = await self._outcome(request, None, continue_running=False)
            finally:
                parent.release(request)
        if isinstance(outcome, bytes):
            return outcome
        raise _exception(outcome, spec)

    async def run(  # noqa: PLR0913 - what a call consists of
        self,
        spec: OperationSpec,
        params: bytes,
        arguments: Arguments,
        *,
        metadata: Mapping[str, str],
        identity: Identity | None = None,
        sink: EventSink | None,
        context_backend: ContextBackend,
        progress_token: str | int | UnsetType | None = UNSET,
        rendering: Rendering | None = None,
    ) -> Outcome:
        """The outcome of an operation that the daemon runs for its caller, whose metadata travel with it. `params` is the JSON
        text of which the operation's input has made the `arguments`.

        `rendering` is what its log messages are written by; its outcome is not written here.

        Access is to be checked before. `identity` is the caller, where that is known already. The events of a subscription go
        to `sink`. Cancelling it ends the operation.
        """
        request = Request(
            spec.name,
            None,
            Raw(params),
            dict(metadata),
            spec=spec,
            context_backend=context_backend,
            rendering=rendering,
            progress_token=progress_token,
            arguments=arguments,
            identity=identity,
            origin=bound(),
        )
        return await self._outcome(request, sink, continue_running=False)

    async def _outcome(self, request: Request, sink: EventSink | None, *, continue_running: bool) -> Outcome:
        waiter = _Waiter(sink)
        if self._tracing is not None:
            request.span = self._tracing.inner_call(request.name)
        try:
            self._scheduler.submit_inner(request, waiter)
            return await waiter.outcome()
        except BaseException:
            if not continue_running:
                request.end(Cancelled())
            raise


@final
class _Waiter:
    """The handler that waits for a call which it made."""

    def __init__(self, sink: EventSink | None) -> None:
        self._sink = sink
        self._outcome: Outcome | None = None
        self._delivered: anyio.Event | None = None

    def deliver(self, request: Request, outcome: Outcome) -> None:
        self._outcome = outcome
        if request.span is not None:
            request.span.end(None if isinstance(outcome, bytes) else outcome)
        if self._delivered is not None:
            self._delivered.set()

    def sink_of(self, request: Request) -> EventSink:
        assert self._sink is not None, "only an agent runs subscriptions"
        return self._sink

    async def outcome(self) -> Outcome:
        if self._outcome is None:
            self._delivered = anyio.Event()
            await self._delivered.wait()
        assert self._outcome is not None
        return self._outcome


def target_of(registry: Registry, caller: OperationSpec, name: str) -> OperationSpec:
    """The operation that `caller` may call by this name. Raises `CallFailed` for any other."""
    name = name.removeprefix("/")
    if name not in caller.uses:
        log.error("call.undeclared", method=caller.name, called=name, hint="its service must declare it in uses=[…]")
        raise CallFailed(MethodNotFound())
    spec = registry.get(name)
    if spec is None:
        raise CallFailed(MethodNotFound())
    if spec.kind == "subscription":
        raise CallFailed(OperationTypeMismatch())
    if not spec.access.allows(authority_of(caller)):
        raise CallFailed(InsufficientPermissions())
    return spec


def authority_of(caller: OperationSpec) -> Identity:
    """Return the identity of an operation that calls another one: its service, with the service's own authority as scopes."""
    return Identity(caller.namespace, caller.authority)


def _chain(request: Request) -> str:
    """The operations that wait for each other, outermost first, with those in the middle left out."""
    names: list[str] = []
    caller: Request | None = request
    while caller is not None:
        names.append(caller.name)
        caller = caller.parent
    names.reverse()
    if len(names) > 2 * CHAIN_ENDS:
        names[CHAIN_ENDS:-CHAIN_ENDS] = ["…"]
    return " → ".join(names)


def _exception(failure: Failure, spec: OperationSpec) -> Exception:
    """Return the exception for the calling handler: the declared error itself where the operation raised one."""
    if isinstance(failure, DomainFailure):
        for cls in spec.errors:
            if cls.definition.code == failure.code:
                return cls.from_failure(failure)
    return CallFailed(failure)
