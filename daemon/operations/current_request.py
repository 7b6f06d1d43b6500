"""The request that a handler runs for, its operation and its call, as far as contexts and calls between operations need them.
Runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ...errors.failures import Failure

if TYPE_CHECKING:
    import threading

    from .identity import Identity


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
    def call(self) -> IncomingCall: ...
    @property
    def depth(self) -> int: ...
    @property
    def name(self) -> str: ...
    def adopt(self, child: Endable) -> None: ...
    def release(self, child: Endable) -> None: ...
    def stop_event(self) -> threading.Event: ...


class Caller(Protocol):
    """The operation whose handler a context belongs to, and what its service may call."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uses(self) -> frozenset[str]: ...
    @property
    def authority(self) -> frozenset[str]: ...


class IncomingCall(Protocol):
    """What the caller sent: `id` and `params` are JSON texts, None where there are none. `progress_token` is UNSET where it
    stands in the params.
    """

    @property
    def id(self) -> bytes | None: ...
    @property
    def params(self) -> msgspec.Raw | None: ...
    @property
    def progress_token(self) -> str | int | None | msgspec.UnsetType: ...

    task: str | None

    @property
    def metadata(self) -> dict[str, str]: ...
    @property
    def rendering(self) -> Any: ...  # a `rpc.envelope.Rendering`, which operations know nothing of
