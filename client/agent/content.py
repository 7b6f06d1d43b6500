"""Makes messages of what a caller has to say, and reads the text of what comes back. Sends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from ...a2a.ids import new_id
from ...a2a.types import Artifact, Message, Part, Role

Content: TypeAlias = str | Part | Sequence[Part] | Message
"""What can be sent: text, one part or several, or a whole message."""


def message_of(content: Content, *, task_id: str | None = None, context_id: str | None = None) -> Message:
    """The message of a user, with an id of its own. Raises `TypeError` and `ValueError` for what is no content.

    A whole message keeps its id and its ids of task and context, unless others are given.
    """
    if isinstance(content, Message):
        return replace(content, task_id=task_id or content.task_id, context_id=context_id or content.context_id)
    return Message(new_id(), Role.USER, _parts(content), context_id=context_id, task_id=task_id)


def _parts(content: str | Part | Sequence[Part]) -> tuple[Part, ...]:
    parts = (Part(text=content),) if isinstance(content, str) else (content,) if isinstance(content, Part) else content
    if not isinstance(parts, Sequence) or not all(isinstance(part, Part) for part in parts):
        raise TypeError(f"content must be a text, a Part, several of them or a Message, not {content!r}")
    if not parts:
        raise ValueError("content must have at least one part")
    if any(part.content_count != 1 for part in parts):
        raise ValueError("a Part must have exactly one of text, raw, url and data")
    return tuple(parts)


def text_of(content: Message | Artifact) -> str:
    """The text parts of a message or an artifact, one per line."""
    return "\n".join(part.text for part in content.parts if part.text is not None)
