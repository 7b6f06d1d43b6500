"""Holds the requests that this side waits for: calls with one answer, and streams with many events. No IO.

This module decides when reading pauses. A stream has no flow control of its own but the pipe, which all requests share:

- Reading pauses only while some stream buffers `MAX_BUFFERED_EVENTS` events or more and no other caller waits: no call is open,
  and no consumer waits at an empty stream. So a slow consumer never delays another answer, and a slow consumer alone slows its
  producer down, as section 5 of docs/protocol.md asks.
- While others wait, a stream buffers more events, up to `MAX_BUFFERED_BYTES`. Past that it ends with `StreamOverrun`.
  No event is dropped silently.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, final

import anyio
import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from ..change_signal import ChangeSignal
from ..errors.decoders import decoder_for
from .dialects import Dialect, TracePlace
from .errors import ClientError, ConnectionFailed, DeclaredErrors, InvalidReply, StreamOverrun
from .messages import DECODE_ERRORS, STREAM_WINDOW, OutgoingRequest, outgoing_request
from .validation import encode_params

ProgressHandler: TypeAlias = Callable[[Any], object]  # JSON values in

MAX_BUFFERED_EVENTS: Final = 32
"""Events that one stream buffers before reading may pause. The daemon's default is the same."""

MAX_BUFFERED_BYTES: Final = 16 * 1024 * 1024
"""Bytes of events that one stream may buffer while others wait for the connection."""

TELL_BYTES: Final = 128 * 1024
"""Bytes of events after which the server is told that they were taken: half of those that it sends before it waits."""

EVENT_OVERHEAD: Final = 128
"""Bytes that an event takes in memory beside its JSON text. Without them, the smallest events would cost the most."""

ErrorFactory: TypeAlias = Callable[[], ClientError]
"""Makes the exception when it is raised. One instance raised in two tasks would collect both tracebacks."""


@final
class PendingCall:
    """A request with one answer.

    `method` is the one that the caller has named. `size` is about its length in bytes, which tells the largest. `errors`
    are the classes that decode the details of an error. `on_progress` is called with what the server tells of the progress
    before the answer.
    """

    def __init__(
        self,
        request_id: int,
        size: int,
        errors: DeclaredErrors = (),
        on_progress: ProgressHandler | None = None,
        *,
        method: str = "",
    ) -> None:
        self.id = request_id
        self.method = method
        self.size = size
        self.errors = errors
        self.on_progress = on_progress
        self._result: Raw | None = None
        self._make_error: ErrorFactory | None = None
        self._answered = anyio.Event()

    @property
    def done(self) -> bool:
        return self._answered.is_set()

    def set_result(self, result: Raw) -> None:
        self._result = result
        self._answered.set()

    def fail(self, make_error: ErrorFactory) -> None:
        self._make_error = make_error
        self._answered.set()

    async def result(self) -> Raw:
        """Wait for the result, as JSON text. Raises the error that `fail` was given."""
        await self._answered.wait()
        if self._make_error is not None:
            raise self._make_error()
        assert self._result is not None  # answered means one of the two
        return self._result


@final
class PendingStream:
    """A subscription: the events that its consumer has not taken yet, and how it ended.

    `abandoned` is set when the consumer was garbage-collected; the next event then cancels the subscription. `consumer_waits`
    is whether the consumer waits at an empty stream. `taken` and `received` count events. `last_event_id` is that of the last
    one that was taken, where events have ids. `on_taken` is called when the
    consumer has taken an event, or waits for one: the connection sets it.
    """

    def __init__(
        self,
        request_id: int,
        size: int,
        errors: DeclaredErrors = (),
        *,
        method: str = "",
        window: int | None = None,
    ) -> None:
        self.id = request_id
        self.method = method
        self.size = size
        self.errors = errors
        self.abandoned = False
        self.consumer_waits = False
        self.taken = 0
        self.received = 0
        self.done = False
        self.on_taken: Callable[[], object] = bool
        self._window = window
        self._told = 0
        self._untold_bytes = 0
        self.last_event_id: str | None = None
        self._events: deque[tuple[Raw, str | None]] = deque()
        self._bytes = 0
        self._make_error: ErrorFactory | None = None
        self._changed = ChangeSignal()

    @property
    def full(self) -> bool:
        return len(self._events) >= MAX_BUFFERED_EVENTS

    def has_room(self, value: Raw, most: int = MAX_BUFFERED_EVENTS) -> bool:
        """Whether this event fits as well, where at most so many wait. An empty stream has room for any."""
        return not self._events or (len(self._events) < most and self._bytes + _size(value) <= MAX_BUFFERED_BYTES)

    def push(self, seq: int, value: Raw, event_id: str | None = None) -> None:
        """Add one event. A gap in `seq`, or more bytes than may be buffered, ends the stream."""
        size = _size(value)
        if seq != self.received + 1:
            self.fail(lambda: InvalidReply(f"event {seq} came after event {seq - 1} was lost or repeated"))
        elif self._bytes + size > MAX_BUFFERED_BYTES and self._events:
            self.fail(
                lambda: StreamOverrun(f"more than {MAX_BUFFERED_BYTES} bytes of events waited for their consumer")
            )
        else:
            self.received = seq
            self.consumer_waits = False  # no longer at an empty stream, although the consumer has not run yet
            self._events.append((value.copy(), event_id))  # otherwise it would keep the whole message in memory
            self._bytes += size
            self._changed.notify()

    def complete(self, events: int) -> None:
        """The server says that it has sent all `events`."""
        if events != self.received:
            self.fail(lambda: InvalidReply(f"{self.received} of {events} events came"))
        else:
            self.done = True
            self._changed.notify()

    def fail(self, make_error: ErrorFactory) -> None:
        """End with an error, after the buffered events. Only the first end counts."""
        if not self.done:
            self.done = True
            self._make_error = make_error
            self._changed.notify()

    async def next(self) -> Raw | None:
        """The next event's JSON text, or None after the last. Raises the error that ended the stream."""
        await anyio.lowlevel.checkpoint()
        while not self._events:
            if self.done:
                if self._make_error is not None:
                    raise self._with_last_seq(self._make_error())
                return None
            self.consumer_waits = True
            self.on_taken()
            try:
                await self._changed.wait()
            finally:
                self.consumer_waits = False
        event, self.last_event_id = self._events.popleft()
        self.taken += 1
        self._untold_bytes += _size(event)
        self._bytes -= _size(event)
        self.on_taken()
        return event

    def must_tell(self) -> bool:
        """Whether the server must be told now which events were taken: before its window is full of those that were."""
        if self._window is None or self.done:
            return False
        if self.taken - self._told < max(1, self._window // 2) and self._untold_bytes < TELL_BYTES:
            return False
        self._told, self._untold_bytes = self.taken, 0
        return True

    def _with_last_seq(self, error: ClientError) -> ClientError:
        """A lost connection is reported with the number of the last event, which was delivered."""
        if isinstance(error, ConnectionFailed):
            return ConnectionFailed(error.loss, sent=error.sent, last_seq=self.received)
        return error


def _size(event: Raw) -> int:
    return memoryview(event).nbytes + EVENT_OVERHEAD


PendingRequest: TypeAlias = PendingCall | PendingStream


@final
class PendingRequests:
    """The open calls and streams of a connection, by id."""

    def __init__(self) -> None:
        self._by_id: dict[int, PendingRequest] = {}
        self.largest_unanswered = 0
        """Bytes of the largest message of this side that has no caller who waits."""

    def __iter__(self) -> Iterator[PendingRequest]:
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, request: PendingRequest) -> None:
        self._by_id[request.id] = request

    def find(self, request_id: int) -> PendingRequest | None:
        return self._by_id.get(request_id)

    def remove(self, request_id: int) -> PendingRequest | None:
        """Forget a request, and return it. A later reply to it is ignored."""
        return self._by_id.pop(request_id, None)

    def oversized(self) -> PendingRequest | None:
        """The request that the server means by an error about the size of a message: the largest one.

        None where a larger message was sent that has no caller who waits: a notification, an answer, a request that timed out.
        """
        found = max(self._by_id.values(), key=lambda request: request.size, default=None)
        if found is None or found.size >= self.largest_unanswered:
            return found
        self.largest_unanswered = 0
        return None

    def fail_all(self, make_error: ErrorFactory) -> None:
        for request in self:
            request.fail(make_error)
        self._by_id.clear()

    @property
    def reading_may_pause(self) -> bool:
        """The rule at the top of this module."""
        full = False
        for request in self._by_id.values():
            match request:
                case PendingCall():
                    return False
                case PendingStream():
                    if request.consumer_waits:
                        return False
                    full = full or (request.full and not request.abandoned)
        return full


ServiceParams: TypeAlias = Mapping[str, str] | None

_PARENT: Final = "traceparent"

_encode: Final = msgspec.json.Encoder().encode

_TOKEN: Final = "discreet-{}"
"""A program does not choose such a token for itself."""

_read_token: Final = re.compile(_TOKEN.format("(0|[1-9][0-9]{0,18})")).fullmatch


SUBSCRIBE: Final = "services/subscribe"

INPUT: Final = "input"
"""The param of `services/subscribe` that holds the operation's own params. Its errors name them with this prefix."""


class Request(msgspec.Struct, frozen=True):
    """The content of a call or a subscription, the same for all attempts."""

    method: str
    params: object
    service_params: ServiceParams
    errors: DeclaredErrors = ()
    on_progress: ProgressHandler | None = None
    window: int | None = None

    def traced(self, headers: Mapping[str, str], place: TracePlace | None) -> Request:
        """Return this request with the name of its span."""
        params, service_params = with_trace(self.params, self.service_params, headers, place)
        return replace(self, params=params, service_params=service_params)

    def call(self, request_id: int, dialect: Dialect) -> tuple[PendingCall, OutgoingRequest]:
        """The request of a call. Raises `TypeError` and `ValueError` for params that JSON can't hold."""
        params = self.params if self.on_progress is None else with_token(self.params, request_id, dialect)
        message = outgoing_request(request_id, self.method, params, self.service_params)
        return PendingCall(request_id, message.size, self.errors, self.on_progress, method=self.method), message

    def stream(self, request_id: int, *, checked: bool) -> tuple[PendingStream, OutgoingRequest]:
        """The request of a subscription: one that is refused for an operation of another kind, or to the method itself."""
        method, params = self.method, self.params
        if checked:
            method, params = SUBSCRIBE, {"operationId": self.method, INPUT: self.params}
        window = {} if self.window is None else {STREAM_WINDOW: str(self.window)}
        message = outgoing_request(request_id, method, params, {**window, **(self.service_params or {})} or None)
        return PendingStream(message.id, message.size, self.errors, method=self.method, window=self.window), message


class Progress(msgspec.Struct, frozen=True):
    """A notification of progress: its token, and how far the work is."""

    request_id: int
    value: Any  # JSON


def with_token(params: object, request_id: int, dialect: Dialect) -> dict[str, Raw]:
    """The params with the token of this request. Raises `TypeError` for params by position, which have no place for it."""
    try:
        members, meta = _members(params)
    except msgspec.ValidationError:
        raise TypeError(
            "on_progress needs params by name, with `_meta` an object: its token has no other place"
        ) from None
    token = Raw(_encode(_TOKEN.format(request_id)))
    if dialect.work_done_token:
        return {**members, "workDoneToken": token}
    return {**members, "_meta": Raw(_encode({**meta, "progressToken": token}))}


def read_progress(params: Raw | None, dialect: Dialect) -> Progress | None:
    """Read the value of a progress: the member `value`, or without it the other members. None for a token of another request."""
    try:
        members = decoder_for(dict[str, Any])(params or b"")
    except DECODE_ERRORS:
        return None
    token = members.pop(dialect.progress_member, None)
    found = _read_token(token) if isinstance(token, str) else None
    if found is None:
        return None
    value: Any | UnsetType = members.get("value", UNSET)
    return Progress(int(found[1]), members if value is UNSET else value)


def with_trace(
    params: Any, service_params: ServiceParams, headers: Mapping[str, str], place: TracePlace | None
) -> tuple[Any, ServiceParams]:  # Any: what a program sends
    """The params and the service params of a request that names its span, unless its program has named one there itself.

    Params by position have no place for it.
    """
    match place:
        case "service_params" if headers:
            named = any(name.lower() == _PARENT for name in service_params or {})
            return params, service_params if named else {**headers, **(service_params or {})}
        case "meta" if headers:
            try:
                members, meta = _members(params)
            except msgspec.ValidationError:
                return params, service_params
            named = _PARENT in meta
            return params if named else {**members, "_meta": Raw(_encode({**headers, **meta}))}, service_params
        case _:
            return params, service_params


def _members(params: object) -> tuple[dict[str, Raw], dict[str, Raw]]:
    """The members of params by name, and those of `_meta` in them. Raises `msgspec.ValidationError` for other params."""
    members = decoder_for(dict[str, Raw])(encode_params({} if params is None else params))
    return members, decoder_for(dict[str, Raw])(members.get("_meta", b"{}"))
