"""The `Editor` of one turn: what an executor asks of the client, and what it shows there. Only what the client advertised."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, assert_never, final

from msgspec.structs import replace

from ...a2a.types import Part, new_id
from ...agents.editor import (
    ALLOW_OR_REJECT,
    AcpOptions,
    CommandResult,
    Diff,
    Limit,
    McpTools,
    Permission,
    PermissionOption,
    PlanStep,
    RunningCommand,
    Terminal,
    ToolCall,
    ToolContent,
    ToolKind,
    ToolStatus,
    check_word,
)
from ...async_block import async_block
from ...awaited import refuses_bool
from ...daemon import plugins
from ...daemon.logs import log
from ...daemon.operations.context import ClientRefused
from ...errors.decoders import decoder_for
from ...lazy import anyio
from .choices import config_of
from .elicitation import Elicitation, ask_client, require
from .generated import structs
from .generated.structs import EnvVariable
from .updates import block_of

if TYPE_CHECKING:
    from ...daemon.operations.request import ClientInfo
    from .elicitation import Client
    from .sessions import ClientCapabilities, SessionRecord
    from .turn import PromptTurn

T = TypeVar("T")

CLEAN_UP_SECONDS: Final = 2.0
"""How long a terminal may take to be killed and given back."""


@final
class TurnEditor:
    """See `agents.editor.Editor`."""

    def __init__(
        self,
        record: SessionRecord,
        host: Client,
        capabilities: ClientCapabilities,
        options: AcpOptions,
        turn: PromptTurn,
    ) -> None:
        fs = capabilities.fs
        self.session_id: Final = record.id
        self.cwd: Final = record.cwd
        self.additional_directories: Final[Sequence[str]] = record.directories
        self.can_read: Final = fs is not None and bool(fs.read_text_file)
        self.can_write: Final = fs is not None and bool(fs.write_text_file)
        self.can_run: Final = bool(capabilities.terminal)
        user = Elicitation(host, capabilities, self._ask_user, session_id=record.id)
        self.can_ask: Final = user.can_ask
        self.can_open: Final = user.can_open
        self.ask: Final = user.ask
        self.page: Final = user.page
        self._record = record
        self._host = host
        self._turn = turn
        self._capabilities = capabilities
        self._options = options

    @property
    def client(self) -> ClientInfo:
        return self._host.client

    @property
    def mcp_servers(self) -> Sequence[Mapping[str, Any]]:
        servers: list[dict[str, Any]] = decoder_for(list[dict[str, Any]])(self._record.mcp_servers)
        return servers

    @property
    def mode(self) -> str | None:
        return self._record.mode

    @property
    def config(self) -> Mapping[str, str | bool]:
        return dict(self._record.config)

    # -- questions ---------------------------------------------------------------------------------------------

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
        if kind is not None:
            check_word("the kind of a tool call", kind, ToolKind)
        call_id = new_id() if tool is None else tool.id
        request = structs.RequestPermissionRequest(
            session_id=self.session_id,
            tool_call=structs.ToolCallUpdate(
                tool_call_id=call_id,
                title=title,
                kind=None if kind is None else structs.ToolKind(kind),
                content=content_of(content, self._record.absolute),
            ),
            options=[
                structs.PermissionOption(
                    option_id=each.id, name=each.name, kind=structs.PermissionOptionKind(each.kind)
                )
                for each in options
            ],
        )
        answer = await self._ask_user("session/request_permission", request, structs.RequestPermissionResponse, timeout)
        match answer.outcome:
            case structs.SelectedPermissionOutcome(option_id=chosen):
                return Permission(next((each for each in options if each.id == chosen), None))
            case _:
                return Permission(None)

    async def read_text_file(
        self, path: str, *, line: int | None = None, limit: int | None = None, timeout: float | None = None
    ) -> str:
        require("fs.readTextFile", has_it=self.can_read)
        request = structs.ReadTextFileRequest(
            session_id=self.session_id, path=self._record.absolute(path), line=line, limit=limit
        )
        read = await self._ask("fs/read_text_file", request, structs.ReadTextFileResponse, timeout)
        return read.content  # type: ignore[no-any-return]

    async def write_text_file(self, path: str, content: str, *, timeout: float | None = None) -> None:
        require("fs.writeTextFile", has_it=self.can_write)
        request = structs.WriteTextFileRequest(
            session_id=self.session_id, path=self._record.absolute(path), content=content
        )
        await self._ask("fs/write_text_file", request, structs.WriteTextFileResponse | None, timeout)

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
        async with self.start(
            command, *args, cwd=cwd, env=env, output_limit=output_limit, tool=tool, timeout=timeout
        ) as running:
            return await running.wait(timeout=timeout)

    @async_block
    async def start(
        self,
        command: str,
        *args: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        output_limit: int | None = None,
        tool: ToolCall | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[RunningCommand]:
        require("terminal", has_it=self.can_run)
        request = structs.CreateTerminalRequest(
            session_id=self.session_id,
            command=command,
            args=[*args],
            env=[EnvVariable(name=name, value=value) for name, value in (env or {}).items()] or None,
            cwd=self._record.absolute(cwd) if cwd else self.cwd,
            output_byte_limit=output_limit,
        )
        terminal = (await self._ask("terminal/create", request, structs.CreateTerminalResponse, timeout)).terminal_id
        async with self._released(terminal):
            if tool is not None:
                await tool.update(Terminal(terminal))
            yield ShownTerminal(self.session_id, terminal, self._ask)

    @asynccontextmanager
    async def _released(self, terminal: str) -> AsyncIterator[None]:
        """Give the terminal back at the end of the block, which kills a command that still runs."""
        try:
            yield
        finally:
            release = structs.ReleaseTerminalRequest(session_id=self.session_id, terminal_id=terminal)
            with anyio.move_on_after(CLEAN_UP_SECONDS, shield=True):
                try:
                    await self._host.ask("terminal/release", release, CLEAN_UP_SECONDS)
                except (ClientRefused, TimeoutError) as exc:
                    log.warning("terminal.not_released", error=type(exc).__name__)

    # -- what the editor shows ---------------------------------------------------------------------------------

    def tool(
        self,
        title: str,
        *,
        kind: ToolKind = "other",
        locations: Sequence[str] = (),
        content: Sequence[ToolContent] = (),
        raw_input: object = None,
    ) -> AbstractAsyncContextManager[ToolCall]:
        check_word("the kind of a tool call", kind, ToolKind)
        return self._shown(
            ShownTool(self._turn, new_id(), self._record.absolute),
            structs.ToolCall(
                tool_call_id="",
                title=title,
                kind=structs.ToolKind(kind),
                status=structs.ToolCallStatus.IN_PROGRESS,
                content=content_of(content, self._record.absolute),
                locations=[structs.ToolCallLocation(path=self._record.absolute(path)) for path in locations] or None,
                raw_input=raw_input,
            ),
        )

    @asynccontextmanager
    async def _shown(self, tool: ShownTool, first: structs.ToolCall) -> AsyncIterator[ToolCall]:
        await tool.begin(first)
        try:
            yield tool
        except BaseException:
            tool.end("failed")
            raise
        else:
            await tool.complete()
        finally:
            tool.over = True

    async def plan(self, steps: Sequence[PlanStep | str]) -> None:
        entries = [
            structs.PlanEntry(
                content=each.content,
                priority=structs.PlanEntryPriority(each.priority),
                status=structs.PlanEntryStatus(each.status),
            )
            for each in (PlanStep(step) if isinstance(step, str) else step for step in steps)
        ]
        await self._turn.caught_up()
        await self._turn.send(structs.Plan(entries=entries))

    async def set_mode(self, mode: str) -> None:
        if mode not in [each.id for each in self._options.modes]:
            raise ValueError(f"the agent declares no mode {mode!r}")
        await self._turn.caught_up()
        self._record.mode = mode
        await self._turn.send(structs.CurrentModeUpdate(current_mode_id=mode))

    async def set_config(self, option: str, value: str | bool) -> None:
        declared = next((each for each in self._options.config_options if each.id == option), None)
        if declared is None or not declared.accepts(value):
            raise ValueError(f"the agent declares no option {option!r} that may be {value!r}")
        await self._turn.caught_up()
        self._record.config[option] = value
        shown = config_of(self._options, self._record, self._capabilities)
        await self._turn.send(structs.ConfigOptionUpdate(config_options=shown or []))

    async def set_title(self, title: str | None) -> None:
        await self._turn.caught_up()
        self._record.title = title
        await self._turn.send(structs.SessionInfoUpdate(title=title))

    async def usage(self, used: int, size: int, *, cost: float | None = None, currency: str = "USD") -> None:
        if used < 0 or size < 0 or (cost is not None and not 0 <= cost < math.inf):
            raise ValueError("used, size and cost are numbers from 0 on")
        await self._turn.caught_up()
        spent = None if cost is None else structs.Cost(amount=cost, currency=currency)
        await self._turn.send(structs.UsageUpdate(used=used, size=size, cost=spent))

    def end_with(self, limit: Limit) -> None:
        check_word("the limit", limit, Limit)
        self._turn.limit = structs.StopReason(limit)

    # -- MCP servers -------------------------------------------------------------------------------------------

    @async_block
    async def mcp(self, name: str) -> AsyncGenerator[McpTools]:
        found = next((each for each in self.mcp_servers if each.get("name") == name), None)
        if found is None:
            raise LookupError(f"the editor has passed no MCP server {name!r}")
        async with plugins.load("tools", "mcp")(found, cwd=self.cwd) as tools:
            yield tools

    # -- steps -------------------------------------------------------------------------------------------------

    async def _ask_user(self, method: str, request: object, result: Any, timeout: float | None) -> Any:  # as below
        await self._turn.caught_up()
        async with self._turn.asking():
            return await ask_client(self._host, method, request, result, timeout)

    async def _ask(self, method: str, request: object, result: Any, timeout: float | None) -> Any:  # types of results
        await self._turn.caught_up()
        return await ask_client(self._host, method, request, result, timeout)


@final
class ShownTerminal:
    """One terminal of the client. See `agents.editor.RunningCommand`."""

    def __init__(self, session_id: str, terminal: str, ask: Callable[..., Awaitable[Any]]) -> None:
        self.id: Final = terminal
        self._session_id = session_id
        self._ask = ask

    async def output(self, *, timeout: float | None = None) -> CommandResult:
        read = structs.TerminalOutputRequest(session_id=self._session_id, terminal_id=self.id)
        shown = await self._ask("terminal/output", read, structs.TerminalOutputResponse, timeout)
        ended = shown.exit_status or structs.TerminalExitStatus()
        return CommandResult(shown.output, ended.exit_code, ended.signal, shown.truncated)

    async def wait(self, *, timeout: float | None = None) -> CommandResult:
        wait = structs.WaitForTerminalExitRequest(session_id=self._session_id, terminal_id=self.id)
        ended = await self._ask("terminal/wait_for_exit", wait, structs.WaitForTerminalExitResponse, timeout)
        shown = await self.output(timeout=timeout)
        return CommandResult(shown.output, ended.exit_code, ended.signal, shown.truncated)

    async def kill(self, *, timeout: float | None = None) -> None:
        kill = structs.KillTerminalRequest(session_id=self._session_id, terminal_id=self.id)
        await self._ask("terminal/kill", kill, structs.KillTerminalResponse | None, timeout)


# Tool calls as the client shows them.


def content_of(content: Iterable[ToolContent], absolute: Callable[[str], str]) -> list[structs.ToolCallContent] | None:
    """Convert the content of a tool call; None for nothing. `absolute` is that of the session."""
    return [_item(each, absolute) for each in content] or None


def _item(content: ToolContent, absolute: Callable[[str], str]) -> structs.ToolCallContent:
    match content:
        case str():
            return structs.Content(content=structs.TextContent(text=content))
        case Part():
            return structs.Content(content=block_of(content))
        case Diff():
            return structs.Diff(path=absolute(content.path), old_text=content.old_text, new_text=content.new_text)
        case Terminal():
            return structs.Terminal(terminal_id=content.id)
        case _:
            assert_never(content)


@final
class ShownTool:
    """One tool call. The client is told that it failed if the turn ends before it does."""

    def __init__(self, turn: PromptTurn, call_id: str, absolute: Callable[[str], str]) -> None:
        self._turn = turn
        self._absolute = absolute
        self.id = call_id
        self.over = False

    async def begin(self, first: structs.ToolCall) -> None:
        """Show it."""
        await self._turn.caught_up()
        self._turn.at_end(self.id, self._status("failed"))
        await self._turn.send(replace(first, tool_call_id=self.id))

    async def update(
        self,
        *content: ToolContent,
        title: str | None = None,
        status: ToolStatus | None = None,
        locations: Sequence[str] | None = None,
        raw_output: object = None,
    ) -> None:
        if status is not None:
            check_word("the status of a tool call", status, ToolStatus)
        if self.over:
            raise RuntimeError("the tool call has ended with its block: update it there")
        await self._turn.caught_up()
        if status in ("completed", "failed"):
            self._turn.at_end(self.id, None)
        await self._turn.send(
            structs.SessionUpdateToolCallUpdate(
                tool_call_id=self.id,
                title=title,
                status=None if status is None else structs.ToolCallStatus(status),
                content=content_of(content, self._absolute),
                locations=None
                if locations is None
                else [structs.ToolCallLocation(path=self._absolute(path)) for path in locations],
                raw_output=raw_output,
            )
        )

    async def complete(self) -> None:
        """The block is over. Where the executor has said how it ended, that stands."""
        if self._turn.awaits_end(self.id):
            await self._turn.caught_up()
            self.end("completed")

    def end(self, status: ToolStatus) -> None:
        """Tell at once how it ended, if that was not told."""
        if self._turn.awaits_end(self.id):
            self._turn.at_end(self.id, None)
            self._turn.send(self._status(status))

    def _status(self, status: ToolStatus) -> structs.SessionUpdateToolCallUpdate:
        return structs.SessionUpdateToolCallUpdate(tool_call_id=self.id, status=structs.ToolCallStatus(status))
