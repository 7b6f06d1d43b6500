"""What the request handler takes and gives: who calls, what is sent, what a stream is made of. Holds data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from ..a2a.types import JsonObject, Message, SendConfiguration, Task, TaskEvent
from ..daemon.operations.identity import Identity

if TYPE_CHECKING:
    from .editor import Turn


class Caller(msgspec.Struct, frozen=True):
    """Who calls, and how. A caller sees the tasks of its own `scope` only; its push notifications are in its `version`.

    `turn` is the prompt that the call serves, where the caller has an editor: its message always gets a task.
    """

    scope: str
    version: str
    identity: Identity | None = None
    extensions: tuple[str, ...] = ()
    service_params: Mapping[str, str] = {}
    turn: Turn | None = None


class SendRequest(msgspec.Struct, frozen=True):
    """The params of the two methods that send a message to the agent (A2A 1.0 sections 3.1.1 and 3.1.2)."""

    message: Message
    configuration: SendConfiguration = SendConfiguration()
    metadata: JsonObject | None = None


class TaskUpdate(msgspec.Struct, frozen=True):
    """An event with the ids of its task, for streams and push notifications. In streams `generation` is its number."""

    task_id: str
    context_id: str
    event: TaskEvent
    generation: int = 0


StreamItem: TypeAlias = Task | Message | TaskUpdate
"""One item of a stream. A stream is either one reply, or a task and then its updates."""
