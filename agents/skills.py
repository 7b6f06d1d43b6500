"""The agent of a daemon without an `Agent`: every operation that a caller may call is a skill.

A message with a data part `{skill, input}` runs the operation as a task. Its result becomes an artifact; the events of a
subscription become chunks of one artifact. The operation's own contract holds: access, input, deadline, errors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import msgspec
from msgspec import UNSET

from ..a2a.errors import UnknownSkill
from ..a2a.types import Message, Part
from ..change_signal import ChangeSignal
from ..daemon.operations.identity import Identity
from ..daemon.operations.params import Arguments
from ..daemon.operations.spec import OperationSpec
from ..errors.decoders import convert
from ..errors.exceptions import FailureError
from ..errors.failures import ContentTypeNotSupported, Failure, Internal, InvalidParams
from ..lazy import anyio
from .tasks.executor import failure_parts, note_failed

if TYPE_CHECKING:
    from ..daemon.operations.request import EventSink, Outcome
    from .tasks.executor import RequestContext, TaskEvents

MEDIA_TYPE: Final = "application/json"

MAX_QUEUED_EVENTS: Final = 32
"""Events of a subscription that may wait to become chunks. Beyond it the subscription waits."""


class SkillHost(Protocol):
    """What an agent and its skills need of the daemon."""

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this in the daemon's task group."""
        ...

    def skill(self, name: str, identity: Identity | None) -> OperationSpec | None:
        """The hosted operation of this name, if this caller may call it."""
        ...

    async def run_skill(
        self, call: SkillCall, metadata: Mapping[str, str], sink: EventSink | None, identity: Identity | None
    ) -> Outcome:
        """Run the operation for this caller. The events of a subscription go to the sink."""
        ...


class _SkillData(msgspec.Struct, frozen=True):
    """The data part of a message that calls a skill."""

    skill: str
    input: Any = UNSET  # JSON, which the operation's own decoder checks


class SkillCall(msgspec.Struct, frozen=True):
    """An operation with its input, as JSON text and in decoded form."""

    spec: OperationSpec
    params: bytes
    arguments: Arguments


@final
class SkillExecutor:
    """An `AgentExecutor` that runs operations."""

    def __init__(self, host: SkillHost) -> None:
        self._host = host

    def check(self, context: RequestContext) -> SkillCall:
        """Raises `UnknownSkill`, or `FailureError` for a message without a skill or with input that the skill refuses."""
        path, data = _first_data(context.message)
        try:
            wanted = convert(data, _SkillData)
        except msgspec.ValidationError:
            raise FailureError(InvalidParams(f"{path}.skill", "name of a skill", "another")) from None
        spec = self._host.skill(wanted.skill, context.identity)
        if spec is None:
            raise UnknownSkill
        params = b"{}" if wanted.input is UNSET else msgspec.json.encode(wanted.input)
        return SkillCall(spec, params, spec.input.decode(params, f"{path}.input"))

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        call: SkillCall = context.checked
        await events.working()
        if call.spec.kind == "subscription":
            failure = await self._run_subscription(call, context, events)
        else:
            failure = await self._run_call(call, context, events)
        if failure is None:
            await events.complete()
        else:
            if not isinstance(failure, Internal):  # its handler is in the log
                note_failed(context.task.id, failure)
            await events.fail(failure_parts(failure))

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to prepare: the operation is cancelled with the execution."""

    async def _run_call(self, call: SkillCall, context: RequestContext, events: TaskEvents) -> Failure | None:
        outcome = await self._host.run_skill(call, context.service_params, None, context.identity)
        if not isinstance(outcome, bytes):
            return outcome
        await events.artifact(_data_part(outcome), name=call.spec.name)
        return None

    async def _run_subscription(self, call: SkillCall, context: RequestContext, events: TaskEvents) -> Failure | None:
        queue = EventQueue()
        outcomes: list[Outcome] = []

        async def run() -> None:
            outcomes.append(await self._host.run_skill(call, context.service_params, queue, context.identity))
            queue.close()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            artifact_id: str | None = None
            while (event := await queue.get()) is not None:
                artifact_id = await events.artifact(
                    _data_part(event), artifact_id=artifact_id, name=call.spec.name, append=artifact_id is not None
                )
        outcome = outcomes[0]
        return None if isinstance(outcome, bytes) else outcome


@final
class EventQueue:
    """The `Sink` between a subscription and its task. `events` counts what was put, as every sink does."""

    def __init__(self) -> None:
        self.events = 0
        self.discarded = False
        self._queue: deque[bytes] = deque()
        self._closed = False
        self._signal = ChangeSignal()

    @property
    def full(self) -> bool:
        return len(self._queue) >= MAX_QUEUED_EVENTS

    def put(self, value: bytes, number: int | None = None) -> None:
        self.events += 1
        self._queue.append(value)
        self._signal.notify()

    def close(self) -> None:
        """Put nothing more. `get` still returns what is queued."""
        self._closed = True
        self._signal.notify()

    async def wait_for_room(self) -> None:
        while self.full:
            await self._signal.wait()

    async def get(self) -> bytes | None:
        """Wait for the next event; None once the queue is closed and empty."""
        while not (self._queue or self._closed):
            await self._signal.wait()
        self._signal.notify()
        return self._queue.popleft() if self._queue else None


def _first_data(message: Message | None) -> tuple[str, Any]:  # Any: JSON
    """The path and the value of a message's first data part. Raises `FailureError(ContentTypeNotSupported)` for none."""
    for index, part in enumerate(message.parts if message is not None else ()):
        if part.data is not UNSET:
            return f"message.parts[{index}].data", part.data
    raise FailureError(ContentTypeNotSupported(accepted=(MEDIA_TYPE,)))


def _data_part(result: bytes) -> Part:
    return Part(data=msgspec.json.decode(result), media_type=MEDIA_TYPE)
