"""Describes MCP in single messages: cancellation, progress, log messages, and which requests are taken.

Tells clients of changes: legacy ones that subscribed to a resource, and requests of modern ones that listen.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, ClassVar, Final, TypeAlias, final

import msgspec
from msgspec import Raw, Struct, structs

from ...daemon.logs import log
from ...daemon.memory import MemoryBudget
from ...daemon.operations.request import ClientInfo, Request
from ...daemon.operations.request import Rendering as AnyRendering
from ...daemon.rpc import envelope
from ...daemon.rpc.dialect import IGNORED, Events, Ignored
from ...daemon.tracing import trace_members
from ...errors.decoders import convert, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import Cancelled, DomainFailure, Failure, InvalidParams, InvalidRequest, Overloaded
from ...errors.wire import error_object
from ..trace_meta import TracedInMeta
from .generated.tables import MODERN_REVISION
from .revision import LEVELS, NEWEST_LEGACY, Meta, ProtocolRevision, is_own, meta_of

MAX_TOKENS: Final = 4096
"""Progress tokens that are remembered: more than requests run at a time."""

MAX_EVENT_BYTES: Final = 256 * 1024
"""How much of a subscription's events its result holds: the last ones, since a model reads all of it."""

MAX_SUBSCRIBED: Final = 1024
"""Resources that a legacy client may have subscribed to, and that one request may listen to."""

MAX_URI_LENGTH: Final = 8 * 1024
"""Characters of the URI that is subscribed to."""

UPDATED: Final = "notifications/resources/updated"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

_NOTIFICATIONS: Final = frozenset({"notifications/initialized", "notifications/roots/list_changed"})

Guard: TypeAlias = Callable[[str, Meta | None], Failure | None]
"""From a request's method and `_meta` to why it is not taken."""


class _Progress(msgspec.Struct, rename="camel", omit_defaults=True):
    progress_token: str | int
    progress: float
    total: float | None = None
    message: str | None = None


class _LogMessage(msgspec.Struct):
    level: str
    data: Any  # JSON


class SubscriptionFilter(Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """The changes that a request listens for (2026-07-28, `SubscriptionFilter`), and the extension's `taskIds`."""

    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
    task_ids: list[str] | None = None
    tools_list_changed: bool | None = None


class Listener(Struct, frozen=True):
    """A request that listens for changes. `end()` answers it."""

    wanted: SubscriptionFilter
    end: Callable[[], None]


def _takes_all(method: str, meta: Meta | None) -> None: ...


class McpMessages(TracedInMeta):
    """The names and the numbers of MCP, whoever answers. `revision` is the one that the client has agreed on."""

    name: ClassVar[str] = "mcp"
    cancellations: ClassVar[Mapping[str, str]] = {"notifications/cancelled": "requestId"}
    unanswered: ClassVar[tuple[type[Failure], ...]] = (Cancelled,)
    named: ClassVar[bool] = False
    mends_surrogates: ClassVar[bool] = True
    gives_up_requests: ClassVar[bool] = True
    method_attribute: ClassVar[str | None] = "mcp.method.name"

    progress_method: ClassVar[str] = "notifications/progress"
    log_method: ClassVar[str] = "notifications/message"
    update_method: ClassVar[str] = UPDATED

    revision: str = NEWEST_LEGACY

    @property
    def batches(self) -> bool:
        return self.revision == "2025-03-26"  # no other revision has them

    def encode_failure(self, call_id: bytes, failure: Failure, method: str = "") -> bytes:
        if isinstance(failure, DomainFailure) and is_own(failure):
            data = msgspec.UNSET if failure.details is None else failure.details
            error = msgspec.structs.replace(error_object(failure), data=data)
        else:
            error = error_object(failure, self.name)
        told = b"" if call_id == envelope.NULL_ID else b'"id":%b,' % call_id
        return b'{"jsonrpc":"2.0",%b"error":%b}' % (told, msgspec.json.encode(error))

    def encode_cancel(self, request_id: int) -> bytes:
        return envelope.encode_notification("notifications/cancelled", {"requestId": request_id})


@final
class McpDialect(McpMessages):
    """One per session, since progress must rise. `guard` looks at every request, in the order of arrival."""

    def __init__(self, guard: Guard, memory: MemoryBudget) -> None:
        self._guard = guard
        self._memory = memory
        self.uris: dict[str, None] = {}
        """The resources that a legacy client has subscribed to. The URIs count in `memory` until `close`."""
        self.listeners: dict[bytes, Listener] = {}
        """The requests `subscriptions/listen`, by their ids (JSON texts)."""
        self.left: dict[bytes, SubscriptionFilter] = {}
        """Listening requests that one program leaves to the next, unanswered."""
        self._left_calls: list[Request] = []
        self._progress: dict[str | int, float] = {}
        self.log_level: str | None = "info"
        """The least severe level that legacy clients get; None: no log messages."""
        self.on_close: Callable[[], None] = lambda: None
        self.on_subscribe: Callable[[str], None] = lambda _: None
        self.on_unsubscribe: Callable[[str], None] = lambda _: None
        """Called with the URI of a resource, when a legacy client begins and ends to hear of it."""

    def receive(self, call: Request) -> Failure | Ignored | None:
        if call.id is None:
            if call.method not in _NOTIFICATIONS:
                log.debug("notification.ignored")
            return IGNORED
        if call.id == envelope.NULL_ID:
            return InvalidRequest("invalid-id-type")
        meta = meta_of(call.params)
        if isinstance(meta, InvalidParams):
            return meta
        if meta is not None and (meta.traceparent or meta.baggage):
            call.metadata = {**call.metadata, **trace_members(structs.asdict(meta))}
        return self._guard(call.method, meta)

    def events_of(self, call: Request) -> Events:
        if isinstance(call.rendering, Rendering):
            return ToolEvents(call.id or envelope.NULL_ID, call.rendering.protocol.token, self)
        return super().events_of(call)

    # -- progress ----------------------------------------------------------------------------------------------

    def begin_progress(self, token: str | int) -> None:
        """From now on progress may be told with this token."""
        while len(self._progress) >= MAX_TOKENS:
            del self._progress[next(iter(self._progress))]
        self._progress[token] = -math.inf

    def end_progress(self, token: str | int) -> None:
        """The request is answered: nothing more may be told."""
        self._progress.pop(token, None)

    def encode_progress(self, token: str | int, value: object) -> bytes | None:
        last = self._progress.get(token)
        if last is None:
            return None
        told = _progress_of(token, value, last)
        if told is None:
            log.warning("progress.unusable", type=type(value).__name__)
            return None
        if told.progress <= last:
            return None
        self._progress[token] = told.progress
        if self.revision < "2025-03-26":
            told.message = None
        return envelope.encode_notification(self.progress_method, told)

    # -- log messages ------------------------------------------------------------------------------

    def encode_log(self, rendering: AnyRendering | None, level: str, data: object) -> bytes | None:
        protocol = rendering.protocol if isinstance(rendering, Rendering) else None
        least = protocol.log_level if protocol is not None and protocol.modern else self.log_level
        if least is None or LEVELS.index(level) < LEVELS.index(least):
            return None
        return envelope.encode_notification(self.log_method, _LogMessage(level, data))

    # -- who hears of changes ----------------------------------------------------------------------------------

    @contextmanager
    def subscribing(self, uri: str) -> Iterator[None]:
        """Subscribe; a block that raises, or is cancelled, takes a new subscription back.

        Raises `FailureError` where there are too many, and for a URI that is too long to be kept.
        """
        if len(uri) > MAX_URI_LENGTH:
            raise FailureError(InvalidParams("uri", f"at most {MAX_URI_LENGTH} characters", "more"))
        is_new = uri not in self.uris
        if is_new:
            if len(self.uris) >= MAX_SUBSCRIBED or not self._memory.fits(len(uri)):
                raise FailureError(Overloaded())
            self._add(uri)
        try:
            yield
        except BaseException:  # a cancellation too
            if is_new:
                self.unsubscribe(uri)
            raise

    def _add(self, uri: str) -> None:
        self.uris[uri] = None
        self._memory.add("sessions", len(uri))
        self.on_subscribe(uri)

    def unsubscribe(self, uri: str) -> None:
        if uri in self.uris:
            del self.uris[uri]
            self._memory.add("sessions", -len(uri))
            self.on_unsubscribe(uri)

    def subscriptions(self) -> Iterable[str]:
        listened = (listener.wanted.resource_subscriptions or () for listener in self.listeners.values())
        return chain(self.uris, *listened)

    def encode_updates(self, uri: str) -> Sequence[bytes]:
        messages = [_updated(uri, {})] if uri in self.uris else []
        for request_id, listener in list(self.listeners.items()):
            if uri in (listener.wanted.resource_subscriptions or ()):
                messages.append(_updated(uri, {"_meta": {SUBSCRIPTION_ID: Raw(request_id)}}))
        return messages

    def close(self) -> None:
        for uri in [*self.uris]:
            self.unsubscribe(uri)
        self.on_close()
        self.on_close = lambda: None
        self.on_subscribe = self.on_unsubscribe = lambda _: None
        self._guard = _takes_all  # that of the session holds it, and this is a part of it

    def drain(self) -> None:
        for listener in self.listeners.values():
            listener.end()

    def hand_over(self) -> None:
        self.left = {request_id: listener.wanted for request_id, listener in self.listeners.items()}
        self.drain()

    def take_over(self, uris: Iterable[str], left: Mapping[str, SubscriptionFilter], client: ClientInfo) -> None:
        """Go on with what the program before this one knew and left."""
        for uri in uris:
            self._add(uri)
        self.left = {request_id.encode(): wanted for request_id, wanted in left.items()}
        meta = Meta(MODERN_REVISION, {"name": client.name, "version": client.version}, client.capabilities)
        for request_id, wanted in self.left.items():
            params = Raw(msgspec.json.encode({"_meta": meta, "notifications": wanted}))
            self._left_calls.append(Request("subscriptions/listen", request_id, params, {}, size=len(params)))

    def open_calls(self) -> Iterable[Request]:
        calls, self._left_calls = self._left_calls, []
        return calls


def _progress_of(token: str | int, value: object, last: float) -> _Progress | None:
    """Progress of what a handler gave: a number, `(progress, total)`, or members of these names; a text goes one further."""
    following = 1.0 if last == -math.inf else last + 1
    try:
        match value:
            case str():
                members: dict[str, Any] = {"message": value}
            case int() | float():
                members = {"progress": value}
            case [progress, total]:
                members = {"progress": progress, "total": total}
            case _:
                members = msgspec.to_builtins(value)
                if "percentage" in members:
                    members = {"progress": members["percentage"], "total": 100, "message": members.get("message")}
        told: _Progress = convert({"progress": following, **members, "progressToken": token}, _Progress)
    except (TypeError, ValueError, RecursionError):  # `ValidationError` is a `ValueError`
        return None
    return told if math.isfinite(told.progress) and (told.total is None or math.isfinite(told.total)) else None


class Outcome(Struct, frozen=True):
    """The outcome of a call that may ask: the operation's result, or one that `asks`."""

    result: Raw
    asks: bool = False


class Rendering(Struct, frozen=True, eq=False):
    """How one forwarded call is answered. `write` makes its result of the operation's, both JSON texts; `tell` the result that
    tells a failure, or None where the failure is told as it is. With `asks`, what came is an `Outcome`.
    """

    dialect: McpDialect
    protocol: ProtocolRevision
    write: Callable[[bytes], bytes]
    tell: Callable[[Failure], bytes | None] | None = None
    asks: bool = False

    def result(self, result: bytes) -> bytes:
        if self.protocol.token is not None:
            self.dialect.end_progress(self.protocol.token)
        if self.asks:
            outcome = decoder_for(Outcome)(result)
            result = bytes(outcome.result)
            if outcome.asks:
                return result
        return self.write(result)

    def failure(self, failure: Failure) -> bytes | None:
        if self.protocol.token is not None:
            self.dialect.end_progress(self.protocol.token)
        return None if self.tell is None else self.tell(failure)


@final
class ToolEvents(Events):
    """A subscription as a tool: events are progress where the client wants any, and the result is a list of the last ones."""

    def __init__(self, call_id: bytes, token: str | int | None, dialect: McpDialect) -> None:
        super().__init__(call_id)
        self._token = token
        self._dialect = dialect
        self._events: deque[bytes] = deque()
        self._size = 0
        self._omitted = 0

    def encode(self, number: int, value: bytes) -> bytes | None:
        self._events.append(value)
        self._size += len(value)
        while self._size > MAX_EVENT_BYTES:
            self._size -= len(self._events.popleft())
            self._omitted += 1
        if self._token is None:
            return None
        return self._dialect.encode_progress(self._token, {"progress": number, "message": value.decode()})

    def result(self, completed: bytes) -> bytes:
        omitted = b',"omitted":%d' % self._omitted if self._omitted else b""
        return b'{"result":[%b]%b}' % (b",".join(self._events), omitted)


def _updated(uri: str, members: dict[str, Any]) -> bytes:  # Any: JSON
    return envelope.encode_notification(UPDATED, {"uri": uri, **members})
