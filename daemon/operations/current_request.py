"""The request that a handler runs for, as far as contexts and calls between operations need it. Runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ...errors.failures import Failure

if TYPE_CHECKING:
    import threading

    from .access import Identity


class Endable(Protocol):
    """What ends with a request: a call to another operation, or what its thread waits for."""

    def end(self, failure: Failure) -> None: ...


class CurrentRequest(Protocol):
    """The request that a handler runs for."""

    ended_by: Failure | None
    identity: Identity | None
    deadline: float | None
    group: object
    parent: CurrentRequest | None

    @property
    def depth(self) -> int: ...
    @property
    def name(self) -> str: ...
    def adopt(self, child: Endable) -> None: ...
    def release(self, child: Endable) -> None: ...
    def stop_event(self) -> threading.Event: ...
