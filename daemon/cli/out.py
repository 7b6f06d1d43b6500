"""What the verbs say to people, on stdout. `serve` never comes here: its stdout belongs to the protocol."""

import sys


def out(text: str) -> None:
    """Write lines and flush them. Characters that the terminal cannot show are escaped; no stdout means silence.

    Raises `BrokenPipeError` when nobody reads any more; the command line ends quietly on it.
    """
    stream = sys.stdout
    if stream is None:  # started with stdout closed
        return
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()


def complain(message: str) -> None:
    """Write one line to stderr: control characters, line ends among them, are escaped."""
    if sys.stderr is not None:
        sys.stderr.write(f"discreet: {printable(message)}\n")
        sys.stderr.flush()


def printable(text: str) -> str:
    """The text without anything that could move a cursor or end a line."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
