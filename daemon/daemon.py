"""One daemon over one byte transport: the parts wired together, and the order in which they begin and end.

Knows nothing of the process around it (descriptors, signals, log sinks), so that it runs in memory as it runs for real.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from ..framing.channel import Channel
from ..framing.events import FrameLimits
from ..framing.parser import parser_for
from ..framing.transports.interface import ByteTransport
from .agents.host import AgentHost
from .connection.client_requests import ClientRequests
from .connection.notices import Notices, Room
from .connection.reader import Reader
from .connection.request_log import note_timeout
from .connection.writer import Writer
from .dispatch.dispatcher import Dispatcher
from .dispatch.from_thread import LoopPortal
from .dispatch.inner_calls import InnerCalls
from .dispatch.request import Request
from .dispatch.router import Router
from .lifecycle import EXIT_FAILED, Event, Lifecycle, State
from .logs import log
from .operations.access import PARENT, Access, Identity
from .operations.catalogue import Catalogue
from .operations.context import Context
from .operations.registry import Registry
from .operations.service import Service
from .operations.spec import OperationSpec
from .process.liveness import ProcessWatch, watch_client
from .process.reexec import NOTHING, ConnectionState
from .process.wakeup import Wakeup
from .rpc import envelope
from .services.builtins import builtins
from .services.discovery import discovery, rpc_discovery
from .settings import Settings

if TYPE_CHECKING:
    import anyio
    import anyio.abc

    from .agents.agent import Agent

T = TypeVar("T")

FLUSH_SECONDS: Final = 0.5
"""How much of the drain window is kept for sending the last replies and flushing the logs."""

READER_GONE: Final = frozenset({None, errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN, errno.EIO})
"""How a reader that goes away looks: pipes, sockets, terminals; None for a transport that was closed."""

IGNORING: Final[frozenset[Event]] = frozenset({"signal", "exit", "parent-gone"})
"""Reasons to end after which no more input is awaited."""


@final
class Daemon:
    """Serves `services`, the built-in methods and an agent over `transport`: `agent`, or one whose skills the services are.

    `begin()` answers what has arrived already as far as that needs no event loop; `run()` does the rest and returns
    the exit status. `ask_to_end()` may be called from signal handlers and threads. `on_ending()` is called on
    the loop when the end begins. Raises `DeclarationError` for names that are declared twice.

    `carried` is what a daemon before this one left of the same connection. `on_swap(carried)` is called with that of
    this one, once it was asked to `swap`; it is at its end then.
    """

    def __init__(
        self,
        services: Sequence[Service],
        transport: ByteTransport,
        settings: Settings,
        *,
        version: str,
        access: Access | None = None,
        capabilities: Mapping[str, str] | None = None,
        agent: Agent | None = None,
        carried: ConnectionState = NOTHING,
    ) -> None:
        self.version = version
        self.lifecycle = Lifecycle(self._on_state)
        self._settings = settings
        self.on_ending: Callable[[], None] = lambda: None
        self.on_swap: Callable[[ConnectionState], None] = lambda _: None
        self._wakeup = Wakeup()
        self._asked: Event | None = None
        self._watches: list[ProcessWatch] = []
        self._beside: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._reading: anyio.CancelScope | None = None
        self._tasks: anyio.abc.TaskGroup | None = None
        self._changed: anyio.Event | None = None
        self._access = access or Access(PARENT)
        self.offers = Catalogue(services, capabilities or {})
        self._agency = AgentHost(self.offers, agent, self._access, settings)
        self._registry = Registry([builtins(self), discovery(self), rpc_discovery(self), *services], self._agency.late)
        limits = FrameLimits(settings.max_message_bytes, settings.max_header_bytes)
        self._channel = Channel(
            transport,
            parser_for(carried.framing or settings.framing, limits),
            frame_timeout=settings.frame_timeout,
            on_timeout=note_timeout,
            received=carried.received,
            waiting=carried.unsent,
        )
        self._outbox = Writer(self._channel, self._on_output_lost)
        self._dispatcher = Dispatcher(
            Router(self._registry, self._access),
            self._outbox,
            self,
            limit=1 if settings.ordered else settings.max_concurrency,
            request_timeout=settings.request_timeout,
            notify_loop=self._wakeup.notify,
        )
        self._asking = ClientRequests(self._outbox, carried.asked)
        self._composer = self._agency.composer = InnerCalls(self._registry, self._dispatcher)
        self._from_threads = LoopPortal(self._dispatcher.threads, lambda: self._tasks)
        self._reader = Reader(self._channel, self._dispatcher, self._outbox, self._asking.take)
        self._notices = Notices(self._outbox, self._dispatcher.threads)
        self._outbox.on_room = self._on_room
        self._dispatcher.on_change = self._look_again
        self._dispatcher.awaits_client = self._asking.waits
        self._asking.on_open = self._look_again

    # -- life --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Answer what can be answered before any event loop is loaded."""
        self.lifecycle.apply("ready")
        self._reader.begin()

    def finished(self) -> bool:
        """True when the input has ended and all of it is answered: `run` would have nothing to do."""
        if not (self._reader.ended and self._dispatcher.idle and not self._outbox.unsent):
            return False
        self.lifecycle.apply("end-of-input")
        self.lifecycle.apply("drained")
        return True

    async def run(self) -> int:
        """Serve until the end; the exit status. Call `begin` before."""
        import anyio  # late: `begin` has answered by now

        self._changed = anyio.Event()
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._dispatcher.deadlines.run)
            tasks.start_soon(self._dispatcher.patience.run)
            tasks.start_soon(self._listen)
            for watch in self._watches:
                tasks.start_soon(watch.ended, self._on_process_gone)
            for work in self._beside:
                tasks.start_soon(work)
            self._dispatcher.workers.start(tasks)
            self._agency.begin(tasks, self._registry.load)
            async with anyio.create_task_group() as inner:
                inner.start_soon(self._outbox.run)
                inner.start_soon(self._read)
                await self._until(lambda: self.lifecycle.state != "serving")
                if self.lifecycle.state == "swapping":
                    await self._hand_over()
                if self.lifecycle.draining:
                    await self._drain()
                inner.cancel_scope.cancel()
            await self._send_last()
            tasks.cancel_scope.cancel()
        self._dispatcher.threads.close()
        return self.lifecycle.status

    async def _read(self) -> None:
        """Read until the input has ended, the end has begun, or another program is to go on from here."""
        import anyio  # late, as above

        while not self.lifecycle.draining:
            with anyio.CancelScope() as self._reading:
                await self._reader.run()
                self.end("end-of-input")
            if self._channel.leftover() is not None and self.lifecycle.apply("reload"):
                break

    async def _hand_over(self) -> None:
        """Let what runs finish, and leave the connection to another program, unless there is a reason to end."""
        import anyio  # late, as above

        if not await self._let_finish():
            with anyio.move_on_after(min(FLUSH_SECONDS, self._settings.drain_timeout / 4)):  # for their clean-up
                await self._until(lambda: self._dispatcher.idle or self.lifecycle.draining)
        if self.lifecycle.apply("swap"):
            self.on_swap(self._carried())

    def _carried(self) -> ConnectionState:
        return ConnectionState(
            received=self._channel.leftover() or b"",
            unsent=self._outbox.take_rest(),
            framing=self._channel.framing,
            watched=tuple(watch.pid for watch in self._watches),
            asked=self._asking.last,
        )

    async def _drain(self) -> None:
        """Let what runs finish, within the window; then answer for it."""
        if self._reading is not None and self.lifecycle.reason in IGNORING:
            self._reading.cancel()
            self._reader.read_nowait(at_most_what_fits=False)  # it was read: it gets its answer
            self._outbox.flush()
        if self.lifecycle.state != "stopped":
            in_time = await self._let_finish()
            self.lifecycle.apply("drained" if in_time else "window-closed")

    async def _let_finish(self) -> bool:
        """Wait until nothing runs any more and the reader has all of it.

        False when the window closed before, and what still ran was answered for.
        """
        import anyio  # late, as above

        state = self.lifecycle.state
        window = self._settings.drain_timeout
        self._agency.on_idle(self._look_again)
        with anyio.move_on_after(window - min(FLUSH_SECONDS, window / 4)) as scope:
            await self._until(lambda: self._settled or self.lifecycle.state != state)
            if self.lifecycle.reason == "shutdown":  # LSP's clients send `exit` next, and some mind if nobody is there
                await self._until(lambda: self._reader.ended or self._asked is not None)
        if scope.cancelled_caught and not self._dispatcher.idle:
            log.warning("daemon.window_closed", unanswered=self._dispatcher.unanswered)
            self._dispatcher.abandon()
        return not scope.cancelled_caught

    @property
    def _settled(self) -> bool:
        return self._dispatcher.idle and self._agency.idle and not self._outbox.unsent

    async def _send_last(self) -> None:
        import anyio  # late, as above

        with anyio.move_on_after(min(FLUSH_SECONDS, self._settings.drain_timeout / 4)):
            await self._outbox.wait_sent()
        if self._outbox.unsent:
            log.error("replies.lost", bytes=self._channel.unsent)
            self.lifecycle.status = EXIT_FAILED

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Wait until a condition on the daemon's own state holds, or the daemon has stopped."""
        import anyio  # late, as above

        while not (reached() or self.lifecycle.state == "stopped"):
            self._changed = anyio.Event()
            await self._changed.wait()

    async def _listen(self) -> None:
        """Take what worker threads and signal handlers have to say."""
        while True:
            await self._wakeup.wait()
            self._dispatcher.collect()
            if self._asked is not None:
                self.end(self._asked)

    # -- reasons to end ----------------------------------------------------------------------------------------

    def ask_to_end(self, event: Event) -> None:
        """End soon, for this reason. From any thread or signal handler."""
        self._asked = event
        self._wakeup.notify()

    @property
    def pulse(self) -> int:
        """Changes whenever bytes come in or go out. May be read by any thread."""
        return self._channel.pulse

    def end(self, event: Event) -> None:
        """Apply a reason to end, on the loop."""
        self.lifecycle.apply(event)

    def swap(self) -> bool:
        """Let `on_swap` have the connection, once what runs has finished. On the loop.

        False while that can't be: something is wrong with the input and has to be worked off before. Ask again, also when
        nothing has come of it; asking twice changes nothing.
        """
        if self._reading is None or self.lifecycle.state != "serving" or self._channel.leftover() is None:
            return False
        self._reading.cancel()
        return True

    def beside(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this beside the serving, until the end. Before `run`."""
        self._beside.append(work)

    def watch(self, watch: ProcessWatch) -> None:
        """End when this process has ended. Watching one twice changes nothing."""
        if any(known.pid == watch.pid for known in self._watches):
            return
        self._watches.append(watch)
        if self._tasks is not None:
            self._tasks.start_soon(watch.ended, self._on_process_gone)

    def _on_output_lost(self, cause: BaseException | None) -> None:
        """The reader went away, as readers do; or the descriptor failed (a full disk), which nobody asked for."""
        number = getattr(cause, "errno", None)
        if number in READER_GONE:
            self.end("reader-gone")
        else:
            log.error("stdout.failed", error=errno.errorcode.get(number or 0, "unknown"))
            self.end("failed")

    def _on_process_gone(self) -> None:
        self.end("parent-gone")

    def _on_state(self, state: State) -> None:
        log.info(f"daemon.{state}", reason=self.lifecycle.reason)
        if self.lifecycle.draining:
            self._dispatcher.close()
            self.on_ending()
        if state == "stopped":  # nothing more is begun, and what still runs knows that it is in vain
            self._dispatcher.abandon()
        self._look_again()

    def _on_room(self) -> None:
        self._notices.give_room()
        self._dispatcher.pump()

    def _look_again(self) -> None:
        self._reader.look_again()
        if self._changed is not None and self.lifecycle.state != "serving":  # until then nobody waits for less
            self._changed.set()

    # -- what the built-in methods ask for ---------------------------------------------------------------------

    def operations(self) -> Iterable[OperationSpec]:
        return self._registry

    def offered(self, context: Context) -> Iterator[OperationSpec]:
        return self.offers.visible_to(context.identity)

    def capabilities(self) -> dict[str, Any]:  # JSON
        return {
            "cancelRequest": True,
            "progress": True,
            "streams": True,
            "maxMessageBytes": self._settings.max_message_bytes,
            **self.offers.announced_capabilities(),
        }

    def set_log_level(self, level: str) -> str:
        return log.set_level(level)

    def begin_shutdown(self) -> None:
        self.end("shutdown")

    def exit(self) -> None:
        self._asked = "exit"
        if not self.lifecycle.apply("exit"):
            self._look_again()

    def watch_client(self, pid: int) -> None:
        if any(watch.pid == pid for watch in self._watches):
            return
        watch = watch_client(pid)
        if watch is None:
            log.info("client.unknown_process", pid=pid)
        else:
            self.watch(watch)

    # -- what contexts ask for ---------------------------------------------------------------------------------

    def notify(self, method: str, params: object) -> Room:
        return self._notices.send(envelope.encode_notification(method, params))

    async def call(
        self, caller: OperationSpec, parent: Request | None, name: str, params: object, *, continue_running: bool
    ) -> bytes:
        return await self._composer.call(caller, parent, name, params, continue_running=continue_running)

    async def ask(self, method: str, params: object, timeout: float) -> bytes:
        return await self._asking.ask(method, params, timeout)

    def run_from_thread(self, request: Request | None, work: Callable[[], Awaitable[T]]) -> T:
        return self._from_threads.run(request, work)

    def identify(self, metadata: Mapping[str, str]) -> Identity | None:
        return self._access.identify(metadata)

    def capabilities_of(self, namespace: str) -> Mapping[str, str]:
        return self.offers.credentials_of(namespace)
