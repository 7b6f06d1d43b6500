"""What callers say in the 0.3 dialect, as the core has it. Raises `FailureError(InvalidParams)` for what no type can say."""

from __future__ import annotations

from ....errors.exceptions import FailureError
from ....errors.failures import InvalidParams
from ..model.types import Authentication, Message, Part, PushConfig, Role, SendConfiguration
from .base64_text import decode_base64
from .v03_model import Authentication03, Configuration03, File03, Message03, Part03, PushConfig03

WRAPPED = "data_part_compat"
"""In a part's metadata: its data is `{"value": …}`, because 0.3 has no data but objects."""


def message(given: Message03, place: str) -> Message:
    """`place` is where the message stands in the caller's params."""
    return Message(
        given.message_id,
        Role.USER if given.role == "user" else Role.AGENT,
        tuple(part(piece, f"{place}.parts[{index}]") for index, piece in enumerate(given.parts)),
        given.context_id or None,
        given.task_id or None,
        given.metadata,
        given.extensions or (),
        given.reference_task_ids or (),
    )


def part(given: Part03, place: str) -> Part:
    """The kind may be left out where the content tells it."""
    match given.kind or _only_one(place, text=given.text, file=given.file, data=given.data):
        case "text":
            if given.text is None:
                raise FailureError(InvalidParams(f"{place}.text", "string", "missing"))
            return Part(text=given.text, metadata=given.metadata)
        case "file":
            if given.file is None:
                raise FailureError(InvalidParams(f"{place}.file", "object", "missing"))
            return _file(given, given.file, f"{place}.file")
        case _:
            return _data(given, place)


def _file(given: Part03, file: File03, place: str) -> Part:
    raw: bytes | None = None
    if _only_one(place, bytes=file.bytes, uri=file.uri) == "bytes":
        try:
            raw = decode_base64(file.bytes or "")
        except ValueError:
            raise FailureError(InvalidParams(f"{place}.bytes", "base64 string", "string")) from None
    return Part(raw=raw, url=file.uri, metadata=given.metadata, filename=file.name, media_type=file.mime_type)


def _data(given: Part03, place: str) -> Part:
    data, metadata = given.data, given.metadata
    if data is None:
        raise FailureError(InvalidParams(f"{place}.data", "object", "missing"))
    if metadata is None or metadata.get(WRAPPED) is not True or "value" not in data:
        return Part(data=data, metadata=metadata)
    rest = {name: value for name, value in metadata.items() if name != WRAPPED}
    return Part(data=data["value"], metadata=rest or None)


def _only_one(place: str, **members: object) -> str:
    present = [name for name, value in members.items() if value is not None]
    if len(present) != 1:
        raise FailureError(InvalidParams(place, "object with exactly one of", "object", tuple(members)))
    return present[0]


def configuration(given: Configuration03, place: str) -> SendConfiguration:
    """0 messages of history are all of them, as the reference implementation has it."""
    push = given.push_notification_config
    return SendConfiguration(
        given.accepted_output_modes or None,
        None if push is None else push_config(push, None, f"{place}.pushNotificationConfig"),
        given.history_length or None,
        None if given.blocking is None else not given.blocking,
    )


def push_config(given: PushConfig03, task_id: str | None, place: str) -> PushConfig:
    """`place` is where the config stands in the caller's params."""
    authentication = given.authentication
    return PushConfig(
        given.url,
        given.id or None,
        task_id,
        given.token or None,
        None if authentication is None else _authentication(authentication, f"{place}.authentication"),
    )


def _authentication(given: Authentication03, place: str) -> Authentication | None:
    """The first scheme is the one: the credentials are for one only. Without any there is nothing to show."""
    if given.schemes:
        return Authentication(given.schemes[0], given.credentials or None)
    if given.credentials:
        raise FailureError(InvalidParams(f"{place}.schemes", "array with at least 1 item", "array"))
    return None
