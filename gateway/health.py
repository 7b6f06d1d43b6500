"""`/healthz` and `/readyz`: whether the daemon lives, and whether it can be sent requests. They tell nothing else of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

from ..lazy import anyio
from .answers import Answer, plain_text

if TYPE_CHECKING:
    from .asgi import Send
    from .requests import GatewayRequest


def plain_now(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A short answer that holds for now only."""
    return plain_text(status, f"{text}\n", {"cache-control": "no-store", **(headers or {})})


def refusal(request: GatewayRequest, path: str, expected: str) -> Answer | None:
    """Return the answer to a request for another path than this, or with another method than GET and HEAD."""
    if path != expected:
        return plain_now("not found", 404)
    if request.method not in ("GET", "HEAD"):
        return plain_now("method not allowed", 405, {"allow": "GET, HEAD"})
    return None


Reason: TypeAlias = Literal["draining", "store"]
"""Why the daemon is not ready: it ends, or tasks can't be stored."""

PROBE_SECONDS: Final = 1.0
"""How long an answer waits for the store. Probes of supervisors wait a second or more."""

FRESH_SECONDS: Final = 1.0
"""How long an answer of the store holds. So it is asked once a second at most, however many ask the daemon."""


@final
class Liveness:
    """Answers as long as the process does."""

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        return refusal(request, path, "healthz") or plain_now("ok")


@final
class Readiness:
    """`draining()` tells whether the end has begun. `probe()` whether tasks can be stored: it may take long, and must not raise.
    It runs in a task that `spawn` starts, one at a time.
    """

    def __init__(
        self,
        draining: Callable[[], bool],
        probe: Callable[[], Coroutine[Any, Any, bool]],
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
    ) -> None:
        self._draining = draining
        self._probe = probe
        self._spawn = spawn
        self._probing: anyio.Event | None = None
        self._works = False
        self._known_at: float | None = None

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        refused = refusal(request, path, "readyz")
        if refused is not None:
            return refused
        reason = await self.obstacle()
        return plain_now("ok") if reason is None else plain_now(f"not ready: {reason}", 503)

    async def obstacle(self) -> Reason | None:
        """Why no requests should be sent; None where they may be."""
        if self._draining():
            return "draining"
        return None if await self._store_works() else "store"

    async def _store_works(self) -> bool:
        if self._known_at is not None and monotonic() - self._known_at < FRESH_SECONDS:
            return self._works
        if self._probing is None:
            self._probing = anyio.Event()
            self._spawn(self._ask)
        with anyio.move_on_after(PROBE_SECONDS):
            await self._probing.wait()
            return self._works
        return False

    async def _ask(self) -> None:
        self._works = await self._probe()
        self._known_at = monotonic()
        probing, self._probing = self._probing, None
        assert probing is not None, "it was set before this began"
        probing.set()
