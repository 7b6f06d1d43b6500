"""What a dialect of A2A is to the rest of the agent: it reads params and writes results. Knows neither of the two.

Whatever the dialect, a method's handler is called with the same request: `SendRequest` for the two that send, `TaskRequest`
for those of one task, `PushConfig` (its `task_id` is set) to put one, `ConfigRequest` for one that is there, `ListRequest`
for the list, and nothing for the extended card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Raw

from ....errors.exceptions import FailureError
from ....errors.failures import Dialect as DialectName
from ....errors.failures import Failure
from ...operations.decoders import Values
from ...operations.msgspec_errors import REFUSALS
from ...operations.params import InputModel
from ..model.types import JsonObject, Message, PushConfig, Task, TaskState
from ..requests import StreamItem, TaskUpdate
from ..stores.interface import Query

W = TypeVar("W")


class TaskRequest(msgspec.Struct, frozen=True):
    """What is asked of one task. `history` is how many messages the answer may hold, None for all."""

    task_id: str
    metadata: JsonObject | None = None
    history: int | None = None


class ConfigRequest(msgspec.Struct, frozen=True):
    """Which push config is meant; without an id all, or the first."""

    task_id: str
    config_id: str | None = None


class ListRequest(msgspec.Struct, frozen=True):
    """Which tasks are wanted, and how much of their history. The query's scope is the caller's: it is not set here."""

    query: Query
    history: int | None = None


class Dialect(Protocol):
    """How callers of one version of A2A are understood and answered. What it writes is JSON."""

    @property
    def name(self) -> DialectName: ...

    def speaks(self, version: str) -> bool:
        """Whether this is the dialect of a version that a caller names: `1.0`, and `1.0.7` too (3.6 of 1.0)."""
        ...

    @property
    def inputs(self) -> Mapping[str, InputModel]:
        """By method, how its params become a request. Decoding raises `FailureError(InvalidParams)` with the path."""
        ...

    @property
    def nothing(self) -> Raw:
        """The result of a method that has none."""
        ...

    @property
    def config_path(self) -> str:
        """Where in the params of the method that puts one a push config stands; empty where they are it."""
        ...

    @property
    def sent_config_path(self) -> str:
        """Where it stands in what comes with a message."""
        ...

    @property
    def without_extended_card(self) -> Failure:
        """What a caller is told who asks an agent for an extended card that does not announce one."""
        ...

    def state_name(self, state: TaskState) -> str:
        """The state as this dialect writes it."""
        ...

    def task(self, task: Task, *, history: int | None = None) -> Raw:
        """The task, with so many of its last messages (None: all)."""
        ...

    def sent(self, result: Task | Message, *, history: int | None = None) -> Raw:
        """The result of a message that was sent."""
        ...

    def streamed(self, item: StreamItem, *, history: int | None = None) -> Raw | None:
        """One event of a stream; None for what subscribers aren't told, which is what clients said."""
        ...

    def pushed(self, happened: TaskUpdate, task: Callable[[], Task]) -> Raw | None:
        """The body of a push notification, None where there is none. `task` gives the task as it is; not always asked."""
        ...

    def push_config(self, config: PushConfig) -> Raw:
        """One push config; its `task_id` is set."""
        ...

    def push_configs(self, configs: Sequence[PushConfig]) -> Raw:
        """All push configs of a task."""
        ...


def same_version(name: DialectName, version: str) -> bool:
    """Whether a version is that of the dialect; what stands behind the second number changes no JSON."""
    return f"{version}.".startswith(f"{name}.")


def last_of(task: Task, history: int | None) -> Task:
    """The task with so many of its last messages; None for all, 0 for none (A2A 1.0 section 3.2.4)."""
    if history is None or history >= len(task.history):
        return task
    return msgspec.structs.replace(task, history=task.history[-history:] if history else ())


def whole_input(
    wire: type[W], convert: Callable[[W, str], Values], *, mend: Callable[[Raw | bytes], bytes] | None = None
) -> InputModel:
    """Input that is one object, of which members that nobody knows are ignored.

    `convert(params, prefix)` gives the handler's arguments and raises `FailureError(InvalidParams)` for what no type can
    say. `mend` may rewrite a text that was refused; what is still wrong with it then is told.
    """
    read = msgspec.json.Decoder(wire).decode

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Values:
        text: Raw | bytes = b"{}" if raw is None else raw
        try:
            return convert(read(text), prefix)
        except REFUSALS:
            pass  # and forget msgspec's words: an exception raised in here would carry them
        return convert(_read_again(text, prefix), prefix)

    def _read_again(text: Raw | bytes, prefix: str) -> Any:
        if mend is not None:
            text = mend(text)
            try:
                return read(text)
            except REFUSALS:
                pass
        from ...operations.input_errors import find_fault  # late: a good request does not need it

        raise FailureError(find_fault(wire, text, prefix=prefix))

    names = tuple(each.encode_name for each in msgspec.structs.fields(wire))  # type: ignore[arg-type]
    return InputModel(wire, names, None, context=True, keywords=(), decode=decode)


def path(prefix: str, place: str) -> str:
    """Where in the caller's own params something stands."""
    return f"{prefix}.{place}" if prefix else place
