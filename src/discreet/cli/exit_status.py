"""The exit statuses of verbs, and what their help says of them. Loaded when a verb ends with one of them, or for `--help`.

The general statuses (0 success, 1 failure, 2 wrong usage) are those of `daemon.lifecycle`.
"""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Final

from ..client import ClientError, ConnectionFailed, OperationFailed, RemoteError, RequestTimeout
from ..daemon.lifecycle import EXIT_FAILED, EXIT_OK, EXIT_USAGE
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

SIGNAL_STATUSES: Final[Mapping[int, str]] = {
    SIGNAL_BASE + 1: "hung up (SIGHUP)",
    EXIT_INTERRUPTED: "interrupted (SIGINT)",
    SIGNAL_BASE + 15: "terminated (SIGTERM)",
}

CALL_STATUSES: Final[Mapping[int, str]] = {
    EXIT_OK: "the result, or the stream's last event, was printed",
    EXIT_FAILED: "the reader of stdout is gone, or stdout can't be written",
    EXIT_USAGE: "the command line is wrong; nothing was called",
    EXIT_WRONG_REQUEST: "the request or its params are wrong",
    4: "there is no such method",
    5: "not authenticated, or not permitted",
    EXIT_DOMAIN: "the operation failed with an error that it declares",
    EXIT_TIMEOUT: "no answer in time, here or on the server",
    8: "not now: overloaded, shutting down, or cancelled on the server",
    9: "an internal error of the server",
    EXIT_CONNECTION: "the server could not be started, went away, or wrote an invalid reply",
    **SIGNAL_STATUSES,
}
"""Every exit status of `discreet call`; a test holds docs/call.md to it."""

REPLAY_STATUSES: Final[Mapping[int, str]] = {
    EXIT_OK: "the server answered as recorded",
    EXIT_FAILED: "it answered differently, or the reader of stdout is gone",
    EXIT_USAGE: "the command line is wrong, or FILE is no recording; nothing was started",
    EXIT_CONNECTION: "the server could not be started",
    **SIGNAL_STATUSES,
}
"""Every exit status of `discreet replay`; a test holds docs/recording.md to it."""


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


# What the help of a verb says beside its flags: examples, the environment, exit statuses.

SERVE_STATUSES: Final[Mapping[int, str]] = {
    EXIT_OK: "it was asked to end, and has ended",
    EXIT_FAILED: "a second signal while a client waited for an answer, a handler that held the event loop beyond the"
    " drain window, a fault of the daemon itself, the reader of stdout went"
    " away unasked, or stdout did not take an answer: a log line says which",
    EXIT_USAGE: "wrong usage or settings, or a wrong declaration of a service: one line on stderr",
}
"""Every exit status of `discreet serve`; a test holds docs/protocol.md to it."""

_USAGE: Final = "the command line or a setting is wrong, or an app can't be hosted"

VERB_STATUSES: Final[Mapping[str, Mapping[int, str]]] = {
    "serve": SERVE_STATUSES,
    "call": CALL_STATUSES,
    "demo": {EXIT_OK: "every step went as it should", EXIT_FAILED: "a step failed", **SIGNAL_STATUSES},
    "new": {EXIT_OK: "the folder was made", EXIT_USAGE: "the name can't be used, or the folder can't be made"},
    "doctor": {EXIT_OK: "nothing failed; there may be warnings", EXIT_FAILED: "a check failed", EXIT_USAGE: _USAGE},
    "attach": {
        EXIT_OK: "the daemon has ended, or was left to go on",
        EXIT_FAILED: "the reader of stdout is gone",
        EXIT_USAGE: "there is no such daemon, there are several, or somebody is attached",
        EXIT_INTERRUPTED: "interrupted (SIGINT); the daemon goes on",
    },
    "schema": {
        EXIT_OK: "printed; with --check: no caller breaks",
        EXIT_FAILED: "callers may break, or the output can't be written",
        EXIT_USAGE: f"{_USAGE}, or FILE can't be read",
    },
    "card": {EXIT_OK: "printed", EXIT_FAILED: "the output can't be written", EXIT_USAGE: _USAGE},
    "generate": {
        EXIT_OK: "the client was written",
        EXIT_FAILED: "the server failed, or the output can't be written",
        EXIT_USAGE: _USAGE,
        **SIGNAL_STATUSES,
    },
    "import": {
        EXIT_OK: "printed, whatever was left out",
        EXIT_FAILED: "the output can't be written",
        EXIT_USAGE: "there is no such document, or it can't be read",
    },
    "record": {
        EXIT_USAGE: "the command line is wrong; nothing was started",
        EXIT_CANNOT_RUN: "COMMAND can't be run",
        EXIT_NOT_FOUND: "there is no such COMMAND",
    },
    "replay": REPLAY_STATUSES,
    "show": {EXIT_OK: "printed", EXIT_FAILED: "the output can't be written", EXIT_USAGE: "FILE is no recording"},
    "completion": {
        EXIT_OK: "printed",
        EXIT_FAILED: "the output can't be written",
        EXIT_USAGE: "there is no such shell",
    },
}
"""What the help of each verb says. `record` ends with the status of its command otherwise."""

_COLUMNS: Final = 100
"""As wide as the flags are shown."""

_SETTINGS: Final = {
    "DISCREET_*": "the settings above: DISCREET_MAX_THREADS for --max-threads, DISCREET_LOG for --log-file;"
    " a flag counts more, a settings file less",
}
_CHILD: Final = {"DISCREET_*": "settings of discreet serve, which is started with them"}
_COLOUR: Final = {"NO_COLOR": "no colours, if it is not empty"}

ENVIRONMENT: Final[Mapping[str, Mapping[str, str]]] = {
    "serve": _SETTINGS | _COLOUR,
    "call": {
        **_CHILD,
        "DISCREET_LOG_LEVEL": "what discreet serve logs to stderr (default here: error)",
        **_COLOUR,
        "TERM": "dumb: no progress on the terminal",
    },
    "demo": _COLOUR,
    "doctor": _SETTINGS,
    "schema": _SETTINGS,
    "card": _SETTINGS,
    "record": {"NO_COLOR": "no colours with --tail, if it is not empty"},
    "show": _COLOUR,
    "generate": {"DISCREET_*": "settings of discreet serve, which count without --server"},
}
"""The variables that a verb reads."""


def sections_of(name: str, examples: Sequence[str]) -> Iterator[str]:
    """Yield the sections that stand below the flags of a verb."""
    if name not in VERB_STATUSES:
        return  # a package adds the verb, and its own flags tell all
    yield "\n".join(("examples:", *(f"  {example}" for example in examples)))
    if name in ENVIRONMENT:
        yield "\n".join(("environment:", *_rows(ENVIRONMENT[name])))
    statuses = {str(status): meaning for status, meaning in VERB_STATUSES[name].items()}
    if name == "record":
        statuses["other"] = "that of COMMAND, or 128 plus the number of the signal that ended it"
    yield "\n".join(("exit status:", *_rows(statuses)))


def _rows(rows: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, rows))
    for word, meaning in rows.items():
        yield fill(meaning, _COLUMNS, initial_indent=f"  {word:{width}}  ", subsequent_indent=" " * (width + 4))
