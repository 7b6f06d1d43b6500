"""The 1.0 dialect. Its JSON is that of the core model, which is written as it stands; what is read is ProtoJSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final, TypeAlias, TypeVar, assert_never, final

import msgspec
from msgspec import Meta, Raw, field

from ....errors.exceptions import FailureError
from ....errors.failures import Dialect as DialectName
from ....errors.failures import Failure, InvalidParams, UnsupportedOperation
from ...operations.decoders import Values
from ...operations.params import InputModel
from ..model.timestamps import at_or_after
from ..model.types import (
    Artifact,
    ArtifactChanged,
    Authentication,
    Created,
    JsonObject,
    Message,
    MessageAdded,
    Name,
    PushConfig,
    SendConfiguration,
    StatusChanged,
    Task,
    TaskPage,
    TaskState,
    TaskStatus,
    Wire,
)
from ..requests import SendRequest, StreamItem, TaskUpdate
from ..stores.interface import Listed, Query
from .protojson import mending
from .version import ConfigRequest, Dialect, ListRequest, TaskRequest, last_of, path, same_version, whole_input

CONTENT: Final = ("text", "raw", "url", "data")
"""A part has exactly one of these (4.1.6)."""

_W = TypeVar("_W")
_Count: TypeAlias = Annotated[int, Meta(ge=0)]

_encode: Final = msgspec.json.Encoder().encode
_NO_CONFIGURATION: Final = SendConfiguration()


# -- params ------------------------------------------------------------------------------------------------------------


class _Send(Wire, frozen=True):
    message: Message
    configuration: SendConfiguration | None = None
    metadata: JsonObject | None = None
    tenant: str | None = None


class _Get(Wire, frozen=True):
    task_id: Name = field(name="id")
    history_length: _Count | None = None
    tenant: str | None = None


class _List(Wire, frozen=True):
    context_id: str | None = None
    status: TaskState | None = None
    page_size: Annotated[int, Meta(ge=1, le=100)] | None = None
    page_token: str | None = None
    history_length: _Count | None = None
    status_timestamp_after: Annotated[datetime, Meta(tz=True)] | None = None
    include_artifacts: bool | None = None
    tenant: str | None = None


class _Cancel(Wire, frozen=True):
    task_id: Name = field(name="id")
    metadata: JsonObject | None = None
    tenant: str | None = None


class _Subscribe(Wire, frozen=True):
    task_id: Name = field(name="id")
    tenant: str | None = None


class _CreateConfig(Wire, frozen=True):
    task_id: Name
    url: Name
    config_id: str | None = field(name="id", default=None)
    token: str | None = None
    authentication: Authentication | None = None
    tenant: str | None = None


class _OneConfig(Wire, frozen=True):
    task_id: Name
    config_id: Name = field(name="id")
    tenant: str | None = None


class _ListConfigs(Wire, frozen=True):
    """All of them come on one page: `pageSize` and `pageToken` are for servers that have several (3.1.9)."""

    task_id: Name
    tenant: str | None = None


class _GetCard(Wire, frozen=True):
    tenant: str | None = None


def _send(params: _Send, prefix: str) -> Values:
    for index, part in enumerate(params.message.parts):
        if part.contents != 1:
            place = path(prefix, f"message.parts[{index}]")
            raise FailureError(InvalidParams(place, "object with exactly one of", "object", CONTENT))
    configuration = params.configuration or _NO_CONFIGURATION
    if configuration.accepted_output_modes == ():  # to protobuf, none are as good as no list
        configuration = msgspec.structs.replace(configuration, accepted_output_modes=None)
    return (SendRequest(params.message, configuration, params.metadata),)


def _list(params: _List, _: str) -> Values:
    after = params.status_timestamp_after
    query = Query(
        scope="",
        context_id=params.context_id or None,
        state=params.status,
        after=None if after is None else at_or_after(after),
        token=params.page_token or "",
        artifacts=params.include_artifacts is True,
    )
    if params.page_size is not None:
        query = msgspec.structs.replace(query, size=params.page_size)
    return (ListRequest(query, params.history_length),)


def _create_config(params: _CreateConfig, _: str) -> Values:
    config = PushConfig(
        params.url,
        params.config_id or None,
        params.task_id,
        params.token or None,
        params.authentication,
        params.tenant or None,
    )
    return (config,)


def _input(wire: type[_W], convert: Callable[[_W, str], Values]) -> InputModel:
    return whole_input(wire, convert, mend=mending(wire))


def _inputs() -> dict[str, InputModel]:
    send = _input(_Send, _send)
    one_config = _input(_OneConfig, lambda params, _: (ConfigRequest(params.task_id, params.config_id),))
    return {
        "SendMessage": send,
        "SendStreamingMessage": send,
        "GetTask": _input(_Get, lambda params, _: (TaskRequest(params.task_id, history=params.history_length),)),
        "ListTasks": _input(_List, _list),
        "CancelTask": _input(_Cancel, lambda params, _: (TaskRequest(params.task_id, params.metadata),)),
        "SubscribeToTask": _input(_Subscribe, lambda params, _: (TaskRequest(params.task_id),)),
        "CreateTaskPushNotificationConfig": _input(_CreateConfig, _create_config),
        "GetTaskPushNotificationConfig": one_config,
        "ListTaskPushNotificationConfigs": _input(_ListConfigs, lambda params, _: (ConfigRequest(params.task_id),)),
        "DeleteTaskPushNotificationConfig": one_config,
        "GetExtendedAgentCard": _input(_GetCard, lambda _params, _: ()),
    }


# -- results -----------------------------------------------------------------------------------------------------------


class _StatusUpdate(Wire, frozen=True):
    """4.2.1"""

    task_id: str
    context_id: str
    status: TaskStatus
    metadata: JsonObject | None = None


class _ArtifactUpdate(Wire, frozen=True):
    """4.2.2"""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject | None = None


class _Response(Wire, frozen=True):
    """`SendMessageResponse` and `StreamResponse` (3.2.3): exactly one of these."""

    task: Task | None = None
    message: Message | None = None
    status_update: _StatusUpdate | None = None
    artifact_update: _ArtifactUpdate | None = None


class _Configs(Wire, frozen=True):
    configs: tuple[PushConfig, ...]


@final
class _V10:
    """See `Dialect`."""

    name: DialectName = "1.0"
    nothing: Raw = Raw(b"{}")
    config_path: str = ""
    sent_config_path: str = "configuration.taskPushNotificationConfig"
    without_extended_card: Failure = UnsupportedOperation()  # 3.3.4

    def __init__(self) -> None:
        self.inputs: Mapping[str, InputModel] = _inputs()

    def speaks(self, version: str) -> bool:
        return same_version(self.name, version)

    def state_name(self, state: TaskState) -> str:
        return state.value

    def task(self, task: Task, *, history: int | None = None) -> Raw:
        return Raw(_encode(last_of(task, history)))

    def sent(self, result: Task | Message, *, history: int | None = None) -> Raw:
        if isinstance(result, Task):
            return Raw(_encode(_Response(last_of(result, history))))
        return Raw(_encode(_Response(message=result)))

    def streamed(self, item: StreamItem, *, history: int | None = None) -> Raw | None:
        if not isinstance(item, TaskUpdate):
            return self.sent(item, history=history)
        match item.event:
            case StatusChanged(status, metadata):
                update = _StatusUpdate(item.task_id, item.context_id, status, metadata)
                return Raw(_encode(_Response(status_update=update)))
            case ArtifactChanged(artifact, append, last_chunk, metadata):
                change = _ArtifactUpdate(item.task_id, item.context_id, artifact, append, last_chunk, metadata)
                return Raw(_encode(_Response(artifact_update=change)))
            case Created(task):
                return self.sent(task, history=history)
            case MessageAdded():
                return None
            case _:
                assert_never(item.event)

    def pushed(self, happened: TaskUpdate, task: Callable[[], Task]) -> Raw | None:
        """What a subscriber would be told (4.3.3)."""
        return self.streamed(happened)

    def push_config(self, config: PushConfig) -> Raw:
        return Raw(_encode(config))

    def push_configs(self, configs: Sequence[PushConfig]) -> Raw:
        return Raw(_encode(_Configs(tuple(configs))))


def page(listed: Listed, request: ListRequest) -> Raw:
    """One page of tasks (3.1.4)."""
    tasks = tuple(last_of(task, request.history) for task in listed.tasks)
    return Raw(_encode(TaskPage(tasks, listed.next_token, request.query.size, listed.total)))


V10: Final[Dialect] = _V10()
