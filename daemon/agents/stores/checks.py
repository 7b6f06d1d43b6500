"""What every store demands of a change before it makes it. Stores nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from ..model.types import Created
from .interface import Change, ConflictError, Query

MOST_PER_PAGE: Final = 100

READ_BYTES: Final = 4 * 1024 * 1024
"""About how much `read` hands out at a time."""

KEEP_ENDED: Final = 10_000
"""Tasks that have ended and are still there."""

KEEP_SECONDS: Final = 24 * 3600.0
"""How long they are."""

_LARGEST_NUMBER: Final = 2**63 - 1


def check(changes: Sequence[Change]) -> None:
    """Raises `ValueError` where changes can't stand beside each other, or create a task from nothing."""
    if len({change.task_id for change in changes}) < len(changes):
        raise ValueError("one change per task")
    for change in changes:
        if change.expected == 0 and not (change.events and isinstance(change.events[0], Created)):
            raise ValueError("a task begins with Created")


class Standing(Protocol):
    """How it stands with a task."""

    @property
    def generation(self) -> int: ...

    @property
    def owner(self) -> str | None: ...


def conflict(change: Change, standing: Standing | None, me: str) -> ConflictError | None:
    """Whether the task (None: there is none) is no longer what a change by the daemon `me` is meant for."""
    last, owner = (0, None) if standing is None else (standing.generation, standing.owner)
    allowed = owner in (None, me) if change.taken_from is None else owner == change.taken_from
    if change.expected == last and allowed:
        return None
    return ConflictError(change.task_id, last, owner)


def number_below(query: Query) -> int:
    """The number of change that a page's tasks are below. Raises `ValueError` for what is no token, or no size."""
    if not 1 <= query.size <= MOST_PER_PAGE:
        raise ValueError("a page has 1 to 100 tasks")
    token = query.token
    if not token:
        return _LARGEST_NUMBER
    if not (token.isascii() and token.isdigit() and token[0] != "0" and int(token[:20]) <= _LARGEST_NUMBER):
        raise ValueError("no token of this store")
    return int(token)
