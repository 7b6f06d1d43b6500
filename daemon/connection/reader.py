"""Reads frames and passes their messages to the dispatcher. Stops reading while too much waits."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final, assert_never, final

from ...errors.codes import row_of
from ...errors.failures import InvalidRequest
from ...framing.events import END_OF_INPUT, NEED_DATA, Fault, Frame
from ...lazy import anyio
from ..dispatch.task_pool import task_switch
from ..logs import log
from ..memory import SMALL, map_large_blocks, reserve
from ..operations.request import Request
from ..rpc.envelope import ClientResponse, Dropped, Message, NoJson, Refused, Scalar, decode, split_batch

if TYPE_CHECKING:
    from ...framing.channel import Channel
    from ...framing.events import Framing
    from ..dispatch.metrics import RequestMetrics
    from ..dispatch.responder import Responder
    from ..dispatch.scheduler import Scheduler
    from ..operations.request import Backlog
    from ..rpc.dialect import Dialect
    from .notices import ClientRequests
    from .writer import Writer


FILLS_BEFORE_LOOP: Final = 4
"""Enough for a first burst of requests and the end of input behind it."""


MEMORY_SECONDS: Final = 0.05
"""How long nothing is read after memory ran out."""


@final
class Reader:
    """Reads one channel until its end. `ended` turns true when the end of input was read."""

    def __init__(
        self,
        channel: Channel,
        writer: Writer,
        scheduler: Scheduler,
        backlog: Backlog,
        client_requests: ClientRequests,
        metrics: RequestMetrics,
    ) -> None:
        self._channel = channel
        self._writer = writer
        self._scheduler = scheduler
        self._backlog = backlog
        self._client_requests = client_requests
        self._metrics = metrics
        self._room: anyio.Event | None = None
        self.ended = False

    def read_as(self, accept: Callable[[Request], None], responder: Responder, dialect: Dialect) -> None:
        """Hand the requests to `accept`, from the next one on. To be called before anything is read."""
        self._accept = accept
        self._responder = responder
        self._dialect = dialect

    @property
    def _full(self) -> bool:
        """True while nothing more should be read."""
        if self._channel.congested or self._dialect.busy:
            return True
        return self._backlog.full and (not self._client_requests or self._backlog.overfull)

    def begin(self) -> None:
        """Read what has arrived already, before there is a loop; not more of it than delays the loop noticeably."""
        for _ in range(FILLS_BEFORE_LOOP):
            if not (self._channel.receive_more_nowait() and self._read_received()):
                break
        self._writer.flush()
        if self._metrics.inline:
            self._metrics.end_read()

    async def run(self) -> None:
        """Read until the end of input. Cancelling it loses nothing that was received."""
        leave_task, enter_task = task_switch()
        while not self.ended:
            try:
                leave_task()  # inline handlers and identity providers run in a turn
                try:
                    hungry = self._turn()
                finally:
                    enter_task()
                if self.ended:
                    break
                if not hungry:
                    await self._wait_for_room()
                elif not await self._watch():
                    await self._channel.receive_more()
            except MemoryError:  # what came is still there: go on when others have ended
                await self._wait_for_memory()
        self._writer.flush()

    def _turn(self) -> bool:
        """Work off what was received and send what came of it; True when more bytes are needed."""
        hungry = self._read_received()
        if self._scheduler.progressed:
            self._scheduler.flush()  # this connection's writer among others
        else:
            self._writer.flush()
        if self._metrics.inline:
            self._metrics.end_read()
        return hungry

    async def _watch(self) -> bool:
        """Take turns in callbacks of the event loop for as long as nothing but input is awaited, and no clock but that of the
        frame time-out. False where the loop has no such way, or something else is awaited.
        """
        seconds = self._channel.frame_seconds()
        if seconds is None:
            return False
        unwatched = anyio.Event()
        fault: BaseException | None = None
        timed, ended = seconds < inf, False

        def on_input() -> None:
            nonlocal fault, ended
            if ended:
                return
            try:
                if not self._channel.receive_more_nowait():
                    return
                hungry = self._turn()
                if hungry and (self._channel.idle or (timed and self._channel.frame_seconds() is not None)):
                    return
            except BaseException as exc:  # noqa: BLE001 - for `run`, whose task it would end
                fault = exc
            ended = True
            unwatched.set()

        stop = self._channel.watch_input(on_input)
        if stop is None:
            return False
        try:
            with anyio.move_on_after(seconds):
                await unwatched.wait()
        finally:
            stop()
        if fault is not None:
            raise fault
        return ended

    @staticmethod
    async def _wait_for_memory() -> None:
        reserve.free()
        log.error("memory.exhausted")
        await anyio.sleep(MEMORY_SECONDS)
        reserve.keep()

    def take_again(self, request: Request) -> None:
        """Take a request that the dialect has held back, and go on reading."""
        try:
            self._accept(request)
        except Exception as exc:  # noqa: BLE001 - as for one that was just read
            self._take_own_fault(request, exc)
        self._scheduler.flush()
        self.look_again()

    def read_all(self) -> None:
        """Take everything that was received, however much waits."""
        self._read_received(whatever_waits=True)
        if self._metrics.inline:
            self._metrics.end_read()

    def look_again(self) -> None:
        """Something was started or sent: there may be room now."""
        if self._room is not None and not self._full:
            self._room.set()
            self._room = None

    def _read_received(self, *, whatever_waits: bool = False) -> bool:
        """Work off what was received; True when more bytes are needed, False when too much waits, or at the end."""
        channel = self._channel
        while whatever_waits or not self._full:
            event = channel.next_event()
            if type(event) is Frame:
                message: Message | None = None
                if len(event.body) > SMALL:
                    map_large_blocks()
                try:
                    message = decode(event.body)
                    if isinstance(message, NoJson):
                        message = self._dialect.read_again(event.body) or message
                    if isinstance(message, Request):
                        self._accept(message)
                    else:
                        self._take_rare(message, event.body)
                except Exception as exc:  # noqa: BLE001 - a fault of our own must cost one message, not all of them
                    self._take_own_fault(message, exc)
            elif event is NEED_DATA:
                return True
            elif event is END_OF_INPUT:
                self.ended = True
                return False
            elif type(event) is Fault:
                self._take_fault(event)
        return False

    async def _wait_for_room(self) -> None:
        waiting = self._scheduler.on_progress
        waiting.append(self.look_again)
        try:
            while self._full:
                self._room = anyio.Event()
                await self._room.wait()
        finally:
            waiting.remove(self.look_again)

    def _take_fault(self, fault: Fault) -> None:
        if log.is_enabled_for("warning"):
            said = _hint(self._channel.opening, self._channel.framing) if fault.offset == 0 else ""
            log.warning(
                "frame.dropped",
                code=row_of(fault.failure).code,
                reason=fault.failure.reason,
                size=fault.size,
                offset=fault.offset,
                **({"hint": said} if said else {}),
            )
        self._responder.refuse_bytes(fault.failure)

    def _take_own_fault(self, message: Message | None, exc: Exception) -> None:
        """Answer the message whose handling failed in the daemon's own code, if it has an id, and go on."""
        if isinstance(exc, MemoryError):
            reserve.free()
        call_id = message.id if isinstance(message, Request) else None
        log.error("daemon.fault", id=call_id, exc=exc)
        if call_id is not None:
            self._responder.fault(call_id)

    def _take_batch(self, body: bytes) -> None:
        for member in split_batch(body):
            try:
                if isinstance(member, Request):
                    self._accept(member)
                else:
                    self._take_rare(member)
            except Exception as exc:  # noqa: BLE001 - as for a message that came by itself
                self._take_own_fault(member, exc)

    def _take_rare(self, message: ClientResponse | Refused | Dropped | NoJson, body: bytes | None = None) -> None:
        """Take a message that is no call. `body` is all of it; None for one of a batch, which holds no further batch."""
        match message:
            case NoJson(failure):
                self._channel.refuse_body(failure)
            case Scalar(_, failure) if body is not None:
                self._channel.refuse_body(failure)
            case Refused(_, InvalidRequest("batch-not-supported")) if body is not None and self._dialect.batches:
                self._take_batch(body)
            case Refused(call_id, failure):
                self._responder.refuse(call_id, failure)
            case ClientResponse():
                if not self._client_requests.take(message):
                    log.debug("response.unmatched", id=message.id)
            case Dropped():
                log.warning("message.malformed")
            case _:
                assert_never(message)


_OPENINGS: Final[tuple[tuple[bytes, str], ...]] = (
    (rb"\xef\xbb\xbf|\xff\xfe|\xfe\xff", "the input begins with a byte order mark: send UTF-8 without one"),
    (rb"[A-Z]+ \S+ HTTP/", "this is an HTTP request; what is read here is JSON-RPC on stdin"),
    (rb"(?i:content-[a-z]+:[^\r\n]*)\n", "header lines end in CR LF, and so does the empty line behind them"),
    (rb"(?i:content-[a-z]+):", "messages with headers need --framing content-length"),
    (
        rb'\s*\{[^\n]*"initialize"',
        "an initialize that is a line is that of MCP or ACP: --dialect mcp or acp; other lines need --framing newline",
    ),
    (rb"\s*[\[{]", "messages that are lines need --framing newline"),
)
"""What the input of a client begins with that framed not even its first message as is expected, and what to tell it."""


def _hint(opening: bytes, framing: Framing | None) -> str:
    import re  # late: only such clients need it

    for pattern, hint in _OPENINGS:
        if re.match(pattern, opening):
            return "" if hint.endswith(f"--framing {framing}") else hint
    return ""
