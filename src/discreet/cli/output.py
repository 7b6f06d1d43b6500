"""Text on stdout, on stderr and in result files. Never used by `serve`, whose stdout belongs to the protocol."""

import os
import sys
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw

from ..daemon.settings import Resolved, UsageError
from ..errors.printable import cut, printable, printable_json
from ..framing.stdio_guard import redirect_to_null

MAX_LINE_CHARACTERS: Final = 8192
"""How much of a line on stderr is written: more than any text of this program, less than a hostile server may send."""


def write_stdout(text: str) -> None:
    """Write the text and a line end, and flush. Characters that the stream cannot encode are escaped.

    Does nothing if this process was started without stdout; verbs whose result matters call `require_stdout` first.
    Raises `BrokenPipeError` when the reader is gone, `main` then ends the program without a message; any other `OSError` says
    that stdout is meant.
    """
    stream = sys.stdout
    if stream is None:  # started with stdout closed
        return
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise OSError(exc.errno, f"stdout can't be written: {os.strerror(exc.errno or 0)}") from exc


def styled(code: str, text: str) -> str:
    """The text for stdout in a colour of a terminal, as it is elsewhere."""
    return f"\x1b[{code}m{text}\x1b[0m" if text and has_colour("stdout") else text


def has_colour(name: Literal["stdout", "stderr"]) -> bool:
    """Whether the stream is a terminal that may have colours: NO_COLOR is not set (no-color.org)."""
    stream = sys.stdout if name == "stdout" else sys.stderr
    return not os.environ.get("NO_COLOR") and stream is not None and stream.isatty()


def write_stderr(message: str) -> None:
    """Write `discreet: MESSAGE` as one line; control characters are escaped, line ends among them. A long one is cut.

    Messages quote arguments and settings, and lines on stderr end up in the logs of others: secrets are redacted.
    Never raises: if stderr can't be written, the exit status is all that is left to say it.
    """
    from ..errors.redaction import scrub_secrets  # late: compiles patterns

    shown, _ = scrub_secrets(cut(message, MAX_LINE_CHARACTERS))
    write_stderr_line(f"discreet: {printable(shown)}")


def write_stderr_line(line: str) -> None:
    """Write a line of printable characters as it is. Never raises."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        redirect_to_null(sys.stderr.fileno())


def require_stdout() -> None:
    """Raise `UsageError` if stdout is closed. To be called before any work is done for a result."""
    if sys.stdout is None:
        raise UsageError("stdout is closed: there is nowhere to print the result")


def write_file(path: str, content: bytes) -> bool:
    """Write the file that `--output` names. Returns False, after one line on stderr, if it can't be written to its end. Raises
    `UsageError` where no file can be opened there.
    """
    try:
        file = open(path, "wb")  # noqa: SIM115 - closed below
    except (OSError, ValueError) as exc:
        reason = os.strerror(exc.errno or 0) if isinstance(exc, OSError) else str(exc)
        raise UsageError(f"--output: {path}: {reason}") from exc
    try:
        with file:
            file.write(content)
    except OSError as exc:
        write_stderr(f"--output: {path}: {os.strerror(exc.errno or 0)}")
        return False
    return True


def with_warning(found: Resolved) -> Resolved:
    """Return the settings, after a line on stderr on what a file sets that was merely found, and may not set it."""
    if found.ignored:
        write_stderr(found.ignored)
    return found


def discard_stdout() -> None:
    """Send what is still buffered for stdout to the null device, because its reader is gone: the interpreter would
    fail when it flushes a broken stream at exit."""
    if sys.stdout is not None:
        redirect_to_null(sys.stdout.fileno())


# JSON documents on stdout: compact when piped, indented and coloured on a terminal. Numbers and strings stay as they were
# written.

_INDENT: Final = 2


def print_json(text: Raw, *, one_line: bool) -> None:
    """Print one JSON document. It is indented only on a terminal, and only without `one_line`. Blocks while stdout is full.

    On a terminal it is coloured if rich is installed (the extra `cli`), which honours NO_COLOR; characters that do not
    print are shown as JSON escapes, so nothing in a document can move the cursor.
    """
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    indent = _INDENT if on_terminal and not one_line else -1
    document = msgspec.json.format(bytes(text), indent=indent).decode(errors="replace")
    if not on_terminal:
        write_stdout(document)
    elif not _print_coloured(printable_json(document)):
        write_stdout(printable_json(document))


def note_json(value: Any) -> None:  # Any: JSON
    """Write one JSON document as a line on stderr; a long one is cut. Never raises."""
    write_stderr_line(printable_json(cut(msgspec.json.encode(value).decode(), MAX_LINE_CHARACTERS)))


def _print_coloured(document: str) -> bool:
    """Print it with rich. Returns False if rich is not installed."""
    try:  # late: most runs don't need it
        from rich.console import Console
        from rich.highlighter import JSONHighlighter
    except ImportError:
        return False
    Console(soft_wrap=True).print(JSONHighlighter()(document))
    return True
