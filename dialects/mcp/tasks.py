"""Runs tools as tasks (the extension `io.modelcontextprotocol/tasks`). A task is one of the agent's store: created before the
call is answered, found by every daemon on the store, and the work of whichever runs it.

Sections are those of the extension's specification.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final, TypeAlias, final

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from ...a2a.errors import POLL_SECONDS, EventsLost, TaskConflict
from ...a2a.task import MAX_JSON_DEPTH, is_within_max_depth
from ...a2a.types import (
    TERMINAL,
    Message,
    Part,
    Role,
    SendConfiguration,
    SendRequest,
    Task,
    TaskState,
    new_id,
    now,
)
from ...agents.host import agent_runner_of
from ...agents.request_handler import OPERATION, Caller, RequestHandler, operation_scope
from ...agents.skills import SkillData
from ...agents.task_backend import TaskClient, task_client_of
from ...agents.task_inputs import inputs_of
from ...daemon.operations.context import Context
from ...daemon.operations.service import Service
from ...daemon.operations.spec import OperationSpec
from ...errors.codes import INTERNAL_ERROR, row_of
from ...errors.decoders import decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import (
    Cancelled,
    Internal,
    InvalidParams,
    MethodNotFound,
    TaskNotCancelable,
    TaskNotFound,
    Unavailable,
)
from ...errors.wire import ErrorObject, error_object
from ...lazy import anyio
from .dialect import Outcome
from .questions import methods_taken
from .revision import NEWEST_LEGACY, TASKS, Meta, Params, ProtocolRevision, missing_capability, modern_members, unknown
from .state import TASK, McpState
from .tool_results import ToolResult
from .tools import tool_name

POLL_MS: Final = 1000 * POLL_SECONDS
"""How often a client is told to ask."""

Status: TypeAlias = str

_STATUSES: Final[dict[TaskState, Status]] = {
    TaskState.SUBMITTED: "working",
    TaskState.WORKING: "working",
    TaskState.COMPLETED: "completed",
    TaskState.CANCELED: "cancelled",
}
"""The status of each state of the agent's tasks; `failed` for any other (section Task Status)."""

_ENDED: Final = {"completed": "result", "failed": "error"}
"""The member that tells what became of a task, by its status."""

_OF_STATUS: Final = frozenset({*_ENDED.values(), "inputRequests"})
"""The members that only some of a task's statuses have."""

_NOT_OF_TOOLS: Final = frozenset(row_of(each).protocol_code for each in (Cancelled(), MethodNotFound(), Unavailable()))
"""The codes of failures that are no tool's own: the task has failed, and has no result."""

_encode: Final = msgspec.json.Encoder().encode


class TaskParams(Params, frozen=True, kw_only=True):
    task_id: str = msgspec.field(name="taskId")


class UpdateParams(TaskParams, frozen=True, kw_only=True):
    responses: dict[str, dict[str, Any]] = msgspec.field(name="inputResponses")  # Any: JSON


@final
class Tasks:
    """The tasks of a session's caller."""

    def __init__(self, state: McpState) -> None:
        self._state = state
        self._runner = agent_runner_of(state.host)

    async def create(self, ctx: Context, spec: OperationSpec, arguments: bytes) -> Outcome:
        """Begin a task, which is stored before it is told of (section Task Creation)."""
        begun_by = TaskClient(now(), ctx.client, methods_taken(ctx.client.capabilities))
        data = msgspec.json.decode(arguments)
        message = Message(
            new_id(),
            Role.USER,
            (Part(data=msgspec.to_builtins(SkillData(spec.name, data))),),
            metadata=msgspec.to_builtins(begun_by),
        )
        handler, caller = await self._handler(), self._caller(ctx)
        sent = await handler.send(SendRequest(message, SendConfiguration(return_immediately=True)), caller)
        assert isinstance(sent, Task), "operations never answer without a task"
        told = {name: value for name, value in self._told(sent).items() if name not in _OF_STATUS}
        return Outcome(Raw(_encode(modern_members(told, self._state.server, result_type="task"))), asks=True)

    async def get(self, ctx: Context, task_id: str) -> Raw:
        """Tell how a task is, and its result (section Task Polling)."""
        task = await self._required(ctx, task_id)
        return Raw(_encode(modern_members(self._told(task), self._state.server)))

    async def cancel(self, ctx: Context, task_id: str) -> Raw:
        """Have a task cancelled, unless it has ended (section Task Cancellation)."""
        await self._required(ctx, task_id)
        handler = await self._handler()
        try:
            await handler.cancel(task_id, None, self._caller(ctx))
        except FailureError as exc:
            if not isinstance(exc.failure, TaskNotCancelable):
                raise
        return self.acknowledgement

    async def update(self, ctx: Context, task_id: str, responses: dict[str, Any]) -> Raw:
        """Give a task the answers that it waits for, which are stored then (section Task Update Requests)."""
        if not is_within_max_depth(responses):
            raise FailureError(InvalidParams("inputResponses", f"JSON of at most {MAX_JSON_DEPTH} levels", "object"))
        await self._required(ctx, task_id)
        handler = await self._handler()
        await handler.answer(task_id, responses, self._caller(ctx))
        return self.acknowledgement

    async def known(self, ctx: Context, request_meta: Meta | None, task_ids: Sequence[str]) -> list[str]:
        """Return the ids of this caller's tasks among these. Raises `FailureError` where the client can't take tasks."""
        check_able(self._state, request_meta)
        return [each for each in dict.fromkeys(task_ids) if await self._find(ctx, each) is not None]

    async def watch(self, ctx: Context, task_id: str, meta: dict[str, Any]) -> None:
        """Notify the client of each state of a task, until it has ended or is gone (section Task Status Notifications)."""
        handler, caller = await self._handler(), self._caller(ctx)
        told: dict[str, Any] = {}

        async def notify() -> bool:
            """Send what the client does not know yet. Returns whether there may be more."""
            task = await handler.get(task_id, caller)
            if (members := self._told(task)) != told:
                told.clear()
                told.update(members)
                await ctx.notify("notifications/tasks", {**members, "_meta": meta})
            return task.status.state not in TERMINAL

        while True:
            try:
                if not await notify():
                    return
                async with aclosing(handler.subscribe(task_id, caller)) as updates:
                    async for _ in updates:
                        await notify()
            except FailureError as exc:
                if isinstance(exc.failure, TaskNotFound):
                    return
                await anyio.sleep(POLL_MS / 1000)  # it has just ended, or the store is away
            except (TaskConflict, EventsLost):  # another daemon goes on with it
                await anyio.sleep(POLL_MS / 1000)

    async def _find(self, ctx: Context, task_id: str) -> Task | None:
        """A task of this caller; None where there is none."""
        try:
            return await (await self._handler()).get(task_id, self._caller(ctx))
        except FailureError as exc:
            if isinstance(exc.failure, TaskNotFound):
                return None
            raise

    @property
    def acknowledgement(self) -> Raw:
        return Raw(_encode(modern_members({}, self._state.server)))

    async def _required(self, ctx: Context, task_id: str) -> Task:
        task = await self._find(ctx, task_id)
        if task is None:
            raise unknown("task", task_id, param="taskId", expected="the id of a task")
        return task

    async def _handler(self) -> RequestHandler:
        return await self._runner.pipeline.handler.ready()

    def _caller(self, ctx: Context) -> Caller:
        identity = ctx.identity
        return Caller(operation_scope(identity), "mcp", identity, (OPERATION,))

    # -- a task as the protocol tells it ---------------------------------------------------------------------------

    def _told(self, task: Task) -> dict[str, Any]:  # Any: JSON
        status, outcome = self._outcome(task)
        created_at = task_client_of(task.history[0].metadata).created_at
        updated_at = task.status.timestamp or created_at
        told: dict[str, Any] = {
            "taskId": task.id,
            "status": status,
            "createdAt": created_at,
            "lastUpdatedAt": updated_at,
            "ttlMs": self._ttl_ms(created_at, updated_at) if status in (*_ENDED, "cancelled") else None,
            "pollIntervalMs": POLL_MS,
        }
        if message := _text_of(task):
            told["statusMessage"] = message
        if status == "working" and (requests := inputs_of(task).open):
            told |= {"status": "input_required", "inputRequests": requests}
        return told if outcome is None else told | {_ENDED[status]: outcome}

    def _ttl_ms(self, created_at: str, ended_at: str) -> int | None:
        """How long after its creation a task may be deleted that has ended; None for one that is kept."""
        kept = self._state.host.settings.ended_task_seconds
        if kept is None:
            return None
        lasted = datetime.fromisoformat(ended_at) - datetime.fromisoformat(created_at)
        return round((lasted.total_seconds() + kept) * 1000)

    def _outcome(self, task: Task) -> tuple[Status, Raw | None]:
        """The status, and the result or the error of a task that has one."""
        status = _STATUSES.get(task.status.state, "failed")
        called = _called(task)
        tool = None if called is None else self._state.tools.get(tool_name(called))
        if status not in _ENDED:
            return status, None
        if tool is None:  # the operation is there no more
            return "failed", Raw(_encode(_FAILED))
        result = ToolResult(tool, ProtocolRevision(NEWEST_LEGACY), self._state.server)
        if status == "completed":
            return status, Raw(result.write(_result_of(task, is_list=tool.shape == "events")))
        error = _error_of(task)
        if error is None:
            return status, Raw(_encode(ErrorObject(INTERNAL_ERROR, _text_of(task) or _FAILED.message)))
        if _code_of(error) in _NOT_OF_TOOLS:
            return status, Raw(_encode(error))
        return "completed", Raw(result.write_error(error))


_FAILED: Final = error_object(Internal())


def _called(task: Task) -> str | None:
    data = task.history[0].parts[0].data
    return data.get("skill") if isinstance(data, dict) else None


def _result_of(task: Task, *, is_list: bool) -> bytes:
    """The result of the operation; of a subscription the list of its events."""
    values = [part.data for part in task.artifacts[-1].parts] if task.artifacts else []  # of the last run alone
    if is_list:
        return _encode({"result": values})
    return _encode(values[0]) if values else b"null"


def _error_of(task: Task) -> ErrorObject | None:
    """The failure with which the operation has ended. None where something else has ended the task."""
    message = task.status.message
    found = [part.data for part in message.parts if isinstance(part.data, dict)] if message is not None else []
    return decoder_for(ErrorObject)(_encode(found[0])) if found else None


def _code_of(error: ErrorObject) -> object:
    """Of the failure, not of JSON-RPC, whose numbers stand for several."""
    data: object = {} if error.data is UNSET else decoder_for(Any)(error.data)
    return data.get("code") if isinstance(data, dict) else None


def _text_of(task: Task) -> str:
    message = task.status.message
    return "" if message is None else "\n".join(part.text for part in message.parts if part.text)


def add_tasks(service: Service, state: McpState) -> None:
    """Add the methods to a service, and what begins a task of each operation."""
    tasks = Tasks(state)
    for spec in [tool.spec for tool in state.tools.values() if tool.spec.task is not None]:
        service.mutation(TASK + spec.name, timeout=None)(_beginning(tasks, spec))
        service.operations[-1] = replace(service.operations[-1], access=spec.access, namespace=spec.namespace)

    def check(params: TaskParams) -> str:
        check_able(state, params.meta)
        return params.task_id

    @service.query("tasks/get")
    async def get_task(ctx: Context, params: TaskParams, /) -> Raw:
        """Tell how a task is, and its result once it has ended."""
        return await tasks.get(ctx, check(params))

    @service.mutation("tasks/cancel")
    async def cancel_task(ctx: Context, params: TaskParams, /) -> Raw:
        """Cancel a task."""
        return await tasks.cancel(ctx, check(params))

    @service.mutation("tasks/update")
    async def update_task(ctx: Context, params: UpdateParams, /) -> Raw:
        """Take answers to what a task asks for."""
        return await tasks.update(ctx, check(params), params.responses)


def check_able(state: McpState, meta: Meta | None) -> None:
    """Raises `FailureError` where the client of a request has not declared the extension."""
    protocol = state.protocol(meta)
    if not protocol.modern:  # 2025-11-25 has tasks of another kind
        raise FailureError(MethodNotFound())
    if TASKS not in (protocol.capabilities.get("extensions") or {}):
        raise FailureError(missing_capability(f"extensions.{TASKS}"))


def _beginning(tasks: Tasks, spec: OperationSpec) -> Callable[[Context, Raw], Awaitable[Raw]]:
    async def begin(ctx: Context, params: Raw, /) -> Raw:
        spec.input.decode(params, "arguments")  # what is wrong is told now
        return Raw(_encode(await tasks.create(ctx, spec, params)))

    return begin
