"""One prompt: a message to the agent, the updates of its task, and the reason why the turn stopped. Owns no session."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ...a2a.types import INACTIVE, INTERRUPTED, StatusChanged, TaskState, TaskStatus, TaskUpdate
from ...agents.editor import EditorUnavailableError
from ...agents.executor import AGENT_FAILED_TEXT, ORPHANED_TEXT, UNFINISHED_TEXT
from ...daemon.logs import log
from ...errors.codes import ACP_RESERVED
from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import DomainFailure, Failure, Internal, TaskNotCancelable
from ...errors.wire import decode_declared, decode_error
from ...lazy import anyio
from .generated.structs import ConfigOptionUpdate, SessionNotification, StopReason
from .sessions import AUTHENTICATION_REQUIRED
from .updates import recorded

if TYPE_CHECKING:
    from ...a2a.types import SendRequest
    from ...agents.editor import Editor, Published
    from ...agents.request_handler import Caller, RequestHandler
    from ...daemon.operations.request import Sending
    from .elicitation import Client
    from .generated.structs import ContentBlock, SessionUpdate
    from .sessions import OpenSession
    from .updates import Updates

Spawn = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]

_STOPPED: Final = {
    TaskState.COMPLETED: StopReason.END_TURN,
    TaskState.INPUT_REQUIRED: StopReason.END_TURN,
    TaskState.REJECTED: StopReason.REFUSAL,
    TaskState.CANCELED: StopReason.CANCELLED,
}


class Foreground(Protocol):
    """The state of a turn, in versions whose clients are told it."""

    def take(self, message_id: str, prompt: Sequence[ContentBlock]) -> None:
        """Note the prompt, and the id that its message has got."""
        ...

    @property
    def answered(self) -> bool: ...

    def accept(self) -> None:
        """Note that the message is stored: the prompt may be answered."""
        ...

    async def opened(self) -> None:
        """Wait until the client was told that the turn has begun."""
        ...

    def asking(self) -> AbstractAsyncContextManager[None]:
        """Tell the client that the turn waits for its user during the block."""
        ...


@final
class PromptTurn:
    """One per prompt. `spawn` runs the cancellation of its task, which goes on where the turn does not wait for it. `foreground`
    is told the turn's state in versions that have one.

    Nothing is sent for the turn once it is over.
    """

    def __init__(
        self,
        session: OpenSession,
        host: Client,
        spawn: Spawn,
        make_editor: Callable[[PromptTurn], Editor],
        *,
        updates: Updates,
        foreground: Foreground | None,
    ) -> None:
        self.session: Final = session
        self.foreground: Final = foreground
        self._host = host
        self._spawn = spawn
        self._updates = updates
        self._task: Published | None = None
        self._sent = 0  # the task's generation up to which the client has been told
        self._changed: anyio.Event | None = None
        self._cancel_task: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._scope: anyio.CancelScope | None = None
        self._at_end: dict[str, SessionUpdate] = {}
        self.cancelled = False
        self.over = False
        self.is_logged = False
        """Whether the log has a line of its own for the failure of the task."""
        self.open_task: str | None = None
        self.limit: StopReason | None = None
        """The limit at which the agent has stopped, if it says so."""
        self.editor: Final = make_editor(self)

    @property
    def began(self) -> bool:
        """Whether the message belongs to a task."""
        return self._task is not None

    @property
    def task_id(self) -> str | None:
        return None if self._task is None else self._task.id

    def begin(self, task: Published) -> None:
        """The message belongs to this task from now on."""
        self._task, self._sent = task, task.generation
        self._updates.task_id = task.id
        if self.foreground is not None:
            self.foreground.accept()
        if self.cancelled:
            self._spawn_cancel()

    async def run(self, handler: RequestHandler, caller: Caller, request: SendRequest) -> StopReason:
        """Send the message, tell the client all that comes of it, and return why that stopped.

        Raises `FailureError` where the task fails, or needs its user to sign in. A turn that was cancelled never fails.
        """
        self._cancel_task = partial(self._cancel, handler, caller)
        status: TaskStatus | None = None
        with anyio.CancelScope() as self._scope:
            try:
                if not self.cancelled:
                    status = await self._follow(handler, replace(caller, turn=self), request)
                    while self._at_end:
                        await self.send(self._at_end.pop(next(iter(self._at_end))))
            except (FailureError, OperationError):
                if not self.cancelled:
                    raise
            finally:
                for update in self._at_end.values():
                    self.send(update)
                self._at_end.clear()
                self.over = True
                self._notify()
        if self._task is not None and status is not None and status.state in INTERRUPTED:
            self.open_task = self._task.id
        if self.cancelled:
            return StopReason.CANCELLED
        if status is not None and status.state is TaskState.FAILED:
            failure = _failure_of(status)
            self.is_logged = not isinstance(failure, DomainFailure) or (
                failure.code != _TASK_FAILED or failure.message in _LOGGED_TEXTS
            )
            raise FailureError(failure)
        reason = _stop_reason(status)
        return self.limit if self.limit is not None and reason == StopReason.END_TURN else reason

    async def _follow(self, handler: RequestHandler, caller: Caller, request: SendRequest) -> TaskStatus | None:
        status: TaskStatus | None = None
        async with aclosing(handler.batches(request, caller)) as batches:
            async for batch in batches:
                events = [item for item in batch if isinstance(item, TaskUpdate)]
                if not events:
                    continue
                if self.foreground is not None:
                    await self.foreground.opened()
                told = (self._notification(update) for item in events for update in self._updates.of(item.event))
                await self._host.notify_all("session/update", told)
                for item in events:
                    if isinstance(item.event, StatusChanged):
                        status = item.event.status
                self._sent = events[-1].generation
                self._notify()
        return status

    # -- what the client is told -------------------------------------------------------------------------------

    def send(self, update: SessionUpdate) -> Sending:
        """Tell the client. On its way when this returns; awaiting the result waits until the client keeps up.

        An artifact of the task keeps it, so that a session that is loaded shows it again. Options are in the answer to that.
        """
        if self._task is not None and not isinstance(update, ConfigOptionUpdate):
            self._task.note(recorded(update))
        return self._host.notify("session/update", self._notification(update))

    def _notification(self, update: SessionUpdate) -> SessionNotification:
        return SessionNotification(session_id=self.session.record.id, update=update)

    def at_end(self, key: str, update: SessionUpdate | None) -> None:
        """Send this when the turn ends, unless it is replaced or taken back by then."""
        if update is None:
            self._at_end.pop(key, None)
        else:
            self._at_end[key] = update

    def awaits_end(self, key: str) -> bool:
        """Whether something is to be sent for this at the end."""
        return key in self._at_end

    async def caught_up(self) -> None:
        """Wait until the client was told everything that the executor has published.

        Raises `EditorUnavailableError` once the turn is over.
        """
        if self.foreground is not None:
            await self.foreground.opened()
        wanted = 0 if self._task is None else self._task.generation
        while self._sent < wanted and not self.over:
            if self._changed is None:
                self._changed = anyio.Event()
            await self._changed.wait()
        if self.over:
            raise EditorUnavailableError("the turn has ended")

    def asking(self) -> AbstractAsyncContextManager[None]:
        """Tell the client that the turn waits for its user during the block, where the version has words for that."""
        return nullcontext() if self.foreground is None else self.foreground.asking()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    # -- cancellation ------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Have the task cancelled; `run` then returns `cancelled`. A second call does nothing."""
        if not (self.cancelled or self.over):
            self.cancelled = True
            if self._task is not None:
                self._spawn_cancel()

    def drop(self) -> None:
        """Have the task cancelled for a request that was cancelled itself."""
        if self._task is not None and not self.cancelled:
            self.cancelled = True
            self._spawn_cancel()

    def _spawn_cancel(self) -> None:
        if self._cancel_task is not None:
            self._spawn(self._cancel_task)

    async def _cancel(self, handler: RequestHandler, caller: Caller) -> None:
        """Cancel the task. Where its executor refuses, it goes on without the turn."""
        assert self._task is not None, "there is nothing to cancel before the task"
        try:
            await handler.cancel(self._task.id, None, caller)
        except (FailureError, OperationError) as exc:
            failure = exc.failure if isinstance(exc, FailureError) else None
            if not isinstance(failure, TaskNotCancelable):
                log.warning("agent.cancel_failed", task=self._task.id, exc=exc)
            if self._scope is not None and not self.over:
                self._scope.cancel()


def _stop_reason(status: TaskStatus | None) -> StopReason:
    if status is None or status.state not in INACTIVE:
        raise FailureError(Internal())  # the task was lost; the log says why
    if status.state is TaskState.AUTH_REQUIRED:
        text = _text_of(status) or "Authentication required"
        raise FailureError(DomainFailure("AUTH_REQUIRED", text, False, None, 401, AUTHENTICATION_REQUIRED))
    return _STOPPED[status.state]


_TASK_FAILED: Final = "TASK_FAILED"

_LOGGED_TEXTS: Final = frozenset({AGENT_FAILED_TEXT, ORPHANED_TEXT, UNFINISHED_TEXT})
"""Those of failures that are no words of the executor's own."""


def _failure_of(status: TaskStatus) -> Failure:
    """Return the error of a failed task: the declared error that its executor raised, or its text."""
    for part in () if status.message is None else status.message.parts:
        if isinstance(part.data, dict):
            text = Raw(msgspec.json.encode(part.data))
            failure = decode_declared(text)
            if isinstance(failure, DomainFailure):
                return replace(failure, number=None) if failure.number in ACP_RESERVED else failure
            failure = decode_error(text)[1]
            if not isinstance(failure, Internal):  # data of another meaning
                return failure
    return DomainFailure(_TASK_FAILED, _text_of(status) or AGENT_FAILED_TEXT, False, None, 500, None)


def _text_of(status: TaskStatus) -> str:
    parts = () if status.message is None else status.message.parts
    return "\n".join(part.text for part in parts if part.text is not None)
