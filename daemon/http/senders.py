"""Who sends requests by HTTP. Each has a queue of its own, so that all take turns, and a limit of requests in flight."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, final

from ...lazy import anyio
from ..dispatch.backlog import Backlog
from ..dispatch.execution import Raised, attempt_now
from ..dispatch.request import Request
from ..dispatch.router import provider_failed
from ..operations.access import is_refreshing

if TYPE_CHECKING:
    from ...errors.failures import Internal
    from ..operations.access import Access, Refreshing
    from ..rpc.envelope import Call


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
        lacks_key = attempt_now(lambda: self._lacks_key(call.metadata.get("authorization")), step=_STEP)
        if isinstance(lacks_key, Raised):
            return provider_failed(call, lacks_key.exc)
        if lacks_key and self._refreshing is not None:
            with anyio.move_on_after(REFRESH_SECONDS):
                await self._refresh(self._refreshing)
        identity = attempt_now(lambda: self._access.identify(call.metadata), step=_STEP)
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


@final
class _NeverCongested:
    """HTTP clients hold up their own replies only."""

    congested: bool = False

    async def wait_for_room(self) -> None: ...


@final
class Sender:
    """Requests of one identity, or of one address where callers are anonymous."""

    __slots__ = ("backlog", "in_flight")

    def __init__(self) -> None:
        self.backlog: Final[Backlog[Request]] = Backlog(_NeverCongested())
        self.in_flight = 0


@final
class Senders:
    """Those with requests in flight. `limit` is how many each may have."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._senders: dict[str, Sender] = {}

    @contextmanager
    def enter(self, key: str) -> Iterator[Sender | None]:
        """The sender of one request, which is in flight during the block; None where it has too many."""
        sender = self._senders.get(key)
        if sender is None:
            sender = self._senders[key] = Sender()
        if sender.in_flight >= self._limit:
            yield None
            return
        sender.in_flight += 1
        try:
            yield sender
        finally:
            sender.in_flight -= 1
            if not sender.in_flight:
                del self._senders[key]
