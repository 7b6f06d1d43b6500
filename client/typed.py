"""Calls with the options that all calls of one client share. Generated clients are built on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from msgspec import UNSET, UnsetType

from .errors import DeclaredErrors
from .peer import Peer
from .subscription import Subscription


@final
class Caller:
    """A peer with the options that all calls of one client share.

    `timeout` is in seconds per call (None: no limit; left out: the peer's default). `service_params` go with every request.
    Params that are `UNSET` are left out. Raises `TypeError` for anything but a `Peer`, such as one of the blocking client.
    """

    def __init__(
        self,
        peer: Peer,
        *,
        timeout: float | None | UnsetType = UNSET,
        service_params: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(peer, Peer):
            got = type(peer).__name__
            raise TypeError(f"a generated client takes the Peer of `async with connect(…) as peer:`, not {got}")
        self._peer = peer
        self._timeout = timeout
        self._service_params = service_params

    async def call(self, method: str, params: Mapping[str, object], type: Any, errors: DeclaredErrors = ()) -> Any:
        """Call a method and return its result, decoded into `type`. Raises as `Peer.call` does."""
        return await self._peer.call(
            method,
            _without_unset(params),
            type=type,
            timeout=self._timeout,
            service_params=self._service_params,
            errors=errors,
        )

    def subscribe(
        self, method: str, params: Mapping[str, object], type: Any, errors: DeclaredErrors = ()
    ) -> Subscription[Any]:
        """The events of a subscription, each decoded into `type`. There is no time limit for an event."""
        return self._peer.subscribe(
            method, _without_unset(params), type=type, service_params=self._service_params, errors=errors
        )


def _without_unset(params: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in params.items() if value is not UNSET}
