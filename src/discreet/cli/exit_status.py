"""The exit statuses of verbs, and what runs asynchronous work until it ends or a signal cancels it.

The table of verbs says what each means. The general statuses (0 success, 1 failure, 2 wrong usage) are in `daemon.lifecycle`.
"""

import signal
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Final, TypeVar, TypeVarTuple

import anyio

from ..client import ClientError, ConnectionFailed, OperationFailed, RemoteError, RequestTimeout
from ..errors.codes import row_of

EXIT_WRONG_REQUEST: Final = 3
EXIT_DOMAIN: Final = 6
EXIT_TIMEOUT: Final = 7
EXIT_CONNECTION: Final = 10

EXIT_CANNOT_RUN: Final = 126
EXIT_NOT_FOUND: Final = 127
SIGNAL_BASE: Final = 128
"""As in shells: a command that can't be run, one that does not exist, and (plus the signal's number) one that a signal ended."""

EXIT_INTERRUPTED: Final = SIGNAL_BASE + 2

EXIT_OF_HTTP: Final = {
    400: EXIT_WRONG_REQUEST,
    404: 4,
    401: 5,
    403: 5,
    504: EXIT_TIMEOUT,
    429: 8,
    499: 8,
    503: 8,
    500: 9,
}
"""The exit status for an error, by its HTTP status in the table of errors. Declared errors are always `EXIT_DOMAIN`."""


def exit_status(error: ClientError) -> int:
    """Return the exit status for an error that a call raised."""
    match error:
        case OperationFailed():
            return EXIT_DOMAIN
        case RemoteError(failure=failure):
            return EXIT_OF_HTTP[row_of(failure).http_status]
        case RequestTimeout() | ConnectionFailed(__cause__=RequestTimeout()):  # of the call, of the handshake
            return EXIT_TIMEOUT
        case _:
            return EXIT_CONNECTION


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
