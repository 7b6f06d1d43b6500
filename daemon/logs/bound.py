"""Names the request that the running code works for in the log: method, id, and an agent's task.

Handlers run with it in a context variable, so that tasks and calls that they begin have it too; threads that they start by
themselves have not, before Python 3.14. Inline handlers begin nothing and must cost nothing: for them it stands in `INLINE`.
"""

from __future__ import annotations

from _thread import get_ident
from contextvars import ContextVar
from typing import Final, Protocol, TypeAlias, final

import msgspec


class LoggedCall(Protocol):
    """A call of an operation. `id` is a JSON text, None for a notification and for a call that the app has made for `origin`.
    `task` is the agent's task that it names."""

    @property
    def method(self) -> str: ...
    @property
    def id(self) -> bytes | None: ...
    @property
    def task(self) -> str | None: ...
    @property
    def origin(self) -> LoggedCall | LoggedTask | None: ...


class LoggedTask(msgspec.Struct, frozen=True):
    """An agent's task, and the call that has asked for its execution; None where another daemon has."""

    task: str
    origin: LoggedCall | None = None


Bound: TypeAlias = LoggedCall | LoggedTask

BOUND: Final[ContextVar[Bound | None]] = ContextVar("discreet_bound", default=None)


@final
class Inline:
    """The call that runs on the thread of the loop without a task. Set by what runs it."""

    __slots__ = ("call", "thread")

    def __init__(self) -> None:
        self.call: LoggedCall | None = None
        self.thread = 0


INLINE: Final = Inline()


def bound() -> Bound | None:
    """What the running code works for; None for code of the daemon, or of threads of the app."""
    found = BOUND.get()
    if INLINE.call is not None and INLINE.thread == get_ident():
        return INLINE.call
    return found


def calling() -> LoggedCall | None:
    """The call that the running code works for, directly or for its task."""
    found = bound()
    return found.origin if isinstance(found, LoggedTask) else found


def add_bound(fields: dict[str, object]) -> None:
    """Name what the running code works for, as far as `fields` don't."""
    found = bound()
    if found is not None:
        add_names(fields, found)


def add_names(fields: dict[str, object], found: Bound | None) -> None:
    """Name this, and those for whom it works, as far as `fields` don't. An event about another method names no call."""
    given = fields.get("method")
    is_about_it = given is None
    while found is not None:
        if found.task is not None:
            fields.setdefault("task", found.task)
        if not isinstance(found, LoggedTask):
            is_about_it = is_about_it or given == found.method
            if is_about_it:
                fields.setdefault("method", found.method)
                if found.id is not None and found.id != b"null":
                    fields.setdefault("id", found.id)
        found = found.origin
