"""What the chaos harness calls wrong of executions, and what not."""

from __future__ import annotations

import pytest

from support.chaos.executions import Run, faults_of_turns, overlaps

COMPLETED, WAITING = "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"


def runs(told: str) -> list[Run]:
    """`A B:resume` are an execution of A and one of B by `resume`, one second each."""
    found = []
    for index, word in enumerate(told.split()):
        message, _, kind = word.partition(":")
        found.append(Run(kind or "execute", 1, message, index, index + 0.9, ended=True))
    return found


@pytest.mark.parametrize(
    ("told", "history", "state", "wrong"),
    [
        ("A B last", "A B last", COMPLETED, ""),
        ("A A:resume A:resume B last", "A B last", COMPLETED, ""),
        ("A B:resume last", "A B last", COMPLETED, ""),  # the kill came between the commit and the call
        ("A last", "A last /last-2", COMPLETED, ""),  # the task had ended before
        ("A B", "A B C", WAITING, "never executed"),
        ("A last", "A last B", COMPLETED, "never executed"),
        ("A C B", "A B C", WAITING, "out of order"),
        ("A B A:resume", "A B", WAITING, "executed again"),
        ("A B B", "A B", WAITING, "executed again"),
        ("A B", "A", WAITING, "out of order"),  # it is not in the history
        ("", "A", WAITING, "never executed"),
    ],
)
def test_turns_are_those_of_the_history(told: str, history: str, state: str, wrong: str) -> None:
    found = list(faults_of_turns(runs(told), history.split(), state))
    assert [wrong in text for text in found] == ([True] if wrong else [])


@pytest.mark.parametrize(
    ("last", "frozen", "wrong"), [(0.9, [], 0), (1.3, [], 1), (1.3, [(0.5, 1.4, 1)], 0), (1.3, [(0.5, 1.4, 2)], 1)]
)
def test_runs_of_one_task_do_not_overlap_but_by_a_stop(
    last: float, frozen: list[tuple[float, float, int]], wrong: int
) -> None:
    first, second = runs("A B")
    first.last = last
    assert len(list(overlaps([first, second], frozen))) == wrong
