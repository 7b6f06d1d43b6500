"""The 0.3 dialect: the core model in the shapes of `v03_model`, and back.

What 0.3 has no words for is left out: the file name and the media type of what is no file, tenants, all schemes of
authentication but the first. Data that is no object is wrapped and marked, as the reference implementation does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, assert_never, final

import msgspec
from msgspec import Raw

from ....errors.failures import Dialect as DialectName
from ....errors.failures import ExtendedAgentCardNotConfigured, Failure
from ...operations.decoders import Values
from ...operations.params import InputModel
from ..model.states import RESTING
from ..model.types import ArtifactChanged, Created, Message, MessageAdded, PushConfig, StatusChanged, Task, TaskState
from ..requests import SendRequest, StreamItem, TaskUpdate
from . import v03_requests as reading
from . import v03_responses as writing
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
from .version import ConfigRequest, Dialect, TaskRequest, last_of, path, same_version, whole_input

_encode: Final = msgspec.json.Encoder().encode


def _send(params: SendParams03, prefix: str) -> Values:
    message = reading.message(params.message, path(prefix, "message"))
    if params.configuration is None:
        return (SendRequest(message, metadata=params.metadata),)
    configuration = reading.configuration(params.configuration, path(prefix, "configuration"))
    return (SendRequest(message, configuration, params.metadata),)


def _set_config(params: TaskPushConfig03, prefix: str) -> Values:
    place = path(prefix, "pushNotificationConfig")
    return (reading.push_config(params.push_notification_config, params.task_id, place),)


def _inputs() -> dict[str, InputModel]:
    send = whole_input(SendParams03, _send)
    return {
        "message/send": send,
        "message/stream": send,
        "tasks/get": whole_input(
            GetParams03, lambda params, _: (TaskRequest(params.task_id, history=params.history_length or None),)
        ),
        "tasks/cancel": whole_input(TaskParams03, lambda params, _: (TaskRequest(params.task_id, params.metadata),)),
        "tasks/resubscribe": whole_input(
            TaskParams03, lambda params, _: (TaskRequest(params.task_id, params.metadata),)
        ),
        "tasks/pushNotificationConfig/set": whole_input(TaskPushConfig03, _set_config),
        "tasks/pushNotificationConfig/get": whole_input(
            GetConfigParams03, lambda params, _: (ConfigRequest(params.task_id, params.config_id or None),)
        ),
        "tasks/pushNotificationConfig/list": whole_input(
            ConfigParams03, lambda params, _: (ConfigRequest(params.task_id),)
        ),
        "tasks/pushNotificationConfig/delete": whole_input(
            DeleteConfigParams03, lambda params, _: (ConfigRequest(params.task_id, params.config_id),)
        ),
        "agent/getAuthenticatedExtendedCard": whole_input(CardParams03, lambda _params, _: ()),
    }


def _raw(value: Any) -> Raw:  # Any: one of the structs of `v03_model`
    return Raw(_encode(value))


@final
class _V03:
    """See `Dialect`."""

    name: DialectName = "0.3"
    nothing: Raw = Raw(b"null")
    config_path: str = "pushNotificationConfig"
    sent_config_path: str = "configuration.pushNotificationConfig"
    without_extended_card: Failure = ExtendedAgentCardNotConfigured()  # 0.3 has one error for both

    def __init__(self) -> None:
        self.inputs: Mapping[str, InputModel] = _inputs()

    def speaks(self, version: str) -> bool:
        return same_version(self.name, version)

    def state_name(self, state: TaskState) -> str:
        return writing.STATES[state]

    def task(self, task: Task, *, history: int | None = None) -> Raw:
        return _raw(writing.task(last_of(task, history)))

    def sent(self, result: Task | Message, *, history: int | None = None) -> Raw:
        return self.task(result, history=history) if isinstance(result, Task) else _raw(writing.message(result))

    def streamed(self, item: StreamItem, *, history: int | None = None) -> Raw | None:
        if not isinstance(item, TaskUpdate):
            return self.sent(item, history=history)
        match item.event:
            case StatusChanged() | ArtifactChanged() as event:
                return _raw(_update(item, event))
            case Created(task):
                return self.task(task, history=history)
            case MessageAdded():
                return None
            case _:
                assert_never(item.event)

    def pushed(self, happened: TaskUpdate, task: Callable[[], Task]) -> Raw | None:
        """The whole task, whenever it has a new status: at every chunk of an artifact it would be quadratic."""
        match happened.event:
            case Created() | StatusChanged():
                return self.task(task())
            case ArtifactChanged() | MessageAdded():
                return None
            case _:
                assert_never(happened.event)

    def push_config(self, config: PushConfig) -> Raw:
        return _raw(writing.push_config(config))

    def push_configs(self, configs: Sequence[PushConfig]) -> Raw:
        return _raw([writing.push_config(config) for config in configs])


def _update(item: TaskUpdate, event: StatusChanged | ArtifactChanged) -> StatusUpdate03 | ArtifactUpdate03:
    if isinstance(event, StatusChanged):
        return StatusUpdate03(
            kind="status-update",
            task_id=item.task_id,
            context_id=item.context_id,
            status=writing.status(event.status),
            final=event.status.state in RESTING,
            metadata=event.metadata,
        )
    return ArtifactUpdate03(
        kind="artifact-update",
        task_id=item.task_id,
        context_id=item.context_id,
        artifact=writing.artifact(event.artifact),
        append=event.append,
        last_chunk=event.last_chunk,
        metadata=event.metadata,
    )


V03: Final[Dialect] = _V03()
