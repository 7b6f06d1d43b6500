"""What a server said differently from a recording, in words for people. Shows no secret: both sides are scrubbed first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, final

import msgspec

from ..client.json_path import Path, Pattern, format_path, matches, parse_path, parse_pattern
from ..errors.redaction.marks import CUT
from .diff import Absent, differences
from .json_values import Json, dump
from .replay import Played
from .script import NULL_ID, Heard, Script, Topic
from .scrubber import MessageScrubber

SHOWN_CHARACTERS: Final = 200
"""Of a value that differs; the rest is what people look up in the recording."""

NOTHING: Final = "nothing"

_IDS: Final = (("id",), ("params", "id"))
"""Compared nowhere: replies and events are found by them, the server's own are new in every run."""


class Difference(msgspec.Struct, frozen=True):
    """One thing that is not as recorded. `where` names the message, `place` a value in it; empty for the whole."""

    where: str
    place: str
    recorded: str
    now: str

    def __str__(self) -> str:
        return f"{self.where}{f': {self.place}' if self.place else ''}\n  recorded  {self.recorded}\n  now       {self.now}"


class ReplayReport(msgspec.Struct, frozen=True):
    """How a replay went. `notes` are what could not be played or compared; they are no differences."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    sent: int
    compared: int

    def __str__(self) -> str:
        return f"messages: {self.sent} sent, {self.compared} compared; differences: {len(self.differences)}"


def judge(dialogue: Script, played: Played, *, ignore: Iterable[str] = (), hide_paths: bool = False) -> ReplayReport:
    """Compare. `ignore` are places in messages that may differ (`result.*.mtime`), with all that is below them.

    Messages belong together by their request's id, by their stream, or by their method; order counts within a stream and
    a series of notifications. Places where the recording was scrubbed are not compared, nor what a server says beyond the end
    of a recording that was cut off. Raises `ValueError` for an
    `ignore` that names no place.
    """
    court = _Court(dialogue, [parse_pattern(text) for text in ignore], MessageScrubber(hide_paths=hide_paths))
    topics = [*dialogue.heard, *(topic for topic in played.heard if topic not in dialogue.heard)]
    found = [
        difference
        for topic in topics
        if not _is_for_garbage(topic, dialogue)
        for difference in court.compare(topic, dialogue.heard.get(topic, []), played.heard.get(topic, []))
    ]
    if played.garbage:
        found.append(Difference("the server", "", "messages", f"messages, and {played.garbage} bytes that are none"))
    return ReplayReport(tuple(found), tuple(_notes(dialogue, played)), played.sent, court.compared)


def _is_for_garbage(topic: Topic, dialogue: Script) -> bool:
    """Errors for bytes that were not recorded and so not sent."""
    return topic.kind == "reply" and topic.key == NULL_ID and dialogue.garbage > 0


def _notes(dialogue: Script, played: Played) -> Iterator[str]:
    if dialogue.cut:
        yield "the recording was cut off; what it does not hold is not compared"
    if dialogue.garbage:
        yield f"{dialogue.garbage} bytes of the client that were no message were not recorded and not sent"
    missed = sum(1 for step in dialogue.steps if hasattr(step, "message")) - played.sent
    if missed > 0:
        yield f"{missed} messages of the client could not be sent"
    for method, place in played.unfilled:
        yield f"{method or 'a message'}: {place} was scrubbed; the mark was sent instead"


@final
class _Court:
    def __init__(self, dialogue: Script, ignore: Sequence[Pattern], scrubber: MessageScrubber) -> None:
        self._dialogue = dialogue
        self._ignore = ignore
        self._scrubber = scrubber
        self.compared = 0

    def compare(self, topic: Topic, recorded: Sequence[Heard], now: Sequence[Json]) -> Iterator[Difference]:
        """The differences of one topic, message by message."""
        for place, (then, current) in enumerate(self._paired(topic, recorded, now)):
            name = self._name(topic, place, several=max(len(recorded), len(now)) > 1)
            if then is None and self._dialogue.cut:
                continue
            if then is None or current is None:
                message = current if then is None else then.message
                shown = self._shown(self._clean(message))
                yield Difference(name, "", *((NOTHING, shown) if then is None else (shown, NOTHING)))
                continue
            self.compared += 1
            for path, one, other in self._differences(then, current):
                yield Difference(name, format_path(path), self._shown(one), self._shown(other))

    def _paired(
        self, topic: Topic, recorded: Sequence[Heard], now: Sequence[Json]
    ) -> list[tuple[Heard | None, Json | None]]:
        """Recorded messages with those of now. Requests of the server may come in any order: equal ones belong together."""
        if topic.kind == "request":
            left = list(now)
            ordered: list[Json] = []
            for then in recorded:
                best = min(
                    left, key=lambda message: next(self._differences(then, message), None) is not None, default=None
                )
                if best is not None:
                    left.remove(best)
                    ordered.append(best)
            now = [*ordered, *left]
        most = max(len(recorded), len(now))
        return [
            (recorded[at] if at < len(recorded) else None, now[at] if at < len(now) else None) for at in range(most)
        ]

    def _differences(self, then: Heard, now: Json) -> Iterator[tuple[Path, Json | Absent, Json | Absent]]:
        scrubbed = frozenset(map(parse_path, then.scrubbed))
        return differences(self._clean(then.message), self._clean(now), partial(self._ignored, scrubbed))

    def _ignored(self, scrubbed: frozenset[Path], path: Path) -> bool:
        return path in _IDS or path in scrubbed or any(matches(pattern, path) for pattern in self._ignore)

    def _clean(self, message: Json) -> Json:
        try:
            return self._scrubber.scrub(message).message
        except RecursionError:  # nothing that was recorded is so deep
            return CUT

    def _name(self, topic: Topic, place: int, *, several: bool) -> str:
        number = f" {place + 1}" if several else ""
        match topic.kind:
            case "reply":
                return f"{self._dialogue.methods.get(topic.key, 'a reply')} id {topic.key}{number}"
            case "event":
                return f"{self._dialogue.methods.get(topic.key, 'a stream')} id {topic.key}: event {place + 1}"
            case kind:
                series = f" {topic.key}" if topic.key and topic.key != topic.method else ""
                return f"{kind} {topic.method}{series}{number}"

    def _shown(self, value: Json | Absent) -> str:
        if isinstance(value, Absent):
            return NOTHING
        text = dump(value).decode()
        return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"
