"""A debugger for whoever attaches: `pdb` on a Unix socket, at one breakpoint at a time.

A breakpoint keeps its thread, which may be the event loop's, until someone has attached and lets it go on, or until the
daemon ends. Who has attached stays so from one breakpoint to the next. Nothing of it is scrubbed.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import suppress
from typing import Any, Final, TextIO, final

from ..logs import log
from . import sockets
from .frames import place_of
from .session import Session

LOOK_SECONDS: Final = 0.1
"""How often a breakpoint that waits for someone looks whether the daemon is ending."""


@final
class Debugger:
    """One per process. Raises `SocketUnusable`."""

    def __init__(self) -> None:
        self._listener = sockets.listen()
        self._listener.settimeout(LOOK_SECONDS)
        self._turn = threading.Lock()
        self._holder: Session | None = None  # whose turn it is
        self._client: socket.socket | None = None
        self._files: tuple[TextIO, TextIO] | None = None
        self._sessions = threading.local()
        self._ended = False

    def stop(self, *_: Any, header: str | None = None, **__: Any) -> None:  # Any: arguments for other debuggers
        """The `sys.breakpointhook`: stop whoever calls `breakpoint()`, until whoever attaches lets it go on."""
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
        """Let nobody attach any more."""
        self.end()
        sockets.remove()
        self._listener.close()

    # -- for the sessions --------------------------------------------------------------------------------------

    def take(self, session: Session, place: str) -> tuple[TextIO, TextIO] | None:
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
        if self._holder is session:
            self._holder = None
            self._turn.release()

    def detach(self) -> None:
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
