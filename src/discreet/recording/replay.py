"""Plays the client's side of a recording to a server and collects what the server sends. Compares nothing: see `report`.

The client's messages go out in their order, each only after the server has sent what the client had received by then:
replies, events of streams, requests. Each wait is bounded, so a server that sends less delays the replay but does not stop it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Final, assert_never, final

import anyio
import msgspec

from ..client.json_path import parse_path, replace_at, value_at
from ..client.messages import MAX_MESSAGE_BYTES
from ..client.task_group import background_tasks
from ..errors.failures import MethodNotFound, ParseFailure
from ..errors.redaction.limits import REDACTED
from ..errors.wire import encode_error_response
from ..framing.channel import Channel
from ..framing.events import EndOfInput, Fault, Frame, FrameLimits, Framing, NeedData
from ..framing.parser import parser_for
from ..framing.transports.interface import ByteTransport, PeerGone
from .format import JSON_ERRORS, Json, dump, load
from .script import Grouping, MessageGroup, RecordedMessage, Script, SendStep, id_of
from .scrubber import UNNUMBERED, removed_text


@final
class ReplaySecrets:
    """The secrets that the server has sent in this run, by the numbers that the scrubber gave those of the recording.

    `unfilled` are the (method, path) pairs of sent messages that needed a secret which is not known.
    """

    def __init__(self) -> None:
        self.unfilled: list[tuple[str, str]] = []
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
                self.unfilled.append((method if isinstance(method, str) else "", place))
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


class ReplayResult(msgspec.Struct, frozen=True):
    """The messages of the server by group, and how many of its bytes were no message.

    `sent` counts the client's messages that were sent. `unfilled` are (method, path) pairs in them where a secret was needed
    and the mark `<redacted>` was sent instead. `overrun` says that the server sent so much more than recorded that the rest
    was not read.
    """

    received: dict[MessageGroup, list[Json]]
    invalid_bytes: int
    sent: int
    unfilled: tuple[tuple[str, str], ...]
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
        self._received: defaultdict[MessageGroup, list[Json]] = defaultdict(list)
        self._missing: defaultdict[MessageGroup, int] = defaultdict(int)  # waits that timed out
        self._unanswered: list[dict[str, Json]] = []  # requests of the server
        self._secrets = ReplaySecrets()
        self._grouping = Grouping()
        self._invalid_bytes = 0
        self._sent = 0
        self._ended = False  # the server's output
        self._unwritable = False
        self._changed = anyio.Event()
        self._to_write = anyio.Event()

    @property
    def result(self) -> ReplayResult:
        unfilled = tuple(self._secrets.unfilled)
        return ReplayResult(dict(self._received), self._invalid_bytes, self._sent, unfilled, overrun=self._unread < 0)

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
            self._sent += 1

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
        while self._unread >= 0:
            event = self._channel.next_event()
            match event:
                case Frame(body):
                    self._handle(body)
                case Fault(_, size):
                    self._invalid_bytes += size
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
            return
        try:
            message = load(body)
            dump(message)  # otherwise a lone surrogate would only be found when the value is shown
        except JSON_ERRORS:
            self._channel.refuse_body(ParseFailure("invalid-json"))
            return
        group = self._grouping.group_of(message)
        expected = self._script.expected.get(group, [])
        index = len(self._received[group])
        self._received[group].append(message)
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
            await self._wait_until(lambda: len(self._received[group]) + self._missing[group] >= count)  # noqa: B023 - awaited here
            self._missing[group] = max(self._missing[group], count - len(self._received[group]))

    async def _wait_until(self, happened: Callable[[], bool]) -> None:
        with anyio.move_on_after(self._timeout):
            while not (happened() or self._ended):
                await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
