"""Replays a recorded session: what the client sent, and how the server's answers differ from those that were recorded.

`build_script` turns a recording into a script, `replay` plays it to a server, `compare` reports the differences, scrubbed. The
client's messages go out in their order, each only after the server has sent what the client had received by then: replies,
events of streams, requests. Each wait is bounded, so a server that sends less delays the replay but does not stop it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias, assert_never, final

import anyio
import msgspec
from msgspec import UNSET, Raw, UnsetType

from ..client.json_path import Path, Pattern, format_path, matches, parse_path, parse_pattern, replace_at, value_at
from ..client.messages import MAX_MESSAGE_BYTES, STREAM_EVENT
from ..client.task_group import background_tasks
from ..errors.failures import MethodNotFound, ParseFailure
from ..errors.printable import cut
from ..errors.redaction.limits import CUT, REDACTED
from ..errors.wire import encode_error_response
from ..framing.channel import Channel
from ..framing.events import EndOfInput, Fault, Frame, FrameLimits, Framing, NeedData
from ..framing.parser import parser_for
from ..framing.transports.interface import ByteTransport, PeerGone
from .format import JSON_ERRORS, ClosedEntry, Json, MessageEntry, OmittedEntry, Recording, RecordingError, dump, load
from .scrubber import UNNUMBERED, MessageScrubber, removed_text


class MessageGroup(msgspec.Struct, frozen=True):
    """Messages of the server that belong together and whose order counts.

    `kind` is `reply`, `event`, `request`, `notification` or `other`. `key` is the id of the client's request for replies and
    events; for notifications it is what tells one series of the same method from another.
    """

    kind: str
    key: str
    method: str = ""

    @property
    def is_waited_for(self) -> bool:
        """Whether a client may wait for such a message. The time of any other message is chance."""
        return self.kind in ("reply", "event", "request")


class RecordedMessage(msgspec.Struct, frozen=True):
    """One message of the server. `scrubbed` has the numbers of the removed secrets, by path."""

    message: Json
    scrubbed: dict[str, int]


class SendStep(msgspec.Struct, frozen=True):
    """The client sends a message; None is the end of its stream.

    Before, it has received so many messages of each group in `wait_for`, which lists only groups that grew since its last
    step. `answers` is the server's request that the message answers.
    """

    wait_for: dict[MessageGroup, int]
    message: RecordedMessage | None = None
    answers: RecordedMessage | None = None


class Script(msgspec.Struct):
    """The client's steps, and the server's messages to expect, by group.

    `methods` are those of the client's requests, by id. `omitted_bytes` counts bytes of the client that were not recorded.
    `cut_off` says that the recording has no end, so the server may send more than expected. `exit_status` is the server's, None
    unless it ended by itself. `server_bytes` is the size of the server's messages.
    """

    cut_off: bool
    framing: Framing = "content-length"
    exit_status: int | None = None
    steps: list[SendStep] = []
    expected: dict[MessageGroup, list[RecordedMessage]] = {}
    methods: dict[str, str] = {}
    omitted_bytes: int = 0
    server_bytes: int = 0


def build_script(recording: Recording) -> Script:
    """Build the script. Raises `RecordingError` for a message that is no JSON or not scrubbed where its entry says."""
    framing = recording.start.framing
    status = None if recording.end is None else recording.end.status
    script = Script(
        recording.end is None,
        "content-length" if framing == "auto" else framing,  # never decided: the daemon's default
        None if status is None or status < 0 else status,
    )
    builder = _ScriptBuilder(script)
    for number, entry in enumerate(recording.entries, 2):
        match entry:
            case MessageEntry():
                try:
                    builder.add_message(entry)
                except LookupError as exc:
                    why = "a path in `scrubbed` leads to nothing in the message"
                    raise RecordingError(f"{recording.name}:{number}: {why}") from exc
                except JSON_ERRORS as exc:
                    why = "the message is no JSON that can be sent, or a path in `scrubbed` is none"
                    raise RecordingError(f"{recording.name}:{number}: {why}") from exc
            case ClosedEntry(sender="client"):
                builder.script.steps.append(SendStep(builder.take_new()))
            case OmittedEntry(sender="client"):
                builder.script.omitted_bytes += entry.size
            case _:
                pass
    return builder.script


_TOKEN_PARAMS: Final = {
    "$/progress": "token",
    "window/workDoneProgress/create": "token",
    "notifications/progress": "progressToken",
}
"""The places of the token in the server's messages about progress, in LSP and MCP."""

_SERIES_PARAMS: Final = ("uri", "taskId")
"""Params that tell one series of notifications from another of the same method."""


def token_path(message: Json) -> Path | None:
    """Return the path of the token in a message about progress. A server makes up new ones in every run."""
    method = message.get("method") if isinstance(message, dict) else None
    return ("params", _TOKEN_PARAMS[method]) if isinstance(method, str) and method in _TOKEN_PARAMS else None


@final
class Grouping:
    """Sorts the messages of one server into groups. Tokens of progress count by the order in which they come."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}

    def group_of(self, message: Json) -> MessageGroup:
        """Return the group of the server's next message; `other` for JSON that is no message. Raises one of `JSON_ERRORS`."""
        if not isinstance(message, dict):
            return MessageGroup("other", "")
        method, params = message.get("method"), message.get("params")
        members = params if isinstance(params, dict) else {}
        if not isinstance(method, str):
            return MessageGroup("reply" if message.keys() & {"result", "error"} else "other", id_of(message))
        if "id" in message:
            return MessageGroup("request", method, method)
        if method == STREAM_EVENT:
            return MessageGroup("event", id_of(members), method)
        if path := token_path(message):
            token = dump(members.get(str(path[-1]))).decode()
            return MessageGroup("notification", f"{self._tokens.setdefault(token, len(self._tokens) + 1)}", method)
        series = next((dump(members[name]).decode() for name in _SERIES_PARAMS if name in members), "")
        return MessageGroup("notification", series, method)


def id_of(message: dict[str, Json]) -> str:
    """Return the JSON text of a message's id."""
    return dump(message.get("id")).decode()


@final
class _ScriptBuilder:
    """Adds the messages of a recording to its script, one after the other."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._grouping = Grouping()
        self._requests: dict[str, RecordedMessage] = {}  # of the server, by id; the last one of each
        self._new: set[MessageGroup] = set()

    def add_message(self, entry: MessageEntry) -> None:
        """Raises one of `JSON_ERRORS` for a wrong message, and `LookupError` for wrong paths."""
        recorded = RecordedMessage(load(bytes(entry.message)), entry.scrubbed)
        message = recorded.message
        dump(message)  # it may be nested too deeply to be sent
        for path in entry.scrubbed:
            value_at(message, parse_path(path))
        if entry.sender == "client":
            answers = None
            if isinstance(message, dict) and "id" in message:
                method = message.get("method")
                if isinstance(method, str):
                    self.script.methods[id_of(message)] = method
                else:
                    answers = self._requests.get(id_of(message))
            self.script.steps.append(SendStep(self.take_new(), recorded, answers))
            return
        self.script.server_bytes += memoryview(entry.message).nbytes
        group = self._grouping.group_of(message)
        self.script.expected.setdefault(group, []).append(recorded)
        if group.kind == "request" and isinstance(message, dict):
            self._requests[id_of(message)] = recorded
        if group.is_waited_for:
            self._new.add(group)

    def take_new(self) -> dict[MessageGroup, int]:
        """Return the size of each group that grew since the last call."""
        sizes = {group: len(self.script.expected[group]) for group in self._new}
        self._new.clear()
        return sizes


@final
class ReplaySecrets:
    """The secrets that the server has sent in this run, by the numbers that the scrubber gave those of the recording.

    The (method, path) pairs of sent messages that needed a secret which is not known go to `unfilled`.
    """

    def __init__(self, unfilled: list[tuple[str, str]]) -> None:
        self._unfilled = unfilled
        self._secrets: dict[int, Json] = {}

    def learn(self, message: Json, recorded: RecordedMessage) -> None:
        """Take the secrets out of a message of the server, at the paths where the recorded one was scrubbed."""
        for place, number in recorded.scrubbed.items():
            path = parse_path(place)
            try:
                now, then = value_at(message, path), value_at(recorded.message, path)
            except LookupError:
                continue
            if number != UNNUMBERED and isinstance(then, str):
                secret = removed_text(now, then) if isinstance(now, str) else now if then == REDACTED else None
                if isinstance(secret, (str, msgspec.Raw)):
                    self._secrets.setdefault(number, secret)

    def fill_in(self, recorded: RecordedMessage) -> Json:
        """Return a copy of the client's message with its marks replaced, as far as the secrets are known."""
        message = load(dump(recorded.message))
        method = message.get("method") if isinstance(message, dict) else None
        for place, number in recorded.scrubbed.items():
            path = parse_path(place)
            text, secret = value_at(message, path), self._secrets.get(number)
            if secret is None:
                self._unfilled.append((method if isinstance(method, str) else "", place))
                continue
            if text != REDACTED and isinstance(text, str) and isinstance(secret, str):
                secret = text.replace(REDACTED, secret)
            if path:
                replace_at(message, path, secret)
            else:
                message = secret
        return message


WAIT_SECONDS: Final = 10.0
"""How long to wait for each message that the server sent in the recording, and then for the server's end."""


MAX_SURPLUS_BYTES: Final = 16 * 1024 * 1024
"""How many more bytes of messages than the recorded server a server may send before the replay ends. All of them are kept."""

MESSAGE_OVERHEAD: Final = 256
"""Bytes that a message takes in memory at least, beside its text."""


class ReplayResult(msgspec.Struct):
    """The messages of the server by group, and how many of its bytes were no message.

    `sent` counts the client's messages that were sent. `unfilled` are (method, path) pairs in them where a secret was needed
    and the mark `<redacted>` was sent instead. `overrun` says that the server sent so much more than recorded that the rest
    was not read.
    """

    received: defaultdict[MessageGroup, list[Json]] = msgspec.field(default_factory=lambda: defaultdict(list))
    invalid_bytes: int = 0
    sent: int = 0
    unfilled: list[tuple[str, str]] = []
    overrun: bool = False


async def replay(
    script: Script, transport: ByteTransport, *, framing: Framing = "content-length", timeout: float = WAIT_SECONDS
) -> ReplayResult:
    """Play a script to the server at the other end. The caller closes the transport. `timeout` is in seconds per wait.

    Ids are sent as recorded. An answer of the client to a request of the server goes to the request of the same method and
    params, else to the next one of that method. A request that is not in the recording is answered METHOD_NOT_FOUND.
    """
    replayer = _Replayer(script, transport, framing=framing, timeout=timeout)
    async with background_tasks() as tasks:
        tasks.start_soon(replayer.read_loop)
        tasks.start_soon(replayer.write_loop)
        await replayer.run()
    return replayer.result


@final
class _Replayer:
    def __init__(self, script: Script, transport: ByteTransport, *, framing: Framing, timeout: float) -> None:
        self._script = script
        self._transport = transport
        # No deadline for a frame: each wait has one.
        self._channel = Channel(
            transport, parser_for(framing, FrameLimits(max_body=MAX_MESSAGE_BYTES)), frame_timeout=math.inf
        )
        messages = sum(map(len, script.expected.values()))
        self._unread = script.server_bytes + messages * MESSAGE_OVERHEAD + MAX_SURPLUS_BYTES  # bytes left to read
        self._timeout = timeout
        self.result = ReplayResult()
        self._missing: defaultdict[MessageGroup, int] = defaultdict(int)  # waits that timed out
        self._unanswered: list[dict[str, Json]] = []  # requests of the server
        self._secrets = ReplaySecrets(self.result.unfilled)
        self._grouping = Grouping()
        self._ended = False  # the server's output
        self._unwritable = False
        self._changed = anyio.Event()
        self._to_write = anyio.Event()

    async def run(self) -> None:
        """Take all steps, wait for the messages that followed the last one, and end the stream."""
        closed = False
        for step in self._script.steps:
            await self._wait_for_messages(step.wait_for)
            if step.message is None:
                closed = True
                await self._close()
            elif not closed:
                await self._send(step, step.message)
        await self._wait_for_messages({group: len(messages) for group, messages in self._script.expected.items()})
        if not closed:
            await self._close()
        await self._wait_until(lambda: self._ended)

    # -- sending -----------------------------------------------------------------------------------------------

    async def _send(self, step: SendStep, recorded: RecordedMessage) -> None:
        message = self._secrets.fill_in(recorded)
        if step.answers is not None and isinstance(message, dict):
            request = await self._matching_request(step.answers.message)
            if request is None:
                return
            message["id"] = request.get("id")
        self._post(dump(message))
        if not self._unwritable:
            self.result.sent += 1

    async def _matching_request(self, recorded: Json) -> dict[str, Json] | None:
        """Return the server's request of the same method, and of the same params if there is one; None if none comes."""
        assert isinstance(recorded, dict)  # a request is an object
        method, params = recorded.get("method"), recorded.get("params")

        def candidates() -> list[dict[str, Json]]:
            return [request for request in self._unanswered if request.get("method") == method]

        await self._wait_until(lambda: bool(candidates()))
        best = min(candidates(), key=lambda request: request.get("params") != params, default=None)
        if best is not None:
            self._unanswered.remove(best)
        return best

    async def _close(self) -> None:
        await self._wait_until(lambda: self._unwritable or not self._channel.unsent)
        self._transport.send_eof()

    def _post(self, body: bytes) -> None:
        self._channel.post(body)
        self._to_write.set()

    async def write_loop(self) -> None:
        try:
            while True:
                await self._to_write.wait()
                self._to_write = anyio.Event()
                while not self._channel.flush():
                    await self._channel.wait_sendable()
                self._notify()
        except PeerGone:
            self._unwritable = True
            self._notify()

    # -- receiving ---------------------------------------------------------------------------------------------

    async def read_loop(self) -> None:
        while not self.result.overrun:
            event = self._channel.next_event()
            match event:
                case Frame(body):
                    self._handle(body)
                case Fault(_, size):
                    self.result.invalid_bytes += size
                case NeedData():
                    await self._channel.receive_more()
                case EndOfInput():
                    break
                case _:
                    assert_never(event)
        self._ended = True
        self._notify()

    def _handle(self, body: bytes) -> None:
        self._unread -= len(body) + MESSAGE_OVERHEAD
        if self._unread < 0:
            self.result.overrun = True
            return
        try:
            message = load(body)
            dump(message)  # otherwise a lone surrogate would only be found when the value is shown
        except JSON_ERRORS:
            self._channel.refuse_body(ParseFailure("invalid-json"))
            return
        group = self._grouping.group_of(message)
        expected = self._script.expected.get(group, [])
        index = len(self.result.received[group])
        self.result.received[group].append(message)
        if index < len(expected):
            self._secrets.learn(message, expected[index])
        if group.kind == "request" and isinstance(message, dict):
            if index < len(expected):
                self._unanswered.append(message)
            else:
                self._post(encode_error_response(id_of(message).encode(), MethodNotFound()))
        self._notify()

    # -- waiting -----------------------------------------------------------------------------------------------

    async def _wait_for_messages(self, counts: dict[MessageGroup, int]) -> None:
        """Wait until so many messages of each group were received. A message that does not come is waited for once."""
        for group, count in counts.items():
            if not group.is_waited_for:
                continue
            await self._wait_until(lambda: len(self.result.received[group]) + self._missing[group] >= count)  # noqa: B023 - awaited here
            self._missing[group] = max(self._missing[group], count - len(self.result.received[group]))

    async def _wait_until(self, happened: Callable[[], bool]) -> None:
        with anyio.move_on_after(self._timeout):
            while not (happened() or self._ended):
                await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


ValueDifference: TypeAlias = tuple[Path, "Json | UnsetType", "Json | UnsetType"]
"""A path, and the two values at it; UNSET where there is none."""


def differences(
    one: Json | UnsetType, other: Json | UnsetType, ignored: Callable[[Path], bool], path: Path = ()
) -> Iterator[ValueDifference]:
    """The smallest parts that differ, in the order of `one`. A path that is `ignored` is skipped with everything below it.

    Raises `RecursionError` for values nested too deeply.
    """
    if ignored(path):
        return
    match one, other:
        case dict(), dict():
            for key in (*one, *(key for key in other if key not in one)):
                yield from differences(one.get(key, UNSET), other.get(key, UNSET), ignored, (*path, key))
        case list(), list():
            for index, (first, second) in enumerate(zip_longest(one, other, fillvalue=UNSET)):
                yield from differences(first, second, ignored, (*path, index))
        case Raw(), Raw():
            if not _equal_numbers(one, other):
                yield path, one, other
        case _:
            if type(one) is not type(other) or one != other:
                yield path, one, other


def _agree(recorded: Json, message: Json, path: Path) -> bool:
    """Whether a message has a value where that of the recorded one was scrubbed, and the same text around the marks."""
    try:
        then, now = value_at(recorded, path), value_at(message, path)
    except LookupError:
        return False
    if not isinstance(then, str) or then == REDACTED:
        return True
    head, *parts = _MARK.split(then)
    if not (parts and isinstance(now, str) and now.startswith(head)):
        return False
    at, tail = len(head), parts.pop()
    for part in parts:
        if (found := now.find(part, at)) < 0:
            return False
        at = found + len(part)
    return len(now) - at >= len(tail) and now.endswith(tail)


_MARK: Final = re.compile(r"<\w+>")
"""What stands for a part that was removed: `<redacted>`, `<path>`, `<user>`."""


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
    return group.kind == "reply" and group.key == "null" and script.omitted_bytes > 0


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
        scrubbed = (path for path in map(parse_path, then.scrubbed) if _agree(then.message, now, path))
        ignored = {*_ID_PATHS, token_path(then.message), *scrubbed}

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


def _shown(value: Json | UnsetType) -> str:
    if value is UNSET:
        return NOTHING
    text = dump(value).decode()
    return cut(text, SHOWN_CHARACTERS)
