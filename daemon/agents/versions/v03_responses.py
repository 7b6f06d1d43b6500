"""What the core has to say, in the shapes of the 0.3 dialect. Total: what 0.3 has no words for is left out."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from ..model.types import Artifact, Message, Part, PushConfig, Role, Task, TaskState, TaskStatus
from .base64_text import encode_base64
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
from .v03_requests import WRAPPED

STATES: Final = {state: state.value.removeprefix("TASK_STATE_").lower().replace("_", "-") for state in TaskState}


def task(given: Task) -> Task03:
    return Task03(
        kind="task",
        id=given.id,
        context_id=given.context_id,
        status=status(given.status),
        artifacts=tuple(map(artifact, given.artifacts)) or None,
        history=tuple(map(message, given.history)) or None,
        metadata=given.metadata,
    )


def status(given: TaskStatus) -> Status03:
    return Status03(
        state=STATES[given.state],
        message=None if given.message is None else message(given.message),
        timestamp=given.timestamp,
    )


def message(given: Message) -> Message03:
    return Message03(
        kind="message",
        message_id=given.message_id,
        role="user" if given.role is Role.USER else "agent",
        parts=tuple(map(part, given.parts)),
        context_id=given.context_id,
        task_id=given.task_id,
        metadata=given.metadata,
        extensions=given.extensions or None,
        reference_task_ids=given.reference_task_ids or None,
    )


def artifact(given: Artifact) -> Artifact03:
    return Artifact03(
        artifact_id=given.artifact_id,
        parts=tuple(map(part, given.parts)),
        name=given.name,
        description=given.description,
        metadata=given.metadata,
        extensions=given.extensions or None,
    )


def part(given: Part) -> Part03:
    if given.text is not None:
        return Part03(kind="text", text=given.text, metadata=given.metadata)
    if given.data is not UNSET:
        return _data(given)
    content = None if given.raw is None else encode_base64(given.raw)
    file = File03(bytes=content, uri=given.url, name=given.filename, mime_type=given.media_type)
    return Part03(kind="file", file=file, metadata=given.metadata)


def _data(given: Part) -> Part03:
    """0.3 has no data but objects."""
    if isinstance(given.data, dict):
        return Part03(kind="data", data=given.data, metadata=given.metadata)
    return Part03(kind="data", data={"value": given.data}, metadata={**(given.metadata or {}), WRAPPED: True})


def push_config(given: PushConfig) -> TaskPushConfig03:
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
