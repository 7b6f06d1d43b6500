"""Who calls by HTTP: what the identity provider makes of a request's credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ..daemon.dispatch.execution import Raised, attempt_now
from ..daemon.dispatch.router import provider_failed
from ..daemon.operations.access import is_refreshing
from ..lazy import anyio

if TYPE_CHECKING:
    from ..daemon.operations.access import Access, Refreshing
    from ..daemon.rpc.envelope import Call
    from ..errors.failures import Internal


_STEP: Final = "identity.resolve"

REFRESH_SECONDS: Final = 8.0
"""How long a request waits for the keys of its caller's credentials. A fetch of them takes less, or fails."""


@final
class Callers:
    """Asks the identity provider who calls: once for each request, and after it has fetched keys where it lacks one."""

    def __init__(self, access: Access) -> None:
        self._access = access
        provider = access.provider
        self._refreshing = provider if is_refreshing(provider) else None
        self._waiting: anyio.Event | None = None

    async def access_of(self, call: Call) -> Access | Internal:
        """The access of the caller alone; what the call gets where the provider raised something."""
        if self._access.provider is None:
            return self._access
        lacks_key = attempt_now(lambda: self._lacks_key(call.metadata.get("authorization")), step=_STEP)
        if isinstance(lacks_key, Raised):
            return provider_failed(call, lacks_key.exc)
        if lacks_key and self._refreshing is not None:
            with anyio.move_on_after(REFRESH_SECONDS):
                await self._refresh(self._refreshing)
        identity = attempt_now(lambda: self._access.resolve(call.metadata), step=_STEP)
        return (
            provider_failed(call, identity.exc) if isinstance(identity, Raised) else self._access.for_caller(identity)
        )

    def _lacks_key(self, authorization: str | None) -> bool:
        return authorization is not None and self._refreshing is not None and self._refreshing.lacks_key(authorization)

    async def _refresh(self, provider: Refreshing) -> None:
        """Whoever comes while keys are fetched waits for the same ones."""
        if self._waiting is not None:
            return await self._waiting.wait()
        self._waiting = ended = anyio.Event()
        try:
            await anyio.to_thread.run_sync(provider.refresh, abandon_on_cancel=True)
        finally:
            self._waiting = None
            ended.set()
