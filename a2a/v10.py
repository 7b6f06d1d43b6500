"""A2A 1.0: reads its params, which are ProtoJSON, and writes its results, which are the JSON of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from ..daemon.operations.params import Arguments, InputModel
from ..errors.exceptions import FailureError
from ..errors.failures import InvalidParams, UnsupportedOperation
from .errors import NO_EXTENDED_CARD
from .types import (
    TERMINAL,
    ArtifactChanged,
    Message,
    PushConfig,
    Role,
    SendConfiguration,
    SendRequest,
    StatusChanged,
    Task,
    TaskPage,
    TaskQuery,
    TaskState,
    TaskStatus,
    TaskUpdate,
    ceil_timestamp,
)
from .v10_model import (
    CancelParams,
    CreateConfigParams,
    GetCardParams,
    GetParams,
    ListConfigsParams,
    ListParams,
    OneConfigParams,
    SendParams,
    SendResponse,
    SubscribeParams,
    TaskArtifactUpdate,
    TaskList,
    TaskStatusUpdate,
)
from .version import (
    ListRequest,
    ProtocolVersion,
    PushConfigRequest,
    TaskRequest,
    join_path,
    limit_history,
    object_input,
)

_CONTENT: Final = ("text", "raw", "url", "data")
"""A part has exactly one of these (4.1.6)."""

_W = TypeVar("_W")

_encode: Final = msgspec.json.Encoder().encode
_NO_CONFIGURATION: Final = SendConfiguration()


# -- params ------------------------------------------------------------------------------------------------------------


def _send(params: SendParams, prefix: str) -> Arguments:
    if params.message.role is not Role.USER:
        path = join_path(prefix, "message.role")
        raise FailureError(InvalidParams(path, "one of", params.message.role.value, (Role.USER.value,)))
    for index, part in enumerate(params.message.parts):
        if part.content_count != 1:
            path = join_path(prefix, f"message.parts[{index}]")
            raise FailureError(InvalidParams(path, "object with exactly one of", "object", _CONTENT))
    configuration = params.configuration or _NO_CONFIGURATION
    if configuration.accepted_output_modes == ():  # protobuf does not tell an empty list from a missing one
        configuration = msgspec.structs.replace(configuration, accepted_output_modes=None)
    return (SendRequest(params.message, configuration, params.metadata),)


def _list(params: ListParams, _: str) -> Arguments:
    after = params.status_timestamp_after
    query = TaskQuery(
        scope="",
        context_id=params.context_id or None,
        state=params.status,
        status_timestamp_after=None if after is None else ceil_timestamp(after),
        page_token=params.page_token or "",
        include_artifacts=params.include_artifacts is True,
    )
    if params.page_size is not None:
        query = msgspec.structs.replace(query, page_size=params.page_size)
    return (ListRequest(query, params.history_length),)


def _create_config(params: CreateConfigParams, _: str) -> Arguments:
    config = PushConfig(
        params.url,
        params.config_id or None,
        params.task_id,
        params.token or None,
        params.authentication,
        params.tenant or None,
    )
    return (config,)


def _input(wire: type[_W], convert: Callable[[_W, str], Arguments]) -> InputModel:
    return object_input(wire, convert, protojson=True)


def _inputs() -> dict[str, InputModel]:
    send = _input(SendParams, _send)
    one_config = _input(OneConfigParams, lambda params, _: (PushConfigRequest(params.task_id, params.config_id),))
    return {
        "SendMessage": send,
        "SendStreamingMessage": send,
        "GetTask": _input(
            GetParams, lambda params, _: (TaskRequest(params.task_id, history_length=params.history_length),)
        ),
        "ListTasks": _input(ListParams, _list),
        "CancelTask": _input(CancelParams, lambda params, _: (TaskRequest(params.task_id, params.metadata),)),
        "SubscribeToTask": _input(SubscribeParams, lambda params, _: (TaskRequest(params.task_id),)),
        "CreateTaskPushNotificationConfig": _input(CreateConfigParams, _create_config),
        "GetTaskPushNotificationConfig": one_config,
        "ListTaskPushNotificationConfigs": _input(
            ListConfigsParams, lambda params, _: (PushConfigRequest(params.task_id),)
        ),
        "DeleteTaskPushNotificationConfig": one_config,
        "GetExtendedAgentCard": _input(GetCardParams, lambda _params, _: ()),
    }


# -- results -----------------------------------------------------------------------------------------------------------


def _result(result: Task | Message) -> SendResponse:
    return SendResponse(result) if isinstance(result, Task) else SendResponse(message=result)


def _update(item: TaskUpdate, event: StatusChanged | ArtifactChanged) -> SendResponse:
    if isinstance(event, StatusChanged):
        update = TaskStatusUpdate(item.task_id, item.context_id, event.status, event.metadata)
        return SendResponse(status_update=update)
    change = TaskArtifactUpdate(
        item.task_id, item.context_id, event.artifact, event.append, event.last_chunk, event.metadata
    )
    return SendResponse(artifact_update=change)


OMITTED: Final = "urn:discreet:a2a:stdio:1:omitted"
"""A member of a task's metadata: the names of what was left out, because the task alone is too large for a page."""


def without_contents(task: Task) -> Task:
    """The task without its artifacts, its history and its status message; its metadata say so."""
    omitted = [
        name
        for name, content in (
            ("artifacts", task.artifacts),
            ("history", task.history),
            ("status.message", task.status.message),
        )
        if content
    ]
    return Task(
        task.id,
        task.context_id,
        msgspec.structs.replace(task.status, message=None),
        metadata={**(task.metadata or {}), OMITTED: omitted},
    )


UNREADABLE: Final = "urn:discreet:a2a:stdio:1:unreadable"
"""Member of a task's metadata: true where the store can't read the task, and only its id, context and state are told."""


def encode_task_page(page: TaskPage, request: ListRequest) -> Raw:
    """The result of `ListTasks`, which 0.3 does not have.

    The result has no metadata of its own, and the official clients refuse members that they do not know. So a task that can't
    be read is in the list, behind the others, as one without content whose metadata say so.
    """
    tasks = (
        *(limit_history(task, request.history_length) for task in page.tasks),
        *(
            Task(each.id, each.context_id, TaskStatus(each.state), metadata={UNREADABLE: True})
            for each in page.unreadable
        ),
    )
    return Raw(_encode(TaskList(tasks, page.next_page_token, request.query.page_size, page.total_size)))


V10: Final = ProtocolVersion(
    name="1.0",
    inputs=_inputs(),
    states={state: state.value for state in TaskState},
    empty_result=Raw(b"{}"),
    push_config_path="",
    message_push_config_path="configuration.taskPushNotificationConfig",
    no_extended_card=UnsupportedOperation(reason=NO_EXTENDED_CARD),  # 3.3.4
    subscribe_until=TERMINAL,
    card=lambda card: card,
    task=lambda task: task,
    result=_result,
    update=_update,
    push_config=lambda config: config,
    push_configs=lambda configs: {"configs": configs},
)
