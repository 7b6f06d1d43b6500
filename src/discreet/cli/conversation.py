"""One conversation of the doctor with a daemon, as a client of one dialect has it: start, handshake, questions, end.

Starts the daemon through `discreet.client`, and says what the client would see.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..client import ClientError, EndBounds, Peer, RemoteError, ServerProcess, attach, spawn
from ..client.dialects import DIALECTS
from ..client.retry import ListedOperation
from ..daemon.declarations import LONGEST_TOOL_NAME
from ..daemon.documents import ENCODINGS
from ..dialects.acp.session import PROTOCOL_VERSION
from ..dialects.acp.sessions import AUTHENTICATION_REQUIRED
from ..dialects.client import with_capabilities
from ..dialects.lsp.capabilities import FOLDERS, SIMILAR, alternatives, slips
from ..dialects.lsp.client import OWN_SYNC, registrable
from ..dialects.lsp.generated.tables import CLIENT_CAPABILITIES_3_18, NOTIFICATIONS, OPTIONS
from ..dialects.mcp.generated.tables import LEGACY_REVISIONS, MODERN_REVISION
from ..errors.decoders import convert, decoder_for
from ..errors.nearest import nearest_hint
from ..errors.printable import cut, printable
from ..version import __version__

if TYPE_CHECKING:
    from ..framing.events import Framing

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
MAX_SHOWN: Final = 160
"""Characters of what the daemon says that one finding quotes."""
MAX_WARNINGS: Final = 10
"""How many warnings of the log are findings."""
MAX_TOLD: Final = 2000
"""Characters of the line for people, which ends with the place and the remedy. It may tell of several apps."""
_BOUNDS: Final = EndBounds(eof=0.0, terminate=1.0, kill=1.0)
_LOG_LINES: Final = 500
"""How many lines of the end of the daemon's stderr are kept."""
_LOG_LINE_CHARACTERS: Final = 16 * 1024

Status: TypeAlias = Literal["ok", "warn", "fail"]


class Finding(Struct, frozen=True):
    """One line of the report. `warn` works but may surprise; `fail` does not work."""

    check: str
    status: Status
    message: str


class _LogLine(Struct, frozen=True):
    """The members of an event that are read here. All of them together are in `fields`."""

    event: str
    level: str = ""
    method: str = ""
    dialect: str = "plain"
    exc: str = ""
    text: str = ""
    hint: str = ""
    fields: dict[str, Any] = {}  # JSON

    def __str__(self) -> str:
        *_, cause = self.exc.splitlines() or [""]
        facts = ", ".join(f"{name}={value}" for name, value in self.fields.items() if name not in _FRAME_OF_LINE)
        told = _shown(cause or self.text.strip()) or self.hint or _shown(facts)
        return f"{self.event}: {printable(told)}".removesuffix(": ")


_FRAME_OF_LINE: Final = frozenset({"timestamp", "level", "event", "id"})
"""The fields that say nothing about what has happened."""


@final
class DaemonLog:
    """Reads a daemon's stderr: its log in the form `json`, and the line that a failed start writes for people."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_LOG_LINES)

    def add(self, line: str) -> None:
        """Keep a line."""
        self._lines.append(line[:_LOG_LINE_CHARACTERS])

    def events(self, *levels: str) -> Iterator[_LogLine]:
        """Yield the events that were kept; with levels only those of these."""
        for line in self._lines:
            try:
                fields = decoder_for(dict[str, Any])(line)
                event: _LogLine = convert(fields, _LogLine)
            except msgspec.DecodeError:
                continue  # not a log line, but the one for people
            if not levels or event.level in levels:
                yield replace(event, fields=fields)

    def error(self) -> str:
        """Return the line for people; else the first error of the log; else the last line that is no event of the log."""
        lines = [line for line in self._lines if line.strip()]
        told = [line for line in lines if line.startswith("discreet: ")]
        others = [_shown(line) for line in reversed(lines) if not line.startswith("{")]
        return (*told, *map(str, self.events("error")), *others, "")[0][:MAX_TOLD]

    def findings(self, *levels: str) -> Iterator[Finding]:
        """Yield the events of these levels: what apps wrote to stdout, a lifespan that failed at its end, an undeclared
        dialect. Not the doctor's own questions."""
        told = (line for line in self.events(*levels) if line.method not in _SETTLE.values())
        for line in islice(told, MAX_WARNINGS):
            yield Finding("log", "warn", str(line))


_SETTLE: Final = {"lsp": "$/discreet/settle", "acp": "_discreet/settle"}
"""A method for each dialect that is allowed there and that no server knows."""


@final
class Conversation:
    """A conversation in one dialect, and the findings about what a host would see."""

    def __init__(self, dialect: str, peer: Peer) -> None:
        self.dialect: Final = dialect
        self.peer: Final = peer
        self.asked = ""
        """The last question."""
        self.findings: Final[list[Finding]] = []
        self._began = anyio.current_time()

    async def ask(self, method: str, params: object = None, *, type: Any = Any) -> Any:  # as the type says
        """Return the answer, decoded. Raises `ClientError`, which ends the conversation with a finding."""
        is_first, self.asked = not self.asked, method
        answer = await self.peer.call(method, params, type=type)
        if is_first:
            seconds = anyio.current_time() - self._began
            late = seconds > SLOW_SECONDS
            more = f"; some editors and hosts give up after {ANSWER_SECONDS:g} s" if late else ""
            message = f"{method} was answered {seconds * 1000:.0f} ms after the start{more}"
            self.findings.append(Finding("reply", "warn" if late else "ok", message))
        return answer

    async def settle(self) -> None:
        """Wait until the daemon has sent what it began to send before now, by a method that it does not know.

        The first answer may come before there is an event loop, the second in the turn in which what waited for the loop
        begins to run, before that or after it. The third comes in a later turn.
        """
        for _ in range(3):
            try:
                await self.ask(_SETTLE[self.dialect])
            except RemoteError:
                continue

    def note(self, message: str, status: Status = "ok") -> None:
        """Add a finding."""
        self.findings.append(Finding(self.dialect, status, message))


async def converse(
    command: Sequence[str],
    framing: Framing,
    dialect: str,
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
        fault = await _fault_of(conversation, total_seconds)
        ended = await _end(process, end_seconds, drain_seconds)
    found = conversation.findings
    if fault:
        line = log.error()
        is_first = not any(finding.check == "reply" for finding in found)
        message = f"{conversation.asked}: {_shown(fault)}" + (f"; stderr: {line}" if line else "")
        found.append(Finding("reply" if is_first else dialect, "fail", message))
        return [*found, ended, *log.findings("warn")]  # the error is told
    return [*found, ended, *log.findings("warn", "error")]


async def _fault_of(conversation: Conversation, seconds: float) -> str:
    """Return what ended the conversation early; empty if nothing did."""
    try:
        with anyio.move_on_after(seconds) as limit:
            await _TALKS[conversation.dialect](conversation)
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
    log, _ = await _start_and_end(command)
    return next((line.dialect for line in log.events() if line.event == "daemon.started"), "plain")


async def start_unasked(command: Sequence[str]) -> list[Finding]:
    """Start the daemon without input. Returns how it ended, and what its log warns of."""
    log, ended = await _start_and_end(command)
    if ended.status == "fail" and (line := log.error()):
        return [replace(ended, message=f"{ended.message}; stderr: {line}"), *log.findings("warn")]
    return [ended, *log.findings("warn", "error")]


async def _start_and_end(command: Sequence[str]) -> tuple[DaemonLog, Finding]:
    log = DaemonLog()
    async with spawn(command, stderr=log.add, bounds=_BOUNDS) as process:
        ended = await _end(process, ANSWER_SECONDS, ANSWER_SECONDS)  # its start is in it
    return log, ended


def _shown(text: str) -> str:
    """Return a text of the daemon's, cut to what fits into a line."""
    return cut(text, MAX_SHOWN)


def _listed(words: Iterable[str]) -> str:
    return _shown(", ".join(words))


# -- what a client of each dialect says and sees ------------------------------------------------------------------

CLIENT: Final[Mapping[str, str]] = {"name": "discreet doctor", "version": __version__}


class _Implementation(Struct, frozen=True):
    """How every protocol names a program."""

    name: str = ""
    version: str = ""

    def __str__(self) -> str:
        return _shown(f"{self.name} {self.version}".strip()) or "without a name"


class _Entry(Struct, frozen=True, rename="camel"):
    """An entry of a list of MCP or ACP: a resource, a prompt, a command, a mode."""

    name: str = ""
    id: str = ""
    description: str = ""
    uri: str = ""
    uri_template: str = ""


class _Welcome(Struct, frozen=True, rename="camel"):
    """The answer to `initialize`, in every dialect."""

    server_info: _Implementation = _Implementation()
    capabilities: dict[str, Any] = {}
    protocol_version: str | int = ""
    instructions: str = ""
    agent_info: _Implementation | None = None
    agent_capabilities: dict[str, Any] = {}
    auth_methods: list[_Entry] = []


async def _talk_plain(conversation: Conversation) -> None:
    welcome: _Welcome = await conversation.ask("initialize", {"clientInfo": CLIENT, "capabilities": {}}, type=_Welcome)
    conversation.note(f"server: {welcome.server_info}")
    operations: list[ListedOperation] = await conversation.ask("services/list", type=list[ListedOperation])
    kinds = Counter(operation.kind for operation in operations)
    if operations:
        conversation.note(f"{len(operations)} operations: {_listed(f'{kind} {n}' for kind, n in kinds.items())}")
    else:
        conversation.note(
            "no operations are declared; an agent has none, and --dialect acp says what editors see of it", "warn"
        )


def unknown_members(given: Mapping[str, Any], options: str = "ServerCapabilities", path: str = "") -> Iterator[str]:
    """Yield a line for each member that LSP's struct of this name does not have, or that can't have such a value."""
    for name, value in given.items():
        member = OPTIONS[options].get(name)
        if member is None:
            near = nearest_hint(name, OPTIONS[options], cutoff=SIMILAR)
            yield f"{path}{name} is no member of LSP's {options}{near}; editors ignore it"
            continue
        types = alternatives(member)
        inner = [each for each in types if each in OPTIONS]
        if isinstance(value, dict) and inner:
            yield from min((list(unknown_members(value, each, f"{path}{name}.")) for each in inner), key=len)
        elif {*inner, "bool"} >= {*types} and not ("bool" in types and isinstance(value, bool)):
            yield f"{path}{name} must be {member} in LSP"


_COMMANDS: Final = "executeCommandProvider"
_ALWAYS: Final = frozenset({"textDocumentSync", "positionEncoding"})
"""The capabilities that every language server announces."""


def lsp_hello() -> dict[str, Any]:  # JSON
    """Return the params of an editor that lets everything be registered, and knows the encodings of Neovim and Helix."""
    encodings = {"general": {"positionEncodings": [*ENCODINGS]}}
    capabilities = with_capabilities(encodings, [*registrable(), OWN_SYNC, *CLIENT_CAPABILITIES_3_18])
    capabilities["textDocument"]["semanticTokens"] |= {  # what a client that names them at all must say
        "requests": {"full": True},
        "tokenTypes": [],
        "tokenModifiers": [],
        "formats": ["relative"],
    }
    folders = {"rootUri": None, "workspaceFolders": None}
    return {"processId": None, "clientInfo": CLIENT, **folders, "capabilities": capabilities}


class _Registration(Struct, frozen=True, rename="camel"):
    method: str
    register_options: Any = None  # Any: JSON


async def _talk_lsp(conversation: Conversation) -> None:
    registered: list[_Registration] = []

    def register(params: Any) -> None:
        registered.extend(convert(params, dict[str, list[_Registration]]).get("registrations", []))

    conversation.peer.on_request("client/registerCapability", register)
    welcome: _Welcome = await conversation.ask("initialize", lsp_hello(), type=_Welcome)
    await conversation.peer.notify("initialized", {})
    await conversation.settle()
    announced = {name: value for name, value in welcome.capabilities.items() if value is not False}
    conversation.note(f"server: {welcome.server_info}")
    encoding = announced.get("positionEncoding", "utf-16")
    conversation.note(f"positions are {encoding} for an editor that offers utf-8, utf-16 and utf-32")
    for name in sorted(announced.keys() - _ALWAYS - {_COMMANDS}):
        conversation.note(f"announces {name}{_options(announced[name])}")
    match announced.get(_COMMANDS):
        case {"commands": [_, *_] as commands}:
            conversation.note(f"commands: {_listed(map(str, commands))}")
        case _:  # it has none
            pass
    for one in registered:
        conversation.note(f"registers {one.method}{_options(one.register_options)}")
    try:
        listed = await conversation.peer.call("services/list", type=list[ListedOperation])
    except ClientError:  # the server takes the method for its own
        listed = []
    for fault in (*unknown_members(announced), *slips(operation.name for operation in listed)):
        conversation.note(fault, "warn")
    useful = [
        value for name, value in announced.items() if name not in _ALWAYS and value != {"workspaceFolders": FOLDERS}
    ]
    if not (useful or registered or any(operation.name in NOTIFICATIONS for operation in listed)):
        conversation.note("announces nothing: an editor will send documents and ask nothing", "warn")
    await conversation.ask("shutdown")
    await conversation.peer.notify("exit")


def _options(value: Any) -> str:  # Any: JSON
    return "" if value in (True, None, {}) else f" {_shown(msgspec.json.encode(value).decode())}"


MANY_TOKENS: Final = 10_000
"""Tokens of all tools that a model should read before a conversation: a twentieth of what most models have room for."""
BYTES_OF_TOKEN: Final = 4
"""Of schemas in English, as the models of Anthropic and OpenAI count; an estimate."""

MAX_TOOLS: Final = 128
"""Tools of all servers together that OpenAI and Copilot take in one request."""
_PARAM: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
"""The names of params at the top level that Anthropic takes."""
_MAX_PAGES: Final = 100

_MODERN: Final = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
"""The params of a request of MCP's modern revision, which has no handshake."""


class ListedTool(Struct, frozen=True, rename="camel"):
    """The members of a tool that hosts pass to models."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None

    @property
    def params(self) -> dict[str, Any]:  # JSON
        """The schemas of the params, by name."""
        found = self.input_schema.get("properties")
        return found if isinstance(found, dict) else {}


def faults_of(tool: ListedTool, server: str) -> Iterator[str]:
    """Yield what hosts and models would refuse of a tool of a server of this name, although MCP allows it."""
    whole = f"mcp__{server}__{tool.name}"  # Claude Code counts it
    if len(tool.name) > LONGEST_TOOL_NAME:
        yield f"the name has {len(tool.name)} characters; OpenAI, Google and Claude Code take {LONGEST_TOOL_NAME}"
    elif len(whole) > LONGEST_TOOL_NAME:
        yield f"{whole} has {len(whole)} characters; Claude Code takes {LONGEST_TOOL_NAME}"
    if not tool.description:
        yield "no description: a model sees only the name"
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in tool.input_schema:
            yield f"the input schema has {keyword} at the top; Anthropic and OpenAI refuse it"
    for name in tool.params:
        if not _PARAM.match(name):
            yield f"the param {name} is not of 1 to 64 letters, digits, _, . and -; Anthropic refuses it"


async def _talk_mcp(conversation: Conversation) -> None:
    hello = {"protocolVersion": LEGACY_REVISIONS[-1], "clientInfo": CLIENT, "capabilities": {}}
    welcome: _Welcome = await conversation.ask("initialize", hello, type=_Welcome)
    await conversation.peer.notify("notifications/initialized", {})
    conversation.note(f"server: {welcome.server_info}")
    conversation.note(f"initialize agrees on {_shown(str(welcome.protocol_version))}")
    discovered = await conversation.ask("server/discover", _MODERN, type=dict[str, Any])
    versions = convert(discovered.get("supportedVersions"), list[str])
    conversation.note(f"server/discover offers {_listed(versions)}")
    if not welcome.instructions:
        conversation.note("no instructions: Service(description=…) tells the model what the server is for", "warn")
    if not welcome.capabilities.keys() & {"tools", "resources", "prompts"}:
        conversation.note("offers neither tools nor resources nor prompts", "warn")
    if "tools" in welcome.capabilities:
        await _note_tools(conversation, welcome.server_info.name)
    for kind, capability, method, member in (
        ("resource", "resources", "resources/list", "resources"),
        ("resource template", "resources", "resources/templates/list", "resourceTemplates"),
        ("prompt", "prompts", "prompts/list", "prompts"),
    ):
        for entry in await _pages(conversation, method, member) if capability in welcome.capabilities else ():
            one: _Entry = convert(entry, _Entry)
            bare = "" if one.description else ": no description"
            name = _shown(one.uri or one.uri_template or one.name)
            conversation.note(f"{kind} {name}{bare}", "warn" if bare else "ok")


async def _note_tools(conversation: Conversation, server: str) -> None:
    texts = sorted(await _pages(conversation, "tools/list", "tools"), key=_size, reverse=True)
    for text in texts:
        tool: ListedTool = convert(text, ListedTool)
        facts = f"tool {_shown(tool.name)}: {_cost(_size(text))}, {_size(tool.input_schema)} of input schema"
        if tool.output_schema is not None:
            facts += f", {_size(tool.output_schema)} of output schema"
        faults = list(faults_of(tool, server))
        conversation.note("; ".join([facts, *faults]), "warn" if faults else "ok")
    size = sum(map(_size, texts))
    told = [f"{len(texts)} tools, {_cost(size)} in each conversation"]
    if len(texts) > MAX_TOOLS:
        told.append(f"OpenAI and Copilot take {MAX_TOOLS} of all servers together")
    if len(texts) > MAX_TOOLS or size > MANY_TOKENS * BYTES_OF_TOKEN:
        told.append("--tool-search lists two in their place")
    conversation.note("; ".join(told), "ok" if len(told) == 1 else "warn")


def _cost(size: int) -> str:
    return f"{size} bytes, about {round(size / BYTES_OF_TOKEN)} tokens"


async def _pages(conversation: Conversation, method: str, member: str) -> list[Any]:  # Any: JSON
    """Return all pages of a list."""
    found: list[Any] = []
    params: dict[str, str] = {}
    for _ in range(_MAX_PAGES):
        page = await conversation.ask(method, params, type=dict[str, Any])
        found += page.get(member, [])
        if not page.get("nextCursor"):
            break
        params = {"cursor": page["nextCursor"]}
    return found


def _size(value: Any) -> int:  # Any: JSON
    return len(msgspec.json.encode(value))


async def _talk_acp(conversation: Conversation) -> None:
    hello = {"protocolVersion": PROTOCOL_VERSION, "clientInfo": CLIENT, "clientCapabilities": {}}
    welcome: _Welcome = await conversation.ask("initialize", hello, type=_Welcome)
    conversation.note(f"agent: {welcome.agent_info or _Implementation()}, protocol {welcome.protocol_version}")
    conversation.note(f"can do: {_listed(_said(welcome.agent_capabilities)) or 'nothing beyond text'}")
    methods = [method.id for method in welcome.auth_methods]
    conversation.note(f"ways to sign in: {_listed(methods) or 'none'}")
    commands: list[_Entry] = []

    def update(params: Any) -> None:
        commands.extend(convert(params["update"].get("availableCommands", []), list[_Entry]))

    conversation.peer.on_notification("session/update", update)
    try:
        session = await conversation.ask("session/new", {"cwd": os.getcwd(), "mcpServers": []}, type=dict[str, Any])
    except RemoteError as exc:
        if exc.error.code != AUTHENTICATION_REQUIRED or not methods:
            raise
        return conversation.note("session/new wants the user to sign in before", "warn")
    conversation.note("session/new opens a session")
    await conversation.settle()
    for command in commands:
        conversation.note(f"command /{_shown(command.name)}")
    await conversation.ask("session/close", {"sessionId": session.get("sessionId")})


def _said(capabilities: dict[str, Any], path: str = "") -> list[str]:
    """Return the names of all capabilities that are there: `promptCapabilities.image`."""
    found: list[str] = []
    for name, value in capabilities.items():
        if isinstance(value, dict) and value:
            found += _said(value, f"{path}{name}.")
        elif value not in (False, None) and name != "_meta":
            found.append(f"{path}{name}")
    return found


_TALKS: Final[Mapping[str, Callable[[Conversation], Awaitable[None]]]] = {
    "plain": _talk_plain,
    "lsp": _talk_lsp,
    "mcp": _talk_mcp,
    "acp": _talk_acp,
}
"""The conversation of a client of a dialect, from `initialize` on."""
