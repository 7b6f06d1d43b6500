"""The methods of ACP behind its handshake, on top of the agent's tasks.

A session is a context of A2A, a prompt is a message in it, and updates are the events of its task. Runs no executor itself.
Loads when the first of the methods is called.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from ...a2a.errors import EventsLost, InvalidStateTransition, TaskConflict, UnknownSkill
from ...a2a.task import check_json_depth, check_media_types
from ...a2a.types import (
    INTERRUPTED,
    TERMINAL,
    JsonObject,
    Message,
    Part,
    Role,
    SendRequest,
    Task,
    TaskQuery,
    TaskState,
    TaskStatus,
    new_id,
    now,
)
from ...agents.editor import AcpOptions, EditorUnavailableError
from ...agents.host import agent_runner_of
from ...daemon.operations.context import Context, name_task
from ...daemon.operations.service import Service
from ...daemon.operations.spec import OperationSpec
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import Cancelled, DomainFailure, Failure, InvalidParams, TaskNotFound
from ...errors.redaction import scrub_known
from .choices import TITLE, choices_in, config_of, modes_of, restore_choices, value_in
from .editor import TurnEditor
from .elicitation import Client, Elicitation, ask_client
from .generated import structs
from .sessions import (
    AuthenticationFailed,
    ClientCapabilities,
    OpenSession,
    SessionNotFound,
    SessionRecord,
    Sessions,
    TooManySessions,
    is_absolute,
)
from .turn import Foreground, PromptTurn
from .updates import SHOWN, Updates, parts_of

if TYPE_CHECKING:
    from ...agents.methods import AdmittedCall
    from ...agents.request_handler import Caller, RequestHandler
    from ...daemon.connection.session import ClientConnection


def commands_of(options: AcpOptions) -> list[structs.AvailableCommand]:
    """Return the commands that the user may type as `/name`."""
    return [
        structs.AvailableCommand(
            name=command.name,
            description=command.description,
            input=None if command.hint is None else structs.UnstructuredCommandInput(hint=command.hint),
        )
        for command in options.commands
    ]


# What is in the store of a session: its tasks, and the list of sessions. A session is a context of A2A.


DELETED: Final = "sessionDeleted"
"""The member of a task's metadata that says for what it stands."""

CWD: Final = "cwd"
DIRECTORIES: Final = "additionalDirectories"
"""The members of a message's metadata that hold the session's directories."""

PAGE_TASKS: Final = 50
"""Tasks that one page of `session/list` looks at."""

TITLE_CHARACTERS: Final = 80


async def tasks_of(handler: RequestHandler, caller: Caller, session_id: str) -> list[Task]:
    """The session's tasks without their artifacts, the last one first."""
    tasks: list[Task] = []
    token = ""
    while True:
        page = await handler.list(
            TaskQuery(scope=caller.scope, context_id=session_id, page_token=token, include_artifacts=False)
        )
        tasks += page.tasks
        token = page.next_page_token
        if not token:
            return tasks


def is_deleted(tasks: Sequence[Task]) -> bool:
    """Whether the last of a session's tasks is the mark that `delete_session` has left."""
    return bool(tasks) and DELETED in (tasks[0].metadata or {})


async def delete_session(handler: RequestHandler, caller: Caller, session_id: str) -> None:
    """Cancel the session's tasks that have not ended, and mark it by a last task without a message. The store forgets tasks that
    have ended, and so this one behind the others.

    Raises `FailureError(TaskNotCancelable)` where an executor refuses: then the session stays.
    """
    tasks = await tasks_of(handler, caller, session_id)
    if not tasks or is_deleted(tasks):
        return
    for task in tasks:
        if task.status.state not in TERMINAL:
            try:
                await handler.cancel(task.id, None, caller)
            except FailureError:
                if (await handler.get(task.id, caller)).status.state not in TERMINAL:
                    raise
    await handler.add_ended(
        Task(new_id(), session_id, TaskStatus(TaskState.CANCELED, timestamp=now()), metadata={DELETED: True}), caller
    )


def title_in(task: Task) -> str | None:
    """The name that the session had when the task was there, which has its artifacts; None for none."""
    shown = [part.data for artifact in task.artifacts if artifact.artifact_id == SHOWN for part in artifact.parts]
    for each in reversed(shown):
        if isinstance(each, dict) and each.get("sessionUpdate") == "session_info_update":
            title = each.get("title")
            break
    else:
        title = last_metadata([task]).get(TITLE)
    return title if isinstance(title, str) else None


def open_task(tasks: list[Task]) -> str | None:
    """The task with which the next prompt goes on."""
    return tasks[0].id if tasks and tasks[0].status.state in INTERRUPTED else None


def last_metadata(tasks: list[Task]) -> JsonObject:
    """The metadata of the last message that the session's user has sent."""
    said = [message for task in tasks[:1] for message in task.history if message.role is Role.USER]
    return (said[-1].metadata or {}) if said else {}


async def newest_task(handler: RequestHandler, caller: Caller, session_id: str) -> Task | None:
    """The session's last task with its artifacts: they have its name."""
    page = await handler.list(TaskQuery(scope=caller.scope, context_id=session_id, page_size=1))
    return page.tasks[0] if page.tasks else None


async def list_sessions(
    handler: RequestHandler, caller: Caller, cwd: str | None, cursor: str | None
) -> tuple[list[structs.SessionInfo], str | None]:
    """A page of the sessions, the last changed first, and the cursor of the next page.

    Raises `FailureError(InvalidParams)` for a cursor that is not valid.
    """
    query = TaskQuery(scope=caller.scope, page_size=PAGE_TASKS, page_token=cursor or "", include_artifacts=False)
    try:
        page = await handler.list(query)
    except FailureError as exc:
        if isinstance(exc.failure, InvalidParams):
            raise FailureError(InvalidParams("cursor", "cursor of a page before", "string")) from None
        raise
    found = [info async for info in _sessions(handler, caller, page.tasks) if cwd in (None, info.cwd)]
    return found, page.next_page_token or None


async def _sessions(
    handler: RequestHandler, caller: Caller, tasks: tuple[Task, ...]
) -> AsyncIterator[structs.SessionInfo]:
    for task in tasks:
        newest = await newest_task(handler, caller, task.context_id)
        said = [message for message in task.history if message.role is Role.USER]
        cwd = (said[0].metadata or {}).get(CWD) if said else None
        if isinstance(cwd, str) and newest is not None and newest.id == task.id:
            text = " ".join(" ".join(part.text for part in said[0].parts if part.text is not None).split())
            title = title_in(newest) or text[:TITLE_CHARACTERS] or None
            directories = (said[0].metadata or {}).get(DIRECTORIES)
            yield structs.SessionInfo(
                session_id=task.context_id,
                cwd=cwd,
                additional_directories=directories if isinstance(directories, list) else None,
                title=title,
                updated_at=task.status.timestamp,
            )


# Prompts and commands for a daemon without an `Agent`, whose operations are the skills: `/shop/price {"item": "tea"}`.


SKILL_PARAMS: Final = 'its params as JSON: {"name": "value"}'
"""The hint for the text after the name of an operation."""


def skill_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The part that calls a skill, for the text of a prompt: the operation's name, then its params as a JSON object.

    Raises `FailureError(InvalidParams)`.
    """
    text = "\n".join(part.text for part in parts if part.text is not None).strip()
    name, _, params = text.partition(" ")
    call: dict[str, Any] = {"skill": name.removeprefix("/")}
    if params.strip():
        try:
            call["input"] = msgspec.json.decode(params)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise FailureError(InvalidParams("prompt", f"/operation, then {SKILL_PARAMS}", "plain text")) from None
    return (Part(data=call),)


def with_typed_params(failure: Failure) -> Failure:
    """The failure of a prompt that calls a skill, with the params named as the user has typed them."""
    if isinstance(failure, InvalidParams) and failure.param.startswith(_INPUT):
        return replace(failure, param=failure.param.removeprefix(_INPUT).removeprefix(".") or "$")
    return failure


_INPUT: Final = "message.parts[0].data.input"
"""The place of the params in the message that `skill_parts` makes."""


def skill_commands(operations: Iterable[OperationSpec]) -> list[structs.AvailableCommand]:
    """Return the skills as commands that the user may type."""
    return [
        structs.AvailableCommand(
            name=spec.name,
            description=scrub_known(spec.description),
            input=structs.UnstructuredCommandInput(hint="JSON: {…}") if spec.input.names else None,
        )
        for spec in operations
    ]


MAX_PROMPTS: Final = 1024
"""Prompts that may run at the same time, of all clients; others wait."""

AGENT_ERRORS: Final = (UnknownSkill, InvalidStateTransition, TaskConflict, EventsLost)
"""The errors that the agent itself declares."""

PROMPT_RUNNING: Final[Failure] = DomainFailure(
    "PROMPT_RUNNING", "A prompt is running in this session", False, None, 409, -32600
)


class Methods(msgspec.Struct, frozen=True, eq=False):
    """The methods of one connection. `capabilities` are the client's, `client` is the way to it.

    `reopen`, `run_prompt` and others without an underscore are for the versions that tell it otherwise.
    """

    connection: ClientConnection
    sessions: Sessions
    options: AcpOptions
    input_modes: tuple[str, ...] | None
    capabilities: Callable[[], ClientCapabilities]
    client: Client
    make_updates: Callable[..., Updates] = Updates

    def operations(self) -> list[OperationSpec]:
        """Declare all of them."""
        service = Service("")
        self._add_authenticate(service)
        self._add_choices(service)
        self._add_sessions(service)
        self._add_prompts(service)
        return service.operations

    def _add_authenticate(self, service: Service) -> None:
        @service.mutation("authenticate", timeout=None, errors=[AuthenticationFailed])
        async def authenticate(ctx: Context, params: structs.AuthenticateRequest, /) -> structs.AuthenticateResponse:
            """Sign in with one of the agent's methods."""
            known = tuple(method.id for method in self.options.auth_methods)
            if params.method_id not in known:
                raise FailureError(InvalidParams("methodId", "one of", "string", known))
            sign_in: Callable[..., Awaitable[None]] | None = self.options.authenticate
            if sign_in is not None:
                asker = [self._asker(ctx)] if _takes_asker(sign_in) else []
                try:
                    await sign_in(params.method_id, *asker)
                except (OperationError, EditorUnavailableError):
                    raise AuthenticationFailed from None
            return structs.AuthenticateResponse()

        sign_out = self.options.logout
        if sign_out is None:
            return

        @service.mutation("logout", timeout=None)
        async def logout(params: structs.LogoutRequest, /) -> structs.LogoutResponse:
            """Sign out. What needs its user to be signed in refuses from now on, as the agent decides."""
            await sign_out()
            return structs.LogoutResponse()

    def _asker(self, ctx: Context) -> Elicitation:
        """What asks the user for this request. A client that gives it no usual id is not asked."""
        host, capabilities = self.client, self.capabilities()
        try:
            request_id: int | str | None = decoder_for(int | str)((ctx.request_id or "").encode())
        except DECODE_ERRORS:
            request_id, capabilities = None, ClientCapabilities()
        return Elicitation(host, capabilities, partial(ask_client, host), request_id=request_id)

    def _add_choices(self, service: Service) -> None:
        options, sessions = self.options, self.sessions

        @service.mutation("session/set_mode", inline=True, errors=[SessionNotFound])
        def set_mode(params: structs.SetSessionModeRequest, /) -> structs.SetSessionModeResponse:
            """Change the mode of a session."""
            record = sessions.get(params.session_id).record
            known = tuple(mode.id for mode in options.modes)
            if params.mode_id not in known:
                raise FailureError(InvalidParams("modeId", "one of", "string", known))
            record.mode = params.mode_id
            return structs.SetSessionModeResponse()

        @service.mutation("session/set_config_option", inline=True, errors=[SessionNotFound])
        def set_config_option(
            params: structs.SetSessionConfigOptionRequest, /
        ) -> structs.SetSessionConfigOptionResponse:
            """Change an option of a session; returns all of them."""
            record = sessions.get(params.session_id).record
            self.choose(record, params.config_id, params.value)
            shown = config_of(options, record, self.capabilities())
            return structs.SetSessionConfigOptionResponse(config_options=shown or [])

    def choose(self, record: SessionRecord, config_id: str, given: str | bool) -> None:
        """Change an option of a session. Raises `FailureError(InvalidParams)`."""
        option = next((each for each in self.options.config_options if each.id == config_id), None)
        if option is None:
            known = tuple(each.id for each in self.options.config_options)
            raise FailureError(InvalidParams("configId", "one of", "string", known))
        value = value_in(option, given)
        if not option.accepts(value):
            accepted = tuple(choice.value for choice in option.choices) or (True, False)
            raise FailureError(
                InvalidParams("value", "one of", "boolean" if isinstance(given, bool) else "string", accepted)
            )
        record.config[option.id] = value

    # -- sessions ----------------------------------------------------------------------------------------------

    def _add_sessions(self, service: Service) -> None:
        @service.mutation("session/new", errors=[TooManySessions])
        async def new(ctx: Context, params: structs.NewSessionRequest, /) -> structs.NewSessionResponse:
            """Open a session."""
            session = self.open_new(ctx, params)
            return structs.NewSessionResponse(session_id=session.record.id, **self._chosen(session))

        @service.mutation("session/load", timeout=None, errors=[SessionNotFound, TooManySessions, *AGENT_ERRORS])
        async def load(ctx: Context, params: structs.LoadSessionRequest, /) -> structs.LoadSessionResponse:
            """Open a session of before, and tell all that was said in it."""
            session = await self.reopen(ctx, params, replay=True)
            return structs.LoadSessionResponse(**self._chosen(session))

        @service.mutation("session/resume", timeout=None, errors=[SessionNotFound, TooManySessions])
        async def resume(ctx: Context, params: structs.ResumeSessionRequest, /) -> structs.ResumeSessionResponse:
            """Open a session of before."""
            session = await self.reopen(ctx, params, replay=False)
            return structs.ResumeSessionResponse(**self._chosen(session))

        @service.query("session/list")
        async def list_(ctx: Context, params: structs.ListSessionsRequest, /) -> structs.ListSessionsResponse:
            """List the sessions, the last changed first."""
            async with self._call(ctx, params) as call:
                sessions, cursor = await list_sessions(call.handler, call.caller, params.cwd, params.cursor)
            return structs.ListSessionsResponse(sessions=sessions, next_cursor=cursor)

        @service.mutation("session/close", inline=True, errors=[SessionNotFound])
        def close(params: structs.CloseSessionRequest, /) -> structs.CloseSessionResponse:
            """Close a session, and cancel what runs in it."""
            self.sessions.close(params.session_id)
            return structs.CloseSessionResponse()

        @service.mutation("session/delete", timeout=None, errors=AGENT_ERRORS)
        async def delete(ctx: Context, params: structs.DeleteSessionRequest, /) -> structs.DeleteSessionResponse:
            """Take a session out of the list, and cancel what runs or waits in it. One that is not there is deleted already."""
            async with self._call(ctx, params) as call:
                await delete_session(call.handler, call.caller, params.session_id)
            if self.sessions.find(params.session_id) is not None:
                self.sessions.close(params.session_id)
            return structs.DeleteSessionResponse()

    def _chosen(self, session: OpenSession) -> dict[str, Any]:  # Any: members of a struct
        options, record = self.options, session.record
        return {"modes": modes_of(options, record), "config_options": config_of(options, record, self.capabilities())}

    def open_new(self, ctx: Context, params: structs.NewSessionRequest) -> OpenSession:
        """Open a session. Raises `TooManySessions` and `FailureError(InvalidParams)`."""
        session = self._open(new_id(), params)
        self._announce_commands(ctx, session)
        agent_runner_of(self.connection.host).spawn(self._load_service)
        return session

    def _open(
        self,
        session_id: str,
        params: structs.NewSessionRequest | structs.LoadSessionRequest | structs.ResumeSessionRequest,
    ) -> OpenSession:
        for param, paths in (("cwd", [params.cwd]), ("additionalDirectories", params.additional_directories or ())):
            if not all(map(is_absolute, paths)):
                raise FailureError(InvalidParams(param, "an absolute path", "string"))
        return self.sessions.open(session_id, params.cwd, params.additional_directories, params.mcp_servers)

    async def reopen(
        self, ctx: Context, params: structs.LoadSessionRequest | structs.ResumeSessionRequest, *, replay: bool
    ) -> OpenSession:
        """Open a session of before; `replay` tells what was said in it. Raises `SessionNotFound`, and as `open_new` does."""
        async with self._call(ctx, params) as call:
            handler, caller = call.handler, call.caller
            tasks = await tasks_of(handler, caller, params.session_id)
            if is_deleted(tasks) or (not tasks and self.sessions.find(params.session_id) is None):
                raise SessionNotFound
            known = self.sessions.find(params.session_id)
            session = self._open(params.session_id, params)
            if known is not None:
                session.record.mode, session.record.config = known.record.mode, known.record.config
                session.record.title = known.record.title
            else:
                restore_choices(self.options, session.record, last_metadata(tasks))
                newest = await newest_task(handler, caller, params.session_id)
                session.record.title = None if newest is None else title_in(newest)
            session.record.task_id = open_task(tasks)
            if replay:
                await self._replay(handler, caller, [task.id for task in reversed(tasks)], params.session_id)
        self._announce_commands(ctx, session)
        return session

    async def _replay(self, handler: RequestHandler, caller: Caller, tasks: list[str], session_id: str) -> None:
        updates = self.make_updates(replay=True)
        for task_id in tasks:
            updates.task_id = task_id
            async for item in handler.history(task_id, caller):
                for update in updates.of_task(item) if isinstance(item, Task) else updates.of(item):
                    await self.client.notify(
                        "session/update", structs.SessionNotification(session_id=session_id, update=update)
                    )

    def _announce_commands(self, ctx: Context, session: OpenSession) -> None:
        """Tell the commands after the answer, which leaves before anything else of the loop runs."""
        if self.input_modes is None:
            commands = skill_commands(self.connection.host.offered(ctx))
        else:
            commands = commands_of(self.options)
        if not commands:
            return
        update = structs.AvailableCommandsUpdate(available_commands=commands)
        host, session_id = self.client, session.record.id

        async def tell() -> None:
            await host.notify("session/update", structs.SessionNotification(session_id=session_id, update=update))

        agent_runner_of(self.connection.host).spawn(tell)

    # -- prompts -----------------------------------------------------------------------------------------------

    def _add_prompts(self, service: Service) -> None:
        @service.mutation("session/prompt", timeout=None, errors=[SessionNotFound, *AGENT_ERRORS])
        async def prompt(ctx: Context, params: structs.PromptRequest, /) -> structs.PromptResponse:
            """Send a message to the agent. Everything that comes of it is told before the answer."""
            turn = self.begin_prompt(ctx, params)
            if turn is None:
                return structs.PromptResponse(stop_reason=structs.StopReason.CANCELLED)
            return structs.PromptResponse(stop_reason=await self.run_prompt(ctx, params, turn))

        service.operations[-1] = replace(
            service.operations[-1], only_waits=True, concurrency_group=True, concurrency_limit=MAX_PROMPTS
        )

        @service.notification("session/cancel")
        async def cancel(params: structs.CancelNotification, /) -> None:
            """Cancel what runs in a session. The dialect has done so when it was read."""

    def begin_prompt(
        self, ctx: Context, params: structs.PromptRequest, foreground: Foreground | None = None
    ) -> PromptTurn | None:
        """Begin the turn of a prompt, for `run_prompt`; None where the prompt was cancelled before.

        Raises `SessionNotFound`, and `FailureError` where another prompt runs.
        """
        session = self.sessions.get(params.session_id)
        if not session.begin_prompt(ctx.request_id):
            return None
        if session.cancel_turn is not None:
            raise FailureError(PROMPT_RUNNING)
        turn = PromptTurn(
            session,
            self.client,
            agent_runner_of(self.connection.host).spawn,
            partial(TurnEditor, session.record, self.client, self.capabilities(), self.options),
            updates=self.make_updates(),
            foreground=foreground,
        )
        session.cancel_turn = turn.cancel
        return turn

    async def run_prompt(self, ctx: Context, params: structs.PromptRequest, turn: PromptTurn) -> structs.StopReason:
        """Send the message of a prompt to the agent, and return why the turn stopped.

        Raises `FailureError` and `OperationError`. Cancelled for the request's sake, it has the task cancelled.
        """
        session, foreground = turn.session, turn.foreground
        try:
            async with self._call(ctx, params, session.record.task_id) as call:
                session.record.task_id = await _waiting(call.handler, call.caller, session.record.task_id)
                request = self._request(session, params)
                if foreground is not None:
                    foreground.take(request.message.message_id, params.prompt)
                call.result = reason = await turn.run(call.handler, call.caller, request)
                return reason
        except BaseException as exc:
            if (foreground is None or not foreground.answered) and isinstance(ctx.ended_by, Cancelled):
                turn.drop()
            name_task(ctx, turn.task_id, diagnosed=turn.is_logged)
            if self.input_modes is None and isinstance(exc, FailureError):
                raise FailureError(with_typed_params(exc.failure)) from None
            raise
        finally:
            self.end_prompt(turn)

    @staticmethod
    def end_prompt(turn: PromptTurn) -> None:
        """Let the session take the next prompt. A second call does nothing."""
        session = turn.session
        if session.cancel_turn == turn.cancel:
            session.cancel_turn = None
            if turn.began:
                session.record.task_id = turn.open_task

    def _request(self, session: OpenSession, params: structs.PromptRequest) -> SendRequest:
        record, parts = session.record, parts_of(params.prompt)
        message = Message(
            new_id(),
            Role.USER,
            parts if self.input_modes is not None else skill_parts(parts),
            context_id=record.id,
            task_id=record.task_id,
            metadata={
                CWD: record.cwd,
                **({DIRECTORIES: [*record.directories]} if record.directories else {}),
                **choices_in(record),
            },
        )
        check_json_depth(message, params.meta)
        if self.input_modes is not None:
            check_media_types(message, self.input_modes)
        return SendRequest(message, metadata=params.meta)

    # -- the store ---------------------------------------------------------------------------------------------

    def _call(self, ctx: Context, params: object, task_id: str | None = None) -> AdmittedCall:
        from ...a2a.v10 import V10  # late: the agent's service loads with the first call
        from ...agents.methods import AdmittedCall

        return AdmittedCall(agent_runner_of(self.connection.host).pipeline, ctx, V10, params, task_id)

    async def _load_service(self) -> None:
        """Load the agent's service after the answer, while the user writes: it would hold up the first prompt."""
        with suppress(Exception):  # what goes wrong, the first prompt is told
            agent_runner_of(self.connection.host).pipeline  # noqa: B018 - makes it


def _takes_asker(sign_in: Callable[..., object]) -> bool:
    """Whether the agent's function takes more than the id of a method."""
    try:
        inspect.signature(sign_in).bind("id", None)
    except (TypeError, ValueError):
        return False
    return True


async def _waiting(handler: RequestHandler, caller: Caller, task_id: str | None) -> str | None:
    """The task, if it still waits for its caller. A message to one that works might never get its turn."""
    if task_id is None:
        return None
    try:
        task = await handler.get(task_id, caller)
    except FailureError as exc:
        if isinstance(exc.failure, TaskNotFound):
            return None
        raise
    return task_id if task.status.state in INTERRUPTED else None
