"""`subscriptions/listen`: how modern clients hear of changes."""

from __future__ import annotations

from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from ...operations.context import Context
from ...operations.offers import Resource
from ...operations.service import Service
from .era import Params
from .generated.modern import SubscriptionFilter
from .state import SUBSCRIPTION_ID, McpState

MAX_LISTENING: Final = 64
"""Requests that may listen at a time."""


class ListenParams(Params, frozen=True, kw_only=True):
    notifications: SubscriptionFilter


def add_subscriptions(service: Service, state: McpState) -> None:
    """Add the method to a service."""

    @service.query("subscriptions/listen", timeout=None, limit=MAX_LISTENING)
    async def listen(ctx: Context, params: ListenParams, /) -> Raw:
        """Hear of changes until the request is cancelled."""
        import anyio  # late: the first replies leave without an event loop

        own_id = (ctx.request_id or "null").encode()
        wanted = _supported(params.notifications, state)
        meta = {SUBSCRIPTION_ID: Raw(own_id)}
        ctx.notify("notifications/subscriptions/acknowledged", {"_meta": meta, "notifications": wanted})
        state.listeners[own_id] = wanted
        try:
            await anyio.sleep_forever()
        finally:
            state.listeners.pop(own_id, None)
        raise AssertionError("it ends by cancellation alone")

    service.operations[-1] = replace(service.operations[-1], only_waits=True)


def _supported(wanted: SubscriptionFilter, state: McpState) -> SubscriptionFilter:
    """What of it is sent: the lists change by a reload alone, which ends the program that could tell it."""
    uris = wanted.resource_subscriptions if state.has(Resource) else None
    return SubscriptionFilter(resource_subscriptions=uris)
