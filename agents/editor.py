"""Defines the `Editor` Protocol, through which an executor uses its caller's editor, and the options of an agent for editors.

Checks the options and runs nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import to_builtins

from ..a2a.types import Artifact, Part
from ..awaited import refuses_bool
from ..daemon.operations.request import ClientInfo
from ..errors.decoders import convert
from ..errors.nearest import nearest_hint

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
ToolStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]
PermissionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
StepStatus: TypeAlias = Literal["pending", "in_progress", "completed"]
StepPriority: TypeAlias = Literal["high", "medium", "low"]
Limit: TypeAlias = Literal["max_tokens", "max_turn_requests"]
"""A limit at which an agent stops: the length of an answer, or the number of requests to a model in one turn."""

T = TypeVar("T")

EditorAbility: TypeAlias = Literal[
    "fs.readTextFile", "fs.writeTextFile", "terminal", "elicitation.form", "elicitation.url"
]
"""The abilities that an editor may advertise."""


class EditorUnavailableError(Exception):
    """The editor has not advertised the `ability`, or the turn has ended. If an executor lets it pass, the user reads which
    ability the editor lacks."""

    def __init__(self, text: str, ability: EditorAbility | None = None) -> None:
        super().__init__(text)
        self.ability: Final = ability


def check_word(what: str, given: object, known: Any) -> None:  # Any: a Literal
    """Raise `ValueError` for a word that is not in `known`: an editor would show another one and say nothing."""
    if given not in (words := get_args(known)):
        raise ValueError(f"{what} must be one of {', '.join(words)}, not {given!r}{nearest_hint(str(given), words)}")


class PermissionOption(msgspec.Struct, frozen=True):
    """One answer that the user may give. Raises `ValueError` for an unknown kind."""

    id: str
    name: str
    kind: PermissionKind

    def __post_init__(self) -> None:
        check_word("the kind of a permission", self.kind, PermissionKind)


ALLOW_OR_REJECT: Final = (
    PermissionOption("allow", "Allow", "allow_once"),
    PermissionOption("reject", "Reject", "reject_once"),
)


class Permission(msgspec.Struct, frozen=True):
    """The user's answer to `Editor.permit`. True if it allows.

    `option` is one of the options that were offered; None if the turn was cancelled.
    """

    option: PermissionOption | None

    def __bool__(self) -> bool:
        return self.option is not None and self.option.kind in ("allow_once", "allow_always")

    @property
    def always(self) -> bool:
        """Whether the answer also holds for later questions of this kind."""
        return self.option is not None and self.option.kind in ("allow_always", "reject_always")


class CommandResult(msgspec.Struct, frozen=True):
    """The result of a command in the editor's terminal: `exit_code`, or the `signal` that ended it. `truncated` is true if the
    beginning of the output is missing."""

    output: str
    exit_code: int | None
    signal: str | None
    truncated: bool


class FormAnswer(msgspec.Struct, Generic[T], frozen=True):
    """The user's answer to `Editor.ask`. True if the user has filled in the form: then `value` is of the type that was asked for.

    `action` is `decline` if the user refused, `cancel` if the user closed the form without an answer.
    """

    action: Literal["accept", "decline", "cancel"]
    value: T | None = None

    def __bool__(self) -> bool:
        return self.action == "accept"


class Diff(msgspec.Struct, frozen=True):
    """A change of a file that the editor shows. `old_text` is None for a new file."""

    path: str
    new_text: str
    old_text: str | None = None


class Terminal(msgspec.Struct, frozen=True):
    """A terminal of the editor that a tool call shows."""

    id: str


class PlanStep(msgspec.Struct, frozen=True):
    """One step of an agent's plan. Raises `ValueError` for an unknown status or priority."""

    content: str
    status: StepStatus = "pending"
    priority: StepPriority = "medium"

    def __post_init__(self) -> None:
        check_word("the status of a step", self.status, StepStatus)
        check_word("the priority of a step", self.priority, StepPriority)


ToolContent: TypeAlias = str | Part | Diff | Terminal
"""The content of a tool call."""


class ToolCall(Protocol):
    """A tool call that the editor shows."""

    @property
    def id(self) -> str: ...

    async def update(
        self,
        *content: ToolContent,
        title: str | None = None,
        status: ToolStatus | None = None,
        locations: Sequence[str] | None = None,
        raw_output: object = None,
    ) -> None:
        """Change the tool call that the editor shows. New content replaces all old content.

        Raises `ValueError` for an unknown status, and `RuntimeError` after the block of the call.
        """
        ...


class RunningCommand(Protocol):
    """A command in a terminal of the editor. Valid in the block of `Editor.start`."""

    @property
    def id(self) -> str: ...

    async def output(self, *, timeout: float | None = None) -> CommandResult:
        """Return the output so far. While the command runs, it has neither an exit code nor a signal."""
        ...

    async def wait(self, *, timeout: float | None = None) -> CommandResult:
        """Wait until the command has ended, and return its whole output."""
        ...

    async def kill(self, *, timeout: float | None = None) -> None:
        """End the command. Its output stays readable."""
        ...


class McpTools(Protocol):
    """A client of an MCP server that the editor has passed. Valid in the block of `Editor.mcp`."""

    @property
    def operations(self) -> Mapping[str, Mapping[str, Any]]:
        """The tools, resources and prompts of the server by their names, which are those of `from_mcp`. Each has a `description`
        and the JSON Schema of its params, `input`."""
        ...

    @refuses_bool
    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, type: Any = Any, timeout: float | None = None
    ) -> Any:
        """Call an operation, and decode its result to `type`. `timeout` is in seconds. A call that is cancelled is cancelled at
        the server.

        Raises `OperationFailed` with the error of the tool or the server, `LookupError` for an unknown name, `TimeoutError`,
        `ConnectionFailed` for a server that has ended, and `InvalidReply` for an answer of another type. All but `LookupError`
        and `TimeoutError` are those of `discreet.client`.
        """
        ...


class Asker(Protocol):
    """Asks the user of a client of ACP. `can_ask` and `can_open` tell whether the client has advertised `elicitation.form` and
    `elicitation.url`. The methods wait and raise as those of `Editor`.
    """

    @property
    def can_ask(self) -> bool: ...
    @property
    def can_open(self) -> bool: ...

    @refuses_bool
    async def ask(
        self, message: str, form: type[T], *, tool: ToolCall | None = None, timeout: float | None = None
    ) -> FormAnswer[T]:
        """Ask the user to fill in a form. Forms are no place for secrets: use `page` for these.

        `form` is a `msgspec.Struct`, a dataclass or a `TypedDict`. Its members are the fields: strings, numbers, booleans,
        choices (`Literal`) and lists of choices. `msgspec.Meta` gives them titles, descriptions and bounds.

        Raises `ValueError` for a type that no form can fill.
        """
        ...

    def page(
        self, url: str, message: str, *, tool: ToolCall | None = None, timeout: float | None = None
    ) -> AbstractAsyncContextManager[bool]:
        """Ask the user to open a page in a browser, such as that of a sign-in. In the block the value says whether the user has
        agreed. At the end of the block the editor is told that the page has served its purpose, unless the block raises.

        Raises `ValueError` for an address that does not begin with `https://`, or `http://` on the same machine.
        """
        ...


class Editor(Asker, Protocol):
    """The program at the other end of a session of the Agent Client Protocol (ACP). Valid during one turn.

    Events that the executor published before it calls a method reach the editor before the call does. The methods that ask
    wait for the editor's answer; those that show something (`tool`, `plan`, `usage` and the setters) do not. Without `timeout`,
    in seconds, they wait until the user answers or the turn ends. A call that is cancelled tells the editor so.

    They raise `ClientRefused` with the editor's own error, `TimeoutError`, and `EditorUnavailableError` if the editor has not
    advertised the ability or the turn has ended. `can_read`, `can_write`, `can_run`, `can_ask` and `can_open` tell whether it
    has advertised `fs.readTextFile`, `fs.writeTextFile`, `terminal`, `elicitation.form` and `elicitation.url`.

    ACP has absolute paths only: a relative path is resolved in the session's directory.
    """

    @property
    def client(self) -> ClientInfo:
        """The name, version and capabilities that the editor sent in `initialize`."""
        ...

    @property
    def session_id(self) -> str: ...

    @property
    def cwd(self) -> str:
        """The session's working directory, an absolute path."""
        ...

    @property
    def additional_directories(self) -> Sequence[str]: ...

    @property
    def mcp_servers(self) -> Sequence[Mapping[str, Any]]:
        """The MCP servers that the user wants the agent to use, as the editor sent them. They may hold credentials."""
        ...

    @property
    def mode(self) -> str | None:
        """The session's mode; None if the agent declares none."""
        ...

    @property
    def config(self) -> Mapping[str, str | bool]:
        """The values of the session's options, by their ids."""
        ...

    @property
    def can_read(self) -> bool: ...
    @property
    def can_write(self) -> bool: ...
    @property
    def can_run(self) -> bool: ...

    @refuses_bool
    async def permit(
        self,
        title: str,
        *,
        tool: ToolCall | None = None,
        kind: ToolKind | None = None,
        content: Sequence[ToolContent] = (),
        options: Sequence[PermissionOption] = ALLOW_OR_REJECT,
        timeout: float | None = None,
    ) -> Permission:
        """Ask the user to allow an action of the agent."""
        ...

    async def read_text_file(
        self, path: str, *, line: int | None = None, limit: int | None = None, timeout: float | None = None
    ) -> str:
        """Read a file as the editor has it, with unsaved changes. `line` is the first line, from 1; `limit` is a number of
        lines."""
        ...

    async def write_text_file(self, path: str, content: str, *, timeout: float | None = None) -> None:
        """Write a whole text file through the editor, which creates the file if there is none."""
        ...

    async def run(
        self,
        command: str,
        *args: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        output_limit: int | None = None,
        tool: ToolCall | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        """Run a command in a terminal of the editor. The command is killed after `timeout`, or when the call is cancelled.

        `tool` shows the terminal. `output_limit` is in bytes.
        """
        ...

    def start(
        self,
        command: str,
        *args: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        output_limit: int | None = None,
        tool: ToolCall | None = None,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[RunningCommand]:
        """Run a command in a terminal of the editor during the block, at whose end it is killed if it still runs. Params as those
        of `run`; `timeout` is for the start."""
        ...

    def mcp(self, name: str) -> AbstractAsyncContextManager[McpTools]:
        """Reach one of the session's MCP servers by its name during the block. A command is started in the session's directory,
        and ends with the block.

        Raises `LookupError` for a name that the editor has not passed, `ImportFailed` for a server that can't be used, and
        `ConnectionFailed` for one that can't be reached.
        """
        ...

    def tool(
        self,
        title: str,
        *,
        kind: ToolKind = "other",
        locations: Sequence[str] = (),
        content: Sequence[ToolContent] = (),
        raw_input: object = None,
    ) -> AbstractAsyncContextManager[ToolCall]:
        """Show the block as a tool call. It is completed at the end of the block, and failed if the block raises.

        Raises `ValueError` for an unknown kind.
        """
        ...

    async def plan(self, steps: Sequence[PlanStep | str]) -> None:
        """Show the agent's plan. It replaces the previous plan."""
        ...

    async def set_mode(self, mode: str) -> None:
        """Change the session's mode. Raises `ValueError` for a mode that the agent does not declare."""
        ...

    async def set_config(self, option: str, value: str | bool) -> None:
        """Change the value of one of the session's options. Raises `ValueError` for an option or a value that the agent does not
        declare."""
        ...

    async def set_title(self, title: str | None) -> None:
        """Name the session. `session/list` has the title, too. None takes it back: then the user's own words are the title."""
        ...

    async def usage(self, used: int, size: int, *, cost: float | None = None, currency: str = "USD") -> None:
        """Show how many tokens of the model's context are used, how many it has, and what the session has cost so far.

        Raises `ValueError` for a negative number.
        """
        ...

    def end_with(self, limit: Limit) -> None:
        """Say that the agent stops at a limit. A turn that ends with success then tells the editor so, in place of `end_turn`.

        Raises `ValueError` for an unknown limit.
        """
        ...


class Published(Protocol):
    """A task as a turn follows it. `generation` is the number of its last event."""

    def note(self, artifact: Artifact) -> None:
        """Append an artifact of messages that the caller was shown beside the task's events, so that they can be shown again.

        Does nothing unless the task is being worked on and there is memory for it.
        """
        ...

    @property
    def id(self) -> str: ...
    @property
    def generation(self) -> int: ...


class Turn(Protocol):
    """One prompt of a caller that has an editor, from its message to the answer."""

    @property
    def editor(self) -> Editor: ...

    def begin(self, task: Published) -> None:
        """Take the task that the message belongs to. Called once, before the next event is published."""
        ...


# -- what an agent declares for editors, beside its card: modes, options, commands, ways to sign in --------------------

Item = TypeVar("Item", bound=msgspec.Struct)

ConfigCategory: TypeAlias = Literal["mode", "model", "model_config", "thought_level"]


class Mode(msgspec.Struct, frozen=True):
    """A way in which the agent may work in a session, such as `ask` and `code`."""

    id: str
    name: str
    description: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One value of a `ConfigOption`."""

    value: str
    name: str
    description: str | None = None


class ConfigOption(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of a session that the user may change.

    With `choices` it is a list, and its first value is the default. Without, it is a switch, and `default` is its default.
    """

    id: str
    name: str
    choices: tuple[Choice, ...] = ()
    default: bool = False
    description: str | None = None
    category: ConfigCategory | None = None

    @property
    def initial(self) -> str | bool:
        """The value in a new session."""
        return self.choices[0].value if self.choices else self.default

    def accepts(self, value: str | bool) -> bool:
        """Tell whether the user may set this value."""
        if not self.choices:
            return isinstance(value, bool)
        return any(choice.value == value for choice in self.choices)


class Command(msgspec.Struct, frozen=True):
    """A command that the user may type as `/name`. The executor gets it as text. `hint` describes the text that may follow."""

    name: str
    description: str
    hint: str | None = None


AuthType: TypeAlias = Literal["agent", "terminal"]


class AuthMethod(msgspec.Struct, frozen=True):
    """A way to sign in. The editor shows it when the agent has answered that the user must sign in.

    With the type `agent` the agent's `authenticate` does it. With `terminal` the editor runs the agent's own command in a
    terminal, with `args` behind its arguments and with the variables `env`; editors that can't do so are not told of it.
    """

    id: str
    name: str
    description: str | None = None
    type: AuthType = "agent"
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class AcpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an agent for clients of the Agent Client Protocol: `Agent(…, acp=AcpOptions(modes=[…]))`.

    A new session has the first mode. `authenticate` is awaited with the id of the method that the user chose, and with an
    `Asker` if it takes two arguments: that opens the page of a sign-in. It raises if the user can't be signed in: a declared
    `OperationError`, or any other exception. `logout` is awaited when the user signs out; without it editors don't offer that.
    """

    modes: tuple[Mode, ...] = ()
    config_options: tuple[ConfigOption, ...] = ()
    commands: tuple[Command, ...] = ()
    auth_methods: tuple[AuthMethod, ...] = ()
    authenticate: Callable[[str], Awaitable[None]] | Callable[[str, Asker], Awaitable[None]] | None = None
    logout: Callable[[], Awaitable[None]] | None = None


def checked_acp_options(given: object) -> AcpOptions:
    """Check the options and return them with tuples in place of lists. Raises `TypeError` or `ValueError`."""
    if given is None:
        return AcpOptions()
    if not isinstance(given, AcpOptions):
        raise TypeError(f"acp must be AcpOptions(…), not {type(given).__name__}")
    options = AcpOptions(
        modes=_items("mode", given.modes, Mode),
        config_options=_items("config_option", given.config_options, ConfigOption),
        commands=_items("command", given.commands, Command, key="name"),
        auth_methods=_items("auth_method", given.auth_methods, AuthMethod),
        authenticate=given.authenticate,
        logout=given.logout,
    )
    if options.authenticate is not None and not callable(options.authenticate):
        raise TypeError("acp: authenticate must be an `async def` that takes the id of an auth method")
    if options.logout is not None and not callable(options.logout):
        raise TypeError("acp: logout must be an `async def` without parameters")
    return options


def _items(name: str, given: Iterable[Item], kind: type[Item], *, key: str = "id") -> tuple[Item, ...]:
    items = tuple(given)
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"acp: {name}s holds {kind.__name__} objects, not {type(item).__name__}")
    items = tuple(convert(to_builtins(item), kind) for item in items)
    check_unique(f"acp: {name.replace('_', ' ')}", (getattr(item, key) for item in items))
    return items


def check_unique(what: str, names: Iterable[str]) -> None:
    """Raise `ValueError` for a name that comes twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} is declared twice")
        seen.add(name)
