"""The process around a daemon: descriptors, logs, signals, the parent, and the way out. The composition root."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Final, NoReturn, final

from ..errors.printable import printable
from ..errors.redaction import scrub_secrets
from ..framing import stdio_guard
from ..framing.stdio_guard import StrayOutputReader
from ..framing.transports.interface import ByteTransport, StdoutClosed, reader_is_gone
from ..framing.transports.stdio import StdioTransport
from ..garbage import begin_start, end_start
from ..lazy import anyio, import_asyncio
from ..version import __version__
from . import plugins
from .apps import AppError, Hosted
from .daemon import Daemon, Listener, log_output_failure, reader_has_gone
from .dispatch.task_pool import hide_task
from .host import Host
from .hosting import build_host, log_settings, opened_store
from .lifecycle import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from .logs import (
    PrintedTexts,
    capture_logging,
    install_hooks,
    log,
    log_stray_output,
    loop_exception_handler,
    start_logging,
)
from .memory import save_address_space
from .operations.service import DeclarationError
from .plugins import PluginError
from .process.breakpoints import Debugger, take_breakpoints, without_time_limits
from .process.children import end_children, guard_forks, mark_children
from .process.liveness import HangupWatch, ProcessWatch, parent_has_gone, watch_parent
from .process.loop_watch import Watchdog
from .process.reexec import NEW_CONNECTION, ConnectionState, Handover, become, program
from .process.signals import Signals, let_through
from .service_manager import SharedStderr, activation_fault, keep_logs_off_stdout, service_manager
from .settings import Settings

if TYPE_CHECKING:
    from .process.event_loop import LastingLoop


# What a start that fails says: one line on stderr, and the status for wrong usage.


REFUSALS: Final = (OSError, RuntimeError, MemoryError, ImportError)
"""Exceptions of a system that has no descriptor, no thread or no memory left. An import needs all three."""

START_DESCRIPTORS: Final = 21
"""Descriptors that a daemon opens beside the standard ones: with Trio 17. The rest is for modules, which two threads may load,
and for a handler."""


def require_descriptors() -> None:
    """Raise `AppError` where the event loop could not be made later: the first requests are answered before it is."""
    taken: list[int] = []
    try:
        while len(taken) < START_DESCRIPTORS:
            taken.append(os.dup(0))
    except OSError as exc:
        if exc.errno in (errno.EMFILE, errno.ENFILE):  # else there is no stdin
            raise AppError(
                f"the system lets this process open too few files; {_needed_limit(START_DESCRIPTORS - len(taken))}"
            ) from None
    finally:
        for descriptor in taken:
            os.close(descriptor)


def _needed_limit(missing: int) -> str:
    if sys.platform == "win32":
        return f"{missing} more are needed"
    import resource  # not on Windows

    return f"the limit (ulimit -n) must be {resource.getrlimit(resource.RLIMIT_NOFILE)[0] + missing} or more"


def complain(stderr: int, message: str, *, in_code: bool = False) -> int:
    """One line where a person reads it; returns the status for wrong usage. `in_code`: a program of its author's serves."""
    if in_code:
        from .settings.keywords import in_keywords  # late: most settings come from flags

        message = in_keywords(message)
    line = printable(" ".join(f"discreet: {message}".split()))
    try:
        if _has_room(stderr):
            os.write(stderr, line.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:  # stderr has no reader: the status still tells
        pass
    return EXIT_USAGE


def _has_room(stderr: int) -> bool:
    """Wait for a reader that has not taken the log yet. False if it takes nothing."""
    if sys.platform == "win32":
        return True
    import select  # late: not on Windows, and only failures need it

    poll = select.poll()
    poll.register(stderr, select.POLLOUT)
    return bool(poll.poll(LAST_READER_SECONDS * 1000))


def refusal(exc: BaseException) -> str:
    """Name the resource that the system did not provide, for one of the `REFUSALS`."""
    match exc:
        case OSError():
            missing = exc.strerror or "an error without a name"
            if exc.filename == os.devnull:
                missing += f" ({os.devnull})"
        case RuntimeError():
            missing = "a thread"
        case ImportError():
            missing = "room for the program's modules"
        case _:
            missing = "memory"
    return f"the system does not provide what the start needs: {missing}"


SWITCH_SECONDS: Final = 0.001
"""How long a thread computes before it lets another one go on. Python's 5 ms make every reply wait that long for each
handler that computes in a thread (measured with 64 of them: 10 to 50 ms, against 5 to 15); apps may set their own."""

CHILD_SECONDS: Final = 0.1
"""How long children that still run may take to end once they were asked to: a child that does not end delays every end."""

STRAY_SECONDS: Final = 2.0
"""How long the last stray text may take. All of it is in the pipe by then and its reader never waits, so this bounds
only a machine that gives the reader no time."""

LAST_READER_SECONDS: Final = 0.1
"""How long a reader of the logs that takes nothing is waited for when the drain window has passed already. A busy machine, which
needs seconds to load the renderers, is waited for: a status of 1 must not come without a word."""


LAST_LINE_SECONDS: Final = 1.0
"""How long the line about a second signal may take: loading the renderers needs a part of it where nothing was logged before."""


def serve(settings: Settings, handed: Handover | None = None, hosted: Hosted | None = None) -> int:
    """Serve stdin and stdout until the end; returns the exit status (section 12 of docs/protocol.md).

    `handed` is what the program before this one left, whose place this one has taken. `hosted` is served instead of what
    the settings name.

    Takes the standard descriptors before any user code is imported, and keeps them: what prints at the interpreter's
    end must not reach the stream either. What is wrong with the apps is one line on stderr and status 2.
    """
    begin_start()
    sys.setswitchinterval(SWITCH_SECONDS)
    save_address_space()
    stderr = stdio_guard.STDERR
    in_code = hosted is not None and hosted.bridge is None
    try:
        if os.getpid() == 1:
            from .service_manager import continue_in_child  # late: for containers

            continue_in_child()
        require_descriptors()
        streams = stdio_guard.redirect()
        stderr = streams.stderr
        fault = activation_fault(streams.stdin, os.environ)
        if fault is not None:
            return complain(stderr, fault)
        process = _Process(settings, streams, handed, hosted)
    except (StdoutClosed, SharedStderr, AppError) as exc:
        return complain(stderr, str(exc), in_code=in_code)
    except REFUSALS as exc:
        return complain(stderr, refusal(exc))
    status, fault = EXIT_FAILED, None
    try:
        status = process.run()
    except (AppError, DeclarationError, PluginError) as exc:
        fault = str(exc)
        log.debug("app.failed", exc=exc.__cause__ or exc)
    except Exception as exc:  # noqa: BLE001 - a fault of our own: said in the log, scrubbed, never as a traceback
        if not process.serving:
            fault = process.fault_of_plugins(exc) or (refusal(exc) if isinstance(exc, REFUSALS) else None)
        if fault is not None:
            _failure = exc  # kept until the log is closed: a half-made event loop complains when it is freed
            log.debug("app.failed", exc=exc)
        else:
            log.error("daemon.failed", exc=exc)
            process.end_without_loop()
    finally:
        all_written = process.leave()
        if fault is not None:  # below what the apps have printed
            status = complain(stderr, scrub_secrets(fault)[0], in_code=in_code)
        with suppress(*REFUSALS):
            stdio_guard.discard_output()  # threads may print for as long as the interpreter lives
    return status if all_written else status or EXIT_FAILED


def check(settings: Settings) -> NoReturn:
    """Load what `serve` would, and end with status 0; or say on stdout, in one line, why it can't be served."""
    from ..framing.transports.memory import memory_pair  # late: `serve` does without
    from .connection.session import check_dialect

    report = os.dup(stdio_guard.STDOUT)
    os.environ.pop("NOTIFY_SOCKET", None)  # for the process that serves
    os.dup2(stdio_guard.STDERR, stdio_guard.STDOUT)  # what user code prints at import is no report
    sys.dont_write_bytecode = True
    take_breakpoints(debug=False)
    status = EXIT_OK
    try:
        host = build_host(settings)
        Daemon(host, memory_pair()[0])
        if settings.http_mcp:
            check_dialect(host, "mcp")
        with opened_store(host):
            pass
    except (AppError, DeclarationError, PluginError) as exc:
        os.write(report, printable(str(exc)).encode(errors="backslashreplace"))
        status = EXIT_USAGE
    os._exit(status)  # at once: threads that user code started at import would be waited for


@final
class _Process:
    """Surrounds the daemon from the first descriptor to the last log line."""

    def __init__(
        self,
        settings: Settings,
        streams: stdio_guard.StandardStreams,
        handed: Handover | None,
        hosted: Hosted | None,
    ) -> None:
        # First: it may die while we start, and then its number tells nothing any more.
        self._parent = _parent(settings, handed)
        self._orphaned = handed is None and settings.uses_stdio and parent_has_gone()
        self._program = program() if settings.reload else None
        self._handed = handed
        self._hosted = hosted
        self._in_code = hosted is not None and hosted.bridge is None
        self._settings = without_time_limits(settings) if settings.debug else settings
        self._debugger: Debugger | None = None
        self._streams = streams
        self._daemon: Daemon | None = None
        self._transport: StdioTransport | None = None
        self._nobody: ByteTransport | None = None  # the other end, where stdin and stdout are not served
        self._loading = False  # true while the event loop is loaded
        self._report: Callable[[], None] = lambda: log.always("daemon.report", state="loading")
        self._dialect = settings.dialect or plugins.AUTO
        self.serving = False  # true from when the event loop runs: before, a failure is one of the start
        self._watchdog = Watchdog(settings.drain_timeout, self._last_words, lambda: self._loading)
        self._watchdog.start()
        self._strays = StrayOutputReader(streams.stray_out, streams.stray_err)
        self._strays.start()
        logs = log_settings(settings, None if handed is None else handed.log_level)
        self._logs = start_logging(logs, streams.stderr, os.environ, announce=False)
        keep_logs_off_stdout(streams, self._logs, os.environ)
        self._strays.deliver_to(log_stray_output)
        stdio_guard.take_texts(PrintedTexts())
        install_hooks()
        mark_children()
        guard_forks()
        self._manager = service_manager(os.environ)
        self._hangup_watch = HangupWatch(
            self._parent,
            streams.stdin,
            grace=settings.drain_timeout,
            pulse=self._pulse,
            on_parent_gone=self._on_parent_gone,
            on_hung_up=self._on_hung_up,
        )
        if settings.uses_stdio:
            self._hangup_watch.start()

    def run(self) -> int:
        ends = self._on_first_signal, self._on_second_signal
        on = {"on_reopen": self._logs.reopen, "on_report": self._on_report}
        with Signals(*ends, **on, ends_after=not self._in_code):
            if self._handed is not None:
                let_through()
            if self._program is not None:
                sys.dont_write_bytecode = True  # it would be taken for that of a file edited within the same second
            self._debugger = take_breakpoints(debug=self._settings.debug)
            host = build_host(self._settings, self._hosted)
            self._dialect = host.dialect
            install_hooks()  # once more: the apps may have imported what has hooks of its own
            with opened_store(host), self._listening(host) as listener:
                return self._run(host, listener)

    def _run(self, host: Host, listener: Listener | None) -> int:
        self._daemon = daemon = Daemon(
            host,
            self._open_transport(),
            state=NEW_CONNECTION if self._handed is None else self._handed.connection,
            on_ending=self._on_ending,
            on_swapping=self._on_swapping,
            on_swap=self._become,
            listener=listener,
        )
        self._reload_with(daemon)
        host.begin_tracing()  # the last that may be wrong
        self._announce(host)
        end_start()
        daemon.begin()
        if self._manager is not None:
            daemon.beside(partial(self._manager.watch, host.lifespans.entered))
            if not host.lifespans:  # they are entered on the loop
                self._manager.ready()
        if self._orphaned:
            self._on_parent_gone()
        if daemon.finished():
            if self._settings.listens:
                ended = "stdin has ended, and the daemon with it; --no-stdio serves HTTP without it"
                complain(self._streams.stderr, ended, in_code=self._in_code)
            return daemon.lifecycle.status
        self._watch_processes(daemon)
        return self._serve(daemon)

    def fault_of_plugins(self, exc: Exception) -> str | None:
        """Return a line for the operator where this failure of the start came with a plug-in of another package in use."""
        store = self._settings.store.partition(":")[0]
        used: list[tuple[plugins.Kind, str]] = [("dialect", self._dialect), ("store", store)]
        return plugins.fault_of_added(used, exc)

    def _open_transport(self) -> ByteTransport:
        """stdin and stdout, the client of `--tcp`, or nothing that anybody could read or write."""
        if self._settings.tcp is not None:
            client = plugins.load("gateway", "tcp")(self._settings)
            self._transport = StdioTransport(client, client)
            return self._transport
        if self._settings.no_stdio:
            from ..framing.transports.memory import memory_pair  # late: for servers that speak HTTP alone

            transport, self._nobody = memory_pair()
            return transport
        self._transport = StdioTransport(self._streams.stdin, self._streams.stdout, closefd=False)
        return self._transport

    def _listening(self, host: Host) -> AbstractContextManager[Listener | None]:
        """Listen for HTTP clients during the block, if the settings say so. Raises `AppError`."""
        settings = self._settings
        if not settings.listens and (not settings.no_stdio or settings.role == "worker"):
            return nullcontext()
        opened: AbstractContextManager[Listener] = plugins.load("gateway", "grpc" if settings.grpc else "http")(host)
        return opened

    def _announce(self, host: Host) -> None:
        """Say that the daemon has started, now that nothing can be wrong with its apps: else there is one line, why not."""
        settings = self._settings
        hint = stdio_guard.stdin_hint(self._streams.stdin)
        ends_alone = hint == stdio_guard.NULL_DEVICE_HINT and settings.listens  # it is logged, later
        if hint and not ends_alone and self._handed is None and settings.uses_stdio:
            complain(self._streams.stderr, hint)
        self._logs.announce(__version__, dialect=host.dialect)

    def _reload_with(self, daemon: Daemon) -> None:
        if self._program is not None:
            reload = plugins.load("reload", "polling")
            watch = reload(self._settings, self._program, lambda: self._is_standing() or daemon.swap())
            daemon.beside(watch.run)

    def _is_standing(self) -> bool:
        """Whether a handler stands at a breakpoint."""
        return self._debugger is not None and self._debugger.standing

    def _watch_processes(self, daemon: Daemon) -> None:
        for pid in self._handed.connection.watched if self._handed is not None else ():
            daemon.watches.add(ProcessWatch(pid, is_parent=False))
        named = self._settings.parent_pid
        if named is not None and not daemon.watches.add_client(named):
            log.warning("parent.unknown", pid=named)

    def _serve(self, daemon: Daemon) -> int:
        self._loading = True
        from .service_manager import log_report  # here: a signal handler had better import nothing

        self._report = lambda: log_report(daemon)
        capture_logging()  # the event loops log through it, and have imported it
        if self._settings.backend == "trio":
            from .process.trio_tasks import outlive_system_tasks  # late: it loads trio

            outlive_system_tasks()
            return anyio.run(self._main, daemon, backend="trio")
        import_asyncio()
        from .process.event_loop import open_loop  # late: it loads asyncio

        loop = open_loop(self._settings.backend)
        loop.set_exception_handler(loop_exception_handler)
        return anyio.run(self._main_in, daemon, loop, backend_options={"loop_factory": lambda: loop})

    async def _main_in(self, daemon: Daemon, loop: LastingLoop) -> int:
        loop.begin()
        hide_task()
        return await self._main(daemon)

    async def _main(self, daemon: Daemon) -> int:
        install_hooks()  # once more: now the event loop's modules are there
        self.serving, self._loading = True, False
        return await daemon.run()

    # -- the way out -------------------------------------------------------------------------------------------

    def end_without_loop(self) -> None:
        """Answer what is owed after the event loop has failed."""
        if self.serving and self._daemon is not None:
            self._begin_end()
            self._daemon.end_without_loop()

    def _begin_end(self) -> None:
        self._watchdog.arm()
        if self._debugger is not None:
            self._debugger.end()

    def _on_ending(self) -> None:
        self._begin_end()
        if self._manager is not None and self._daemon is not None:
            self._manager.ending(self._daemon.lifecycle.state, self._daemon.lifecycle.reason)

    def _on_swapping(self) -> None:
        if self._manager is not None:
            self._manager.reloading()

    def _on_first_signal(self) -> None:
        self._begin_end()  # here, because a handler may be keeping the loop from ever hearing of it
        if self._daemon is not None:
            self._daemon.ask_to_end("signal")
        else:  # an app is being imported; an exception could end anywhere in it
            self.leave()
            os._exit(EXIT_OK)

    def _on_parent_gone(self) -> None:
        self._begin_end()
        if self._daemon is not None:
            self._daemon.ask_to_end("parent-gone")

    def _pulse(self) -> int:
        """A counter that changes while bytes move, or while the apps or the event loop load, which is slow on a busy machine."""
        if self._daemon is None or self._loading:
            return monotonic_ns()
        return self._daemon.connection.pulse

    def _on_hung_up(self) -> None:
        if self._daemon is not None and not self._daemon.lifecycle.draining:
            log.warning("client.unresponsive")
            self._begin_end()
            self._daemon.ask_to_end("end-of-input")

    def _on_report(self) -> None:
        self._report()

    def _on_second_signal(self) -> None:
        owed = self._daemon is None or (self._daemon.connection.owed and not reader_is_gone(self._streams.stdout))
        end_children(0.0)
        if owed:
            log.warning("daemon.aborted", reason="signal")
        self._logs.close(LAST_LINE_SECONDS, reader_timeout=LAST_READER_SECONDS)
        os._exit(EXIT_FAILED if owed else EXIT_OK)

    def _last_words(self) -> int:
        end_children(0.0)
        all_written = self._note_unwritten()
        self._logs.close(reader_timeout=LAST_READER_SECONDS)
        stopped = all_written and self._daemon is not None and self._daemon.lifecycle.state == "stopped"
        return self._daemon.lifecycle.status if self._daemon is not None and stopped else EXIT_FAILED

    def _become(self, connection: ConnectionState) -> None:
        """Replace this process's program by a new start of it."""
        assert self._program is not None
        handover = Handover(
            stdin=self._streams.stdin,
            stdout=self._streams.stdout,
            stderr=self._streams.stderr,
            parent=None if self._parent is None else self._parent.pid,
            log_level=log.level,
            connection=connection,
        )
        self.leave()
        try:
            become(self._program, handover)
        except OSError as exc:
            complain(self._streams.stderr, f"the program can't be started anew: {exc.strerror}")
            os._exit(EXIT_FAILED)

    def leave(self) -> bool:
        """End everything; False if a failure of stdout was learned of only now. Goes on where the system refuses a step."""
        if self._manager is not None:
            self._manager.close()
        if self._transport is not None:
            self._transport.close()  # where a thread writes, it may have to be waited for
        all_written = self._note_unwritten()
        for step in (
            lambda: None if self._debugger is None else self._debugger.close(),
            lambda: end_children(CHILD_SECONDS),
            stdio_guard.flush_text_streams,
            lambda: self._strays.stop(STRAY_SECONDS),
            self._logs.close,
        ):
            with suppress(Exception):  # an app may have patched what a step needs
                step()
        return all_written

    def _note_unwritten(self) -> bool:
        """Log what stdout has not taken, although it was sent; False if that is a failure."""
        lost = 0 if self._transport is None else self._transport.unwritten
        if self._transport is None or not lost:
            return True
        log.error("replies.lost", bytes=lost)
        cause = self._transport.failure
        if cause is not None:
            log_output_failure(cause)
        return cause is not None and reader_has_gone(cause)  # who reads no more after the end was asked for may do so


def _parent(settings: Settings, handed: Handover | None) -> ProcessWatch | None:
    """The process without which the daemon ends; none for a server of the network alone."""
    if not settings.uses_stdio:
        return None
    if handed is None:
        return watch_parent()
    return None if handed.parent is None else ProcessWatch(handed.parent, is_parent=True)
