"""Calls that raise declared errors as the classes that declare them. Generated clients are built on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, final

import msgspec
from msgspec import UNSET, UnsetType

from ..errors.exceptions import OperationError
from .errors import DeclaredErrors, OperationFailed
from .peer import Peer
from .subscription import Subscription

T = TypeVar("T")


@final
class Caller:
    """A peer with the options that all calls of one client share.

    `timeout` is in seconds per call (None: no limit; left out: the peer's default). `service_params` go with every request.
    Params that are `UNSET` are left out.
    """

    def __init__(
        self,
        peer: Peer,
        *,
        timeout: float | None | UnsetType = UNSET,
        service_params: Mapping[str, str] | None = None,
    ) -> None:
        self._peer = peer
        self._timeout = timeout
        self._service_params = service_params

    async def call(self, method: str, params: Mapping[str, object], type: Any, errors: DeclaredErrors = ()) -> Any:
        """Call a method and return its result, decoded into `type`.

        A declared error is raised as its class in `errors`, with its fields, and with `OperationFailed` as the cause.
        Everything else is raised as `Peer.call` does.
        """
        try:
            return await self._peer.call(
                method,
                _without_unset(params),
                type=type,
                timeout=self._timeout,
                service_params=self._service_params,
                errors=errors,
            )
        except OperationFailed as exc:
            declared = declared_error(exc, errors)
            if declared is None:
                raise
            raise declared from exc

    def subscribe(
        self, method: str, params: Mapping[str, object], type: Any, errors: DeclaredErrors = ()
    ) -> Events[Any]:
        """The events of a subscription, each decoded into `type`. There is no time limit for an event."""
        stream = self._peer.subscribe(
            method, _without_unset(params), type=type, service_params=self._service_params, errors=errors
        )
        return Events(stream, errors)


@final
class Events(AsyncIterator[T], Generic[T]):
    """A `Subscription` that raises declared errors as `Caller.call` does."""

    def __init__(self, stream: Subscription[T], errors: DeclaredErrors) -> None:
        self._stream = stream
        self._errors = errors

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        try:
            return await anext(self._stream)
        except OperationFailed as exc:
            declared = declared_error(exc, self._errors)
            if declared is None:
                raise
            raise declared from exc

    async def aclose(self) -> None:
        """End the subscription and drop the events that were not taken. Idempotent. Does not wait for the server."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stream.__aexit__(kind, exc, traceback)


def declared_error(failed: OperationFailed, errors: DeclaredErrors) -> OperationError | None:
    """The error as an instance of the class in `errors` that declares its code; None if none does."""
    for cls in errors:
        details = failed.details
        if cls.definition.code == failed.code:
            fields = msgspec.structs.asdict(details) if isinstance(details, cls.definition.details) else {}
            return cls(**fields)
    return None


def _without_unset(params: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in params.items() if value is not UNSET}
