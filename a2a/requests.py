"""What an agent is asked for and what it gives: messages to send, lists of tasks, the items of streams. Holds data only."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from .types import JsonObject, Message, SendConfiguration, Task, TaskEvent, TaskState


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


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks to list. None matches every task.

    `status_timestamp_after` matches statuses of this timestamp and later ones. `page_size` is 1 to `MAX_PAGE_SIZE`.
    `page_token` is empty for the first page. Without `include_artifacts`, tasks are returned without artifacts, which saves
    reading them.
    """

    scope: str
    context_id: str | None = None
    state: TaskState | None = None
    status_timestamp_after: str | None = None
    page_size: int = 50
    page_token: str = ""
    include_artifacts: bool = True


class UnreadableTask(msgspec.Struct, frozen=True):
    """A task whose content is damaged: what the store's indexes say of it. `context_id` is empty where they do not tell."""

    id: str
    context_id: str
    state: TaskState


class TaskPage(msgspec.Struct, frozen=True):
    """One page of a list: the tasks, last changed first; the token of the next page, empty on the last one; and how many
    tasks match in all. `unreadable` are those that would be on the page too."""

    tasks: tuple[Task, ...]
    next_page_token: str
    total_size: int
    unreadable: tuple[UnreadableTask, ...] = ()
