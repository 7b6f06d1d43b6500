"""Plays the client's side of a recording to a server, and hears what it says now. Judges nothing: see `verdict`.

What the client said is said in its order, and not before the server has said what the client had seen by then: replies,
events of streams, requests. Each of these waits is bounded, so that a server that says less ends the replay later, not never.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Final, assert_never, final

import anyio
import msgspec

from ..client.json_path import parse_path, replace_at, value_at
from ..client.messages import MAX_MESSAGE_BYTES, encode_error
from ..client.task_group import background_tasks
from ..errors.failures import MethodNotFound, ParseFailure
from ..errors.redaction.marks import REDACTED
from ..errors.wire import encode_error as error_text
from ..framing.channel import Channel
from ..framing.events import EndOfInput, Fault, Frame, FrameLimits, Framing, NeedData
from ..framing.parser import parser_for
from ..framing.transports.interface import ByteTransport, PeerGone
from .json_values import UNREADABLE, Json, dump, load
from .script import Hang, Say, Script, Topic, id_of, is_awaited, topic_of
from .scrubber import UNNUMBERED, removed_piece

WAIT_SECONDS: Final = 10.0
"""How long one thing is waited for that the server had said in the recording, and then its end."""


class Played(msgspec.Struct, frozen=True):
    """What came of it: the server's messages by topic, and the bytes that were none.

    `sent` of the client's messages went out. `unfilled` are places in them (method, place) where a secret was needed and the
    mark was sent instead.
    """

    heard: dict[Topic, list[Json]]
    garbage: int
    sent: int
    unfilled: tuple[tuple[str, str], ...]


async def play(
    dialogue: Script, transport: ByteTransport, *, framing: Framing = "content-length", timeout: float = WAIT_SECONDS
) -> Played:
    """Play a dialogue to the server at the other end. Leaves the transport for the caller to close.

    Ids are sent as recorded. Where the recorded client answered a request of the server, its answer goes to the request
    of the same method and params, else to the next of that method; a request that was never recorded is answered
    METHOD_NOT_FOUND. `timeout` is in seconds.
    """
    player = _Player(dialogue, transport, framing=framing, timeout=timeout)
    async with background_tasks() as tasks:
        tasks.start_soon(player.read)
        tasks.start_soon(player.write)
        await player.perform()
    return player.played


@final
class _Player:
    def __init__(self, dialogue: Script, transport: ByteTransport, *, framing: Framing, timeout: float) -> None:
        self._dialogue = dialogue
        self._transport = transport
        # No deadline for a frame: the waits have theirs.
        self._channel = Channel(
            transport, parser_for(framing, FrameLimits(max_body=MAX_MESSAGE_BYTES)), frame_timeout=math.inf
        )
        self._timeout = timeout
        self._heard: defaultdict[Topic, list[Json]] = defaultdict(list)
        self._excused: defaultdict[Topic, int] = defaultdict(int)  # messages that were waited for in vain
        self._unanswered: list[dict[str, Json]] = []  # requests of the server
        self._secrets: dict[int, Json] = {}  # by the numbers of those in the recording
        self._unfilled: list[tuple[str, str]] = []
        self._garbage = 0
        self._sent = 0
        self._ended = False
        self._deaf = False
        self._changed = anyio.Event()
        self._to_write = anyio.Event()

    @property
    def played(self) -> Played:
        return Played(dict(self._heard), self._garbage, self._sent, tuple(self._unfilled))

    async def perform(self) -> None:
        """Take all steps, wait for what came behind the last one, and end the stream."""
        hung = False
        for step in self._dialogue.steps:
            await self._until_heard(step.after)
            match step:
                case Say():
                    if not hung:
                        await self._say(step)
                case Hang():
                    hung = True
                    await self._hang_up()
                case _:
                    assert_never(step)
        await self._until_heard({topic: len(heard) for topic, heard in self._dialogue.heard.items()})
        if not hung:
            await self._hang_up()
        await self._until(lambda: self._ended)

    # -- what the client says ----------------------------------------------------------------------------------

    async def _say(self, step: Say) -> None:
        message = _copy(step.message)
        self._fill_in(message, step.scrubbed)
        if step.answers is not None and isinstance(message, dict):
            request = await self._asked_again(step.answers)
            if request is None:
                return
            message["id"] = request.get("id")
        self._post(dump(message))
        if not self._deaf:
            self._sent += 1

    def _fill_in(self, message: Json, scrubbed: dict[str, int]) -> None:
        """Put the secrets of this run where those of the recorded one were, as far as they are known."""
        for place, number in scrubbed.items():
            path = parse_path(place)
            text = value_at(message, path)
            secret = self._secrets.get(number)
            if secret is None or number == UNNUMBERED:
                method = message.get("method") if isinstance(message, dict) else None
                self._unfilled.append((method if isinstance(method, str) else "", place))
            elif text == REDACTED:
                replace_at(message, path, secret)
            elif isinstance(text, str) and isinstance(secret, str):
                replace_at(message, path, text.replace(REDACTED, secret))

    async def _asked_again(self, place: int) -> dict[str, Json] | None:
        """The server's request that stands for a recorded one; None where none comes."""
        recorded = self._dialogue.asked[place]

        def candidates() -> list[dict[str, Json]]:
            return [request for request in self._unanswered if request.get("method") == recorded.topic.method]

        await self._until(lambda: bool(candidates()))
        params = recorded.message.get("params")
        best = sorted(candidates(), key=lambda request: request.get("params") != params)
        if not best:
            return None
        self._unanswered.remove(best[0])
        return best[0]

    async def _hang_up(self) -> None:
        await self._until(lambda: self._deaf or not self._channel.unsent)
        self._transport.send_eof()

    def _post(self, body: bytes) -> None:
        self._channel.post(body)
        self._to_write.set()

    async def write(self) -> None:
        try:
            while True:
                await self._to_write.wait()
                self._to_write = anyio.Event()
                while not self._channel.flush():
                    await self._channel.wait_sendable()
                self._tell()
        except PeerGone:
            self._deaf = True
            self._tell()

    # -- what the server says ----------------------------------------------------------------------------------

    async def read(self) -> None:
        while True:
            event = self._channel.next_nowait()
            match event:
                case Frame(body):
                    self._take(body)
                case Fault(_, size):
                    self._garbage += size
                case NeedData():
                    if (fault := await self._channel.fill()) is not None:
                        self._garbage += fault.size
                case EndOfInput():
                    self._ended = True
                    self._tell()
                    return
                case _:
                    assert_never(event)

    def _take(self, body: bytes) -> None:
        try:
            message = load(body)
            dump(message)  # or half a character in it would be found only where it is shown
            topic = topic_of(message)
        except UNREADABLE:
            self._channel.refuse_body(ParseFailure("invalid-json"))
            return
        if topic is None or not isinstance(message, dict):
            topic, message = Topic("other", ""), {"": message}
        recorded = self._dialogue.heard.get(topic, [])
        place = len(self._heard[topic])
        self._heard[topic].append(message)
        if place < len(recorded):
            self._learn(message, recorded[place].message, recorded[place].scrubbed)
        if topic.kind == "request":
            self._take_request(message, known=place < len(recorded))
        self._tell()

    def _take_request(self, request: dict[str, Json], *, known: bool) -> None:
        if known:
            self._unanswered.append(request)
        else:
            self._post(encode_error(id_of(request).encode(), error_text(MethodNotFound())))

    def _learn(self, message: Json, recorded: Json, scrubbed: dict[str, int]) -> None:
        """Where the recorded message held a secret, this one holds the one of this run."""
        for place, number in scrubbed.items():
            path = parse_path(place)
            try:
                now, then = value_at(message, path), value_at(recorded, path)
            except LookupError:
                continue
            if number != UNNUMBERED and isinstance(then, str):
                secret = removed_piece(now, then) if isinstance(now, str) else now if then == REDACTED else None
                if isinstance(secret, (str, msgspec.Raw)):
                    self._secrets.setdefault(number, secret)

    # -- waiting -----------------------------------------------------------------------------------------------

    async def _until_heard(self, wanted: dict[Topic, int]) -> None:
        """Wait until so many messages of each topic have come; what does not come is not waited for again."""
        for topic, count in wanted.items():
            if not is_awaited(topic):
                continue
            await self._until(lambda: len(self._heard[topic]) + self._excused[topic] >= count)  # noqa: B023 - awaited here
            self._excused[topic] = max(self._excused[topic], count - len(self._heard[topic]))

    async def _until(self, happened: Callable[[], bool]) -> None:
        with anyio.move_on_after(self._timeout):
            while not (happened() or self._ended):
                await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _copy(message: Json) -> Json:
    return load(dump(message))
