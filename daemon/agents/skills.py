"""The agent that every daemon has: each operation that a caller may call is a skill of it.

A message with a data part `{skill, input}` runs the operation as a task. Its result is an artifact; the events of a
subscription are chunks of one, as they come. The operation's own contract holds: access, input, deadline, errors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import msgspec
from msgspec import UNSET

from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import ContentTypeNotSupported, Failure, InvalidParams
from ..operations.access import Identity
from ..operations.spec import OperationSpec
from .model.types import Message, Part
from .tasks.runner import described

if TYPE_CHECKING:
    import anyio

    from ..dispatch.request import EventSink, Outcome
    from .tasks.executor import RequestContext
    from .tasks.task_events import TaskEvents

MEDIA_TYPE: Final = "application/json"
MOST_CHUNKS: Final = 32
"""Events of a subscription that may wait to become chunks before it waits."""


class UnknownSkill(OperationError, code="UNKNOWN_SKILL", http_status=404):
    """The agent has no such skill"""


class Operations(Protocol):
    """What the skills need of the daemon."""

    def skill(self, name: str, identity: Identity | None) -> OperationSpec | None:
        """The hosted operation of this name, if this caller may call it."""
        ...

    async def run_skill(
        self, spec: OperationSpec, params: bytes, metadata: Mapping[str, str], sink: EventSink | None
    ) -> Outcome: ...


class _Asked(msgspec.Struct, frozen=True):
    """What the data part of a message says."""

    skill: str
    input: Any = UNSET  # JSON, which the operation's own decoder checks


@final
class SkillExecutor:
    """Runs operations as tasks."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def check(self, context: RequestContext) -> None:
        """Refuse what can't be run, before there is a task."""
        spec, params, place = self._asked(context)
        spec.input.decode(msgspec.Raw(params), f"{place}.input")

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        spec, params, _ = self._asked(context)
        await events.working()
        if spec.kind == "subscription":
            chunks = _Chunks()
            failure = await self._stream(spec, params, context, chunks, events)
        else:
            outcome = await self._operations.run_skill(spec, params, context.service_params, None)
            failure = None if isinstance(outcome, bytes) else outcome
            if isinstance(outcome, bytes):
                await events.artifact(_data(outcome), name=spec.name)
        if failure is None:
            await events.complete()
        else:
            await events.fail(described(failure))

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """Nothing of its own to let go of: the operation is cancelled with its task."""

    def _asked(self, context: RequestContext) -> tuple[OperationSpec, bytes, str]:
        """The skill, its input, and the path of the data that says so."""
        place, data = _first_data(context.message)
        try:
            asked = msgspec.convert(data, _Asked)
        except msgspec.ValidationError:
            raise FailureError(InvalidParams(f"{place}.skill", "name of a skill", "another")) from None
        spec = self._operations.skill(asked.skill, context.identity)
        if spec is None:
            raise UnknownSkill
        return spec, b"{}" if asked.input is UNSET else msgspec.json.encode(asked.input), place

    async def _stream(
        self, spec: OperationSpec, params: bytes, context: RequestContext, chunks: _Chunks, events: TaskEvents
    ) -> Failure | None:
        import anyio  # late: the first replies leave without an event loop

        outcomes: list[Outcome] = []

        async def run() -> None:
            outcomes.append(await self._operations.run_skill(spec, params, context.service_params, chunks))
            chunks.end()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            artifact_id: str | None = None
            while (chunk := await chunks.take()) is not None:
                artifact_id = await events.artifact(
                    _data(chunk), artifact_id=artifact_id, name=spec.name, append=artifact_id is not None
                )
        outcome = outcomes[0]
        return None if isinstance(outcome, bytes) else outcome


@final
class _Chunks:
    """The events of one subscription, between the operation and the task."""

    def __init__(self) -> None:
        self.events = 0
        self.discarded = False
        self._waiting: deque[bytes] = deque()
        self._ended = False
        self._changed: anyio.Event | None = None

    @property
    def full(self) -> bool:
        return len(self._waiting) >= MOST_CHUNKS

    def put(self, value: bytes) -> None:
        self.events += 1
        self._waiting.append(value)
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    async def wait_for_room(self) -> None:
        await self._until(lambda: not self.full)

    async def take(self) -> bytes | None:
        """The next event; None when there will be no more."""
        await self._until(lambda: bool(self._waiting) or self._ended)
        if not self._waiting:
            return None
        value = self._waiting.popleft()
        self._wake()
        return value

    async def _until(self, reached: Callable[[], bool]) -> None:
        import anyio  # late, as above

        while not reached():
            if self._changed is None:
                self._changed = anyio.Event()
            await self._changed.wait()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


def _first_data(message: Message | None) -> tuple[str, Any]:  # Any: JSON
    """The path of a message's first data, and the data. Raises `FailureError(ContentTypeNotSupported)` for none."""
    for index, part in enumerate(message.parts if message is not None else ()):
        if part.data is not UNSET:
            return f"message.parts[{index}].data", part.data
    raise FailureError(ContentTypeNotSupported(accepted=(MEDIA_TYPE,)))


def _data(result: bytes) -> Part:
    return Part(data=msgspec.json.decode(result), media_type=MEDIA_TYPE)
