"""Converts the model to the structs of A2A 0.3. Never fails; leaves out what 0.3 can't express. Reads nothing."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from ..types import Artifact, JsonObject, Message, Part, PushConfig, Role, Task, TaskState, TaskStatus
from .protojson import encode_base64
from .v03_model import (
    Artifact03,
    Authentication03,
    File03,
    Message03,
    Part03,
    PushConfig03,
    Status03,
    Task03,
    TaskPushConfig03,
)
from .v03_requests import WRAPPED_DATA

STATE_NAMES: Final = {state: state.value.removeprefix("TASK_STATE_").lower().replace("_", "-") for state in TaskState}

_OLD_WORDS: Final = {state.value: name for state, name in STATE_NAMES.items()}


def task_to_v03(given: Task) -> Task03:
    return Task03(
        kind="task",
        id=given.id,
        context_id=given.context_id,
        status=status_to_v03(given.status),
        artifacts=tuple(map(artifact_to_v03, given.artifacts)) or None,
        history=tuple(map(message_to_v03, given.history)) or None,
        metadata=given.metadata,
    )


def status_to_v03(given: TaskStatus) -> Status03:
    return Status03(
        state=STATE_NAMES[given.state],
        message=None if given.message is None else message_to_v03(given.message),
        timestamp=given.timestamp,
    )


def message_to_v03(given: Message) -> Message03:
    return Message03(
        kind="message",
        message_id=given.message_id,
        role="user" if given.role is Role.USER else "agent",
        parts=tuple(map(part_to_v03, given.parts)),
        context_id=given.context_id,
        task_id=given.task_id,
        metadata=given.metadata,
        extensions=given.extensions or None,
        reference_task_ids=given.reference_task_ids or None,
    )


def artifact_to_v03(given: Artifact) -> Artifact03:
    return Artifact03(
        artifact_id=given.artifact_id,
        parts=tuple(map(part_to_v03, given.parts)),
        name=given.name,
        description=given.description,
        metadata=given.metadata,
        extensions=given.extensions or None,
    )


def part_to_v03(given: Part) -> Part03:
    if given.text is not None:
        return Part03(kind="text", text=given.text, metadata=given.metadata)
    if given.data is not UNSET:
        return _data(given)
    content = None if given.raw is None else encode_base64(given.raw)
    file = File03(bytes=content, uri=given.url, name=given.filename, mime_type=given.media_type)
    return Part03(kind="file", file=file, metadata=given.metadata)


def _data(given: Part) -> Part03:
    """Data that is not an object is wrapped in one and marked, as in the reference implementation. The error of a task that
    failed by a wrong step names states as 0.3 does."""
    if isinstance(given.data, dict):
        return Part03(kind="data", data=_error_in_old_words(given.data), metadata=given.metadata)
    return Part03(kind="data", data={"value": given.data}, metadata={**(given.metadata or {}), WRAPPED_DATA: True})


def _error_in_old_words(data: JsonObject) -> JsonObject:
    match data:
        case {
            "data": {"code": "INVALID_STATE_TRANSITION", "details": {"current": str(at), "target": str(to)}} as facts
        }:
            details = {"current": _OLD_WORDS.get(at, at), "target": _OLD_WORDS.get(to, to)}
            return {**data, "data": {**facts, "details": details}}
        case _:
            return data


def push_config_to_v03(given: PushConfig) -> TaskPushConfig03:
    authentication = given.authentication
    config = PushConfig03(
        url=given.url,
        id=given.id,
        token=given.token,
        authentication=None
        if authentication is None
        else Authentication03(schemes=(authentication.scheme,), credentials=authentication.credentials),
    )
    return TaskPushConfig03(task_id=given.task_id or "", push_notification_config=config)
