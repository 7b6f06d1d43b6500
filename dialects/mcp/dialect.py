"""What differs in MCP as far as one message goes: cancellation, progress, log messages, and which requests are taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias, final

import msgspec

from ...daemon.logs import log
from ...daemon.rpc import envelope
from ...daemon.rpc.dialect import IGNORED, Dialect, Events, Ignored
from ...daemon.rpc.envelope import Call, Rendering
from ...errors.decoders import convert
from ...errors.failures import Cancelled, DomainFailure, Failure, InvalidParams, InvalidRequest
from ...errors.wire import error_object
from .revision import LEVELS, NEWEST_LEGACY, Meta, is_own, meta_of
from .subscriptions import UPDATED, Subscriptions
from .tool_calls import ToolEvents, ToolRendering

MAX_TOKENS: Final = 4096
"""Progress tokens that are remembered: more than requests run at a time."""

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


def _takes_all(method: str, meta: Meta | None) -> None: ...


@final
class McpDialect(Dialect):
    """One per session, since progress must rise. `guard` looks at every request, in the order of arrival."""

    name: ClassVar[str] = "mcp"
    cancellations: ClassVar[Mapping[str, str]] = {"notifications/cancelled": "requestId"}
    unanswered: ClassVar[tuple[type[Failure], ...]] = (Cancelled,)
    named: ClassVar[bool] = False
    mends_surrogates: ClassVar[bool] = True
    trace_place: ClassVar[Literal["serviceParams", "_meta"] | None] = "_meta"
    gives_up_requests: ClassVar[bool] = True

    progress_method: ClassVar[str] = "notifications/progress"
    log_method: ClassVar[str] = "notifications/message"
    update_method: ClassVar[str] = UPDATED

    def __init__(self, guard: Guard, subscriptions: Subscriptions) -> None:
        self._guard = guard
        self._subscriptions = subscriptions
        self._progress: dict[str | int, float] = {}
        self.log_level: str | None = "info"
        """The least severe level that legacy clients get; None: no log messages."""
        self.revision = NEWEST_LEGACY
        self.on_close: Callable[[], None] = lambda: None

    @property
    def batches(self) -> bool:
        return self.revision == "2025-03-26"  # no other revision has them

    def receive(self, call: Call) -> Failure | Ignored | None:
        if call.id is None:
            if call.method not in _NOTIFICATIONS:
                log.debug("notification.ignored")
            return IGNORED
        if call.id == envelope.NULL_ID:
            return InvalidRequest("invalid-id-type")
        meta = meta_of(call.params)
        return meta if isinstance(meta, InvalidParams) else self._guard(call.method, meta)

    def encode_failure(self, call_id: bytes, failure: Failure, method: str = "") -> bytes:
        if isinstance(failure, DomainFailure) and is_own(failure):
            error = msgspec.structs.replace(error_object(failure), data=failure.details)
        else:
            error = error_object(failure, self.name)
        told = b"" if call_id == envelope.NULL_ID else b'"id":%b,' % call_id
        return b'{"jsonrpc":"2.0",%b"error":%b}' % (told, msgspec.json.encode(error))

    def events_of(self, call: Call) -> Events:
        if isinstance(call.rendering, ToolRendering):
            return ToolEvents(call.id or envelope.NULL_ID, call.rendering, self)
        return super().events_of(call)

    def encode_cancel(self, request_id: int) -> bytes:
        return envelope.encode_notification("notifications/cancelled", {"requestId": request_id})

    # -- progress ----------------------------------------------------------------------------------------------

    def begin_progress(self, token: str | int | None) -> None:
        """From now on progress may be told with this token."""
        if token is not None:
            while len(self._progress) >= MAX_TOKENS:
                del self._progress[next(iter(self._progress))]
            self._progress[token] = -math.inf

    def end_progress(self, token: str | int | None) -> None:
        """The request is answered: nothing more may be told."""
        if token is not None:
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

    # -- log messages and changes ------------------------------------------------------------------------------

    def encode_log(self, rendering: Rendering | None, level: str, data: object) -> bytes | None:
        protocol = getattr(rendering, "protocol", None)
        least = protocol.log_level if protocol is not None and protocol.modern else self.log_level
        if least is None or LEVELS.index(level) < LEVELS.index(least):
            return None
        return envelope.encode_notification(self.log_method, _LogMessage(level, data))

    def close(self) -> None:
        self._subscriptions.close()
        self.on_close()
        self.on_close = lambda: None
        self._guard = _takes_all  # that of the session holds it, and this is a part of it

    def drain(self) -> None:
        self._subscriptions.end()

    def hand_over(self) -> None:
        self._subscriptions.leave()

    def open_calls(self) -> Iterable[Call]:
        return self._subscriptions.take_left_calls()

    def encode_updates(self, uri: str) -> Sequence[bytes]:
        return self._subscriptions.encode_updates(uri)


def _progress_of(token: str | int, value: object, last: float) -> _Progress | None:
    """Progress of what a handler gave: a number, `(progress, total)`, or members of these names; a text goes one further."""
    following = 1.0 if last == -math.inf else last + 1
    match value:
        case str():
            told = _Progress(token, following, message=value)
        case int() | float():
            told = _Progress(token, value)
        case [int() | float() as progress, int() | float() | None as total]:
            told = _Progress(token, progress, total)
        case _:
            return _from_members(token, value, following)
    return told if _finite(told) else None


def _from_members(token: str | int, value: object, following: float) -> _Progress | None:
    try:
        members = msgspec.to_builtins(value)
        if not isinstance(members, dict):
            return None
        if "percentage" in members:
            members = {"progress": members["percentage"], "total": 100, "message": members.get("message")}
        told = convert({"progress": following, **members, "progressToken": token}, _Progress)
    except (TypeError, ValueError, RecursionError):  # `ValidationError` is a `ValueError`
        return None
    return told if _finite(told) else None


def _finite(told: _Progress) -> bool:
    return math.isfinite(told.progress) and (told.total is None or math.isfinite(told.total))
