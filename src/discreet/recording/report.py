"""Reports how a replay differs from its recording. Shows no secret: both sides are scrubbed first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias, final

import msgspec
from msgspec import Raw

from ..client.json_path import Path, Pattern, format_path, matches, parse_path, parse_pattern
from ..errors.printable import cut
from ..errors.redaction.limits import CUT, REDACTED
from .format import Json, dump
from .replay import MAX_SURPLUS_BYTES, ReplayResult
from .script import NULL_ID, MessageGroup, RecordedMessage, Script, token_path
from .scrubber import MessageScrubber


class Missing(msgspec.Struct, frozen=True):
    """One of the two values has no such member or item."""


MISSING = Missing()

ValueDifference: TypeAlias = tuple[Path, "Json | Missing", "Json | Missing"]


def differences(
    one: Json | Missing, other: Json | Missing, ignored: Callable[[Path], bool], path: Path = ()
) -> Iterator[ValueDifference]:
    """The smallest parts that differ, in the order of `one`. A path that is `ignored` is skipped with everything below it.

    Raises `RecursionError` for values nested too deeply.
    """
    if ignored(path):
        return
    match one, other:
        case dict(), dict():
            for key in (*one, *(key for key in other if key not in one)):
                yield from differences(one.get(key, MISSING), other.get(key, MISSING), ignored, (*path, key))
        case list(), list():
            for index, (first, second) in enumerate(zip_longest(one, other, fillvalue=MISSING)):
                yield from differences(first, second, ignored, (*path, index))
        case Raw(), Raw():
            if not _equal_numbers(one, other):
                yield path, one, other
        case _:
            if type(one) is not type(other) or one != other:
                yield path, one, other


def _equal_numbers(one: Raw, other: Raw) -> bool:
    if bytes(one) == bytes(other):
        return True
    try:
        return bool(msgspec.json.decode(one) == msgspec.json.decode(other))
    except (msgspec.DecodeError, ValueError):  # no type can hold the numbers: only equal texts are surely equal
        return False


SHOWN_CHARACTERS: Final = 200
"""How much of a differing value is shown; the recording has all of it."""

PLACE_CHARACTERS: Final = 1000
"""How much of a message's name and of a path in it is shown."""

PAIRED_REQUESTS: Final = 256
"""How many requests of the server are tried for a recorded one: the order of more than that is no chance."""

NOTHING: Final = "nothing"

_ID_PATHS: Final = (("id",), ("params", "id"))
"""Never compared: replies and events are matched by them, and the server's own ids are new in every run."""


class Difference(msgspec.Struct, frozen=True):
    """One difference. `message` names the message, `path` a value in it; an empty path means the whole message."""

    message: str
    path: str
    recorded: str
    now: str

    def __str__(self) -> str:
        where = ": ".join(cut(text, PLACE_CHARACTERS) for text in (self.message, self.path) if text)
        return f"{where}\n  recorded  {self.recorded}\n  now       {self.now}"


class ReplayReport(msgspec.Struct, frozen=True):
    """The result of a comparison. `notes` say what could not be played or compared; they are no differences."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    sent: int
    compared: int

    def __str__(self) -> str:
        return f"messages: {self.sent} sent, {self.compared} compared; differences: {len(self.differences)}"


def compare(script: Script, result: ReplayResult, *, ignore: Iterable[str] = ()) -> ReplayReport:
    """Compare a replay with its script. `ignore` are patterns of paths in messages (`result.*.mtime`) that may differ.

    An ignored path is ignored with everything below it. Messages are matched by their request's id, by their stream, or by
    their method; order counts within a stream and within a series of notifications. Scrubbed places are not compared, nor
    what a server sends after the end of a recording that was cut off. Raises `ValueError` for an `ignore` that is no pattern.
    """
    comparison = _Comparison(script, [parse_pattern(text) for text in ignore], MessageScrubber())
    groups = [*script.expected, *(group for group in result.received if group not in script.expected)]
    found = [
        difference
        for group in groups
        if not _answers_omitted_bytes(group, script)
        for difference in comparison.compare(group, script.expected.get(group, []), result.received.get(group, []))
    ]
    if result.invalid_bytes:
        found.append(
            Difference("the server", "", "messages", f"messages, and {result.invalid_bytes} bytes that are no message")
        )
    if result.overrun:
        more = f"more than {script.server_bytes + MAX_SURPLUS_BYTES} bytes; the rest was not read"
        found.append(Difference("the server", "", f"{script.server_bytes} bytes of messages", more))
    return ReplayReport(tuple(found), tuple(_notes(script, result)), result.sent, comparison.compared)


def _answers_omitted_bytes(group: MessageGroup, script: Script) -> bool:
    """Errors without an id answer bytes that were not recorded, and so not sent."""
    return group.kind == "reply" and group.key == NULL_ID and script.omitted_bytes > 0


def _notes(script: Script, result: ReplayResult) -> Iterator[str]:
    if script.cut_off:
        yield "the recording was cut off; messages after its end are not compared"
    if script.omitted_bytes:
        yield f"{script.omitted_bytes} bytes of the client were not recorded, and so not sent"
    missed = sum(step.message is not None for step in script.steps) - result.sent
    if missed > 0:
        yield f"{missed} messages of the client could not be sent"
    for method, path in result.unfilled:
        yield f"{method or 'a message'}: {path} was scrubbed; {REDACTED} was sent instead"


@final
class _Comparison:
    def __init__(self, script: Script, ignore: Sequence[Pattern], scrubber: MessageScrubber) -> None:
        self._script = script
        self._ignore = ignore
        self._scrubber = scrubber
        self.compared = 0

    def compare(
        self, group: MessageGroup, recorded: Sequence[RecordedMessage], received: Sequence[Json]
    ) -> Iterator[Difference]:
        """Yield the differences of one group, message by message. Requests of the server may come in any order."""
        if group.kind == "request":
            received = self._in_order_of(recorded, list(received))
        for index, (then, now) in enumerate(zip_longest(recorded, received)):
            name = self._name(group, index, several=max(len(recorded), len(received)) > 1)
            if then is None and self._script.cut_off:
                continue
            if then is None:
                yield Difference(name, "", NOTHING, _shown(self._scrub(now)))
            elif now is None:
                yield Difference(name, "", _shown(self._scrub(then.message)), NOTHING)
            else:
                self.compared += 1
                for path, one, other in self._differences(then, now):
                    yield Difference(name, format_path(path), _shown(one), _shown(other))

    def _in_order_of(self, recorded: Sequence[RecordedMessage], received: list[Json]) -> list[Json]:
        ordered: list[Json] = []
        for then in recorded[: len(received)]:
            best = min(received[:PAIRED_REQUESTS], key=lambda now: any(self._differences(then, now)))
            received.remove(best)
            ordered.append(best)
        return [*ordered, *received]

    def _differences(self, then: RecordedMessage, now: Json) -> Iterator[ValueDifference]:
        ignored = {*_ID_PATHS, token_path(then.message), *map(parse_path, then.scrubbed)}

        def is_ignored(path: Path) -> bool:
            return path in ignored or any(matches(pattern, path) for pattern in self._ignore)

        try:
            yield from differences(self._scrub(then.message), self._scrub(now), is_ignored)
        except RecursionError:
            yield (), CUT, CUT

    def _scrub(self, message: Json) -> Json:
        try:
            return self._scrubber.scrub(message).message
        except RecursionError:  # no recorded message is nested so deeply
            return CUT

    def _name(self, group: MessageGroup, index: int, *, several: bool) -> str:
        number = f" {index + 1}" if several else ""
        match group.kind:
            case "reply":
                return f"{self._script.methods.get(group.key, 'a reply')} id {group.key}{number}"
            case "event":
                return f"{self._script.methods.get(group.key, 'a stream')} id {group.key}: event {index + 1}"
            case kind:
                series = f" {group.key}" if group.key and group.key != group.method else ""
                return f"{kind} {group.method}{series}{number}"


def _shown(value: Json | Missing) -> str:
    if isinstance(value, Missing):
        return NOTHING
    text = dump(value).decode()
    return cut(text, SHOWN_CHARACTERS)
