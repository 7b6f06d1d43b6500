"""The interface of a version of A2A: it reads params and writes results. Implements no version.

In every version, a method's handler is called with the same request: `SendRequest` for the two methods that send,
`TaskRequest` for those about one task, `PushConfig` (with its `task_id`) to set one, `PushConfigRequest` for existing ones,
`ListRequest` for the list, and nothing for the extended card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Raw

from ...daemon.operations.params import Arguments, InputModel
from ...errors.decoders import DECODE_ERRORS, build_decoder
from ...errors.exceptions import FailureError
from ...errors.failures import A2AVersion, AgentFailure, Failure
from ..types import JsonObject, Message, PushConfig, StreamItem, Task, TaskQuery, TaskState, TaskUpdate
from .protojson import has_protobuf_names

W = TypeVar("W")


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


class ProtocolVersion(Protocol):
    """Reads params and writes results as one version of A2A does. Every result is JSON."""

    @property
    def name(self) -> A2AVersion: ...

    def covers(self, version: str) -> bool:
        """Whether a client that asks for this version gets this one: for 1.0, `1.0` and also `1.0.7` (A2A 1.0 section 3.6)."""
        ...

    @property
    def inputs(self) -> Mapping[str, InputModel]:
        """For each method, the decoder of its params. Decoding raises `FailureError(InvalidParams)`, which names the path."""
        ...

    @property
    def empty_result(self) -> Raw:
        """The result of a method that returns nothing."""
        ...

    @property
    def push_config_path(self) -> str:
        """The path of the config in the params of the method that sets a push config; empty if its fields are the params."""
        ...

    @property
    def message_push_config_path(self) -> str:
        """The path of the push config in the params of the methods that send a message."""
        ...

    @property
    def no_extended_card(self) -> Failure:
        """The error for a request for the extended card of an agent that does not declare one."""
        ...

    def state_name(self, state: TaskState) -> str:
        """The state as this version writes it."""
        ...

    def encode_task(self, task: Task, *, history_length: int | None = None) -> Raw:
        """A task, with so many of its last messages (None: all)."""
        ...

    def encode_send_result(self, result: Task | Message, *, history_length: int | None = None) -> Raw:
        """The result of a method that sends a message."""
        ...

    def encode_stream_item(self, item: StreamItem, *, history_length: int | None = None) -> Raw | None:
        """An event of a stream; None for a client's own message, which streams do not repeat."""
        ...

    def encode_notification(self, update: TaskUpdate, task: Callable[[], Task]) -> Raw | None:
        """The body of a push notification; None if the event causes none. `task()`, called if needed, is the current task."""
        ...

    def encode_push_config(self, config: PushConfig) -> Raw:
        """A push config, whose `task_id` is set."""
        ...

    def encode_push_configs(self, configs: Sequence[PushConfig]) -> Raw:
        """All push configs of a task."""
        ...


def covers_version(name: A2AVersion, version: str) -> bool:
    """Whether a version is `name` or a patch release of it, which has the same JSON."""
    return version == name or version.startswith(f"{name}.")


def failure_in(version: ProtocolVersion, failure: Failure) -> Failure:
    """The failure as this version writes it."""
    if not isinstance(failure, AgentFailure):
        return failure
    state, suggestion = failure.current_state, failure.suggestion
    if suggestion is not None and version.name == "0.3":
        suggestion = suggestion.replace("GetTask", "tasks/get")
    return msgspec.structs.replace(
        failure,
        version=version.name,
        current_state=None if state is None else version.state_name(TaskState(state)),
        suggestion=suggestion,
    )


def limit_history(task: Task, history_length: int | None) -> Task:
    """The task with so many of its last messages; None for all, 0 for none (A2A 1.0 section 3.2.4)."""
    if history_length is None or history_length >= len(task.history):
        return task
    return msgspec.structs.replace(task, history=task.history[-history_length:] if history_length else ())


def object_input(
    wire: type[W], convert: Callable[[W, str], Arguments], *, normalize: Callable[[Raw | bytes], bytes] | None = None
) -> InputModel:
    """Params that are one object of type `wire`; unknown members are ignored.

    `convert(params, prefix)` returns the handler's arguments and raises `FailureError(InvalidParams)` for what the type can't
    rule out. `normalize` may rewrite params that were refused or may have names of the protobuf. They are then read again, and
    the faults left are reported.
    """
    read = build_decoder(wire)

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Arguments:
        text: Raw | bytes = b"{}" if raw is None else raw
        if normalize is not None and has_protobuf_names(text):
            return convert(_read_again(text, prefix), prefix)
        try:
            return convert(read(text), prefix)
        except DECODE_ERRORS:
            pass  # leave the handler: an exception raised here would carry msgspec's text as its context
        return convert(_read_again(text, prefix), prefix)

    def _read_again(text: Raw | bytes, prefix: str) -> Any:
        if normalize is not None:
            text = normalize(text)
            try:
                return read(text)
            except DECODE_ERRORS:
                pass

        from ...daemon.operations.input_errors import find_input_error  # late: a valid request does not need it

        raise FailureError(find_input_error(wire, text, prefix=prefix))

    names = tuple(each.encode_name for each in msgspec.structs.fields(wire))  # type: ignore[arg-type]
    return InputModel(wire, names, None, takes_context=True, keyword_only=(), decode=decode)


def join_path(prefix: str, path: str) -> str:
    """The path of a member in the caller's params. `prefix` is the path of the object that was decoded; empty for the whole."""
    return f"{prefix}.{path}" if prefix else path
