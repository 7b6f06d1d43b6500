"""What a recording says as a dialogue: what the client said, what it had seen before, and what the server said.

Pure bookkeeping over a recording: no streams, no waiting, no judgement of what differs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final, TypeAlias, final

import msgspec

from ..client.messages import STREAM_EVENT
from .format import Closed, Lost, Recording, Said
from .json_values import Json, dump, load

NULL_ID: Final = "null"


class Topic(msgspec.Struct, frozen=True):
    """What messages of the server belong together, and keep their order among each other.

    `kind` says what they are; `key` is the id of the client's request for replies and events, else what tells one series
    from another: a progress token, a method.
    """

    kind: str
    key: str
    method: str = ""


class Heard(msgspec.Struct, frozen=True):
    """One message of the server, with the numbers of what was scrubbed in it, by place."""

    topic: Topic
    message: dict[str, Json]
    scrubbed: dict[str, int]


class Say(msgspec.Struct, frozen=True):
    """The client says something. It had seen `after`: so many messages of each topic since it last said something.

    `answers` is the place of the server's request among all of them, where this is the answer to one.
    """

    message: Json
    scrubbed: dict[str, int]
    after: dict[Topic, int]
    answers: int | None = None


class Hang(msgspec.Struct, frozen=True):
    """The client ends its stream, having seen `after`."""

    after: dict[Topic, int]


Step: TypeAlias = Say | Hang


class Script(msgspec.Struct, frozen=True):
    """`asked` are the server's requests in order. `garbage` counts the bytes of the client that can't be said again.

    `cut` says that the recording broke off, so that the server may have said more than was heard.
    """

    steps: tuple[Step, ...]
    heard: dict[Topic, list[Heard]]
    asked: tuple[Heard, ...]
    methods: dict[str, str]
    garbage: int
    cut: bool = False


def dialogue_of(recording: Recording) -> Script:
    """Read a recording. Raises `ValueError` or `RecursionError` for messages that are no JSON."""
    reading = _Reading()
    for line in recording.lines:
        match line:
            case Said(sender="client"):
                reading.client_says(load(bytes(line.message)), line.scrubbed)
            case Said():
                reading.server_says(load(bytes(line.message)), line.scrubbed)
            case Closed(sender="client"):
                reading.steps.append(Hang(reading.seen_since()))
            case Lost(sender="client"):
                reading.garbage += line.size
            case _:
                pass
    steps, asked = tuple(reading.steps), tuple(reading.asked)
    cut = recording.ended is None
    return Script(steps, dict(reading.heard), asked, reading.methods, reading.garbage, cut)


def topic_of(message: Json) -> Topic | None:
    """What a message of the server belongs to; None for what is no message."""
    if not isinstance(message, dict):
        return None
    method, params = message.get("method"), message.get("params")
    members = params if isinstance(params, dict) else {}
    if not isinstance(method, str):
        return Topic("reply", id_of(message)) if "result" in message or "error" in message else None
    if "id" in message:
        return Topic("request", method, method)
    if method == STREAM_EVENT:
        return Topic("event", id_of(members), method)
    series = next((dump(members[name]).decode() for name in _SERIES if name in members), "")
    return Topic("notification", series, method)


_SERIES: Final = ("token", "progressToken", "uri", "taskId")
"""Params that tell one series of notifications from another of the same method."""


def id_of(message: dict[str, Json]) -> str:
    """The JSON text of a message's id."""
    return dump(message.get("id")).decode()


def is_awaited(topic: Topic) -> bool:
    """Whether a client may have waited for such a message before it went on: chance decides when the others come."""
    return topic.kind in ("reply", "event", "request")


@final
class _Reading:
    """How far the recording has been read."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.heard: defaultdict[Topic, list[Heard]] = defaultdict(list)
        self.asked: list[Heard] = []
        self.methods: dict[str, str] = {}
        self.garbage = 0
        self._seen: Counter[Topic] = Counter()

    def client_says(self, message: Json, scrubbed: dict[str, int]) -> None:
        answers = None
        if isinstance(message, dict) and "id" in message:
            method = message.get("method")
            if isinstance(method, str):
                self.methods[id_of(message)] = method
            else:
                answers = self._answered_by(message)
        self.steps.append(Say(message, scrubbed, self.seen_since(), answers))

    def server_says(self, message: Json, scrubbed: dict[str, int]) -> None:
        topic = topic_of(message)
        if topic is None or not isinstance(message, dict):
            topic, message = Topic("other", ""), {"": message}
        heard = Heard(topic, message, scrubbed)
        self.heard[topic].append(heard)
        if topic.kind == "request":
            self.asked.append(heard)
        if is_awaited(topic):
            self._seen[topic] += 1

    def seen_since(self) -> dict[Topic, int]:
        """How many messages of each topic had come by now, for those that came since this was last asked."""
        since = {topic: len(self.heard[topic]) for topic in self._seen}
        self._seen.clear()
        return since

    def _answered_by(self, reply: dict[str, Json]) -> int | None:
        wanted = id_of(reply)
        return next((at for at in reversed(range(len(self.asked))) if id_of(self.asked[at].message) == wanted), None)
