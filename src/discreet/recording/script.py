"""Turns a recording into a script: what the client sends, what it waits for before, and what the server should send.

Only reads the recording: no streams, no waiting, no comparison.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from ..client.json_path import Path, parse_path, value_at
from ..client.messages import STREAM_EVENT
from ..framing.events import Framing
from .format import JSON_ERRORS, ClosedEntry, Json, MessageEntry, OmittedEntry, Recording, RecordingError, dump, load

NULL_ID: Final = "null"


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
"""Where the server's messages about progress name it, in LSP and MCP."""

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
