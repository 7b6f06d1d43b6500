"""Version 2 of ACP, a draft: the messages of version 1 as it writes them, and its methods that are not those of version 1.

The executor, its editor and the store are the same in both. Loads when the first method of a client of version 2 is called.
"""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from ...a2a.types import Part
from ...agents.editor import AcpOptions
from ...agents.host import agent_runner_of
from ...agents.runner import declared_failure
from ...daemon.logs import log
from ...daemon.operations.context import Context
from ...daemon.operations.service import Service
from ...daemon.operations.spec import OperationSpec
from ...errors.decoders import convert
from ...errors.exceptions import FailureError
from ...errors.failures import Cancelled, Failure, Internal, InvalidParams, Unavailable
from ...lazy import anyio
from .choices import config_of, modes_of
from .generated import draft, structs
from .methods import AGENT_ERRORS, MAX_PROMPTS, Methods
from .sessions import ClientCapabilities, SessionNotFound, SessionRecord, Sessions, TooManySessions
from .updates import Chunk, Updates, block_of

if TYPE_CHECKING:
    from ...daemon.operations.request import ClientInfo, Sending
    from .elicitation import Client

# Messages to the client.


_MESSAGES: Final[dict[Chunk, tuple[type, type]]] = {
    structs.UserMessageChunk: (draft.UserMessage, draft.UserMessageChunk),
    structs.AgentMessageChunk: (draft.AgentMessage, draft.AgentMessageChunk),
    structs.AgentThoughtChunk: (draft.AgentThought, draft.AgentThoughtChunk),
}
"""As what a whole message is told, and what is appended to one."""

PLAN_ID: Final = "plan"
"""An agent has one plan, and each replaces the one before."""


def say(kind: Chunk, message_id: str, parts: Sequence[Part], append: bool) -> Iterable[Any]:
    """Tell a message as a whole, or what is appended to it. See `updates.Say`."""
    whole, chunk = _MESSAGES[kind]
    if append:
        return (chunk(message_id=message_id, content=block_of(part)) for part in parts)
    return (whole(message_id=message_id, content=[block_of(part) for part in parts]),)


@final
class DraftClient:
    """The way to a client of version 2, for messages of version 1. See `turn.Client`."""

    def __init__(self, backend: Client, choices: Choices, sessions: Sessions) -> None:
        self._backend = backend
        self._choices = choices
        self._sessions = sessions
        self._shown: set[tuple[str, str]] = set()  # sessions, and tool calls of their turns that have not ended

    @property
    def client(self) -> ClientInfo:
        return self._backend.client

    def notify(self, method: str, params: object) -> Sending:
        return self._backend.notify(method, self._translated(params))

    async def notify_all(self, method: str, params: Iterable[object]) -> None:
        await self._backend.notify_all(method, map(self._translated, params))

    async def ask(self, method: str, params: object, timeout: float) -> bytes:
        return await self._backend.ask(method, self._translated(params), timeout)

    def tell(self, session_id: str, update: draft.SessionUpdate) -> Sending:
        """Send an update of version 2."""
        if (
            isinstance(update, draft.StateUpdate) and update.state == "idle"
        ):  # calls of a turn that was cancelled never end
            self._shown = {each for each in self._shown if each[0] != session_id}
        return self.notify("session/update", draft.UpdateSessionNotification(session_id=session_id, update=update))

    def _translated(self, params: object) -> object:
        match params:
            case structs.SessionNotification(session_id=session_id, update=update):
                return draft.UpdateSessionNotification(session_id=session_id, update=self._update(session_id, update))
            case structs.RequestPermissionRequest():
                return self._permission(params)
            case _:  # the same in both versions
                return params

    def _update(self, session_id: str, update: Any) -> Any:  # updates of either version
        match update:
            case structs.ToolCall() | structs.SessionUpdateToolCallUpdate():
                ended = update.status in (structs.ToolCallStatus.COMPLETED, structs.ToolCallStatus.FAILED)
                if ended:
                    self._shown.discard((session_id, update.tool_call_id))
                elif isinstance(update, structs.ToolCall) or update.status is not None:
                    self._shown.add((session_id, update.tool_call_id))
                return _tool_call(update, draft.SessionUpdateToolCallUpdate)
            case structs.Plan():
                entries = convert(to_builtins(update.entries), list[draft.PlanEntry])
                return draft.PlanUpdate(plan=draft.PlanItems(plan_id=PLAN_ID, entries=entries))
            case structs.AvailableCommandsUpdate():
                commands = [
                    draft.AvailableCommand(
                        name=each.name,
                        description=each.description,
                        input=None if each.input is None else draft.TextCommandInput(hint=each.input.hint),
                    )
                    for each in update.available_commands
                ]
                return draft.AvailableCommandsUpdate(available_commands=commands)
            case structs.CurrentModeUpdate() | structs.ConfigOptionUpdate():
                session = self._sessions.find(session_id)
                shown = [] if session is None else self._choices.of(session.record)
                return draft.ConfigOptionUpdate(config_options=shown)
            case _:  # the same in both versions, or of this one
                return update

    def _permission(self, request: structs.RequestPermissionRequest) -> draft.RequestPermissionRequest:
        """The title is that of the question; a tool call that is shown already keeps its own."""
        call = request.tool_call
        subject: draft.RequestPermissionSubject | None = None
        if (request.session_id, call.tool_call_id) in self._shown:
            shown = _tool_call(replace(call, title=None), draft.ToolCallUpdate)
            subject = draft.ToolCallPermissionSubject(tool_call=shown)
        elif call.kind is not None or call.content:
            subject = draft.ToolCallPermissionSubject(tool_call=_tool_call(call, draft.ToolCallUpdate))
        return draft.RequestPermissionRequest(
            session_id=request.session_id, title=call.title or "", subject=subject, options=request.options
        )


def _tool_call(call: Any, kind: Any) -> Any:  # of either type that a tool call has in either version
    return kind(
        tool_call_id=call.tool_call_id,
        title=call.title,
        kind=call.kind,
        status=None if call.status is None else draft.ToolCallStatus(call.status),
        content=None if call.content is None else [_content(each) for each in call.content],
        locations=call.locations,
        raw_input=call.raw_input,
        raw_output=call.raw_output,
        meta=call.meta,
    )


def _content(item: structs.ToolCallContent) -> Any:  # all but diffs are written the same in both versions
    return _diff(item) if isinstance(item, structs.Diff) else item


# Diffs as patches.


MAX_COMPARED_LINES: Final = 2_000
"""Lines of a file that are compared, since that may take the square of their number. Of longer ones a patch replaces all."""


def _diff(diff: structs.Diff) -> draft.Diff:
    new = diff.old_text is None
    change = draft.DiffChange(operation="add" if new else "modify", path=diff.path, file_type=draft.DiffFileType.TEXT)
    text = "".join(_patch(diff.path, diff.old_text, diff.new_text))
    patch = draft.DiffPatch(format=draft.DiffPatchFormat.GIT_PATCH, text=text) if text else None
    return draft.Diff(changes=[change], patch=patch)


def _patch(path: str, old_text: str | None, new_text: str) -> Iterator[str]:
    """The change of a file in Git's format; nothing for none, and for a path that Git would write otherwise."""
    if old_text == new_text or any(each < " " or each == '"' for each in path):
        return
    old, new = _lines(old_text or ""), _lines(new_text)
    yield f"diff --git {path} {path}\n"
    if old_text is None:
        yield "new file mode 100644\n"
    if not (old or new):
        return
    yield f"--- {'/dev/null' if old_text is None else path}\n+++ {path}\n"
    if len(old) + len(new) > MAX_COMPARED_LINES:
        yield f"@@ -{_range(old)} +{_range(new)} @@\n"
        changed = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    else:
        changed = [*difflib.unified_diff(old, new)][2:]
    for line in changed:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """The lines with their ends, which are line feeds alone."""
    *lines, last = text.split("\n")
    return [*(f"{line}\n" for line in lines), *([last] if last else [])]


def _range(lines: Sequence[str]) -> str:
    return f"1,{len(lines)}" if lines else "0,0"


# Options, the mode among them.


@final
class Choices:
    """The options of a session in version 2, which has no modes beside them."""

    def __init__(self, options: AcpOptions, capabilities: Callable[[], ClientCapabilities]) -> None:
        self._options = options
        self._capabilities = capabilities
        taken = any(option.id == MODE for option in options.config_options)
        self.mode_id: Final = f"_{MODE}" if taken else MODE

    def of(self, record: SessionRecord) -> list[draft.SessionConfigOption]:
        """All of them, with the session's values."""
        return [*self._modes(record), *map(_option, config_of(self._options, record, self._capabilities()) or ())]

    def _modes(self, record: SessionRecord) -> Iterator[draft.SessionConfigOption]:
        if (modes := modes_of(self._options, record)) is not None:
            yield draft.SessionConfigOption(
                config_id=self.mode_id,
                name="Mode",
                category=structs.SessionConfigOptionCategory.MODE,
                type="select",
                current_value=modes.current_mode_id,
                options=[
                    structs.SessionConfigSelectOption(value=each.id, name=each.name, description=each.description)
                    for each in modes.available_modes
                ],
            )

    def choose_mode(self, record: SessionRecord, value: object) -> None:
        """Change the mode. Raises `FailureError(InvalidParams)`."""
        known = tuple(mode.id for mode in self._options.modes)
        if value not in known:
            raise FailureError(InvalidParams("value", "one of", "another value", known))
        record.mode = str(value)


MODE: Final = "mode"
"""The id of the option that is the mode, unless the agent has an option of this id."""


def _option(option: structs.SessionConfigOption) -> draft.SessionConfigOption:
    return draft.SessionConfigOption(
        config_id=option.id,
        **{name: getattr(option, name) for name in option.__struct_fields__ if name != "id"},
    )


# Methods.


SAME: Final = ("session/list", "session/close", "session/delete", "session/cancel")
RENAMED: Final = {"auth/login": "authenticate", "auth/logout": "logout"}
"""The methods that are those of version 1."""


def operations(methods: Methods) -> list[OperationSpec]:
    """Declare the methods of version 2, on those of version 1."""
    choices = Choices(methods.options, methods.capabilities)
    client = DraftClient(methods.client, choices, methods.sessions)
    methods = replace(methods, client=client, make_updates=partial(Updates, say=say))
    stable = {spec.name: spec for spec in methods.operations()}
    service = Service("")
    _add_sessions(service, methods, client, choices)
    _add_prompts(service, methods, client)
    renamed = [replace(stable[old], name=name) for name, old in RENAMED.items() if old in stable]
    return [*service.operations, *renamed, *(stable[name] for name in SAME)]


def _add_sessions(service: Service, methods: Methods, client: DraftClient, choices: Choices) -> None:
    @service.mutation("session/new", errors=[TooManySessions])
    async def new(ctx: Context, params: draft.NewSessionRequest, /) -> draft.NewSessionResponse:
        """Open a session."""
        given = structs.NewSessionRequest(
            cwd=params.cwd,
            additional_directories=params.additional_directories,
            mcp_servers=_servers(params.mcp_servers),
            meta=params.meta,
        )
        record = methods.open_new(ctx, given).record
        return draft.NewSessionResponse(session_id=record.id, config_options=choices.of(record))

    @service.mutation("session/resume", timeout=None, errors=[SessionNotFound, TooManySessions, *AGENT_ERRORS])
    async def resume(ctx: Context, params: draft.ResumeSessionRequest, /) -> draft.ResumeSessionResponse:
        """Open a session of before, and tell all that was said in it if the client wants to have it."""
        given = structs.ResumeSessionRequest(
            session_id=params.session_id,
            cwd=params.cwd,
            additional_directories=params.additional_directories,
            mcp_servers=_servers(params.mcp_servers),
            meta=params.meta,
        )
        session = await methods.reopen(ctx, given, replay=params.replay_from is not None)
        await client.tell(params.session_id, draft.StateUpdate(state="idle"))
        return draft.ResumeSessionResponse(config_options=choices.of(session.record))

    @service.mutation("session/set_config_option", inline=True, errors=[SessionNotFound])
    def set_config_option(params: draft.SetSessionConfigOptionRequest, /) -> draft.SetSessionConfigOptionResponse:
        """Change an option of a session, or its mode; returns all options."""
        record = methods.sessions.get(params.session_id).record
        if params.type not in VALUE_TYPES:
            raise FailureError(InvalidParams("type", "one of", "another value", VALUE_TYPES))
        if isinstance(params.value, bool) is not (params.type == "boolean") or not isinstance(params.value, str | bool):
            raise FailureError(
                InvalidParams("value", "boolean" if params.type == "boolean" else "string", "another type")
            )
        if params.config_id == choices.mode_id and methods.options.modes:
            choices.choose_mode(record, params.value)
        else:
            methods.choose(record, params.config_id, params.value)
        return draft.SetSessionConfigOptionResponse(config_options=choices.of(record))


VALUE_TYPES: Final = ("id", "boolean")


def _servers(servers: Sequence[draft.McpServer] | None) -> list[structs.McpServer]:
    """MCP servers as executors know them, from version 1."""
    found: list[structs.McpServer] = []
    for each in servers or ():
        match each:
            case draft.McpServerStdio():
                server = structs.McpServerStdio(
                    name=each.name, command=each.command, args=each.args or [], env=each.env or [], meta=each.meta
                )
                found.append(server)
            case draft.McpServerHttp():
                found.append(
                    structs.McpServerHttp(name=each.name, url=each.url, headers=each.headers or [], meta=each.meta)
                )
    return found


def _add_prompts(service: Service, methods: Methods, client: DraftClient) -> None:
    agents = agent_runner_of(methods.connection.host)

    @service.mutation("session/prompt", timeout=None, errors=[SessionNotFound, *AGENT_ERRORS])
    async def prompt(ctx: Context, params: structs.PromptRequest, /) -> Accepted:
        """Send a message to the agent. Answered as soon as it is stored; all that comes of it is told afterwards."""

        state = TurnState(partial(client.tell, params.session_id))
        turn = methods.begin_prompt(ctx, params, state)
        if turn is None:
            if methods.sessions.get(params.session_id).cancel_turn is None:
                agents.spawn(state.tell_cancelled)
            raise FailureError(Cancelled())

        async def work() -> None:
            with state.scope:
                try:
                    reason = await methods.run_prompt(ctx, params, turn)
                except Exception as exc:  # noqa: BLE001 - the client is told
                    await state.fail(exc, _error_of(methods, exc))
                except BaseException:
                    state.cut(_error(methods, Unavailable()))
                    raise
                else:
                    await state.end(reason)

        agents.spawn_foreground(work)
        try:
            message_id = await state.stored(lambda: ctx.cancelled)
        except BaseException:
            methods.end_prompt(turn)  # the work may take a step more, and the next prompt may be here
            raise
        return Accepted(message_id=message_id)

    service.operations[-1] = replace(
        service.operations[-1], only_waits=True, concurrency_group=True, concurrency_limit=MAX_PROMPTS
    )


def _error_of(methods: Methods, exc: Exception) -> dict[str, Any]:
    return _error(methods, declared_failure(exc) or Internal())


def _error(methods: Methods, failure: Failure) -> dict[str, Any]:
    """The error with which version 1 would answer the prompt."""
    answer = methods.connection.session.dialect.encode_failure(b"null", failure, "session/prompt")
    error: dict[str, Any] = msgspec.json.decode(answer)["error"]
    return error


class Accepted(draft.PromptResponse, frozen=True, kw_only=True):
    """The answer to a prompt. Later states of the draft have the id of its message, without which the clients of SDKs fail."""

    message_id: str


ERROR: Final = "_error"
"""The reason why a turn stopped that has failed: version 2 has none. Names with `_` are those of an implementation."""
ERROR_META: Final = "discreet/error"
"""The member of the `_meta` of that update which has the error."""


@final
class TurnState:
    """The state of one turn, as the client is told it. See `turn.Foreground`."""

    def __init__(self, tell: Callable[[Any], Sending]) -> None:
        self.scope: Final = anyio.CancelScope()
        """That of the turn's work."""
        self.answered = False
        self._tell = tell
        self._message = draft.UserMessage(message_id="")
        self._decided = anyio.Event()  # whether the prompt is accepted
        self._refusal: Exception | None = None
        self._replied = anyio.Event()
        self._opening = False
        self._opened = anyio.Event()
        self._questions = 0
        self._over = False

    # -- the request -------------------------------------------------------------------------------------------

    async def stored(self, is_cancelled: Callable[[], bool]) -> str:
        """Wait until the message is stored, so that its request may be answered; returns its id. Raises why it is refused."""
        try:
            await self._decided.wait()
            if is_cancelled():  # at the same moment: the client gets no result
                raise FailureError(Cancelled())
            if self._refusal is not None:
                raise self._refusal
            self.answered = True
            return self._message.message_id
        except BaseException:  # or cancelled
            self.scope.cancel()
            raise
        finally:
            self._replied.set()  # who waits for it goes on when the answer has left

    # -- the turn ----------------------------------------------------------------------------------------------

    def take(self, message_id: str, prompt: Sequence[structs.ContentBlock]) -> None:
        content: list[Any] = [*prompt]  # written the same in both versions
        self._message = draft.UserMessage(message_id=message_id, content=content)

    def accept(self) -> None:
        self._decided.set()

    async def opened(self) -> None:
        await self._replied.wait()
        if self._opening or not self.answered:
            if self.answered:
                await self._opened.wait()
            return
        self._opening = True
        try:
            told = self._tell(self._message), self._tell(draft.StateUpdate(state="running"))
            for each in told:  # both are on their way, also where the wait is cancelled
                await each
        finally:
            self._opened.set()

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        await self.opened()
        self._questions += 1
        try:
            if self._questions == 1 and not self._over:
                await self._tell(draft.StateUpdate(state="requires_action"))
            yield
        finally:
            self._questions -= 1
            if not (self._questions or self._over):
                await self._tell(draft.StateUpdate(state="running"))

    # -- its end -----------------------------------------------------------------------------------------------

    async def end(self, reason: str, error: dict[str, Any] | None = None) -> None:
        """Tell the client why the turn has stopped."""
        self.accept()  # an agent may reply without a task
        await self.opened()
        self._over = True
        if self.answered:
            await self._tell_idle(reason, error)

    async def fail(self, exc: Exception, error: dict[str, Any]) -> None:
        """Refuse the prompt, or tell the client of the failure once it is accepted."""
        if self._decided.is_set():
            log.info("prompt.failed", code=error["code"])
            await self.end(ERROR, error)
        else:
            self._over = True
            self._refusal = exc
            self._decided.set()

    def cut(self, error: dict[str, Any]) -> None:
        """Tell the client that the daemon ends. Waits for nothing."""
        self._over = True
        self._replied.set()
        if self.answered:
            self._tell_idle(ERROR, error)

    async def tell_cancelled(self) -> None:
        """Tell the client that a turn which has not begun is cancelled."""
        await self._tell_idle(structs.StopReason.CANCELLED)

    def _tell_idle(self, reason: str, error: dict[str, Any] | None = None) -> Sending:
        meta = None if error is None else {ERROR_META: error}
        return self._tell(draft.StateUpdate(state="idle", stop_reason=structs.StopReason(reason), meta=meta))
