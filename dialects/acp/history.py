"""What is in the store of a session: its tasks, and the list of sessions. A session is a context of A2A."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from ...a2a.requests import TaskQuery
from ...a2a.states import INTERRUPTED
from ...a2a.types import JsonObject, Message, Role, Task
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from .generated.methods_of_agents import SessionInfo

if TYPE_CHECKING:
    from ...agents.caller import Caller
    from ...agents.service.request_handler import RequestHandler

CWD: Final = "cwd"
"""The member of a message's metadata that holds the session's working directory."""

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


def open_task(tasks: list[Task]) -> str | None:
    """The task with which the next prompt goes on."""
    return tasks[0].id if tasks and tasks[0].status.state in INTERRUPTED else None


def last_metadata(tasks: list[Task]) -> JsonObject:
    """The metadata of the last message that the session's user has sent."""
    said = [message for task in tasks[:1] for message in task.history if message.role is Role.USER]
    return (said[-1].metadata or {}) if said else {}


async def list_sessions(
    handler: RequestHandler, caller: Caller, cwd: str | None, cursor: str | None
) -> tuple[list[SessionInfo], str | None]:
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


async def _sessions(handler: RequestHandler, caller: Caller, tasks: tuple[Task, ...]) -> AsyncIterator[SessionInfo]:
    """The session of each task that is the last one of its session."""
    for task in tasks:
        query = TaskQuery(scope=caller.scope, context_id=task.context_id, page_size=1, include_artifacts=False)
        newest = (await handler.list(query)).tasks
        said = [message for message in task.history if message.role is Role.USER]
        cwd = _cwd(said[0]) if said else None
        if cwd is not None and newest and newest[0].id == task.id:
            yield SessionInfo(
                session_id=task.context_id, cwd=cwd, title=_title(said[0]), updated_at=task.status.timestamp
            )


def _cwd(message: Message) -> str | None:
    cwd = (message.metadata or {}).get(CWD)
    return cwd if isinstance(cwd, str) else None


def _title(message: Message) -> str | None:
    text = " ".join(" ".join(part.text for part in message.parts if part.text is not None).split())
    return text[:TITLE_CHARACTERS] or None
