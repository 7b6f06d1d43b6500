"""Calls from one operation to another, inside the daemon: the service's own authority, never the caller's.

A composed call is a request like any other, with its own deadline and lane, but it answers to the handler that made it.
It is ended with its parent unless it was told to continue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, final

import msgspec
from msgspec import Raw

from ...errors.failures import (
    Cancelled,
    DomainFailure,
    Failure,
    InsufficientPermissions,
    MethodNotFound,
    OperationTypeMismatch,
)
from ..operations.access import Identity
from ..operations.context import CallFailed
from ..rpc.envelope import Call
from .request import Request

if TYPE_CHECKING:
    from ..connection.streams import Sink
    from ..operations.registry import Registry
    from ..operations.spec import OperationSpec
    from .dispatcher import Dispatcher
    from .execution import Outcome


@final
class InnerCalls:
    """Makes composed calls, on the loop's thread."""

    def __init__(self, registry: Registry, dispatcher: Dispatcher) -> None:
        self._registry = registry
        self._dispatcher = dispatcher

    async def call(
        self, caller: OperationSpec, parent: Request | None, name: str, params: object, *, continue_running: bool
    ) -> bytes:
        """The result as JSON text. Raises the callee's own `OperationError`, or `CallFailed`.

        Cancelling it ends the callee too, unless that may continue running.
        """
        spec = self._target(caller, name)
        child = Request(Call(spec.name, None, Raw(msgspec.json.encode(params)), {}), spec)
        if parent is not None and not continue_running:
            child.parent = parent
            parent.adopt(child)
        try:
            outcome = await self._outcome(child, continue_running=continue_running)
        finally:
            if parent is not None and not continue_running:
                parent.release(child)
        if isinstance(outcome, bytes):
            return outcome
        raise _exception(outcome, spec)

    async def run(self, spec: OperationSpec, params: bytes, metadata: Mapping[str, str], sink: Sink | None) -> Outcome:
        """The outcome of an operation that an agent runs for its caller, whose metadata travel with it.

        Access is the agent's to check. The events of a subscription go to `sink`. Cancelling it ends the operation.
        """
        child = Request(Call(spec.name, None, Raw(params), dict(metadata)), spec)
        child.sink = sink
        return await self._outcome(child, continue_running=False)

    async def _outcome(self, child: Request, *, continue_running: bool) -> Outcome:
        import anyio  # late: the first replies leave without an event loop

        done = anyio.Event()
        outcomes: list[Outcome] = []

        def on_done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            done.set()

        child.on_done = on_done
        try:
            self._dispatcher.call(child)
            await done.wait()
        except BaseException:
            if not continue_running:
                child.end(Cancelled())
            raise
        return outcomes[0]

    def _target(self, caller: OperationSpec, name: str) -> OperationSpec:
        name = name.removeprefix("/")
        if name not in caller.uses:
            raise RuntimeError(f"{caller.name} calls {name}, which its service does not declare in uses=[…]")
        spec = self._registry.get(name)
        if spec is None:
            raise CallFailed(MethodNotFound())
        if spec.kind == "subscription":
            raise CallFailed(OperationTypeMismatch())
        if not spec.access.allows(Identity(caller.namespace, caller.authority)):
            raise CallFailed(InsufficientPermissions())
        return spec


def _exception(failure: Failure, spec: OperationSpec) -> Exception:
    """What the calling handler catches: the declared error itself where the callee raised one."""
    if isinstance(failure, DomainFailure):
        for cls in spec.errors:
            if cls.definition.code == failure.code:
                facts = msgspec.json.decode(failure.details or b"{}", type=cls.definition.details)
                return cls(**msgspec.structs.asdict(facts))
    return CallFailed(failure)
