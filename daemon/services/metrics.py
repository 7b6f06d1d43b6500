"""The method through which callers learn how the daemon is doing: `services/metrics` (section 7 of docs/protocol.md)."""

from __future__ import annotations

from typing import Protocol

from ..metrics.figures import Figures
from ..operations.context import Context
from ..operations.identity import Identity
from ..operations.service import Service


class MetricsHost(Protocol):
    """What this method needs of the daemon that it belongs to."""

    async def figures(self, identity: Identity | None) -> Figures:
        """The figures as this caller may see them."""
        ...


def metrics(host: MetricsHost) -> Service:
    """The part of the service `services` that counts."""
    service = Service("services")

    @service.query(name="metrics")
    async def read(ctx: Context) -> Figures:
        """Tell how many requests there were and how long they took, what is under way, and what is held in memory."""
        return await host.figures(ctx.identity)

    return service
