"""The states of a task and the transitions between them, as one table; a transition that is not in it is illegal.

Applies no transition and knows nothing of storage.

    submitted ──► working ◄──► input-required, auth-required     interrupted: the task waits for its caller
        │            │               │
        └────────────┴───────┬───────┘
                             ▼
          completed, failed, canceled, rejected                  terminal: nothing changes any more

An agent may skip `working`, and may set the same state again with another message (A2A 1.0 section 4.1.3 and "Life of
a Task").
"""

from __future__ import annotations

from typing import Final

from .types import TaskState

TERMINAL: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
INTERRUPTED: Final = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
INACTIVE: Final = TERMINAL | INTERRUPTED
"""States in which no execution runs."""

_NEXT: Final = frozenset({TaskState.WORKING}) | INACTIVE

TRANSITIONS: Final[dict[TaskState, frozenset[TaskState]]] = {
    TaskState.SUBMITTED: _NEXT,
    TaskState.WORKING: _NEXT,
    TaskState.INPUT_REQUIRED: _NEXT,
    TaskState.AUTH_REQUIRED: _NEXT,
    TaskState.COMPLETED: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELED: frozenset(),
    TaskState.REJECTED: frozenset(),
}


def can_transition(current: TaskState, target: TaskState) -> bool:
    """Whether a task may go from one state to the other."""
    return target in TRANSITIONS[current]
