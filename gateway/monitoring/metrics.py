"""`/metrics`: the figures for a scraper, in the formats of Prometheus. It is no call: no method counts it, and nothing queues."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, final

from starlette.responses import Response

from ...daemon.dispatch.execution import Raised, attempt
from ...daemon.logs import log
from ...daemon.rpc.envelope import Call
from ...errors.failures import Internal
from ...lazy import anyio
from ..answers import headers_of
from .exposition import exposed
from .figures import read_figures
from .health import plain_text, refusal

if TYPE_CHECKING:
    from starlette.types import Send

    from ...daemon.host import Host
    from ...daemon.operations.identity import Identity
    from ..call_runner import CallRunner
    from ..requests import GatewayRequest

SCRAPE_SECONDS: Final = 10.0
"""How long collecting may take, collectors of services included. Prometheus waits as long by default."""


@final
class MetricsEndpoint:
    """Who is to see the figures must be somebody, where an identity provider tells callers apart."""

    def __init__(self, host: Host, calls: CallRunner) -> None:
        self._host = host
        self._calls = calls
        self._one_at_a_time: anyio.CapacityLimiter | None = None

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Response | None:
        refused = refusal(request, path, "metrics")
        if refused is not None:
            return refused
        access = await self._calls.access_of(request, Call("metrics", None, None, self._calls.service_params(request)))
        if isinstance(access, Internal):
            return plain_text("internal error", 500)
        if (unknown := access.unknown_caller) is not None:
            return plain_text("authentication required", 401, headers_of(unknown))
        return await self._figures(access.caller, request.headers.get("accept", ""))

    async def _figures(self, identity: Identity | None, accept: str) -> Response:
        """Written in a thread: for hundreds of methods that takes many milliseconds. One at a time, so that none pile up."""
        if self._one_at_a_time is None:
            self._one_at_a_time = anyio.CapacityLimiter(1)
        with anyio.move_on_after(SCRAPE_SECONDS):
            write = partial(exposed, await read_figures(self._host, identity), accept)
            limiter = self._one_at_a_time
            written = await attempt(lambda: anyio.to_thread.run_sync(write, abandon_on_cancel=True, limiter=limiter))
            if isinstance(written, Raised):
                log.error("metrics.failed", exc=written.exc)
                return plain_text("internal error", 500)
            body, content_type = written
            return Response(body, headers={"content-type": content_type, "cache-control": "no-store"})
        log.error("metrics.failed", problem=f"collecting took longer than {SCRAPE_SECONDS:g} s")
        return plain_text("too slow", 503)
