"""What the clients of a chaos run saw and were told, for the checker. Decides nothing."""

from __future__ import annotations

import time
from collections import Counter
from typing import TypeAlias

import msgspec

from .calls import Event, JsonObject
from .plan import Conversation, Plan

Key: TypeAlias = tuple[str, str, str]
"""What an event says: `artifact`, its text, and nothing; or `status`, the state, and the id and text of its message."""

ENDED = frozenset({"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"})
WAITING = "TASK_STATE_INPUT_REQUIRED"


class Seen(msgspec.Struct, frozen=True):
    """An event that arrived at `at`, in seconds since 1970."""

    number: int
    key: Key
    at: float


class Segment(msgspec.Struct):
    """One stream of a subscriber: from which gateway, behind which event or from which task as it was, and what came."""

    gateway: int
    opened: float
    after: int | None = None
    snapshot: JsonObject | None = None
    seen: list[Seen] = msgspec.field(default_factory=list)


class Subscriber(msgspec.Struct):
    """`ended` says that it saw the task's end: by a stream, or else (`told`) as the answer that the task has ended."""

    task_id: str
    segments: list[Segment] = msgspec.field(default_factory=list)
    ended: bool = False
    told: bool = False

    @property
    def last(self) -> int | None:
        return next((segment.seen[-1].number for segment in reversed(self.segments) if segment.seen), None)


class Refusal(msgspec.Struct, frozen=True):
    """A call that was not answered with a result: `reason` is the error's, or `broken: …`."""

    at: float
    reason: str


class Begun(msgspec.Struct):
    """A task that was acknowledged, and what else was: the ids of messages, whether it was canceled."""

    plan: Plan
    context_id: str
    messages: set[str] = msgspec.field(default_factory=set)
    cancel_asked: bool = False
    canceled: bool = False


class Talk(msgspec.Struct):
    """A conversation whose task was acknowledged, and what became of its messages, by their ids: `acknowledged` or `refused`; and when
    they were first sent, and acknowledged, in seconds since 1970."""

    plan: Conversation
    acknowledged: dict[str, float] = msgspec.field(default_factory=dict)
    sent: dict[str, float] = msgspec.field(default_factory=dict)
    refused: dict[str, str] = msgspec.field(default_factory=dict)


class Record(msgspec.Struct):
    talks: dict[str, Talk] = msgspec.field(default_factory=dict)
    """The conversations by their tasks."""
    begun: dict[str, Begun] = msgspec.field(default_factory=dict)
    logs: dict[str, list[Seen]] = msgspec.field(default_factory=dict)
    """The events of each task, as a client got them once it had ended. A store may forget them some time later."""
    subscribers: list[Subscriber] = msgspec.field(default_factory=list)
    refusals: list[Refusal] = msgspec.field(default_factory=list)
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    wrong: list[str] = msgspec.field(default_factory=list)
    unfinished: set[str] = msgspec.field(default_factory=set)

    def fail(self, text: str) -> None:
        self.wrong.append(f"{time.strftime('%H:%M:%S')} {text}")


def key_of(event: JsonObject) -> Key | None:
    """None for what is no event of a log."""
    match event:
        case {"artifactUpdate": {"artifact": {"parts": parts}}}:
            return "artifact", parts[0]["text"], ""
        case {"statusUpdate": {"status": status}}:
            message = status.get("message")
            return "status", status["state"], f"{message['messageId']} {message['parts'][0]['text']}" if message else ""
    return None


def seen(event: Event) -> Seen | None:
    key = key_of(event.value)
    return None if key is None or event.number is None else Seen(event.number, key, time.time())
