"""One conversation with the daemon, as a host has it: start, handshake, questions, end. Says what the host would see.

Starts the daemon through `discreet.client`. What is asked in which dialect is in the module of the dialect.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...client import ClientError, EndBounds, Peer, RemoteError, ServerProcess, attach, spawn
from ...client.dialects import DIALECTS
from ...client.retry import ListedOperation
from ...errors.decoders import decoder_for
from ...errors.printable import cut, printable
from ...version import __version__
from .checks import Finding, Status

if TYPE_CHECKING:
    from ...framing.events import Framing

ANSWER_SECONDS: Final = 10.0
"""How long each question may take; the first one, with the start and the imports of apps in it."""
TOTAL_SECONDS: Final = 30.0
"""How long the whole conversation may take, without the daemon's end."""
SLOW_SECONDS: Final = 3.0
"""A start that takes longer is noticed: Emacs, for one, blocks for so long when it connects to a language server."""
END_SECONDS: Final = 5.0
"""How long to wait for the end. Nothing runs, so the daemon should end at once, whatever the drain window is."""
EXIT_SECONDS: Final = 0.5
"""How long the interpreter may take to end, in addition to the drain window."""
_BOUNDS: Final = EndBounds(eof=0.0, terminate=1.0, kill=1.0)
_LOG_LINES: Final = 500
"""How many lines of the end of the daemon's stderr are kept."""
_LOG_LINE_CHARACTERS: Final = 4096
MAX_SHOWN: Final = 160
"""Characters of what the daemon says that one finding quotes."""
MAX_WARNINGS: Final = 10
"""How many warnings of the log are findings."""
MAX_TOLD: Final = 2000
"""Characters of the line for people, which ends with the place and the remedy. It may tell of several apps."""


class LogLine(Struct, frozen=True):
    """The members of an event that are read here."""

    event: str
    level: str = ""
    dialect: str = "plain"
    exc: str = ""
    text: str = ""
    hint: str = ""


@final
class DaemonLog:
    """What a daemon has written to stderr: its log in the form `json`, and the line that a failed start writes for people."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_LOG_LINES)

    def add(self, line: str) -> None:
        """Keep a line."""
        self._lines.append(line[:_LOG_LINE_CHARACTERS])

    def events(self) -> Iterator[LogLine]:
        """The events that were kept."""
        for line in self._lines:
            try:
                yield decoder_for(LogLine)(line)
            except msgspec.DecodeError:
                continue  # not a log line, but the one for people

    def error(self) -> str:
        """The line for people; else the first error of the log; else the last line that is no event of the log."""
        lines = [line for line in self._lines if line.strip()]
        told = [line for line in lines if line.startswith("discreet: ")]
        errors = [_in_brief(line) for line in self.events() if line.level == "error"]
        others = [cut(line, MAX_SHOWN) for line in reversed(lines) if not line.startswith("{")]
        return (*told, *errors, *others, "")[0][:MAX_TOLD]

    def findings(self) -> Iterator[Finding]:
        """What the log warns of: what apps wrote to stdout, a lifespan that failed at its end, a dialect that is not declared."""
        warnings = [line for line in self.events() if line.level == "warn"]
        for line in warnings[:MAX_WARNINGS]:
            yield Finding("log", "warn", _in_brief(line))
        if len(warnings) > MAX_WARNINGS:
            yield Finding("log", "warn", f"{len(warnings) - MAX_WARNINGS} further warnings")


def _in_brief(line: LogLine) -> str:
    *_, cause = line.exc.splitlines() or [""]
    more = printable(shown(cause or line.text.strip()) or line.hint)
    return f"{line.event}: {more}" if more else line.event


class Implementation(Struct, frozen=True):
    """How every protocol names a program."""

    name: str = ""
    version: str = ""

    def __str__(self) -> str:
        return shown(f"{self.name} {self.version}".strip()) or "without a name"


@final
class Conversation:
    """What a dialect asks with, and where it notes what a host would see."""

    def __init__(self, dialect: str, peer: Peer) -> None:
        self.dialect: Final = dialect
        self.peer: Final = peer
        self.asked = "the start"
        """The last question."""
        self.findings: Final[list[Finding]] = []
        self._began = anyio.current_time()

    async def ask(self, method: str, params: object = None, *, type: Any = Any) -> Any:  # as the type says
        """The answer, decoded. Raises `ClientError`, which ends the conversation with a finding."""
        is_first, self.asked = self.asked == "the start", method
        answer = await self.peer.call(method, params, type=type)
        if is_first:
            seconds = anyio.current_time() - self._began
            late = seconds > SLOW_SECONDS
            message = f"{method} was answered {seconds * 1000:.0f} ms after the start"
            more = f"; some editors and hosts give up after {ANSWER_SECONDS:g} s" if late else ""
            self.findings.append(Finding("reply", "warn" if late else "ok", message + more))
        return answer

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


Talk = Callable[[Conversation], Awaitable[None]]
"""What a client of a dialect says and asks, from `initialize` on."""


async def converse(
    command: Sequence[str],
    framing: Framing,
    dialect: str,
    talk: Talk,
    *,
    drain_seconds: float = 2.0,
    answer_seconds: float = ANSWER_SECONDS,
    total_seconds: float = TOTAL_SECONDS,
    end_seconds: float = END_SECONDS,
) -> list[Finding]:
    """Start the daemon, talk to it, end its input. Returns what was found; what fails is a finding too.

    `drain_seconds` is the daemon's drain window. Bounded in time, and leaves no process behind.
    """
    log = DaemonLog()
    spoken = replace(DIALECTS[dialect], handshake=None)
    async with (
        spawn(command, stderr=log.add, bounds=_BOUNDS) as process,
        attach(process, framing=framing, dialect=spoken, timeout=answer_seconds, explain=process.explain) as peer,
    ):
        conversation = Conversation(dialect, peer)
        fault = await _fault_of(talk, conversation, total_seconds)
        ended = await _end(process, end_seconds, drain_seconds)
    found = conversation.findings
    if fault:
        line = log.error()
        is_first = not any(finding.check == "reply" for finding in found)
        message = f"{conversation.asked}: {shown(fault)}" + (f"; stderr: {line}" if line else "")
        found.append(Finding("reply" if is_first else dialect, "fail", message))
    return [*found, ended, *log.findings()]


async def _fault_of(talk: Talk, conversation: Conversation, seconds: float) -> str:
    """What ended the conversation early; empty if nothing did."""
    try:
        with anyio.move_on_after(seconds) as limit:
            await talk(conversation)
    except RemoteError as exc:
        return f"refused with {exc.error.code} {exc.error.message}"
    except ClientError as exc:
        return str(exc)
    except msgspec.ValidationError as exc:  # of a part of an answer
        return f"not what the protocol says: {exc}"
    return f"the conversation took longer than {seconds:g} s" if limit.cancelled_caught else ""


async def _end(process: ServerProcess, seconds: float, drain_seconds: float) -> Finding:
    began = anyio.current_time()
    process.send_eof()
    with anyio.move_on_after(seconds):
        await process.wait()
    if process.returncode is None:
        return Finding("end", "fail", "the daemon did not end at the end of input and was killed")
    took = anyio.current_time() - began
    message = f"ended {took * 1000:.0f} ms after the end of input with status {process.returncode}"
    if process.returncode != 0:
        return Finding("end", "fail", message)
    if took > drain_seconds + EXIT_SECONDS:
        return Finding("end", "warn", f"{message}; drain-timeout is {drain_seconds:g} s")
    return Finding("end", "ok", message)


async def declared_dialect(command: Sequence[str]) -> str:
    """Start the daemon without input, and return the dialect that it says it speaks; plain if it does not start."""
    log = DaemonLog()
    async with spawn(command, stderr=log.add, bounds=_BOUNDS) as process:
        await _end(process, ANSWER_SECONDS, 0.0)
    return next((line.dialect for line in log.events() if line.event == "daemon.started"), "plain")


def shown(text: str) -> str:
    """A text of the daemon's, cut to what fits into a line."""
    return cut(text, MAX_SHOWN)


def listed(words: Iterable[str]) -> str:
    """Words with commas."""
    return shown(", ".join(words))


# What a caller of plain JSON-RPC sees.

CLIENT: Final[Mapping[str, str]] = {"name": "discreet doctor", "version": __version__}


class _Welcome(Struct, frozen=True, rename="camel"):
    server_info: Implementation = Implementation()


async def talk_plain(conversation: Conversation) -> None:
    """The handshake, and the list of the operations."""
    hello = {"clientInfo": CLIENT, "capabilities": {}}
    welcome: _Welcome = await conversation.ask("initialize", hello, type=_Welcome)
    conversation.note(f"server: {welcome.server_info}")
    operations: list[ListedOperation] = await conversation.ask("services/list", type=list[ListedOperation])
    kinds = Counter(operation.kind for operation in operations)
    if operations:
        conversation.note(f"{len(operations)} operations: {listed(f'{kind} {n}' for kind, n in kinds.items())}")
    else:
        conversation.note(
            "no operations are declared; an agent has none, and --dialect acp says what editors see of it", "warn"
        )
