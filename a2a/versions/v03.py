"""A2A 0.3: reads its params and writes its results. Converts between the model and the structs of `v03_model`.

Leaves out what 0.3 can't express: file name and media type of parts that are not files, tenants, all authentication schemes
but the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, assert_never, final

import msgspec
from msgspec import Raw

from ...daemon.operations.decoders import Arguments
from ...daemon.operations.params import InputModel
from ...errors.exceptions import FailureError
from ...errors.failures import A2AVersion, ExtendedAgentCardNotConfigured, Failure, InvalidParams
from ..errors import NO_EXTENDED_CARD, USE_PUBLIC_CARD
from ..requests import SendRequest, StreamItem, TaskUpdate
from ..states import INACTIVE
from ..types import (
    ArtifactChanged,
    ExecutionBegun,
    Message,
    MessageAdded,
    PushConfig,
    StatusChanged,
    Task,
    TaskCreated,
    TaskState,
)
from .v03_model import (
    ArtifactUpdate03,
    CardParams03,
    ConfigParams03,
    DeleteConfigParams03,
    GetConfigParams03,
    GetParams03,
    SendParams03,
    StatusUpdate03,
    TaskParams03,
    TaskPushConfig03,
)
from .v03_requests import configuration_from_v03, message_from_v03, push_config_from_v03
from .v03_responses import (
    STATE_NAMES,
    artifact_to_v03,
    message_to_v03,
    push_config_to_v03,
    status_to_v03,
    task_to_v03,
)
from .version import (
    ProtocolVersion,
    PushConfigRequest,
    TaskRequest,
    covers_version,
    join_path,
    limit_history,
    object_input,
)

_encode: Final = msgspec.json.Encoder().encode


def _send(params: SendParams03, prefix: str) -> Arguments:
    if params.message.role != "user":
        path = join_path(prefix, "message.role")
        raise FailureError(InvalidParams(path, "one of", params.message.role, ("user",)))
    message = message_from_v03(params.message, join_path(prefix, "message"))
    if params.configuration is None:
        return (SendRequest(message, metadata=params.metadata),)
    configuration = configuration_from_v03(params.configuration, join_path(prefix, "configuration"))
    return (SendRequest(message, configuration, params.metadata),)


def _set_config(params: TaskPushConfig03, prefix: str) -> Arguments:
    path = join_path(prefix, "pushNotificationConfig")
    return (push_config_from_v03(params.push_notification_config, params.task_id, path),)


def _inputs() -> dict[str, InputModel]:
    send = object_input(SendParams03, _send)
    return {
        "message/send": send,
        "message/stream": send,
        "tasks/get": object_input(
            GetParams03, lambda params, _: (TaskRequest(params.task_id, history_length=params.history_length or None),)
        ),
        "tasks/cancel": object_input(TaskParams03, lambda params, _: (TaskRequest(params.task_id, params.metadata),)),
        "tasks/resubscribe": object_input(
            TaskParams03, lambda params, _: (TaskRequest(params.task_id, params.metadata),)
        ),
        "tasks/pushNotificationConfig/set": object_input(TaskPushConfig03, _set_config),
        "tasks/pushNotificationConfig/get": object_input(
            GetConfigParams03, lambda params, _: (PushConfigRequest(params.task_id, params.config_id or None),)
        ),
        "tasks/pushNotificationConfig/list": object_input(
            ConfigParams03, lambda params, _: (PushConfigRequest(params.task_id),)
        ),
        "tasks/pushNotificationConfig/delete": object_input(
            DeleteConfigParams03, lambda params, _: (PushConfigRequest(params.task_id, params.config_id),)
        ),
        "agent/getAuthenticatedExtendedCard": object_input(CardParams03, lambda _params, _: ()),
    }


def _to_json(value: Any) -> Raw:  # Any: one of the structs of `v03_model`
    return Raw(_encode(value))


@final
class _V03:
    """See `ProtocolVersion`."""

    name: A2AVersion = "0.3"
    empty_result: Raw = Raw(b"null")
    push_config_path: str = "pushNotificationConfig"
    message_push_config_path: str = "configuration.pushNotificationConfig"
    no_extended_card: Failure = ExtendedAgentCardNotConfigured(
        reason=NO_EXTENDED_CARD, suggestion=USE_PUBLIC_CARD
    )  # 0.3 has one error for both cases

    def __init__(self) -> None:
        self.inputs: Mapping[str, InputModel] = _inputs()

    def covers(self, version: str) -> bool:
        return covers_version(self.name, version)

    def state_name(self, state: TaskState) -> str:
        return STATE_NAMES[state]

    def encode_task(self, task: Task, *, history_length: int | None = None) -> Raw:
        return _to_json(task_to_v03(limit_history(task, history_length)))

    def encode_send_result(self, result: Task | Message, *, history_length: int | None = None) -> Raw:
        if isinstance(result, Task):
            return self.encode_task(result, history_length=history_length)
        return _to_json(message_to_v03(result))

    def encode_stream_item(self, item: StreamItem, *, history_length: int | None = None) -> Raw | None:
        if not isinstance(item, TaskUpdate):
            return self.encode_send_result(item, history_length=history_length)
        match item.event:
            case StatusChanged() | ArtifactChanged() as event:
                return _to_json(_update(item, event))
            case TaskCreated(task):
                return self.encode_task(task, history_length=history_length)
            case MessageAdded() | ExecutionBegun():
                return None
            case _:
                assert_never(item.event)

    def encode_notification(self, update: TaskUpdate, task: Callable[[], Task]) -> Raw | None:
        """The whole task at each new status. Sending it at each artifact chunk, too, would be quadratic."""
        match update.event:
            case TaskCreated() | StatusChanged():
                return self.encode_task(task())
            case ArtifactChanged() | MessageAdded() | ExecutionBegun():
                return None
            case _:
                assert_never(update.event)

    def encode_push_config(self, config: PushConfig) -> Raw:
        return _to_json(push_config_to_v03(config))

    def encode_push_configs(self, configs: Sequence[PushConfig]) -> Raw:
        return _to_json([push_config_to_v03(config) for config in configs])


def _update(item: TaskUpdate, event: StatusChanged | ArtifactChanged) -> StatusUpdate03 | ArtifactUpdate03:
    if isinstance(event, StatusChanged):
        return StatusUpdate03(
            kind="status-update",
            task_id=item.task_id,
            context_id=item.context_id,
            status=status_to_v03(event.status),
            final=event.status.state in INACTIVE,
            metadata=event.metadata,
        )
    return ArtifactUpdate03(
        kind="artifact-update",
        task_id=item.task_id,
        context_id=item.context_id,
        artifact=artifact_to_v03(event.artifact),
        append=event.append,
        last_chunk=event.last_chunk,
        metadata=event.metadata,
    )


V03: Final[ProtocolVersion] = _V03()
