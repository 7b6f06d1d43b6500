"""A2A 0.3: its params, and how they are read; and how its results are written.

Leaves out what 0.3 can't express: file name and media type of parts that are not files, tenants, all authentication schemes
but the first. What reads raises `FailureError(InvalidParams)` for what the types can't rule out; its `path` is where the value is
in the caller's params.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, field

from ..daemon.operations.params import Arguments, InputModel
from ..errors.exceptions import FailureError
from ..errors.failures import ExtendedAgentCardNotConfigured, InvalidParams
from .card_v03 import card_to_v03
from .errors import NO_EXTENDED_CARD
from .protojson import decode_base64, encode_base64
from .types import (
    INACTIVE,
    Artifact,
    ArtifactChanged,
    Authentication,
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
    TaskStatus,
    TaskUpdate,
    WireStruct,
)
from .version import (
    ProtocolVersion,
    PushConfigRequest,
    TaskRequest,
    join_path,
    object_input,
)

# -- the params of the methods: optional members may be null, and a `kind` may be missing, but not be wrong ---------------


class File03(WireStruct, frozen=True, kw_only=True):
    """Exactly one of `bytes` (base64) and `uri`."""

    bytes: str | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None


class Part03(WireStruct, frozen=True, kw_only=True):
    """One of `text`, `file` and `data`, as `kind` says."""

    kind: Literal["text", "file", "data"] | None = None
    text: str | None = None
    file: File03 | None = None
    data: JsonObject | None = None
    metadata: JsonObject | None = None


class Message03(WireStruct, frozen=True, kw_only=True):
    kind: Literal["message"] | None = None
    message_id: NonEmptyStr
    role: Literal["user", "agent"]
    parts: Annotated[tuple[Part03, ...], Meta(min_length=1)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] | None = None
    reference_task_ids: tuple[str, ...] | None = None


class Authentication03(WireStruct, frozen=True, kw_only=True):
    schemes: tuple[NonEmptyStr, ...]
    credentials: str | None = None


class PushConfig03(WireStruct, frozen=True, kw_only=True):
    url: NonEmptyStr
    id: str | None = None
    token: str | None = None
    authentication: Authentication03 | None = None


class TaskPushConfig03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr
    push_notification_config: PushConfig03


class Configuration03(WireStruct, frozen=True, kw_only=True):
    accepted_output_modes: tuple[str, ...] | None = None
    blocking: bool | None = None
    history_length: Count | None = None
    push_notification_config: PushConfig03 | None = None


class SendParams03(WireStruct, frozen=True, kw_only=True):
    message: Message03
    configuration: Configuration03 | None = None
    metadata: JsonObject | None = None


class GetParams03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    history_length: Count | None = None


class TaskParams03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    metadata: JsonObject | None = None


class ConfigParams03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")


class GetConfigParams03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    config_id: str | None = field(name="pushNotificationConfigId", default=None)


class DeleteConfigParams03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    config_id: NonEmptyStr = field(name="pushNotificationConfigId")


class CardParams03(WireStruct, frozen=True, kw_only=True):
    """The params of `agent/getAuthenticatedExtendedCard`: none."""


# -- reading -----------------------------------------------------------------------------------------------------------

WRAPPED_DATA = "data_part_compat"
"""A member of a part's metadata. It marks data of the form `{"value": …}`, because data of 0.3 must be an object."""


def message_from_v03(given: Message03, path: str) -> Message:
    return Message(
        given.message_id,
        Role.USER if given.role == "user" else Role.AGENT,
        tuple(part_from_v03(part, f"{path}.parts[{index}]") for index, part in enumerate(given.parts)),
        given.context_id or None,
        given.task_id or None,
        given.metadata,
        given.extensions or (),
        given.reference_task_ids or (),
    )


def part_from_v03(given: Part03, path: str) -> Part:
    """`kind` may be missing if exactly one content is set."""
    kind = given.kind or only_member(path, text=given.text, file=given.file, data=given.data)
    if getattr(given, kind) is None:
        expected = "string" if kind == "text" else "object"
        raise FailureError(InvalidParams(f"{path}.{kind}", expected, "missing"))
    if kind == "file" and given.file is not None:
        return _file(given, given.file, f"{path}.file")
    if kind == "data" and given.data is not None:
        return unwrapped(given.data, given.metadata)
    return Part(text=given.text, metadata=given.metadata)


def _file(given: Part03, file: File03, path: str) -> Part:
    raw: bytes | None = None
    if only_member(path, bytes=file.bytes, uri=file.uri) == "bytes":
        try:
            raw = decode_base64(file.bytes or "")
        except ValueError:
            raise FailureError(InvalidParams(f"{path}.bytes", "base64 string", "string")) from None
    return Part(raw=raw, url=file.uri, metadata=given.metadata, filename=file.name, media_type=file.mime_type)


def unwrapped(data: JsonObject, metadata: JsonObject | None) -> Part:
    """The part of an object, which may hold what is no object."""
    if metadata is None or metadata.get(WRAPPED_DATA) is not True or "value" not in data:
        return Part(data=data, metadata=metadata)
    rest = {name: value for name, value in metadata.items() if name != WRAPPED_DATA}
    return Part(data=data["value"], metadata=rest or None)


def only_member(path: str, **members: object) -> str:
    present = [name for name, value in members.items() if value is not None]
    if len(present) != 1:
        raise FailureError(InvalidParams(path, "object with exactly one of", "object", tuple(members)))
    return present[0]


def configuration_from_v03(given: Configuration03, path: str) -> SendConfiguration:
    """A history length of 0 means the whole history, as in the reference implementation."""
    push = given.push_notification_config
    return SendConfiguration(
        given.accepted_output_modes or None,
        None if push is None else push_config_from_v03(push, None, f"{path}.pushNotificationConfig"),
        given.history_length or None,
        None if given.blocking is None else not given.blocking,
    )


def push_config_from_v03(given: PushConfig03, task_id: str | None, path: str, *, received: str = "array") -> PushConfig:
    """Of several schemes the first is kept, because the credentials are for one only. `received` is what came where there is
    none."""
    info = given.authentication
    authentication = None
    if info is not None and info.schemes:
        authentication = Authentication(info.schemes[0], info.credentials or None)
    elif info is not None and info.credentials:
        expected = "array with at least 1 item"
        raise FailureError(InvalidParams(f"{path}.authentication.schemes", expected, received))
    return PushConfig(given.url, given.id or None, task_id, given.token or None, authentication)


# -- writing -----------------------------------------------------------------------------------------------------------

STATE_NAMES: Final = {state: state.word for state in TaskState}

_OLD_WORDS: Final = {state.value: name for state, name in STATE_NAMES.items()}


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """Writes tasks and messages as one of the two JSONs of 0.3: that of JSON-RPC, or that of HTTP+JSON.

    With `kinds` every object has its `kind`, and messages name other tasks. `content` is the member of a message that holds
    its parts.
    """

    kinds: bool
    content: str
    roles: Mapping[Role, str]
    states: Mapping[TaskState, str]
    part: Callable[[Part], JsonObject]

    def task(self, given: Task) -> JsonObject:
        return self._object(
            "task",
            id=given.id,
            contextId=given.context_id,
            status=self._status(given.status),
            artifacts=[*map(self._artifact, given.artifacts)] or None,
            history=[*map(self.message, given.history)] or None,
            metadata=given.metadata,
        )

    def message(self, given: Message) -> JsonObject:
        return self._object(
            "message",
            messageId=given.message_id,
            role=self.roles[given.role],
            **{self.content: [*map(self.part, given.parts)]},
            contextId=given.context_id,
            taskId=given.task_id,
            metadata=given.metadata,
            extensions=given.extensions or None,
            referenceTaskIds=given.reference_task_ids or None if self.kinds else None,
        )

    def status_update(self, item: TaskUpdate, event: StatusChanged) -> JsonObject:
        """`final` says that no event follows until the client sends another message."""
        return self._object(
            "status-update",
            taskId=item.task_id,
            contextId=item.context_id,
            status=self._status(event.status),
            final=self._flag(event.status.state in INACTIVE),
            metadata=event.metadata,
        )

    def artifact_update(self, item: TaskUpdate, event: ArtifactChanged) -> JsonObject:
        return self._object(
            "artifact-update",
            taskId=item.task_id,
            contextId=item.context_id,
            artifact=self._artifact(event.artifact),
            append=self._flag(event.append),
            lastChunk=self._flag(event.last_chunk),
            metadata=event.metadata,
        )

    def _status(self, given: TaskStatus) -> JsonObject:
        message = None if given.message is None else self.message(given.message)
        return members(state=self.states[given.state], message=message, timestamp=given.timestamp)

    def _artifact(self, given: Artifact) -> JsonObject:
        return members(
            artifactId=given.artifact_id,
            parts=[*map(self.part, given.parts)],
            name=given.name,
            description=given.description,
            metadata=given.metadata,
            extensions=given.extensions or None,
        )

    def _object(self, kind: str, **given: object) -> JsonObject:
        return members(kind=kind if self.kinds else None, **given)

    def _flag(self, value: bool) -> bool | None:
        """ProtoJSON leaves out what is false."""
        return value if value or self.kinds else None


def members(**given: object) -> JsonObject:
    """Return the members that are there."""
    return {name: value for name, value in given.items() if value is not None}


def wrapped(part: Part) -> tuple[JsonObject, JsonObject | None]:
    """Return the data of a part as an object, and the part's metadata: data of another type are wrapped in an object and marked,
    as in the reference implementation."""
    if isinstance(part.data, dict):
        return part.data, part.metadata
    return {"value": part.data}, {**(part.metadata or {}), WRAPPED_DATA: True}


def _part(given: Part) -> JsonObject:
    if given.text is not None:
        return members(kind="text", text=given.text, metadata=given.metadata)
    if given.data is not UNSET:
        data, metadata = wrapped(given)
        return members(kind="data", data=_error_in_old_words(data), metadata=metadata)
    content = None if given.raw is None else encode_base64(given.raw)
    file = members(bytes=content, uri=given.url, name=given.filename, mimeType=given.media_type)
    return members(kind="file", file=file, metadata=given.metadata)


def _error_in_old_words(data: JsonObject) -> JsonObject:
    """The error of a task that failed by a wrong step names states as 0.3 does."""
    match data:
        case {
            "data": {"code": "INVALID_STATE_TRANSITION", "details": {"current": str(at), "target": str(to)}} as facts
        }:
            details = {"current": _OLD_WORDS.get(at, at), "target": _OLD_WORDS.get(to, to)}
            return {**data, "data": {**facts, "details": details}}
        case _:
            return data


def push_config_members(given: PushConfig) -> JsonObject:
    """Return a push config in the form that both JSONs of 0.3 have."""
    authentication = given.authentication
    info = authentication and members(schemes=[authentication.scheme], credentials=authentication.credentials)
    return members(url=given.url, id=given.id, token=given.token, authentication=info)


FORM: Final = Form(
    kinds=True, content="parts", roles={Role.USER: "user", Role.AGENT: "agent"}, states=STATE_NAMES, part=_part
)


def _update(item: TaskUpdate, event: StatusChanged | ArtifactChanged) -> JsonObject:
    return FORM.status_update(item, event) if isinstance(event, StatusChanged) else FORM.artifact_update(item, event)


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


def get_task(params: GetParams03, _: str) -> Arguments:
    return (TaskRequest(params.task_id, history_length=params.history_length or None),)


def _about_task(params: TaskParams03, _: str) -> Arguments:
    return (TaskRequest(params.task_id, params.metadata),)


def one_config(params: GetConfigParams03 | DeleteConfigParams03, _: str) -> Arguments:
    return (PushConfigRequest(params.task_id, params.config_id or None),)


def all_configs(params: ConfigParams03 | GetParams03, _: str) -> Arguments:
    return (PushConfigRequest(params.task_id),)


def _inputs() -> dict[str, InputModel]:
    send = object_input(SendParams03, _send)
    return {
        "message/send": send,
        "message/stream": send,
        "tasks/get": object_input(GetParams03, get_task),
        "tasks/cancel": object_input(TaskParams03, _about_task),
        "tasks/resubscribe": object_input(TaskParams03, _about_task),
        "tasks/pushNotificationConfig/set": object_input(TaskPushConfig03, _set_config),
        "tasks/pushNotificationConfig/get": object_input(GetConfigParams03, one_config),
        "tasks/pushNotificationConfig/list": object_input(ConfigParams03, all_configs),
        "tasks/pushNotificationConfig/delete": object_input(DeleteConfigParams03, one_config),
        "agent/getAuthenticatedExtendedCard": object_input(CardParams03, lambda _params, _: ()),
    }


V03: Final = ProtocolVersion(
    name="0.3",
    inputs=_inputs(),
    states=STATE_NAMES,
    empty_result=Raw(b"null"),
    push_config_path="pushNotificationConfig",
    message_push_config_path="configuration.pushNotificationConfig",
    no_extended_card=ExtendedAgentCardNotConfigured(reason=NO_EXTENDED_CARD),  # 0.3 has one error for both cases
    subscribe_until=INACTIVE,
    card=card_to_v03,
    task=FORM.task,
    result=lambda result: FORM.task(result) if isinstance(result, Task) else FORM.message(result),
    update=_update,
    push_config=lambda given: {"taskId": given.task_id, "pushNotificationConfig": push_config_members(given)},
    push_configs=lambda configs: configs,
)
