"""What a developer may put around every call of an agent's methods: the `Interceptor` Protocol and what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import msgspec

from ..daemon.operations.identity import Identity
from ..errors.failures import Failure


class AgentCall(msgspec.Struct, frozen=True):
    """A call of one of the agent's methods. `service_params` may hold credentials: don't log them.

    `task_id` is None where the call names no task. `params` are the same struct in every version of A2A: a `SendRequest`, or
    one with `task_id`, `config_id` or `query`; None for the card. An interceptor can't change them.
    """

    method: str
    version: str
    identity: Identity | None
    service_params: Mapping[str, str]
    task_id: str | None = None
    params: object = None


class CallResult(msgspec.Struct, frozen=True):
    """A call succeeded. `result` is a `Task`, a `Message`, a page of tasks, a push config, several of these, or a card; None for
    a stream, whose items were sent as they came, and where a config was deleted."""

    result: object = None


Outcome: TypeAlias = Failure | CallResult
"""How a call ended. A caller has read the result of one that succeeded: nothing here changes it."""


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
