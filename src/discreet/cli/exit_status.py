"""The exit statuses of verbs. The table of verbs says what each means.

The general statuses (0 success, 1 failure, 2 wrong usage) are those of `daemon.lifecycle`.
"""

from typing import Final

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
