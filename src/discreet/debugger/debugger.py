"""Debugs a daemon: `pdb` on a Unix socket, at one breakpoint at a time.

A breakpoint stops its thread, perhaps the event loop's, until a client has attached and lets it go on, or until the daemon
ends. The client stays attached from one breakpoint to the next. Nothing of it is scrubbed.
"""

from __future__ import annotations

import dis
import inspect
import os
import pdb
import socket
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any, Final, TextIO, final

from ..daemon.apps import AppError
from ..daemon.logs import log
from ..daemon.process.loop_watch import place_of
from ..errors.redaction.tracebacks import is_ours
from . import sockets

# `pdb` of one thread, whose commands come from the attached client. It never reads the process's own stdin.
#
# It shows the program's code only: to step out of a handler means to go on.


_MAY_WAIT: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_YIELD: Final = dis.opmap["YIELD_VALUE"]


@final
class Session(pdb.Pdb):
    """One per thread that has met a breakpoint."""

    def __init__(self, debugger: Debugger) -> None:
        super().__init__(nosigint=True, readrc=False)  # a .pdbrc is read from the working directory, too
        self.use_rawinput = False
        self._debugger = debugger

    def interaction(  # pyright: ignore[reportIncompatibleMethodOverride] - the second name differs between versions
        self, frame: FrameType | None, *rest: Any
    ) -> None:  # Any: a traceback or an exception, by version
        """Take commands until one of them lets the thread go on."""
        files = self._debugger.take(self, "" if frame is None else place_of(frame))
        if files is None:
            return self._go_on()
        self.stdin, self.stdout = files
        try:
            super().interaction(frame, *rest)
        except (OSError, ValueError):  # who had attached is gone; a file that was closed meanwhile
            self._leave()

    def set_continue(self) -> None:
        super().set_continue()
        self._debugger.give(self)

    def do_quit(self, arg: str) -> bool:
        """q(uit): detach, and let the daemon go on without breakpoints."""
        return self._leave()

    do_q = do_exit = do_EOF = do_quit  # noqa: N815 - names of pdb

    def do_run(self, arg: str) -> None:
        """Not here: a daemon is restarted by what has started it, or with --reload."""
        self.error("a daemon is restarted by what has started it")

    do_restart = do_run

    def stop_here(self, frame: FrameType) -> bool:
        return not is_ours(frame.f_code) and super().stop_here(frame)

    def dispatch_return(self, frame: FrameType, arg: Any) -> Any:  # Any: what is returned, and pdb's trace function
        following = super().dispatch_return(frame, arg)
        if _leaves_program(frame):
            self.set_continue()
        return following

    def _leave(self) -> bool:
        self._debugger.detach()
        self._go_on()
        return True

    def _go_on(self) -> None:
        self.clear_all_breaks()
        self.set_continue()


def _leaves_program(frame: FrameType) -> bool:
    """Whether a frame that returns was called by this package, so that none of the program's code comes next.

    A coroutine that waits returns, too, and goes on later.
    """
    code = frame.f_code
    waits = code.co_flags & _MAY_WAIT and code.co_code[frame.f_lasti] == _YIELD
    return not waits and not is_ours(code) and frame.f_back is not None and is_ours(frame.f_back.f_code)


LOOK_SECONDS: Final = 0.1
"""How often a breakpoint that waits for someone looks whether the daemon is ending."""


@final
class Debugger:
    """The debugger of the process. Raises `AppError`, in one line, if no client could attach."""

    def __init__(self) -> None:
        try:
            self._listener = sockets.listen()
        except sockets.SocketUnusable as exc:
            raise AppError(f"--debug: {exc}") from None
        self._listener.settimeout(LOOK_SECONDS)
        self._turn = threading.Lock()
        self._holder: Session | None = None  # whose turn it is
        self._client: socket.socket | None = None
        self._files: tuple[TextIO, TextIO] | None = None
        self._sessions = threading.local()
        self._ended = False

    def stop(self, *_: Any, header: str | None = None, **__: Any) -> None:  # Any: arguments for other debuggers
        """Stop the caller of `breakpoint()` until a client attaches and lets it go on. The `sys.breakpointhook`."""
        if self._ended:
            return
        session: Session | None = getattr(self._sessions, "session", None)
        if session is None:
            session = self._sessions.session = Session(self)
        frame = sys._getframe(1)
        files = self.take(session, place_of(frame))
        if files is not None:
            if header is not None:
                with suppress(OSError):
                    files[1].write(f"{header}\n")
            session.set_trace(frame)

    @property
    def standing(self) -> bool:
        """Whether a thread stands at a breakpoint."""
        return self._holder is not None

    def end(self) -> None:
        """Let go on what stands at a breakpoint, now and from now on. From any thread or signal handler."""
        self._ended = True
        client = self._client
        if client is not None:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Refuse further clients."""
        self.end()
        sockets.remove()
        self._listener.close()

    # -- for the sessions --------------------------------------------------------------------------------------

    def take(self, session: Session, place: str) -> tuple[TextIO, TextIO] | None:
        """Wait for the turn, and for someone to attach: where to read commands, and where to write. None at the end. The log
        is told of the `place`."""
        if self._holder is not session:
            self._turn.acquire()
            self._holder = session
        if self._client is None or not _is_there(self._client):
            self.detach()
            self._wait(place)
        if self._ended:
            self.give(session)
            return None
        return self._files

    def give(self, session: Session) -> None:
        """Let the next thread have its turn, if this one has it."""
        if self._holder is session:
            self._holder = None
            self._turn.release()

    def detach(self) -> None:
        """Send away who has attached."""
        client, self._client, files, self._files = self._client, None, self._files, None
        if client is None or files is None:
            return
        for each in (*files, client):
            with suppress(OSError):  # what it has not taken
                each.close()

    def _wait(self, place: str) -> None:
        """Wait for someone to attach, or for the end."""
        told = False
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                if not told:
                    told = True
                    log.always("debugger.waiting", at=place, attach=f"discreet attach {os.getpid()}")
                continue
            except OSError:  # closed
                return
            client.setblocking(True)
            if not _is_there(client):  # it has left before it had its turn
                client.close()
                continue
            self._files = (
                client.makefile("r", encoding="utf-8", errors="replace"),
                client.makefile("w", encoding="utf-8", errors="backslashreplace"),
            )
            self._client = client
            return


def _is_there(client: socket.socket) -> bool:
    """Whether who has attached has not left."""
    try:
        return bool(client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except OSError:
        return False
