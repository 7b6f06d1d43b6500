"""The methods of A2A 1.0 with typed params and results. Keeps no task and decides nothing about any."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypedDict, TypeVar, Unpack, final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ...a2a.card import AgentCard
from ...a2a.types import (
    Artifact,
    Authentication,
    JsonObject,
    Message,
    Part,
    PushConfig,
    Role,
    SendConfiguration,
    Task,
    TaskState,
    new_id,
)
from ...a2a.v10_model import (
    CancelParams,
    CreateConfigParams,
    GetCardParams,
    GetParams,
    ListConfigsParams,
    ListParams,
    OneConfigParams,
    PushConfigList,
    SendParams,
    SendResponse,
    SubscribeParams,
    TaskArtifactUpdate,
    TaskList,
    TaskStatusUpdate,
)
from ..errors import InvalidReply
from ..peer import Peer
from ..subscription import Subscription

if TYPE_CHECKING:
    from ...a2a.signing import CardKeys

AgentEvent: TypeAlias = Task | Message | TaskStatusUpdate | TaskArtifactUpdate
"""One event of a stream: a task as it is, an agent's reply without a task, or what has changed of a task."""

EventStream: TypeAlias = Subscription[AgentEvent]
"""The events of one stream, in order. Ending it does not end the task."""


def event_of(response: SendResponse) -> AgentEvent:
    """Return the member that is set. Raises `InvalidReply` if none is."""
    event = response.task or response.message or response.status_update or response.artifact_update
    if event is None:
        raise InvalidReply("the agent's answer holds neither a task nor a message nor an update")
    return event


Content: TypeAlias = str | Part | Sequence[Part] | Message
"""The content of a message: text, one part or several, or a whole message."""


def message_of(content: Content, *, task_id: str | None = None, context_id: str | None = None) -> Message:
    """The message of a user, with an id of its own. Raises `TypeError` and `ValueError` for what is no content.

    A whole message keeps its id and its ids of task and context, unless others are given.
    """
    if isinstance(content, Message):
        return replace(content, task_id=task_id or content.task_id, context_id=context_id or content.context_id)
    return Message(new_id(), Role.USER, _parts(content), context_id=context_id, task_id=task_id)


def _parts(content: str | Part | Sequence[Part]) -> tuple[Part, ...]:
    parts = (Part(text=content),) if isinstance(content, str) else (content,) if isinstance(content, Part) else content
    if not isinstance(parts, Sequence) or not all(isinstance(part, Part) for part in parts):
        raise TypeError(f"content must be a text, a Part, several of them or a Message, not {content!r}")
    if not parts:
        raise ValueError("content must have at least one part")
    if any(part.content_count != 1 for part in parts):
        raise ValueError("a Part must have exactly one of text, raw, url and data")
    return tuple(parts)


def text_of(content: Message | Artifact) -> str:
    """Return the text parts of a message or an artifact, one per line."""
    return "\n".join(part.text for part in content.parts if part.text is not None)


class SendOptions(TypedDict, total=False):
    """The options of a message: the task that it goes on with, the context of a new one, and other facts of A2A."""

    task_id: str | None
    context_id: str | None
    configuration: SendConfiguration | None
    metadata: JsonObject | None


T = TypeVar("T")


@final
class AgentClient:
    """An agent at the other end. Every method raises as `Peer.call` does: `TaskNotFound`, `UnsupportedOperation`, ….

    `card` is the public card of an agent that was reached by HTTP; None over stdio. `tenant` is sent with every request if the
    card's interface names one. `peer` is the `Peer` underneath, for methods that this class lacks.
    """

    def __init__(
        self, peer: Peer, *, card: AgentCard | None = None, tenant: str | None = None, keys: CardKeys | None = None
    ) -> None:
        self.peer = peer
        self.card = card
        self._tenant = tenant
        self._keys = keys

    # -- messages ----------------------------------------------------------------------------------------------

    async def send(
        self,
        content: Content,
        *,
        timeout: float | None = None,
        service_params: Mapping[str, str] | None = None,
        **options: Unpack[SendOptions],
    ) -> Task | Message:
        """Send a message. Returns the task once it has ended or waits for its caller, or the agent's reply.

        With `SendConfiguration(return_immediately=True)` it returns the task at once. `timeout` is in seconds; without one it
        waits as long as the task takes. A cancellation or a time-out ends the waiting and not the task.
        """
        params = self._send_params(content, **options)
        response = await self._call("SendMessage", params, SendResponse, timeout, service_params)
        match event_of(response):
            case Task() | Message() as result:
                return result
            case _:
                raise InvalidReply("the answer to SendMessage is neither a task nor a message")

    def stream(
        self,
        content: Content,
        *,
        timeout: float | None = None,
        service_params: Mapping[str, str] | None = None,
        **options: Unpack[SendOptions],
    ) -> EventStream:
        """Send a message and return a stream: the task and its updates until it ends or waits for its caller, or the agent's
        reply.

        `timeout` is how many seconds to wait for each event.
        """
        params = self._send_params(content, **options)
        return self._stream("SendStreamingMessage", params, timeout, service_params)

    def _send_params(
        self,
        content: Content,
        *,
        task_id: str | None = None,
        context_id: str | None = None,
        configuration: SendConfiguration | None = None,
        metadata: JsonObject | None = None,
    ) -> SendParams:
        message = message_of(content, task_id=task_id, context_id=context_id)
        return SendParams(message, configuration, metadata, self._tenant)

    # -- tasks -------------------------------------------------------------------------------------------------

    async def get(self, task_id: str, *, history_length: int | None = None) -> Task:
        """Return a task with its last `history_length` messages; None for all."""
        return await self._call("GetTask", GetParams(task_id, history_length, self._tenant), Task)

    async def list(
        self,
        *,
        context_id: str | None = None,
        status: TaskState | None = None,
        status_timestamp_after: datetime | None = None,
        history_length: int | None = None,
        include_artifacts: bool | None = None,
        page_size: int | None = None,
    ) -> AsyncGenerator[Task, None]:
        """Yield the caller's tasks, the last changed first. Asks for a page when its first task is taken."""
        params = ListParams(
            context_id=context_id,
            status=status,
            page_size=page_size,
            history_length=history_length,
            status_timestamp_after=status_timestamp_after,
            include_artifacts=include_artifacts,
            tenant=self._tenant,
        )
        while True:
            page = await self._call("ListTasks", params, TaskList)
            for task in page.tasks:
                yield task
            if not page.next_page_token:
                return
            if page.next_page_token == params.page_token:
                raise InvalidReply("a page of ListTasks names itself as the next one")
            params = msgspec.structs.replace(params, page_token=page.next_page_token)

    async def cancel(self, task_id: str, *, metadata: JsonObject | None = None) -> Task:
        """Cancel a task. Returns the task as it is afterwards. Raises `TaskNotCancelable`."""
        return await self._call("CancelTask", CancelParams(task_id, metadata, self._tenant), Task)

    def subscribe(
        self, task_id: str, *, timeout: float | None = None, service_params: Mapping[str, str] | None = None
    ) -> EventStream:
        """Return a stream: the task as it is, then its updates until it ends. `timeout` is how many seconds to wait for each
        event."""
        return self._stream("SubscribeToTask", SubscribeParams(task_id, self._tenant), timeout, service_params)

    # -- push notifications ------------------------------------------------------------------------------------

    async def create_push_config(
        self,
        task_id: str,
        url: str,
        *,
        config_id: str | None = None,
        token: str | None = None,
        authentication: Authentication | None = None,
    ) -> PushConfig:
        """Create a push config: the agent then sends the task's updates to a URL. Returns the config with its id."""
        params = CreateConfigParams(task_id, url, config_id, token, authentication, self._tenant)
        return await self._call("CreateTaskPushNotificationConfig", params, PushConfig)

    async def get_push_config(self, task_id: str, config_id: str) -> PushConfig:
        """Return one push config of a task."""
        params = OneConfigParams(task_id, config_id, self._tenant)
        return await self._call("GetTaskPushNotificationConfig", params, PushConfig)

    async def list_push_configs(self, task_id: str) -> tuple[PushConfig, ...]:
        """Return all push configs of a task."""
        params = ListConfigsParams(task_id, self._tenant)
        return (await self._call("ListTaskPushNotificationConfigs", params, PushConfigList)).configs

    async def delete_push_config(self, task_id: str, config_id: str) -> None:
        """Delete a push config of a task."""
        params = OneConfigParams(task_id, config_id, self._tenant)
        await self.peer.call("DeleteTaskPushNotificationConfig", params)

    # -- the card ----------------------------------------------------------------------------------------------

    async def extended_card(self) -> AgentCard:
        """Return the card for callers that have authenticated. Raises `InvalidReply` for one that is not signed as asked."""
        from .card import read_card  # late: HTTP takes time to load

        return read_card(await self._call("GetExtendedAgentCard", GetCardParams(self._tenant), msgspec.Raw), self._keys)

    # -- steps -------------------------------------------------------------------------------------------------

    async def _call(
        self,
        method: str,
        params: msgspec.Struct,
        kind: type[T],
        timeout: float | None | UnsetType = UNSET,
        service_params: Mapping[str, str] | None = None,
    ) -> T:
        return await self.peer.call(method, params, type=kind, timeout=timeout, service_params=service_params)

    def _stream(
        self, method: str, params: msgspec.Struct, timeout: float | None, service_params: Mapping[str, str] | None
    ) -> EventStream:
        events = self.peer.subscribe(method, params, type=SendResponse, timeout=timeout, service_params=service_params)
        return events.mapped(event_of)
