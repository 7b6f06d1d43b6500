"""A2A 0.3 over HTTP+JSON: reads its params and writes its results, in the ProtoJSON of its `a2a.proto`.

It is not the JSON of 0.3 over JSON-RPC: there are no kinds, and roles and states have the names of the protobuf.
Leaves out what 0.3 can't express: file name and media type of parts that are not files, tenants, references to other tasks, all
authentication schemes but the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, field

from ..daemon.operations.params import Arguments, InputModel
from ..errors.exceptions import FailureError
from ..errors.failures import InvalidParams
from .protojson import decode_base64, encode_base64
from .types import (
    ArtifactChanged,
    Count,
    JsonObject,
    Message,
    NonEmptyStr,
    Part,
    PushConfig,
    Role,
    SendConfiguration,
    SendRequest,
    StatusChanged,
    Task,
    TaskState,
    TaskUpdate,
    WireStruct,
)
from .v03 import (
    V03,
    Authentication03,
    CardParams03,
    DeleteConfigParams03,
    Form,
    GetParams03,
    PushConfig03,
    all_configs,
    get_task,
    members,
    one_config,
    only_member,
    push_config_from_v03,
    push_config_members,
    unwrapped,
    wrapped,
)
from .version import object_input

STATES: Final = {state: state.value for state in TaskState} | {TaskState.CANCELED: "TASK_STATE_CANCELLED"}
"""The states of a task by their names in the protobuf of 0.3."""


class FilePart(WireStruct, frozen=True, kw_only=True):
    """Exactly one of the first two. The bytes are themselves a base64 text, as the SDKs for 0.3 send and expect them."""

    file_with_uri: str | None = None
    file_with_bytes: bytes | None = None
    mime_type: str | None = None
    name: str | None = None


class DataPart(WireStruct, frozen=True):
    data: JsonObject


class ProtoPart(WireStruct, frozen=True, kw_only=True):
    """Exactly one of `text`, `file` and `data`."""

    text: str | None = None
    file: FilePart | None = None
    data: DataPart | None = None
    metadata: JsonObject | None = None


class ProtoMessage(WireStruct, frozen=True, kw_only=True):
    message_id: NonEmptyStr
    role: Role
    content: Annotated[tuple[ProtoPart, ...], Meta(min_length=1)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()


class ProtoAuthentication(Authentication03, frozen=True, kw_only=True):
    schemes: tuple[NonEmptyStr, ...] = ()


class ProtoPushConfig(PushConfig03, frozen=True, kw_only=True):
    authentication: ProtoAuthentication | None = None


class ProtoTaskPushConfig(WireStruct, frozen=True, kw_only=True):
    push_notification_config: ProtoPushConfig


class ProtoConfiguration(WireStruct, frozen=True, kw_only=True):
    accepted_output_modes: tuple[str, ...] = ()
    push_notification: ProtoPushConfig | None = None
    history_length: Count | None = None
    blocking: bool | None = None


class ProtoSend(WireStruct, frozen=True, kw_only=True):
    """`request` is the name of `message` in the protobuf, which clients may use as well."""

    message: ProtoMessage | None = None
    request: ProtoMessage | None = None
    configuration: ProtoConfiguration | None = None
    metadata: JsonObject | None = None


class ProtoSetConfig(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    config: ProtoTaskPushConfig
    config_id: str | None = None


W = TypeVar("W")


# -- params ------------------------------------------------------------------------------------------------------------


def _send(params: ProtoSend, _: str) -> Arguments:
    name, given = ("message", params.message) if params.request is None else ("request", params.request)
    if given is None:
        raise FailureError(InvalidParams("message", "object", "missing"))
    if given.role is not Role.USER:
        raise FailureError(InvalidParams(f"{name}.role", "one of", given.role.value, (Role.USER.value,)))
    message = Message(
        given.message_id,
        given.role,
        tuple(_read_part(part, f"{name}.content[{index}]") for index, part in enumerate(given.content)),
        given.context_id or None,
        given.task_id or None,
        given.metadata,
        given.extensions,
    )
    if params.configuration is None:
        return (SendRequest(message, metadata=params.metadata),)
    return (SendRequest(message, _read_configuration(params.configuration), params.metadata),)


def _read_part(given: ProtoPart, path: str) -> Part:
    only_member(path, text=given.text, file=given.file, data=given.data)
    if given.file is not None:
        return _read_file(given.file, given, f"{path}.file")
    if given.data is None:
        return Part(text=given.text, metadata=given.metadata)
    return unwrapped(given.data.data, given.metadata)


def _read_file(file: FilePart, part: ProtoPart, path: str) -> Part:
    content = file.file_with_bytes
    only_member(path, fileWithUri=file.file_with_uri, fileWithBytes=content)
    raw: bytes | None = None
    if content is not None:
        try:
            raw = decode_base64(content.decode("ascii"))
        except ValueError:
            raise FailureError(InvalidParams(f"{path}.fileWithBytes", "base64 of a base64 string", "string")) from None
    name, media_type = file.name or None, file.mime_type or None
    return Part(raw=raw, url=file.file_with_uri, metadata=part.metadata, filename=name, media_type=media_type)


def _read_configuration(given: ProtoConfiguration) -> SendConfiguration:
    """`blocking` is false where it is missing, as always in ProtoJSON, and a history length of 0 means the whole history."""
    push = given.push_notification
    return SendConfiguration(
        given.accepted_output_modes or None,
        None if push is None else _read_push_config(push, None, "configuration.pushNotification"),
        given.history_length or None,
        not given.blocking,
    )


def _read_push_config(given: ProtoPushConfig, task_id: str | None, path: str) -> PushConfig:
    return push_config_from_v03(given, task_id, path, received="missing")  # ProtoJSON leaves out what is empty


def _set_config(params: ProtoSetConfig, _: str) -> Arguments:
    config = _read_push_config(params.config.push_notification_config, params.task_id, "config.pushNotificationConfig")
    return (msgspec.structs.replace(config, id=config.id or params.config_id or None),)


def _input(wire: type[W], convert: Callable[[W, str], Arguments]) -> InputModel:
    return object_input(wire, convert, protojson=True)


def _inputs() -> dict[str, InputModel]:
    """By the names that the methods have in JSON-RPC."""
    send = _input(ProtoSend, _send)
    task = _input(GetParams03, get_task)
    config = _input(DeleteConfigParams03, one_config)
    return {
        "message/send": send,
        "message/stream": send,
        "tasks/get": task,
        "tasks/cancel": task,
        "tasks/resubscribe": task,
        "tasks/pushNotificationConfig/set": _input(ProtoSetConfig, _set_config),
        "tasks/pushNotificationConfig/get": config,
        "tasks/pushNotificationConfig/list": _input(GetParams03, all_configs),
        "tasks/pushNotificationConfig/delete": config,
        "agent/getAuthenticatedExtendedCard": _input(CardParams03, lambda _params, _: ()),
    }


# -- results -----------------------------------------------------------------------------------------------------------


def _part(given: Part) -> JsonObject:
    if given.text is not None:
        return members(text=given.text, metadata=given.metadata)
    if given.data is not UNSET:
        data, metadata = wrapped(given)
        return members(data={"data": data}, metadata=metadata)
    content = None if given.raw is None else encode_base64(encode_base64(given.raw).encode())
    file = members(fileWithUri=given.url, fileWithBytes=content, mimeType=given.media_type, name=given.filename)
    return members(file=file, metadata=given.metadata)


FORM: Final = Form(kinds=False, content="content", roles={role: role.value for role in Role}, states=STATES, part=_part)


def _update(item: TaskUpdate, event: StatusChanged | ArtifactChanged) -> JsonObject:
    if isinstance(event, StatusChanged):
        return {"statusUpdate": FORM.status_update(item, event)}
    return {"artifactUpdate": FORM.artifact_update(item, event)}


def _push_config(given: PushConfig) -> JsonObject:
    name = f"tasks/{given.task_id}/pushNotificationConfigs/{given.id}"
    return {"pushNotificationConfig": push_config_members(given), "name": name}


V03_REST: Final = msgspec.structs.replace(
    V03,
    inputs=_inputs(),
    states=STATES,
    empty_result=Raw(b"{}"),
    push_config_path="config.pushNotificationConfig",
    message_push_config_path="configuration.pushNotification",
    task=FORM.task,
    result=lambda result: (
        {"task": FORM.task(result)} if isinstance(result, Task) else {"message": FORM.message(result)}
    ),
    update=_update,
    push_config=_push_config,
    push_configs=lambda configs: {"configs": configs} if configs else {},
)
