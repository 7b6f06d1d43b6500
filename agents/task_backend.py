"""The way to the client for an operation that runs as a task: its progress and its questions are in the task's status, since the
client may be away, and come back at another daemon.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
from msgspec import UNSET

from ..a2a.errors import InvalidStateTransition
from ..a2a.types import Part, new_id
from ..daemon.logs import log
from ..daemon.operations.context import ClientRefused
from ..daemon.operations.request import ClientInfo
from ..errors.codes import METHOD_NOT_FOUND
from ..errors.decoders import DECODE_ERRORS, convert
from ..errors.exceptions import FailureError
from ..errors.failures import MethodNotFound, Overloaded
from ..lazy import anyio
from .executor import wait_for_client
from .task_inputs import InputRequest, Inputs, asked_part, withdrawn_part

if TYPE_CHECKING:
    from ..daemon.operations.request import ContextBackend, LogLevel, Request
    from .executor import RequestContext, TaskEvents

PROGRESS_SECONDS: Final = 0.5
"""How often a task's status says anew how far its operation is."""

MAX_PROGRESS: Final = 1000
"""Characters of what a status says of progress."""

MAX_OPEN: Final = 64
"""Questions of one task that may wait for their answers at a time."""

_ASKS_TEXT: Final = "The operation asks its client."


class TaskClient(msgspec.Struct, frozen=True):
    """The client that has begun a task: metadata of the task's first message. `takes` are the methods of the requests that the
    client answers."""

    created_at: str = ""
    client: ClientInfo = ClientInfo()
    takes: tuple[str, ...] = ()


def task_client_of(metadata: object) -> TaskClient:
    """Read the client of a message's metadata; an empty one for a message that says nothing of it."""
    try:
        client: TaskClient = convert(metadata or {}, TaskClient)
    except DECODE_ERRORS:
        return TaskClient()
    return client


@final
class TaskBackend:
    """The `ContextBackend` of an operation that runs as a task. The rest is that of the `daemon`.

    A question has a key that no other question of the task has. One that is asked again after the operation was cut off, with
    the same method and params, is the same question: its answer may be there.
    """

    def __init__(self, context: RequestContext, events: TaskEvents, *, repeatable: bool) -> None:
        self.daemon: ContextBackend
        self._events = events
        self._repeatable = repeatable
        self._waiting = 0
        self._client = task_client_of(None if context.message is None else context.message.metadata)
        self._inputs = Inputs().read(events.task)
        self._earlier = list(self._inputs.usable.items())
        self._dropped: list[str] = []
        self._text = ""

    def __getattr__(self, name: str) -> Any:  # Any: as there
        return getattr(self.daemon, name)

    @property
    def rests(self) -> bool:
        return self._repeatable and self._waiting > 0

    @property
    def client(self) -> ClientInfo:
        return self._client.client

    def log(self, request: Request, level: LogLevel, data: object) -> None:
        """Send nothing: tasks have no log messages (MCP, extension for tasks)."""

    def progress_token(self, request: Request) -> str:
        return "task"

    def progress(self, token: str | int, value: object) -> None:
        """Keep it, from any thread: a text, a number, `(progress, total)`, or members of these names."""
        members = value if isinstance(value, str | int | float | tuple | list) else msgspec.to_builtins(value)
        match members:
            case [done, total]:
                self._text = f"{done} of {total}"
            case {"message": str(text)} | str(text):
                self._text = text
            case {"progress": done, "total": total}:
                self._text = f"{done} of {total}"
            case {"progress": done} | (int() | float() as done):
                self._text = str(done)
            case _:
                log.warning("progress.unusable", type=type(value).__name__)

    async def tell(self) -> None:
        """Have the task's status say the progress, and that questions were given up, until cancelled."""
        told = ""
        while True:
            await anyio.sleep(PROGRESS_SECONDS)
            if self._events.ended:
                continue
            with suppress(FailureError, InvalidStateTransition):  # no room, or just ended
                if dropped := self._dropped:
                    await self._events.working([self._said(""), withdrawn_part(dropped)])
                    self._dropped = self._dropped[len(dropped) :]
                elif self._text != told:
                    told = self._text
                    await self._events.working(told[:MAX_PROGRESS])

    def _said(self, otherwise: str) -> Part:
        return Part(text=self._text[:MAX_PROGRESS] or otherwise)

    async def ask(self, method: str, params: object, timeout: float) -> bytes:
        """The client's answer as JSON text, which is stored.

        Raises `ClientRefused` for a method that the client does not take, `FailureError(Overloaded)` for too many questions,
        and `TimeoutError`.
        """
        if method not in self._client.takes:
            raise ClientRefused(METHOD_NOT_FOUND, "the client takes no such request", MethodNotFound())
        request = InputRequest(method, msgspec.json.decode(msgspec.json.encode(params)))
        key = self._claim(request) or await self._begin(request)
        answer: Any = UNSET
        self._waiting += 1
        try:
            with anyio.fail_after(timeout):
                while (answer := self._answer(key)) is UNSET:
                    await wait_for_client(self._events, rests=self._repeatable)
        finally:
            self._waiting -= 1
            if answer is UNSET:
                self._dropped = [*self._dropped, key]
        return msgspec.json.encode(answer)

    def _claim(self, request: InputRequest) -> str | None:
        """The key of the first equal question of an earlier run that this one has not asked yet."""
        for place, (key, earlier) in enumerate(self._earlier):
            if earlier == request:
                del self._earlier[place]
                return key
        return None

    async def _begin(self, request: InputRequest) -> str:
        if len(self._inputs.read(self._events.task).open) >= MAX_OPEN:
            raise FailureError(Overloaded())
        key = new_id()
        await self._events.working([self._said(_ASKS_TEXT), asked_part(key, request)])
        return key

    def _answer(self, key: str) -> Any:  # Any: JSON, or UNSET
        return self._inputs.read(self._events.task).answers.get(key, UNSET)
