"""A version of A2A: reads params and writes results. Its three instances are `V10`, `V03` and `V03_REST`.

In every version, a method's handler is called with the same request: `SendRequest` for the two methods that send,
`TaskRequest` for those about one task, `PushConfig` (with its `task_id`) to set one, `PushConfigRequest` for existing ones,
`ListRequest` for the list, and nothing for the extended card.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, assert_never

import msgspec
from msgspec import Raw

from ..daemon.operations.params import Arguments, InputModel
from ..errors.decoders import DECODE_ERRORS, build_decoder
from ..errors.exceptions import FailureError
from ..errors.failures import A2AVersion, AgentFailure, ExtendedAgentCardNotConfigured, Failure, UnsupportedOperation
from .card import AgentCard
from .types import (
    ArtifactChanged,
    ExecutionBegun,
    JsonObject,
    Message,
    MessageAdded,
    MessageRefused,
    PushConfig,
    StatusChanged,
    StepStored,
    StreamItem,
    Task,
    TaskCreated,
    TaskQuery,
    TaskState,
    TaskUpdate,
)

_encode: Final = msgspec.json.Encoder().encode


class TaskRequest(msgspec.Struct, frozen=True):
    """A request about one task. `history_length` limits the messages in the result; None is the whole history."""

    task_id: str
    metadata: JsonObject | None = None
    history_length: int | None = None


class PushConfigRequest(msgspec.Struct, frozen=True):
    """A request about one push config of a task; without an id, about the first or about all."""

    task_id: str
    config_id: str | None = None


class ListRequest(msgspec.Struct, frozen=True):
    """A request for a page of tasks. `query.scope` is empty; the handler sets it to the caller's."""

    query: TaskQuery
    history_length: int | None = None


class ProtocolVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Reads params and writes results as one version of A2A does. Every result is JSON.

    `inputs` has the decoder of the params of each method; decoding raises `FailureError(InvalidParams)`, which names the path.
    `states` are the words for the states of a task. `empty_result` is that of a method that returns nothing. `push_config_path`
    is the path of the config in the params of the method that sets a push config, empty if its fields are the params, and
    `message_push_config_path` that in the params of the methods that send a message. `no_extended_card` is the error for a
    request for the extended card of an agent that declares none. A subscription ends with one of the states `subscribe_until`.

    `card`, `task`, `result` (of a message that was sent), `update` (in a stream) and `push_config` make what is written of these.
    """

    name: A2AVersion
    inputs: Mapping[str, InputModel]
    states: Mapping[TaskState, str]
    empty_result: Raw
    push_config_path: str
    message_push_config_path: str
    no_extended_card: UnsupportedOperation | ExtendedAgentCardNotConfigured
    subscribe_until: frozenset[TaskState]
    card: Callable[[AgentCard], object]
    task: Callable[[Task], object]
    result: Callable[[Task | Message], object]
    update: Callable[[TaskUpdate, StatusChanged | ArtifactChanged], object]
    push_config: Callable[[PushConfig], object]
    push_configs: Callable[[Sequence[Any]], object]  # Any: what `push_config` makes

    def covers(self, version: str) -> bool:
        """Whether a client that asks for this version gets this one: for 1.0, `1.0` and also `1.0.7` (A2A 1.0 section 3.6)."""
        return covers_version(self.name, version)

    def encode_task(self, task: Task, *, history_length: int | None = None) -> Raw:
        """A task, with so many of its last messages (None: all)."""
        return Raw(_encode(self.task(limit_history(task, history_length))))

    def encode_send_result(self, result: Task | Message, *, history_length: int | None = None) -> Raw:
        """The result of a method that sends a message."""
        if history_length is not None and isinstance(result, Task):
            result = limit_history(result, history_length)
        return Raw(_encode(self.result(result)))

    def encode_stream_item(self, item: StreamItem, *, history_length: int | None = None) -> Raw | None:
        """An event of a stream; None for a client's own message, which streams do not repeat."""
        if not isinstance(item, TaskUpdate):
            return self.encode_send_result(item, history_length=history_length)
        match item.event:
            case MessageRefused():
                return None
            case StatusChanged() | ArtifactChanged() as event:
                return Raw(_encode(self.update(item, event)))
            case TaskCreated(task):
                return self.encode_send_result(task, history_length=history_length)
            case MessageAdded() | ExecutionBegun() | StepStored():
                return None
            case _:
                assert_never(item.event)

    def encode_notification(self, update: TaskUpdate, task: Callable[[], Task]) -> Raw | None:
        """The body of a push notification; None if the event causes none. `task()`, called if needed, is the current task.

        In 1.0 it is the event as a subscriber gets it (4.3.3). In 0.3 it is the whole task at each new status: at each artifact
        chunk, too, it would be quadratic.
        """
        if self.name != "0.3":
            return self.encode_stream_item(update)
        return self.encode_task(task()) if isinstance(update.event, TaskCreated | StatusChanged) else None

    def encode_push_config(self, config: PushConfig) -> Raw:
        """A push config, whose `task_id` is set."""
        return Raw(_encode(self.push_config(config)))

    def encode_push_configs(self, configs: Sequence[PushConfig]) -> Raw:
        """All push configs of a task."""
        return Raw(_encode(self.push_configs([*map(self.push_config, configs)])))


def covers_version(name: A2AVersion, version: str) -> bool:
    """Whether a version is `name` or a patch release of it, which has the same JSON."""
    return version == name or version.startswith(f"{name}.")


_NAMES_03: Final[Mapping[str, str]] = {
    "GetTask": "tasks/get",
    "SendMessage": "message/send",
    "SubscribeToTask": "tasks/resubscribe",
}
"""The methods that suggestions name, by their names in 1.0."""


def failure_in(version: ProtocolVersion, failure: Failure) -> Failure:
    """The failure as this version writes it."""
    if not isinstance(failure, AgentFailure):
        return failure
    state, suggestion = failure.current_state, failure.suggestion
    if suggestion is not None and version.name == "0.3":
        for name, name_03 in _NAMES_03.items():
            suggestion = suggestion.replace(name, name_03)
    return msgspec.structs.replace(
        failure,
        version=version.name,
        current_state=None if state is None else version.states[TaskState(state)],
        suggestion=suggestion,
    )


def limit_history(task: Task, history_length: int | None) -> Task:
    """The task with so many of its last messages; None for all, 0 for none (A2A 1.0 section 3.2.4)."""
    if history_length is None or history_length >= len(task.history):
        return task
    return msgspec.structs.replace(task, history=task.history[-history_length:] if history_length else ())


# -- reading -----------------------------------------------------------------------------------------------------------

W = TypeVar("W")

_END_OF_PROTOBUF_NAME: Final = re.compile(rb'_[a-z]{1,32}"\s*:')  # its first letter is a literal: that is what is fast
_ESCAPE: Final = rb"\u005"  # of an underscore, and of some others


def object_input(wire: type[W], convert: Callable[[W, str], Arguments], *, protojson: bool = False) -> InputModel:
    """Read params that are one object of type `wire`; unknown members are ignored.

    `convert(params, prefix)` returns the handler's arguments and raises `FailureError(InvalidParams)` for what the type can't
    rule out. With `protojson`, params that were refused or may have names of the protobuf are normalized and read again; the
    faults left are reported.
    """
    read = build_decoder(wire)

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Arguments:
        text: Raw | bytes = b"{}" if raw is None else raw
        if protojson and has_protobuf_names(text):
            return convert(_read_again(text, prefix), prefix)
        try:
            return convert(read(text), prefix)
        except DECODE_ERRORS:
            pass  # leave the handler: an exception raised here would carry msgspec's text as its context
        return convert(_read_again(text, prefix), prefix)

    def _read_again(text: Raw | bytes, prefix: str) -> Any:
        if protojson:
            from .protojson import normalize  # late: most params need it never

            text = normalize(text, wire)
            try:
                return read(text)
            except DECODE_ERRORS:
                pass

        from ..daemon.operations.input_errors import find_input_error  # late: a valid request does not need it

        raise FailureError(find_input_error(wire, text, prefix=prefix))

    names = tuple(each.encode_name for each in msgspec.structs.fields(wire))  # type: ignore[arg-type]
    return InputModel(wire, names, None, takes_context=True, keyword_only=(), decode=decode)


def join_path(prefix: str, path: str) -> str:
    """The path of a member in the caller's params. `prefix` is the path of the object that was decoded; empty for the whole."""
    return f"{prefix}.{path}" if prefix else path


def has_protobuf_names(text: Raw | bytes) -> bool:
    """Whether the text may have names of the protobuf, which msgspec would ignore. Also true for some others."""
    data = bytes(text)
    return _END_OF_PROTOBUF_NAME.search(data) is not None or _ESCAPE in data
