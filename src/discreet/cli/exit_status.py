"""How a call went, as an exit status."""

from collections.abc import Mapping
from typing import Final

from ..client import ClientError, ConnectionFailed, OperationFailed, RemoteError, RequestTimeout
from ..errors.codes import row_of
from . import interrupts

EXIT_WRONG_REQUEST: Final = 3
EXIT_DOMAIN: Final = 6
EXIT_TIMEOUT: Final = 7
EXIT_CONNECTION: Final = 10

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
"""The exit status of an error by the HTTP status that the table of errors gives it. Domain errors are `EXIT_DOMAIN`."""

MEANINGS: Final[Mapping[int, str]] = {
    0: "the result, or the stream's last event, was printed",
    1: "nobody reads stdout any more",
    2: "the command line is wrong; nothing was called",
    EXIT_WRONG_REQUEST: "the request or its params are wrong",
    4: "there is no such method",
    5: "not authenticated, or not permitted",
    EXIT_DOMAIN: "the operation failed with an error that it declares",
    EXIT_TIMEOUT: "no answer in time, here or on the server",
    8: "not now: overloaded, shutting down, or cancelled on the server",
    9: "an internal error of the server",
    EXIT_CONNECTION: "the server could not be started, went away, or wrote what is no reply",
    **interrupts.MEANINGS,
}
"""Every exit status; docs/call.md says the same."""


def exit_status(error: ClientError) -> int:
    """The exit status for what a call raised."""
    match error:
        case OperationFailed():
            return EXIT_DOMAIN
        case RemoteError(failure=failure):
            return EXIT_OF_HTTP[row_of(failure).http_status]
        case RequestTimeout() | ConnectionFailed(__cause__=RequestTimeout()):  # of the call, of the handshake
            return EXIT_TIMEOUT
        case _:
            return EXIT_CONNECTION
