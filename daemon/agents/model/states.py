"""How a task moves, as one table: what is not in it is illegal. Applies nothing and knows nothing of storage.

    submitted ──► working ◄──► input-required, auth-required     interrupted: the task waits for its caller
        │            │               │
        └────────────┴───────┬───────┘
                             ▼
          completed, failed, canceled, rejected                  terminal: nothing changes any more

An agent may skip `working`, and may say the same state again with another message (A2A 1.0 section 4.1.3 and "Life of
a Task").
"""

from __future__ import annotations

from typing import Final

from .types import TaskState

TERMINAL: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
INTERRUPTED: Final = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
RESTING: Final = TERMINAL | INTERRUPTED
"""States in which nobody works on the task."""

_FOLLOWING: Final = frozenset({TaskState.WORKING}) | INTERRUPTED | TERMINAL

TABLE: Final[dict[TaskState, frozenset[TaskState]]] = {
    TaskState.SUBMITTED: _FOLLOWING,
    TaskState.WORKING: _FOLLOWING,
    TaskState.INPUT_REQUIRED: _FOLLOWING,
    TaskState.AUTH_REQUIRED: _FOLLOWING,
    TaskState.COMPLETED: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELED: frozenset(),
    TaskState.REJECTED: frozenset(),
}


def may_follow(current: TaskState, target: TaskState) -> bool:
    """Whether a task may go from one state to the other."""
    return target in TABLE[current]
