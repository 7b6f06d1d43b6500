"""The life of a daemon that serves one client over one byte transport: how it begins, drains and ends.

Knows nothing of the process around it (descriptors, signals, log sinks), so that it runs in memory as it runs for real.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Coroutine
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from msgspec.structs import replace

from ..errors.failures import Unavailable
from ..framing.transports.interface import ByteTransport
from ..lazy import anyio
from .apps import lifespan_failed
from .connection.connection import Connection
from .dispatch.task_pool import hidden_tasks
from .host import MAX_NAMED, Host
from .lifecycle import EXIT_FAILED, Event, Lifecycle, State
from .logs import log
from .process.liveness import ProcessWatches
from .process.reexec import NEW_CONNECTION, ConnectionState

if TYPE_CHECKING:
    from .operations.request import ContextBackend

FLUSH_SECONDS: Final = 0.5
"""How much of the drain window is kept for sending the last replies and flushing the logs."""

LEAVE_SHARE: Final = 0.4
"""How much of that is left to the process, which closes the logs: a client that reads nothing must not take all of it."""

LEAST_SECONDS: Final = 0.05
"""How much the export of the last spans gets in any case. The watchdog waits longer than that past the window."""

READER_GONE: Final = frozenset({None, errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN, errno.EIO})
"""How a reader that goes away looks: pipes, sockets, terminals; None for a transport that was closed."""

IGNORING: Final[frozenset[Event]] = frozenset({"signal", "exit", "parent-gone"})
"""Reasons to end after which no more input is awaited."""


def reader_has_gone(cause: BaseException | None) -> bool:
    """Whether this failure to write means that the reader went away."""
    return getattr(cause, "errno", None) in READER_GONE


def log_output_failure(cause: BaseException | None) -> None:
    """Log why replies can't be written."""
    name = errno.errorcode.get(getattr(cause, "errno", None) or 0, "unknown")
    if reader_has_gone(cause):
        log.warning("stdout.closed", error=name)
    else:
        log.error("stdout.failed", error=name)


class Listener(Protocol):
    """Another way in, beside the connection over `transport`. Used on the loop."""

    def report_to(self, on_progress: Callable[[], None]) -> None:
        """Have `on_progress()` called from now on when a request has ended."""
        ...

    @property
    def context_backend(self) -> ContextBackend:
        """For what runs for no client of its own."""
        ...

    @property
    def settled(self) -> bool:
        """True when every request is answered."""
        ...

    async def run(self) -> None:
        """Serve, until cancelled."""
        ...

    def refuse_more(self) -> None:
        """From now on whatever comes is answered with UNAVAILABLE. What was accepted goes on."""
        ...

    async def finish(self, seconds: float) -> None:
        """Send what is left, for at most so long."""
        ...


@final
class Daemon:
    """Serves `host` over `transport`, and through `listener` where there is one, until there is a reason to end.

    `begin()` answers what has arrived already as far as that needs no event loop; `run()` does the rest and returns
    the exit status. `ask_to_end()` may be called from signal handlers and threads. `on_ending()` is called on
    the loop when the end begins. Raises `DeclarationError` for names that are declared twice.

    `state` is what a daemon before this one left of the same connection. After `swap`, `on_swapping()` is called when
    no more requests are taken, and `on_swap(state)` with the state of this one when it is at its end.
    """

    def __init__(
        self,
        host: Host,
        transport: ByteTransport,
        *,
        state: ConnectionState = NEW_CONNECTION,
        on_ending: Callable[[], None] = lambda: None,
        on_swapping: Callable[[], None] = lambda: None,
        on_swap: Callable[[ConnectionState], None] = lambda _: None,
        listener: Listener | None = None,
    ) -> None:
        self.host: Final = host
        self.lifecycle: Final = Lifecycle(self._on_state)
        self.watches: Final = ProcessWatches(lambda: self._end("parent-gone"))
        self._on_ending = on_ending
        self._on_swapping = on_swapping
        self._on_swap = on_swap
        self._asked: Event | None = None
        self._beside: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._listener = listener
        if listener is not None:
            self._beside.append(listener.run)
        self._reading: anyio.CancelScope | None = None
        self._changed: anyio.Event | None = None
        self._ends_at: float | None = None
        self.connection: Final = Connection(host, transport, self, state)

    # -- life --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Answer what can be answered before any event loop is loaded. Raises `AppError` where spans can't be recorded."""
        self.host.begin_tracing()
        self.host.watch_app()
        if not self.host.lifespans:
            self.lifecycle.apply("ready")
            self.connection.begin()

    def finished(self) -> bool:
        """True when the input has ended and all of it is answered: `run` would have nothing to do."""
        if not (self.connection.input_ended and self._settled):
            return False
        self.host.close(self._last_seconds)
        self.lifecycle.apply("end-of-input")
        self.lifecycle.apply("drained")
        return True

    async def run(self) -> int:
        """Serve until the end; the exit status. Call `begin` before. Raises `AppError` where a lifespan fails at the start."""
        self._changed = anyio.Event()
        async with anyio.create_task_group() as tasks:
            ours = self.connection if self._listener is None else self._listener
            with hidden_tasks():  # they run until the end
                self.host.start(tasks, ours.context_backend, on_wakeup=self._on_wakeup)
                self.watches.start(tasks)
                for work in self._beside:
                    tasks.start_soon(work)
            async with anyio.create_task_group() as serving:
                with hidden_tasks():
                    serving.start_soon(self.connection.writer.run)
                    serving.start_soon(self._read)
                await self._until(lambda: self.lifecycle.state not in ("starting", "serving"))
                if self.lifecycle.state == "swapping":
                    await self._hand_over()
                if self.lifecycle.draining:
                    await self._drain()
                serving.cancel_scope.cancel()
            if not await self.connection.send_last(self._seconds_before(self._flush_seconds * LEAVE_SHARE)):
                self.lifecycle.status = EXIT_FAILED
            if self._listener is not None:
                await self._listener.finish(self._last_seconds)
            await self._leave_lifespans()
            if self.host.lifespans:
                self._log_state()
            tasks.cancel_scope.cancel()
        self.host.close(self._last_seconds)
        lifespans = self.host.lifespans
        if lifespans.fault is not None and lifespans.failed is not None:
            raise lifespan_failed(lifespans.failed, lifespans.fault)
        return self.lifecycle.status

    def end_without_loop(self) -> None:
        """Answer what the client is owed, once the event loop has failed. Raises nothing for want of a loop.

        The tasks of that loop never go on. Whatever would wake one of them raises instead, and need not be done.
        """
        self._changed = None
        scheduler = self.host.scheduler
        self.connection.refuse_more()
        for request in scheduler.requests():
            request.scope = None
            with suppress(RuntimeError):
                request.end(Unavailable())
        for step in (
            self.connection.begin,  # reads what has arrived
            self.connection.read_rest,
            lambda: self.lifecycle.apply("failed"),
            lambda: anyio.run(self.connection.send_last, self._flush_seconds),
        ):
            with suppress(RuntimeError):
                step()

    def beside(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this beside the serving, until the end. Before `run`."""
        self._beside.append(work)

    async def _read(self) -> None:
        """Read until the input has ended or need not be awaited, or another program is to go on from here."""
        if not await self.host.lifespans.entered():
            return self._end("failed")
        self.lifecycle.apply("ready")
        while not (self.lifecycle.state == "stopped" or self.lifecycle.reason in IGNORING):
            with anyio.CancelScope() as self._reading:
                await self.connection.read()
                self._end("end-of-input")
                return
            if self.connection.can_hand_over and self.lifecycle.apply("reload"):
                break

    async def _hand_over(self) -> None:
        """Let what runs finish, and leave the connection to another program, unless there is a reason to end."""
        if not await self._let_finish():
            with anyio.move_on_after(self._flush_seconds):  # for their clean-up
                await self._until(lambda: self.host.scheduler.idle or self.lifecycle.draining)
        await self._leave_lifespans()
        if self.lifecycle.apply("swap"):
            self.host.flush(self._flush_seconds)
            self._on_swap(replace(self.connection.state(), watched=self.watches.pids))

    async def _leave_lifespans(self) -> None:
        with anyio.move_on_after(self.host.settings.drain_timeout) as scope:
            await self.host.lifespans.leave()
        if scope.cancelled_caught:
            log.error("lifespan.not_left", service=self.host.lifespans.leaving)

    async def _drain(self) -> None:
        """Let what runs finish, within the window; then answer for it."""
        if self._reading is not None and self.lifecycle.reason in IGNORING:
            self._reading.cancel()
            self.connection.read_rest()
        if self.lifecycle.state != "stopped":
            in_time = await self._let_finish()
            self.lifecycle.apply("drained" if in_time else "window-closed")

    async def _let_finish(self) -> bool:
        """Wait until nothing runs any more and the client has all of it.

        False when the window closed before, and what still ran was answered for.
        """
        state = self.lifecycle.state
        self.host.agent.on_idle(self.on_progress)
        self.host.agent.drain(self._seconds_before(2 * self._flush_seconds))
        with anyio.move_on_after(self._seconds_before(self._flush_seconds)) as scope:
            await self._until(lambda: self._settled or self.lifecycle.state != state)
            if (
                self.lifecycle.reason == "shutdown"
            ):  # LSP's clients send `exit` next, and some mind if the daemon has gone
                await self._until(lambda: self.connection.input_ended or self._asked is not None)
        if scope.cancelled_caught and not self.host.scheduler.idle:
            running = self.host.scheduler.requests()
            methods = sorted({request.spec.name for request in running})[:MAX_NAMED]
            unanswered = self.connection.unanswered
            log.warning("daemon.window_closed", unanswered=unanswered, running=len(running), methods=methods)
        if not self.host.scheduler.idle and (scope.cancelled_caught or self._settled):  # what only rests is settled
            self._abandon()
        return not scope.cancelled_caught

    @property
    def _flush_seconds(self) -> float:
        return min(FLUSH_SECONDS, self.host.settings.drain_timeout / 4)

    def _seconds_before(self, kept: float) -> float:
        """Return the seconds left of the drain window without its last `kept`. A step that takes longer leaves the next less."""
        left = self.host.settings.drain_timeout if self._ends_at is None else self._ends_at - monotonic()
        return max(0.0, left - kept)

    @property
    def _last_seconds(self) -> float:
        """The seconds that are left of the drain window, as far as the end may wait for others."""
        left = FLUSH_SECONDS if self._ends_at is None else self._ends_at - monotonic()
        return max(LEAST_SECONDS, min(left, self._flush_seconds))

    @property
    def _settled(self) -> bool:
        return self.host.idle and self.connection.settled and (self._listener is None or self._listener.settled)

    def _abandon(self) -> None:
        scheduler = self.host.scheduler
        scheduler.end(scheduler.requests(), Unavailable())

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Wait until a condition on the daemon's own state holds, or the daemon has stopped."""
        while not (reached() or self.lifecycle.state == "stopped"):
            self._changed = anyio.Event()
            await self._changed.wait()

    # -- reasons to end ----------------------------------------------------------------------------------------

    def ask_to_end(self, event: Event) -> None:
        """End soon, for this reason. From any thread or signal handler."""
        self._asked = event
        self.host.wake()

    def _on_wakeup(self) -> None:
        if self._asked is not None:
            self._end(self._asked)

    def _end(self, event: Event) -> None:
        """Apply a reason to end, on the loop. Wakes the tasks that wait for it, even if the end has begun already."""
        if not self.lifecycle.apply(event):
            self.on_progress()

    def swap(self) -> bool:
        """Let `on_swap` have the connection, once what runs has finished. On the loop.

        False while that can't be: something is wrong with the input and has to be worked off before. Ask again, also when
        nothing has come of it; asking twice changes nothing.
        """
        if self._reading is None or self.lifecycle.state != "serving" or not self.connection.can_hand_over:
            return False
        self._reading.cancel()
        return True

    def _on_state(self, state: State) -> None:
        if state != "stopped" or not self.host.lifespans:  # they are left before it has stopped
            self._log_state()
        told = self.host.scheduler.on_progress
        if state not in ("starting", "serving") and self.on_progress not in told:  # until then nothing waits for less
            told.append(self.on_progress)
            if self._listener is not None:
                self._listener.report_to(self.on_progress)
        if self.lifecycle.draining:
            if self._ends_at is None:
                self._ends_at = monotonic() + self.host.settings.drain_timeout
            self.connection.refuse_more()
            if self._listener is not None:
                self._listener.refuse_more()
            self._on_ending()
        if state == "swapping":
            self._on_swapping()
            self.connection.hand_over()
        if state == "stopped":  # nothing more is begun, and running handlers are told that their results are not wanted
            self._abandon()
        self.connection.on_progress()

    def _log_state(self) -> None:
        log.info(f"daemon.{self.lifecycle.state}", reason=self.lifecycle.reason)

    # -- what the connection tells -----------------------------------------------------------------------------

    def on_output_lost(self, cause: BaseException | None) -> None:
        """The client closed the pipe, which is a normal end; or writing failed, as on a full disk, which is an error."""
        log_output_failure(cause)
        self._end("reader-gone" if reader_has_gone(cause) else "failed")

    def on_progress(self) -> None:
        if self._changed is not None and self.lifecycle.state != "serving":
            self._changed.set()

    def begin_shutdown(self) -> None:
        self._end("shutdown")

    def exit(self, *, failed: bool = False) -> None:
        self._asked = "exit"
        if failed:
            self.lifecycle.status = EXIT_FAILED
        if not self.lifecycle.apply("exit"):
            self.on_progress()

    def watch_client(self, pid: int) -> None:
        if self.watches.add_client(pid):
            return
        if self.watches.full:
            log.warning("client.too_many_processes", pid=pid)
        else:
            log.info("client.unknown_process", pid=pid)
