"""The events of an agent as typed objects. Sends nothing itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, TypeAlias, final

from ...a2a.results import SendResponse, TaskArtifactUpdate, TaskStatusUpdate
from ...a2a.types import Message, Task
from ..errors import InvalidReply
from ..subscription import ASYNC_FOR, Subscription

AgentEvent: TypeAlias = Task | Message | TaskStatusUpdate | TaskArtifactUpdate
"""One event of a stream: a task as it is, an agent's reply without a task, or what has changed of a task."""


@final
class EventStream(AsyncIterator[AgentEvent]):
    """The events of one stream, in order. It begins and ends as `Subscription` does; `async with` ends it with the block."""

    def __init__(self, events: Subscription[SendResponse]) -> None:
        self._events = events

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentEvent:
        return event_of(await anext(self._events))

    async def aclose(self) -> None:
        """End the stream. The task goes on."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._events.__aexit__(kind, exc, traceback)

    if not TYPE_CHECKING:  # type checkers report these by themselves

        def __await__(self) -> NoReturn:
            raise TypeError(f"not to be awaited: {ASYNC_FOR}")

        def __iter__(self) -> NoReturn:
            raise TypeError(f"not for a plain `for`: {ASYNC_FOR}")


def event_of(response: SendResponse) -> AgentEvent:
    """The member that is set. Raises `InvalidReply` where none is."""
    event = response.task or response.message or response.status_update or response.artifact_update
    if event is None:
        raise InvalidReply("the agent's answer holds neither a task nor a message nor an update")
    return event
