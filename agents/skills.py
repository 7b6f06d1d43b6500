"""The agent of a daemon without an `Agent`: every operation that a caller may call is a skill.

A message with a data part `{skill, input}` runs the operation as a task. Its result becomes an artifact; the events of a
subscription become chunks of one artifact. The operation's own contract holds: access, input, deadline, errors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from ..a2a.errors import NotCancelable, UnknownSkill
from ..a2a.types import Message, Part
from ..daemon.logs import log
from ..daemon.operations.identity import Identity
from ..daemon.operations.params import Arguments
from ..daemon.operations.spec import OperationSpec
from ..errors.decoders import convert
from ..errors.exceptions import FailureError
from ..errors.failures import ContentTypeNotSupported, Internal, InvalidParams
from ..lazy import anyio
from .executor import (
    ORPHANED_TEXT,
    AgentExecutor,
    SupportsCancel,
    SupportsCheck,
    SupportsResume,
    execute_again,
    failure_parts,
    note_failed,
)
from .request_handler import OPERATION
from .task_backend import TaskBackend

if TYPE_CHECKING:
    from ..daemon.operations.request import EventSink, Outcome
    from .executor import RequestContext, TaskEvents

MEDIA_TYPE: Final = "application/json"


class SkillData(msgspec.Struct, frozen=True):
    """The data part of a message that calls a skill."""

    skill: str
    input: Any = UNSET  # JSON, which the operation's own decoder checks


class SkillCall(msgspec.Struct, frozen=True):
    """An operation with its input, as JSON text and in decoded form."""

    spec: OperationSpec
    params: bytes
    arguments: Arguments


FindSkill: TypeAlias = Callable[[str, Identity | None], OperationSpec | None]
"""Finds the hosted operation of a name, if this caller may call it."""

RunSkill: TypeAlias = "Callable[[SkillCall, RequestContext, EventSink | None, TaskBackend | None], Awaitable[Outcome]]"
"""Runs an operation for the caller of a message. The events of a subscription go to the sink. With a `TaskBackend` its client is
that of the task, and the daemon's own deadline does not hold."""


@final
class SkillExecutor:
    """An `AgentExecutor` that runs operations."""

    def __init__(self, find: FindSkill, run: RunSkill) -> None:
        self._find = find
        self._run = run

    def check(self, context: RequestContext) -> SkillCall:
        """Raises `UnknownSkill`, or `FailureError` for a message without a skill or with input that the skill refuses."""
        path, data = _first_data(context.message)
        try:
            wanted = convert(data, SkillData)
        except msgspec.ValidationError:
            raise FailureError(InvalidParams(f"{path}.skill", "name of a skill", "another")) from None
        spec = self._find(wanted.skill, context.identity)
        if spec is None:
            raise UnknownSkill
        params = b"{}" if wanted.input is UNSET else msgspec.json.encode(wanted.input)
        return SkillCall(spec, params, spec.input.decode(params, f"{path}.input"))

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        call: SkillCall = context.checked
        await events.working()
        chunks = _Chunks(call.spec.name, events) if call.spec.kind == "subscription" else None
        outcome = await self._outcome(call, context, chunks, events)
        if isinstance(outcome, bytes):
            if chunks is None:
                await events.artifact(_data_part(outcome), name=call.spec.name)
            return await events.complete()
        if not isinstance(outcome, Internal):  # its handler is in the log
            note_failed(context.task.id, outcome)
        await events.fail(failure_parts(outcome))

    async def _outcome(
        self, call: SkillCall, context: RequestContext, sink: EventSink | None, events: TaskEvents
    ) -> Outcome:
        if OPERATION not in context.extensions:
            return await self._run(call, context, sink, None)
        backend = TaskBackend(context, events, repeatable=_is_repeatable(call.spec))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(backend.tell)
            try:
                return await self._run(call, context, sink, backend)
            finally:
                tasks.cancel_scope.cancel()
        raise AssertionError("the block returns or raises")

    async def resume(self, context: RequestContext, events: TaskEvents) -> None:
        """Run again what may be repeated. Anything else has failed."""
        call: SkillCall = self.check(context)
        if not _is_repeatable(call.spec):
            log.warning("task.orphaned", task=context.task.id)
            return await events.fail(ORPHANED_TEXT)
        await self.execute(replace(context, checked=call), events)

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to prepare: the operation is cancelled with the execution."""


@final
class AgentAndOperations:
    """The `AgentExecutor` of a daemon whose agent and whose operations both run as tasks."""

    def __init__(self, agent: AgentExecutor, operations: SkillExecutor, *, steps: bool = False) -> None:
        self._agent = agent
        self._steps = steps
        self._operations = operations

    def check(self, context: RequestContext) -> object:
        if OPERATION in context.extensions:
            return self._operations.check(context)
        return self._agent.check(context) if isinstance(self._agent, SupportsCheck) else None

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await (self._operations if OPERATION in context.extensions else self._agent).execute(context, events)

    async def resume(self, context: RequestContext, events: TaskEvents) -> None:
        if OPERATION in context.extensions:
            await self._operations.resume(context, events)
        elif isinstance(self._agent, SupportsResume):
            await self._agent.resume(context, events)
        elif self._steps:
            await execute_again(self._agent, context, events)
        else:
            log.warning("task.orphaned", task=context.task.id)
            await events.fail(ORPHANED_TEXT)

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        if OPERATION in context.extensions:
            return
        if not isinstance(self._agent, SupportsCancel):
            raise NotCancelable
        await self._agent.cancel(context, events)


@final
class _Chunks:
    """The `EventSink` of a subscription: each event becomes a chunk of one artifact before the next one comes."""

    def __init__(self, name: str, events: TaskEvents) -> None:
        self.events = 0
        self.discarded = False
        self._name = name
        self._task_events = events
        self._waiting: bytes | None = None
        self._artifact_id: str | None = None

    @property
    def full(self) -> bool:
        return self._waiting is not None

    def put(self, value: bytes, number: int | None = None) -> None:
        self.events += 1
        self._waiting = value

    async def wait_for_room(self) -> None:
        value, self._waiting = self._waiting, None
        if value is not None:
            is_first = self._artifact_id is None
            self._artifact_id = await self._task_events.artifact(
                _data_part(value), artifact_id=self._artifact_id, name=self._name, append=not is_first
            )


def _is_repeatable(spec: OperationSpec) -> bool:
    return spec.kind != "mutation" or spec.idempotent


def _first_data(message: Message | None) -> tuple[str, Any]:  # Any: JSON
    """The path and the value of a message's first data part. Raises `FailureError(ContentTypeNotSupported)` for none."""
    for index, part in enumerate(message.parts if message is not None else ()):
        if part.data is not UNSET:
            return f"message.parts[{index}].data", part.data
    raise FailureError(ContentTypeNotSupported(accepted=(MEDIA_TYPE,)))


def _data_part(result: bytes) -> Part:
    return Part(data=msgspec.json.decode(result), media_type=MEDIA_TYPE)
