"""What a developer may put around every call of an agent's methods: the `Interceptor` Protocol and what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import msgspec

from ...errors.failures import Failure
from ..operations.access import Identity


class AgentCall(msgspec.Struct, frozen=True):
    """A call of one of the agent's methods. `service_params` may hold credentials: don't log them.

    `task_id` is None where the call names no task.
    """

    method: str
    version: str
    identity: Identity | None
    service_params: Mapping[str, str]
    task_id: str | None = None


Outcome: TypeAlias = Failure | None
"""Why a call failed; None where it succeeded."""


class Interceptor(Protocol):
    """Runs around every call of the agent's methods: `before` in the order of the declaration, `after` in reverse."""

    async def before(self, call: AgentCall) -> None:
        """Raise a declared error, or `FailureError`, to refuse the call."""
        ...

    async def after(self, call: AgentCall, outcome: Outcome) -> None:
        """Called for every call whose `before` has returned, also when another interceptor refused it or it was cancelled.

        For a stream it is called at the end. Its own exceptions are logged and change nothing.
        """
        ...
