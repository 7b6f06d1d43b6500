"""Who hears of changes: resources that a legacy client has subscribed to, and requests of modern ones that listen.

Writes what they are told of a resource. Bounded by `MAX_SUBSCRIBED`, and by the limit of the method that listens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, final

import msgspec
from msgspec import Raw, Struct

from ...daemon.memory import MemoryBudget
from ...daemon.operations.context import ClientInfo
from ...daemon.rpc import envelope
from ...daemon.rpc.envelope import Call
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams, Overloaded
from .generated.modern import SubscriptionFilter
from .generated.revisions import MODERN_REVISION
from .revision import Meta

MAX_SUBSCRIBED: Final = 1024
"""Resources that a legacy client may have subscribed to, and that one request may listen to."""

MAX_URI_LENGTH: Final = 8 * 1024
"""Characters of the URI that is subscribed to."""

UPDATED: Final = "notifications/resources/updated"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"


class Listener(Struct, frozen=True):
    """What one request wants to hear of. `end()` answers it."""

    wanted: SubscriptionFilter
    end: Callable[[], None]


@final
class Subscriptions:
    """Those of one session. The URIs count in `memory` until `close`."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self.uris: dict[str, None] = {}
        """What a legacy client has subscribed to."""
        self.listeners: dict[bytes, Listener] = {}
        """The requests `subscriptions/listen`, by their ids (JSON texts)."""
        self.left: dict[bytes, SubscriptionFilter] = {}
        """Those that one program leaves to the next, unanswered."""
        self._left_calls: list[Call] = []

    def subscribe(self, uri: str) -> None:
        """Raises `FailureError` where there are too many, and for a URI that is too long to be kept."""
        if len(uri) > MAX_URI_LENGTH:
            raise FailureError(InvalidParams("uri", f"at most {MAX_URI_LENGTH} characters", "more"))
        if uri in self.uris:
            return
        if len(self.uris) >= MAX_SUBSCRIBED or not self._memory.fits(len(uri)):
            raise FailureError(Overloaded())
        self._add(uri)

    def _add(self, uri: str) -> None:
        self.uris[uri] = None
        self._memory.add("sessions", len(uri))

    def restore(self, uris: Iterable[str]) -> None:
        """Those that the program before this one knew."""
        for uri in uris:
            self._add(uri)

    def unsubscribe(self, uri: str) -> None:
        if uri in self.uris:
            del self.uris[uri]
            self._memory.add("sessions", -len(uri))

    def close(self) -> None:
        """The client has gone: hold nothing for it."""
        for uri in [*self.uris]:
            self.unsubscribe(uri)

    def encode_updates(self, uri: str) -> Sequence[bytes]:
        """The messages that tell of a change of a resource."""
        messages = [_updated(uri, {})] if uri in self.uris else []
        for request_id, listener in list(self.listeners.items()):
            if uri in (listener.wanted.resource_subscriptions or ()):
                messages.append(_updated(uri, {"_meta": {SUBSCRIPTION_ID: Raw(request_id)}}))
        return messages

    def end(self) -> None:
        """Answer all requests that listen."""
        for listener in self.listeners.values():
            listener.end()

    def leave(self) -> None:
        """End them unanswered: the next program goes on with them."""
        self.left = {request_id: listener.wanted for request_id, listener in self.listeners.items()}
        self.end()

    def take_over(self, left: Mapping[str, SubscriptionFilter], client: ClientInfo) -> None:
        """Go on with what the program before this one has left."""
        self.left = {request_id.encode(): wanted for request_id, wanted in left.items()}
        meta = Meta(MODERN_REVISION, {"name": client.name, "version": client.version}, client.capabilities)
        for request_id, wanted in self.left.items():
            params = Raw(msgspec.json.encode({"_meta": meta, "notifications": wanted}))
            self._left_calls.append(Call("subscriptions/listen", request_id, params, {}, size=len(params)))

    def take_left_calls(self) -> Iterable[Call]:
        """The requests that were left, to be taken as if they came now. Once."""
        calls, self._left_calls = self._left_calls, []
        return calls


def _updated(uri: str, members: dict[str, Any]) -> bytes:  # Any: JSON
    return envelope.encode_notification(UPDATED, {"uri": uri, **members})
