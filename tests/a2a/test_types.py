"""The table of transitions, every state with every state; and timestamps as the protocol writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    ceil_timestamp,
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


EAST = timezone(timedelta(hours=2))

WEST = timezone(timedelta(hours=-2))


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC), "2026-01-31T23:59:59.000Z"),
        (datetime(2026, 2, 1, 1, 59, 59, 999_000, EAST), "2026-01-31T23:59:59.999Z"),
        (datetime(2026, 1, 31, 23, 59, 59, 999_001, UTC), "2026-02-01T00:00:00.000Z"),
        (datetime(33, 1, 1, tzinfo=UTC), "0033-01-01T00:00:00.000Z"),
        (datetime(1, 1, 1, tzinfo=EAST), "0001-01-01T00:00:00.000Z"),
        (datetime(9999, 12, 31, 23, tzinfo=WEST), "9999-12-31T23:59:59.999Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_timestamp_is_in_utc_with_milliseconds(moment: datetime, text: str) -> None:
    assert ceil_timestamp(moment) == text


moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.sampled_from([UTC, EAST, WEST]))


@given(moments, moments)
def test_timestamps_sort_as_their_moments_do(one: datetime, other: datetime) -> None:
    timestamp = one.replace(microsecond=one.microsecond // 1000 * 1000)
    assert (ceil_timestamp(timestamp) >= ceil_timestamp(other)) == (timestamp >= other)
