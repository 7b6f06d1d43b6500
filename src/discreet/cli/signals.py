"""Runs asynchronous work until it ends or a signal cancels it. Knows nothing of the work itself."""

import signal
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Final, TypeVar, TypeVarTuple

import anyio

from .exit_status import SIGNAL_BASE

T = TypeVar("T")
ArgsT = TypeVarTuple("ArgsT")

_CANCELLING: Final = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK")
"""In addition to SIGINT, which event loops handle. A signal that was ignored when this program started stays ignored."""


class Interrupted(KeyboardInterrupt):
    """A signal cancelled the work. `status` is the exit status for that signal, with which `main` ends."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = SIGNAL_BASE + number


def run_until_signal(work: Callable[[*ArgsT], Awaitable[T]], *args: *ArgsT) -> T:
    """Return the result of `work(*args)`, run in an event loop of its own.

    Raises `Interrupted` when a signal has cancelled the work and its clean-up is done. A second signal cuts the clean-up
    short, as a second Ctrl-C does.
    """
    received: list[int] = []

    def cancel(number: int, frame: FrameType | None) -> None:
        received.append(number)
        sigint_handler = signal.getsignal(signal.SIGINT)  # the event loop's, while it runs
        (sigint_handler if callable(sigint_handler) else signal.default_int_handler)(number, frame)

    numbers = [getattr(signal, name) for name in _CANCELLING if hasattr(signal, name)]
    replaced = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, cancel)
    try:
        result = anyio.run(work, *args)
    except KeyboardInterrupt:
        raise Interrupted(received[0] if received else signal.SIGINT) from None
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
    if received:  # the work ended by itself after the signal
        raise Interrupted(received[0])
    return result
