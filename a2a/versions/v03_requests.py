"""Converts what clients of A2A 0.3 send to the model. Writes nothing.

Every function raises `FailureError(InvalidParams)` for what the types of `v03_model` can't rule out. A `path` argument is
where the value is in the caller's params, for those errors.
"""

from __future__ import annotations

from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ..types import Authentication, Message, Part, PushConfig, Role, SendConfiguration
from .protojson import decode_base64
from .v03_model import Authentication03, Configuration03, File03, Message03, Part03, PushConfig03

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
    match given.kind or _only_member(path, text=given.text, file=given.file, data=given.data):
        case "text":
            if given.text is None:
                raise FailureError(InvalidParams(f"{path}.text", "string", "missing"))
            return Part(text=given.text, metadata=given.metadata)
        case "file":
            if given.file is None:
                raise FailureError(InvalidParams(f"{path}.file", "object", "missing"))
            return _file(given, given.file, f"{path}.file")
        case _:
            return _data(given, path)


def _file(given: Part03, file: File03, path: str) -> Part:
    raw: bytes | None = None
    if _only_member(path, bytes=file.bytes, uri=file.uri) == "bytes":
        try:
            raw = decode_base64(file.bytes or "")
        except ValueError:
            raise FailureError(InvalidParams(f"{path}.bytes", "base64 string", "string")) from None
    return Part(raw=raw, url=file.uri, metadata=given.metadata, filename=file.name, media_type=file.mime_type)


def _data(given: Part03, path: str) -> Part:
    data, metadata = given.data, given.metadata
    if data is None:
        raise FailureError(InvalidParams(f"{path}.data", "object", "missing"))
    if metadata is None or metadata.get(WRAPPED_DATA) is not True or "value" not in data:
        return Part(data=data, metadata=metadata)
    rest = {name: value for name, value in metadata.items() if name != WRAPPED_DATA}
    return Part(data=data["value"], metadata=rest or None)


def _only_member(path: str, **members: object) -> str:
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


def push_config_from_v03(given: PushConfig03, task_id: str | None, path: str) -> PushConfig:
    authentication = given.authentication
    return PushConfig(
        given.url,
        given.id or None,
        task_id,
        given.token or None,
        None if authentication is None else _authentication(authentication, f"{path}.authentication"),
    )


def _authentication(given: Authentication03, path: str) -> Authentication | None:
    """The first scheme, because the credentials are for one only; None without a scheme and credentials."""
    if given.schemes:
        return Authentication(given.schemes[0], given.credentials or None)
    if given.credentials:
        raise FailureError(InvalidParams(f"{path}.schemes", "array with at least 1 item", "array"))
    return None
