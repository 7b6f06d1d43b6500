"""Work on an event loop that a signal ends with all that it has started. Knows nothing of that work."""

import signal
from collections.abc import Awaitable, Callable, Mapping
from types import FrameType
from typing import Final, TypeVar, TypeVarTuple

import anyio

T = TypeVar("T")
ArgsT = TypeVarTuple("ArgsT")

SIGNAL_BASE: Final = 128
"""An exit status is this and the number of the signal, as shells have it."""

_ENDING: Final = ("SIGTERM", "SIGHUP", "SIGQUIT")
"""Beside SIGINT, which event loops know. What was ignored when this program started stays so."""

MEANINGS: Final[Mapping[int, str]] = {129: "hung up (SIGHUP)", 130: "interrupted (SIGINT)", 143: "terminated (SIGTERM)"}


class Interrupted(Exception):
    """A signal has ended the work. `status` is the exit status that says so."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = SIGNAL_BASE + number


def run_until_signal(work: Callable[[*ArgsT], Awaitable[T]], *args: *ArgsT) -> T:
    """The result of `work(*args)`. Raises `Interrupted` when a signal has cancelled it and it has tidied up.

    A further signal cuts the tidying up short, as a further Ctrl-C does.
    """
    heard: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        loops_own = signal.getsignal(signal.SIGINT)
        (loops_own if callable(loops_own) else signal.default_int_handler)(number, frame)

    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    replaced = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, interrupt)
    try:
        result = anyio.run(work, *args)
    except KeyboardInterrupt:
        raise Interrupted(heard[0] if heard else signal.SIGINT) from None
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
    if heard:  # and the work came to an end all the same
        raise Interrupted(heard[0])
    return result
