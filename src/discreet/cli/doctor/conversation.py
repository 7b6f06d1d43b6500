"""One conversation with the daemon, as a host has it: handshake, questions, end. Says what the host would see.

Starts the daemon through `discreet.client`. What is asked in which dialect is in the module of the dialect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar, final, overload

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...client import ClientError, EndBounds, Peer, RemoteError, ServerProcess, attach, spawn
from ...client.dialects import DIALECTS
from ...errors.decoders import decoder_for
from ...errors.printable import cut
from .checks import Finding, Status

if TYPE_CHECKING:
    from ...framing.events import Framing


# Reads what a daemon has written to stderr: its log, and the line that a failed start writes for people.


MAX_QUOTE_CHARS: Final = 200
"""Characters of what a daemon has written that are quoted."""
MAX_TOLD_CHARS: Final = 2000
"""Characters of the line for people, which ends with the place and the remedy. It may tell of several apps."""


class LogLine(Struct, frozen=True):
    """The members of an event that are read here."""

    event: str
    level: str = ""
    dialect: str = "plain"
    exc: str = ""
    text: str = ""
    hint: str = ""


def error_line(log: bytes) -> str:
    """Return the line that a failed start writes for people; else the first error of the log; else the last line that is
    no event of the log."""
    lines = [line for line in log.decode("utf-8", "backslashreplace").splitlines() if line.strip()]
    told = (line for line in lines if line.startswith("discreet: "))
    errors = (_in_brief(line) for line in log_lines(log) if line.level == "error")
    others = (line for line in reversed(lines) if not line.startswith("{"))
    return next(chain(told, (line[:MAX_QUOTE_CHARS] for line in chain(errors, others))), "")[:MAX_TOLD_CHARS]


def _in_brief(line: LogLine) -> str:
    *_, cause = line.exc.splitlines() or [""]
    return f"{line.event}: {cause}" if cause else line.event


def log_lines(log: bytes) -> Iterator[LogLine]:
    """The events of a log in the form `json`."""
    for line in log.splitlines():
        try:
            yield decoder_for(LogLine)(line)
        except msgspec.DecodeError:
            continue  # not a log line, but the one for people that a failed start writes


T = TypeVar("T")

ANSWER_SECONDS: Final = 10.0
"""How long each question may take; the first one, with the start and the imports of apps in it."""
TOTAL_SECONDS: Final = 30.0
"""How long the whole conversation may take, without the daemon's end."""
BOUNDS: Final = EndBounds(eof=5.0, terminate=1.0, kill=1.0)
_LOG_LINES: Final = 200
"""How many lines of the end of the daemon's stderr are kept."""
_LOG_LINE_CHARACTERS: Final = 4096
MAX_SHOWN: Final = 160
"""Characters of what the daemon says that one finding quotes."""


class Implementation(Struct, frozen=True):
    """How every protocol names a program."""

    name: str = ""
    version: str = ""

    def __str__(self) -> str:
        return shown(f"{self.name} {self.version}".strip()) or "without a name"


@final
class Conversation:
    """What a dialect asks with, and where it notes what a host would see."""

    def __init__(self, dialect: str, peer: Peer, process: ServerProcess) -> None:
        self.dialect: Final = dialect
        self.peer: Final = peer
        self.process: Final = process
        self.asked = ""
        """The last question."""
        self.findings: Final[list[Finding]] = []

    @overload
    async def ask(self, method: str, params: object = None, *, type: type[T]) -> T: ...
    @overload
    async def ask(self, method: str, params: object = None, *, type: Any = Any) -> Any: ...
    async def ask(self, method: str, params: object = None, *, type: Any = Any) -> Any:
        """The answer, decoded. Raises `ClientError`, which ends the conversation with a finding."""
        self.asked = method
        return await self.peer.call(method, params, type=type)

    async def settle(self, method: str) -> None:
        """Wait until the daemon has sent what it began to send before now. `method` is one that it does not know.

        The first answer may come before there is an event loop, the second in the turn in which what waited for the loop
        begins to run, before that or after it. The third comes in a later turn.
        """
        for _ in range(3):
            try:
                await self.ask(method)
            except RemoteError:
                continue

    def note(self, message: str, status: Status = "ok") -> None:
        """Add a finding."""
        self.findings.append(Finding(self.dialect, status, message))


class Script(Struct, frozen=True):
    """What a client says and asks: the params of its `initialize`, and the whole conversation."""

    hello: Mapping[str, Any]  # JSON
    talk: Callable[[Conversation], Awaitable[None]]


async def converse(
    command: Sequence[str],
    framing: Framing,
    dialect: str,
    script: Script,
    *,
    answer_seconds: float = ANSWER_SECONDS,
    total_seconds: float = TOTAL_SECONDS,
) -> list[Finding]:
    """Start the daemon, go through the script, end the daemon. Returns what was found; what fails is a finding too.

    Bounded in time, and leaves no process behind.
    """
    log: deque[str] = deque(maxlen=_LOG_LINES)
    findings: list[Finding] = []
    asked = "the start"
    talk: Conversation | None = None
    try:
        with anyio.move_on_after(total_seconds) as limit:
            async with (
                spawn(command, stderr=lambda line: log.append(line[:_LOG_LINE_CHARACTERS]), bounds=BOUNDS) as process,
                attach(
                    process,
                    framing=framing,
                    dialect=replace(DIALECTS[dialect], handshake=None),
                    timeout=answer_seconds,
                    explain=process.explain,
                ) as peer,
            ):
                talk = Conversation(dialect, peer, process)
                await script.talk(talk)
        fault = f"the conversation took longer than {total_seconds:g} s" if limit.cancelled_caught else ""
    except ClientError as exc:
        fault = str(exc)
    except msgspec.ValidationError as exc:  # of a part of an answer
        fault = f"not what the protocol says: {exc}"
    if talk is not None:
        findings, asked = talk.findings, talk.asked
    if fault:
        line = error_line("\n".join(log).encode())
        findings.append(Finding(dialect, "fail", f"{asked}: {shown(fault)}" + (f"; stderr: {line}" if line else "")))
    return findings


def shown(text: str) -> str:
    """A text of the daemon's, cut to what fits into a line."""
    return cut(text, MAX_SHOWN)


def listed(words: Iterable[str]) -> str:
    """Words with commas."""
    return shown(", ".join(words))
