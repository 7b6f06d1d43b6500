"""Describes A2A's methods to the client: their versions, which of them only read, and how streams of tasks are resumed.

A stream of a task's events goes on after a lost connection, without an event lost or doubled:

    opened ──► lost ──► subscribed, after the last number ──► lost ──► …

A message is never sent twice: after a loss its task is subscribed to. That takes the number of the last event. If no event has
come but the task itself, the task as it is then stands for the events since. Sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar, final

import msgspec
from msgspec import Raw

from ...a2a.methods import V03_METHODS, V10_METHODS
from ...a2a.types import INTERRUPTED, TERMINAL, TaskState
from ...errors.decoders import decoder_for
from ...framing.http import SseEvent
from ..errors import ClientError, ConnectionFailed, DeclaredErrors, OperationTimedOut, Overloaded, Unavailable
from ..messages import DECODE_ERRORS, MAX_MESSAGE_BYTES, OutgoingRequest, outgoing_request
from ..outbound.connection import Response
from ..pending import MAX_BUFFERED_EVENTS
from .wire import A2A_VERSION, JSON, checked_headers, number_of, read_result, result_of

S = TypeVar("S", bound=msgspec.Struct)

_VERSIONS: Final = {**dict.fromkeys(V03_METHODS, "0.3"), **dict.fromkeys(V10_METHODS, "1.0")}

QUERIES: Final = frozenset(
    {
        "GetTask",
        "ListTasks",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "GetExtendedAgentCard",
        "tasks/get",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "agent/getAuthenticatedExtendedCard",
    }
)
"""The methods that change nothing. A test compares them with the daemon's own table."""


async def is_query(method: str, service_params: Mapping[str, str] | None) -> bool:
    """Tell whether a method may be repeated, without asking the server, which has no list of its operations."""
    return method in QUERIES


@final
class A2A:
    """An `HttpProtocol`: JSON-RPC of A2A (A2A 1.0 section 9)."""

    passing: tuple[type[ClientError], ...] = (ConnectionFailed, OperationTimedOut, Overloaded, Unavailable)
    max_event = MAX_MESSAGE_BYTES
    max_waiting = MAX_BUFFERED_EVENTS

    def write(self, message: OutgoingRequest) -> tuple[str, dict[str, str], bytes]:
        version = _VERSIONS.get(message.method)
        named = {} if version is None else {A2A_VERSION: version}
        headers = {"content-type": JSON, **named, **checked_headers(message.service_params or {})}
        return "", headers, message.encode(service_params=False)

    async def read_result(self, response: Response, request_id: int, errors: DeclaredErrors) -> Raw:
        body = await response.read_all(MAX_MESSAGE_BYTES)
        return read_result(response, body, request_id=request_id, errors=errors)

    def stream(self, message: OutgoingRequest, errors: DeclaredErrors) -> TaskEvents:
        return TaskEvents(message, errors)


class StreamMethod(msgspec.Struct, frozen=True):
    """A method that gives the events of a task. `resumed_by` is the one that goes on with them."""

    resumed_by: str
    sends: bool


STREAM_METHODS: Final[Mapping[str, StreamMethod]] = {
    "SendStreamingMessage": StreamMethod("SubscribeToTask", sends=True),
    "SubscribeToTask": StreamMethod("SubscribeToTask", sends=False),
    "message/stream": StreamMethod("tasks/resubscribe", sends=True),
    "tasks/resubscribe": StreamMethod("tasks/resubscribe", sends=False),
}


def _names(states: frozenset[TaskState]) -> frozenset[str]:
    """The names of states in 1.0 and in 0.3."""
    return frozenset(name for state in states for name in (state.value, state.name.lower().replace("_", "-")))


ENDED: Final = _names(TERMINAL)
"""States after which nothing follows."""

WAITING: Final = _names(INTERRUPTED)
"""States with which the answer to a message ends, too."""


LAST_EVENT_ID: Final = "last-event-id"


class _Status(msgspec.Struct, frozen=True):
    state: str = ""


class _Change(msgspec.Struct, frozen=True, rename="camel"):
    """A task, or an update of one."""

    id: str = ""
    task_id: str = ""
    status: _Status = _Status()
    kind: str = ""
    final: bool = False


class _Event(_Change, frozen=True, rename="camel"):
    """An event of 1.0, in one of its members; or one of 0.3, which is itself the change."""

    task: _Change | None = None
    status_update: _Change | None = None
    artifact_update: _Change | None = None
    message: Raw | None = None


class _Sent(msgspec.Struct, frozen=True):
    """The params that matter for a subscription to the same task."""

    id: str = ""
    tenant: str | None = None


@final
class TaskEvents:
    """An `EventStream`. It ends as HTTP ends: A2A has no other sign."""

    is_incomplete = False

    def __init__(self, message: OutgoingRequest, errors: DeclaredErrors) -> None:
        self._message = message
        self._errors = errors
        self._method = STREAM_METHODS.get(message.method)
        self._sends = self._method is not None and self._method.sends
        self._sent = _decode(message.params or b"", _Sent) or _Sent()
        self._task_id = "" if self._sends else self._sent.id
        self._last_id = next(
            (value for name, value in (message.service_params or {}).items() if name.lower() == LAST_EVENT_ID), None
        )
        self._only_task = True
        self._ended = False
        self._resumed = False
        self._new_events = False

    def read(self, event: SseEvent) -> Raw | None:
        value = result_of(event.data, request_id=self._message.id, errors=self._errors)
        return value if self._take(value, event.id) else None

    def _take(self, value: Raw, event_id: str | None) -> bool:
        """Note an event. False for one that came before the loss, too."""
        if self._resumed and self._was_before(event_id):
            return False
        self._last_id = event_id or self._last_id
        self._new_events = True
        if self._method is not None:
            self._note(value)
        return True

    @property
    def is_over(self) -> bool:
        """The subscription goes on where the answer to a message would have ended."""
        return self._ended and self._resumed and self._sends

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def is_cut_off(self) -> bool:
        """Whether events may be missing. None are if a new subscription ended at once. Without numbers this can't be told."""
        return self._last_id is not None and self._new_events

    def request(self, request_id: int) -> OutgoingRequest | None:
        if self._method is None or not self._task_id or not (self._last_id or self._only_task):
            return None
        self._resumed, self._new_events = True, False
        params = {"id": self._task_id, **({} if self._sent.tenant is None else {"tenant": self._sent.tenant})}
        others = {
            name: value for name, value in (self._message.service_params or {}).items() if name.lower() != LAST_EVENT_ID
        }
        after = {} if self._last_id is None else {LAST_EVENT_ID: self._last_id}
        return outgoing_request(request_id, self._method.resumed_by, params, {**others, **after})

    def _was_before(self, event_id: str | None) -> bool:
        number, last = number_of(event_id), number_of(self._last_id)
        return number is not None and last is not None and number <= last

    def _note(self, value: Raw) -> None:
        event = _decode(value, _Event)
        if event is None:
            return
        change = event.task or event.status_update or event.artifact_update or event
        is_task = event.task is not None or event.kind == "task"
        self._only_task = self._only_task and is_task
        self._task_id = (change.id if is_task else change.task_id) or self._task_id
        state = change.status.state
        waits = self._sends and state in WAITING and (self._resumed or not is_task)  # one sees first how the task was
        self._ended = change.final or event.message is not None or event.kind == "message" or state in ENDED or waits


def _decode(text: bytes | Raw, kind: type[S]) -> S | None:
    try:
        return decoder_for(kind)(text)
    except DECODE_ERRORS:
        return None
