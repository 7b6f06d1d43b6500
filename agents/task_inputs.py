"""Keeps what an operation that runs as a task asks its client for. Requests and answers are events of the task: what is stored
outlives the daemon, and every daemon on the store can tell it. Asks nobody itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import msgspec

from ..a2a.types import JsonObject, Message, Part, Role, StatusChanged, Task, TaskState, TaskStatus, now
from ..errors.decoders import DECODE_ERRORS, convert
from .executor import agent_message
from .live_task import LiveTask

_MEMBER: Final = "inputs"
"""Member of a status' data part that has a `_Note`."""

_ANSWERED_TEXT: Final = "The client has answered."


class InputRequest(msgspec.Struct, frozen=True):
    """A request to the client of a task. `params` are JSON."""

    method: str
    params: Any  # JSON


class _Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """The change that one status tells of, by the keys of requests."""

    asked: dict[str, InputRequest] = {}
    answered: dict[str, Any] = {}  # JSON
    withdrawn: list[str] = []


@final
class Inputs:
    """The requests of a task by their keys, and the answers so far, as of the task that was read last."""

    def __init__(self) -> None:
        self.requests: Final[dict[str, InputRequest]] = {}
        self.answers: Final[dict[str, Any]] = {}  # Any: JSON
        self._withdrawn: set[str] = set()
        self._read = 0

    def read(self, task: Task) -> Inputs:
        """Take up what is new in a later state of the same task; returns this object."""
        for message in task.history[self._read :]:
            self._take(message)
        self._read = len(task.history)
        if task.status.message is not None:  # it is read again where it has become a part of the history
            self._take(task.status.message)
        return self

    def _take(self, message: Message) -> None:
        if message.role is not Role.AGENT:
            return
        for part in message.parts:
            if isinstance(part.data, dict) and _MEMBER in part.data:
                try:
                    note = convert(part.data[_MEMBER], _Note)
                except DECODE_ERRORS:  # a result of the operation's own that looks like one
                    continue
                self.requests.update(note.asked)
                self.answers.update(note.answered)
                self._withdrawn.update(note.withdrawn)

    @property
    def open(self) -> Mapping[str, InputRequest]:
        """The requests that wait for an answer."""
        return {
            key: request
            for key, request in self.requests.items()
            if key not in self.answers and key not in self._withdrawn
        }

    @property
    def usable(self) -> Mapping[str, InputRequest]:
        """The requests that were not withdrawn."""
        return {key: request for key, request in self.requests.items() if key not in self._withdrawn}


def inputs_of(task: Task) -> Inputs:
    """The inputs of a task."""
    return Inputs().read(task)


def asked_part(key: str, request: InputRequest) -> Part:
    """The part of a status that asks for an input."""
    return _part(_Note(asked={key: request}))


def withdrawn_part(keys: list[str]) -> Part:
    """The part of a status that waits for these inputs no more."""
    return _part(_Note(withdrawn=keys))


def take_answers(live: LiveTask, answers: JsonObject) -> None:
    """Publish answers to requests that are open. Others are dropped: they were answered, or were never asked for.

    Raises `FailureError(Overloaded)` without memory for them.
    """
    waiting = {} if live.ended else inputs_of(live.task()).open
    taken = {key: answer for key, answer in answers.items() if key in waiting}
    if taken:
        parts = (Part(text=_ANSWERED_TEXT), _part(_Note(answered=taken)))
        status = TaskStatus(TaskState.WORKING, agent_message(live, parts), now())
        live.publish(StatusChanged(status), limited=True)


def are_awaited(live: LiveTask, answers: JsonObject) -> bool:
    """Whether the task waits for one of these answers."""
    return not live.ended and not inputs_of(live.task()).open.keys().isdisjoint(answers)


def _part(note: _Note) -> Part:
    return Part(data={_MEMBER: msgspec.to_builtins(note)})
