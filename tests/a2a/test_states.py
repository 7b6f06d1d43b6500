"""The table of transitions: every state with every state."""

from __future__ import annotations

from itertools import product

import pytest

from discreet.a2a.errors import InvalidStateTransition
from discreet.a2a.types import (
    TRANSITIONS,
    Artifact,
    ArtifactChanged,
    Message,
    MessageAdded,
    Part,
    Role,
    StatusChanged,
    Task,
    TaskState,
    TaskStatus,
)
from discreet.agents.live_task import LiveTask

FINAL = {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}
WAITING = {TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED}


def live(state: TaskState) -> LiveTask:
    return LiveTask(Task("t", "c", TaskStatus(state)), 1, "", "me", lambda live: None)


@pytest.mark.parametrize(("current", "target"), [*product(TaskState, TaskState)])
def test_a_task_may_change_until_it_has_ended_but_never_back_to_submitted(
    current: TaskState, target: TaskState
) -> None:
    allowed = current not in FINAL and target is not TaskState.SUBMITTED
    assert (target in TRANSITIONS[current]) is allowed
    task = live(current)
    if allowed:
        task.publish(StatusChanged(TaskStatus(target)))
        assert (task.state, task.generation) == (target, 2)
    else:
        with pytest.raises(InvalidStateTransition) as refused:
            task.publish(StatusChanged(TaskStatus(target)))
        assert (refused.value.current, refused.value.target) == (current.value, target.value)
        assert (task.state, task.generation, task.pending) == (current, 1, [])


@pytest.mark.parametrize("state", [*TaskState], ids=lambda state: state.name)
def test_every_task_that_has_not_ended_accepts_artifacts_and_messages(state: TaskState) -> None:
    events = (
        ArtifactChanged(Artifact("a", (Part(text="x"),))),
        MessageAdded(Message("m", Role.USER, (Part(text="x"),))),
    )
    for event in events:
        task = live(state)
        if state in FINAL:
            with pytest.raises(InvalidStateTransition):
                task.publish(event)
        else:
            task.publish(event)
        assert task.generation == (1 if state in FINAL else 2)
