"""Turns a recording into a script: what the client sends, what it waits for before, and what the server should send.

Only reads the recording: no streams, no waiting, no comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, final

import msgspec

from ..client.json_path import parse_path, value_at
from ..client.messages import STREAM_EVENT
from .format import JSON_ERRORS, ClosedEntry, Json, MessageEntry, OmittedEntry, Recording, RecordingError, dump, load

NULL_ID: Final = "null"


class MessageGroup(msgspec.Struct, frozen=True):
    """Messages of the server that belong together and whose order counts.

    `kind` is `reply`, `event`, `request`, `notification` or `other`. `key` is the id of the client's request for replies and
    events; for notifications it is what tells one series of the same method from another, such as a progress token.
    """

    kind: str
    key: str
    method: str = ""


class RecordedMessage(msgspec.Struct, frozen=True):
    """One message of the server. `scrubbed` has the numbers of the removed secrets, by path."""

    group: MessageGroup
    message: dict[str, Json]
    scrubbed: dict[str, int]


class SendStep(msgspec.Struct, frozen=True):
    """The client sends a message.

    Before, it has received so many messages of each group in `wait_for`, which lists only groups that grew since its last
    step. `answers` is the server's request that the message answers.
    """

    message: Json
    scrubbed: dict[str, int]
    wait_for: dict[MessageGroup, int]
    answers: RecordedMessage | None = None


class CloseStep(msgspec.Struct, frozen=True):
    """The client ends its stream, after it has received `wait_for`."""

    wait_for: dict[MessageGroup, int]


Step: TypeAlias = SendStep | CloseStep


class Script(msgspec.Struct):
    """The client's steps, and the server's messages to expect, by group.

    `methods` are those of the client's requests, by id. `omitted_bytes` counts bytes of the client that were not recorded.
    `cut_off` says that the recording has no end, so the server may send more than expected. `server_bytes` is the size of
    the server's messages.
    """

    cut_off: bool
    steps: list[Step] = []
    expected: dict[MessageGroup, list[RecordedMessage]] = {}
    methods: dict[str, str] = {}
    omitted_bytes: int = 0
    server_bytes: int = 0


def build_script(recording: Recording) -> Script:
    """The script of a recording. Raises `RecordingError` for a message that is no JSON or not scrubbed where its entry says."""
    builder = _ScriptBuilder(Script(recording.end is None))
    for number, entry in enumerate(recording.entries, 2):
        match entry:
            case MessageEntry():
                try:
                    builder.add_message(entry)
                except (*JSON_ERRORS, LookupError) as exc:
                    raise RecordingError(f"{recording.name}:{number}: {_wrong_part(exc)}") from exc
            case ClosedEntry(sender="client"):
                builder.script.steps.append(CloseStep(builder.take_new()))
            case OmittedEntry(sender="client"):
                builder.script.omitted_bytes += entry.size
            case _:
                pass
    return builder.script


def _wrong_part(exc: Exception) -> str:
    if isinstance(exc, LookupError):
        return "a path in `scrubbed` leads to nothing in the message"
    return "the message is no JSON that can be sent, or a path in `scrubbed` is none"


def server_message(value: Json) -> tuple[MessageGroup, dict[str, Json]]:
    """A message of the server and its group. JSON that is no message becomes the member "" of an object."""
    if isinstance(value, dict) and (group := _group_of(value)) is not None:
        return group, value
    return MessageGroup("other", ""), {"": value}


def _group_of(message: dict[str, Json]) -> MessageGroup | None:
    method, params = message.get("method"), message.get("params")
    members = params if isinstance(params, dict) else {}
    if not isinstance(method, str):
        return MessageGroup("reply", id_of(message)) if "result" in message or "error" in message else None
    if "id" in message:
        return MessageGroup("request", method, method)
    if method == STREAM_EVENT:
        return MessageGroup("event", id_of(members), method)
    series = next((dump(members[name]).decode() for name in _SERIES_PARAMS if name in members), "")
    return MessageGroup("notification", series, method)


_SERIES_PARAMS: Final = ("token", "progressToken", "uri", "taskId")
"""Params that tell one series of notifications from another of the same method."""


def id_of(message: dict[str, Json]) -> str:
    """The JSON text of a message's id."""
    return dump(message.get("id")).decode()


def is_waited_for(group: MessageGroup) -> bool:
    """Whether a client may wait for such a message. The time of any other message is chance."""
    return group.kind in ("reply", "event", "request")


@final
class ServerTokens:
    """Progress tokens that the server makes up, which are new in every run: they are named by the order in which they come.

    Tokens that the client has chosen stay as they are.
    """

    def __init__(self) -> None:
        self._chosen: set[str] = set()
        self._names: dict[str, str] = {}
        self._tokens: dict[str, Json] = {}

    def note_client(self, message: Json) -> None:
        """Take up the tokens that the client chooses in a message of its own."""
        params = _params(message)
        meta = params.get("_meta")
        chosen = [params[name] for name in _CHOSEN_TOKENS if name in params]
        if isinstance(meta, dict) and "progressToken" in meta:
            chosen.append(meta["progressToken"])
        self._chosen.update(dump(token).decode() for token in chosen)

    def named(self, message: Json) -> Json:
        """The message with names for the server's tokens, such as `<token 1>`."""
        return _with_token(message, self._name)

    def actual(self, message: Json) -> Json:
        """The message with the server's tokens for their names. The client cancels a progress by its token."""
        return _with_token(message, lambda token: self._tokens.get(token, token) if isinstance(token, str) else token)

    def _name(self, token: Json) -> Json:
        text = dump(token).decode()
        if text in self._chosen:
            return token
        name = self._names.setdefault(text, f"<token {len(self._names) + 1}>")
        self._tokens[name] = token
        return name


_CHOSEN_TOKENS: Final = ("workDoneToken", "partialResultToken")

_TOKEN_PARAMS: Final = {
    "$/progress": "token",
    "window/workDoneProgress/create": "token",
    "window/workDoneProgress/cancel": "token",
    "notifications/progress": "progressToken",
}
"""Where messages about progress name it, in LSP and MCP."""


def _params(message: Json) -> dict[str, Json]:
    params = message.get("params") if isinstance(message, dict) else None
    return params if isinstance(params, dict) else {}


def _with_token(message: Json, replaced: Callable[[Json], Json]) -> Json:
    method = message.get("method") if isinstance(message, dict) else None
    member = _TOKEN_PARAMS.get(method, "") if isinstance(method, str) else ""
    params = _params(message)
    if not isinstance(message, dict) or member not in params:
        return message
    return {**message, "params": {**params, member: replaced(params[member])}}


@final
class _ScriptBuilder:
    """Adds the messages of a recording to its script, one after the other."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._tokens = ServerTokens()
        self._requests: dict[str, RecordedMessage] = {}  # of the server, by id; the last one of each
        self._new: set[MessageGroup] = set()

    def add_message(self, entry: MessageEntry) -> None:
        """Raises one of `JSON_ERRORS` for a wrong message, and `LookupError` for wrong paths."""
        message = load(bytes(entry.message))
        dump(message)  # it may be nested too deeply to be sent
        for path in entry.scrubbed:
            value_at(message, parse_path(path))
        if entry.sender == "client":
            self._add_client_message(message, entry.scrubbed)
        else:
            self.script.server_bytes += memoryview(entry.message).nbytes
            self._add_server_message(message, entry.scrubbed)

    def _add_client_message(self, message: Json, scrubbed: dict[str, int]) -> None:
        answers = None
        self._tokens.note_client(message)
        if isinstance(message, dict) and "id" in message:
            method = message.get("method")
            if isinstance(method, str):
                self.script.methods[id_of(message)] = method
            else:
                answers = self._requests.get(id_of(message))
        self.script.steps.append(SendStep(self._tokens.named(message), scrubbed, self.take_new(), answers))

    def _add_server_message(self, value: Json, scrubbed: dict[str, int]) -> None:
        group, message = server_message(self._tokens.named(value))
        recorded = RecordedMessage(group, message, scrubbed)
        self.script.expected.setdefault(group, []).append(recorded)
        if group.kind == "request":
            self._requests[id_of(message)] = recorded
        if is_waited_for(group):
            self._new.add(group)

    def take_new(self) -> dict[MessageGroup, int]:
        """The size of each group that grew since the last call."""
        sizes = {group: len(self.script.expected[group]) for group in self._new}
        self._new.clear()
        return sizes
