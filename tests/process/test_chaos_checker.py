"""The checkers of chaos runs find what they are there to find, and nothing else."""

from __future__ import annotations

import pytest

from discreet.a2a.task import NOT_EXECUTED_TEXT
from support.chaos.checker import (
    TaskLog,
    fault_of_segment,
    faults_of_log,
    faults_of_promises,
    faults_of_subscriber,
    states_of,
)
from support.chaos.client import RETRIED
from support.chaos.executions import Run, faults_of_marks, faults_of_order, faults_of_steps, faults_of_turns, overlaps
from support.chaos.figures import run_notes
from support.chaos.plan import Conversation, Mail, Plan, Work
from support.chaos.record import Begun, Key, Seen, Segment, Subscriber, Talk

KEYS: list[Key] = [
    ("status", "TASK_STATE_WORKING", "m begin"),
    ("artifact", "1 a-0 0.0", ""),
    ("artifact", "2 a-0 0.0", ""),
    ("status", "TASK_STATE_COMPLETED", "n done"),
]


def a_log(keys: list[Key] = KEYS, numbers: list[int] | None = None, *, published: list[str] | None = None) -> TaskLog:
    """A task with these events, whose numbers are 2 and so on."""
    texts = [text for kind, text, _ in keys if kind == "artifact"] if published is None else published
    events = [Seen(number, key, 0.0) for number, key in zip(numbers or range(2, 9), keys, strict=False)]
    messages = [{"messageId": "first", "role": "ROLE_USER"}, {"messageId": "m", "role": "ROLE_AGENT"}]
    last = [text for kind, text, _ in keys if kind == "status"][-1]
    status = {"state": last, "message": {"messageId": "n"}}
    task = {"status": status, "history": messages, "artifacts": [{"parts": [{"text": text} for text in texts]}]}
    return TaskLog(task, events, list(states_of(keys)))


def begun(**more: bool) -> Begun:
    work = Work(name="t", numbers=2, pause=0.0)
    plan = Plan(work=work, at=0.0, streamed=False, subscribers=1, cancel_at=0, note_at=0, look_at=frozenset())
    return Begun(plan, "c", {"first"}, **more)


def segment(events: list[Seen], after: int | None = 1) -> Segment:
    return Segment(0, 0.0, after, None, events)


def test_a_log_as_it_should_be_has_no_fault() -> None:
    log = a_log()
    assert [*faults_of_log(log), *faults_of_promises(log, begun(), resuming=True)] == []
    assert fault_of_segment(segment(log.events), log) == ""
    assert fault_of_segment(segment(log.events[1:], after=2), log) == ""


@pytest.mark.parametrize(
    "log",
    [
        a_log(numbers=[2, 3, 5, 6]),
        a_log(numbers=[2, 4, 3, 5]),
        a_log(KEYS[:-1]),
        a_log([*KEYS, KEYS[-1]]),
        a_log([*KEYS, KEYS[1]]),
        a_log([KEYS[0], KEYS[2], KEYS[1], KEYS[3]]),
        a_log([KEYS[0], KEYS[1], KEYS[1], KEYS[3]]),
        a_log([*KEYS[:2], ("artifact", "2 b-0 0.0", ""), ("artifact", "3 a-0 0.0", ""), KEYS[3]]),
        a_log(published=["1 a-0 0.0"]),
    ],
    ids=[
        "lost",
        "out of order",
        "no end",
        "two ends",
        "after the end",
        "swapped",
        "twice",
        "two owners",
        "another task",
    ],
)
def test_a_fault_of_a_log_is_found(log: TaskLog) -> None:
    log.task["status"]["state"] = "TASK_STATE_COMPLETED"
    assert [*faults_of_log(log)] != []


def test_what_was_acknowledged_and_is_not_there_is_found() -> None:
    log = a_log()
    of_message = begun()
    of_message.messages.add("second")
    assert [*faults_of_promises(log, of_message, resuming=True)] != []
    assert [*faults_of_promises(log, begun(canceled=True, cancel_asked=True), resuming=True)] != []
    failed = a_log([*KEYS[:3], ("status", "TASK_STATE_FAILED", "n lost")])
    assert [*faults_of_promises(failed, begun(), resuming=True)] != []
    assert [*faults_of_promises(failed, begun(), resuming=False)] == []


@pytest.mark.parametrize("came", [[0, 2], [0, 1, 1], [1, 0], [1]], ids=["lost", "twice", "swapped", "the first"])
def test_a_fault_of_a_stream_is_found(came: list[int]) -> None:
    log = a_log()
    assert fault_of_segment(segment([log.events[index] for index in came]), log) != ""


def test_a_subscriber_that_did_not_see_the_end_is_found() -> None:
    log = a_log()
    subscriber = Subscriber("t", [segment(log.events)])
    assert [*faults_of_subscriber(subscriber, log)] != []
    subscriber.ended = True
    assert [*faults_of_subscriber(subscriber, log)] == []


# -- executions -------------------------------------------------------------------------------------------------------

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


def test_an_execution_with_steps_goes_on_with_execute_and_not_after_the_next() -> None:
    assert list(faults_of_turns(runs("A A B last"), "A B last".split(), COMPLETED, stepping=True)) == []
    assert list(faults_of_turns(runs("A B A last"), "A B last".split(), COMPLETED, stepping=True)) != []


@pytest.mark.parametrize(
    ("told", "frozen", "wrong"),
    [
        ("effect effect stored", [], 0),
        ("effect stored effect", [], 1),
        ("effect stored effect", [(1.5, 2.5, 7)], 0),
        ("effect stored effect", [(1.5, 2.5, 8)], 1),
    ],
)
def test_a_step_that_ran_after_it_was_stored_is_found(
    told: str, frozen: list[tuple[float, float, int]], wrong: int
) -> None:
    notes = run_notes(f"{at} {kind} 7 run-{at} task A pay" for at, kind in enumerate(told.split()))
    assert len(list(faults_of_steps(notes, frozen))) == wrong
    assert list(faults_of_steps([*notes, *run_notes(["9 effect 7 run-9 task B pay"])], frozen))[wrong:] == []


@pytest.mark.parametrize(
    ("told", "marked", "state", "wrong"),
    [
        ("A", {"B": NOT_EXECUTED_TEXT}, COMPLETED, ""),
        ("A B", {"B": "The daemon has gone"}, COMPLETED, ""),
        ("A B", {"B": NOT_EXECUTED_TEXT}, COMPLETED, "and was"),
        ("A", {}, COMPLETED, "is not marked"),
        ("A", {}, WAITING, ""),
    ],
)
def test_a_message_of_an_ended_task_was_executed_or_says_that_it_was_not(
    told: str, marked: dict[str, str], state: str, wrong: str
) -> None:
    found = list(faults_of_marks(runs(told), ["A", "B"], marked, state))
    assert [wrong in text for text in found] == ([True] if wrong else [])


@pytest.mark.parametrize(("history", "wrong"), [("A B C", 0), ("B A C", 1), ("A C B", 0)])
def test_messages_that_were_sent_one_after_the_other_are_in_this_order(history: str, wrong: int) -> None:
    mail = Mail(name="A", ticks=1, pause=0.0)
    talk = Talk(Conversation(name="t", at=0.0, first=mail, sendings=[], last=mail))
    talk.acknowledged, talk.sent = {"A": 1.0, "B": 4.0, "C": 5.0}, {"A": 0.0, "B": 2.0, "C": 3.0}
    assert len(list(faults_of_order(talk, history.split()))) == wrong


def test_no_client_sends_again_what_was_refused_as_a_conflict() -> None:
    assert "TASK_CONFLICT" not in RETRIED
