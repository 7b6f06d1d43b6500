"""`pdb` of one thread, whose commands come from whoever has attached. It never reads the process's own stdin.

It shows the program's code only: to step out of a handler means to go on.
"""

from __future__ import annotations

import pdb
from types import FrameType
from typing import Any, Protocol, TextIO, final

from .frames import is_of_discreet, leaves_program, place_of


class Turns(Protocol):
    """Lets one thread at a time talk to who has attached."""

    def take(self, session: Session, place: str) -> tuple[TextIO, TextIO] | None:
        """Wait for the turn, and for someone to attach: where to read commands, and where to write. None at the end. The log
        is told of the `place`."""
        ...

    def give(self, session: Session) -> None:
        """Let the next thread have its turn, if this one has it."""
        ...

    def detach(self) -> None:
        """Send away who has attached."""
        ...


@final
class Session(pdb.Pdb):
    """One per thread that has met a breakpoint."""

    def __init__(self, turns: Turns) -> None:
        super().__init__(nosigint=True, readrc=False)  # a .pdbrc is read from the working directory, too
        self.use_rawinput = False
        self._turns = turns

    def interaction(  # pyright: ignore[reportIncompatibleMethodOverride] - the second name differs between versions
        self, frame: FrameType | None, *rest: Any
    ) -> None:  # Any: a traceback or an exception, by version
        """Take commands until one of them lets the thread go on."""
        files = self._turns.take(self, "" if frame is None else place_of(frame))
        if files is None:
            return self._go_on()
        self.stdin, self.stdout = files
        try:
            super().interaction(frame, *rest)
        except (OSError, ValueError):  # who had attached is gone; a file that was closed meanwhile
            self._leave()

    def set_continue(self) -> None:
        super().set_continue()
        self._turns.give(self)

    def do_quit(self, arg: str) -> bool:
        """q(uit): detach, and let the daemon go on without breakpoints."""
        return self._leave()

    do_q = do_exit = do_EOF = do_quit  # noqa: N815 - names of pdb

    def do_run(self, arg: str) -> None:
        """Not here: a daemon is restarted by what has started it, or with --reload."""
        self.error("a daemon is restarted by what has started it")

    do_restart = do_run

    def stop_here(self, frame: FrameType) -> bool:
        return not is_of_discreet(frame) and super().stop_here(frame)

    def dispatch_return(self, frame: FrameType, arg: Any) -> Any:  # Any: what is returned, and pdb's trace function
        following = super().dispatch_return(frame, arg)
        if leaves_program(frame):
            self.set_continue()
        return following

    def _leave(self) -> bool:
        self._turns.detach()
        self._go_on()
        return True

    def _go_on(self) -> None:
        self.clear_all_breaks()
        self.set_continue()
