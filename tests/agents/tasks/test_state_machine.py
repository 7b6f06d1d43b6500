"""Any mix of senders, watchers, cancels and restarts: every answer agrees with the log of its task, and all are answered."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.a2a.task import apply_events
from discreet.a2a.types import TaskEvent
from discreet.agents.stores.memory import MemoryStore
from support.task_world import Logging, LoggingAtOnce, Op, happen, moments_of

PROGRAMS = st.text("wappynsszq", max_size=5)


ENDS = st.sampled_from(["c", "c", "i", "i", "f", "j", "x", "", "r"])


ONE = "watch watch watch_slowly watch_slowly leave cancel get list go go"
"""The steps besides messages, with one daemon that goes on."""


def ops(kinds: str, daemons: int) -> st.SearchStrategy[list[Op]]:
    sends = st.builds(
        Op,
        st.sampled_from(["send", "at_once", "stream"]),
        st.sampled_from([None, 0, 0, 0, 1, 2]),
        st.builds(str.__add__, PROGRAMS, ENDS),
        st.integers(0, daemons - 1),
        st.integers(0, 6),
    )
    others = st.builds(
        Op,
        st.sampled_from(kinds.split()),
        st.integers(0, 3),
        st.just(""),
        st.integers(0, daemons - 1),
        st.integers(0, 6),
    )
    return st.lists(sends | others, min_size=2, max_size=24)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=60)
@given(
    script=ops(ONE, 1), replies=st.booleans(), steps=st.booleans(), logging=st.sampled_from([Logging, LoggingAtOnce])
)
def test_callers_of_one_daemon_get_answers_that_agree_with_the_log(
    backend: str, script: list[Op], replies: bool, steps: bool, logging: type[Logging]
) -> None:
    store = logging(MemoryStore(), {})

    async def run() -> None:
        (await happen(script, lambda: store, 1, replies=replies, steps=steps)).check(store.logs)

    anyio.run(run, backend=backend)


async def in_files(script: list[Op], daemons: int, steps: bool, on_file: Callable[[Path], Any]) -> None:
    logs: dict[str, list[TaskEvent]] = {}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "tasks.db")
        world = await happen(script, lambda: Logging(on_file(path), logs), daemons, steps=steps)
        store = on_file(path)
        await store.open()
        for task_id, log in logs.items():
            stored = await store.load(task_id)
            assert [each.generation for each in stored.later_events] == [
                *range(stored.snapshot_generation + 1, len(log) + 1)
            ]
            assert apply_events(stored.snapshot, [each.event for each in stored.later_events]) == moments_of(log)[-1]
        await store.close()
    world.check(logs)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=12)
@given(script=ops(f"{ONE} end kill", 1), steps=st.booleans())
def test_callers_of_a_daemon_that_is_started_again_get_answers_that_agree_with_the_log(
    killable, backend: str, script: list[Op], steps: bool
) -> None:
    anyio.run(in_files, script, 1, steps, killable, backend=backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=8)
@given(script=ops(f"{ONE} end kill", 2), steps=st.booleans())
def test_callers_of_two_daemons_on_one_file_get_answers_that_agree_with_the_log(
    killable, backend: str, script: list[Op], steps: bool
) -> None:
    anyio.run(in_files, script, 2, steps, killable, backend=backend)
