"""What a daemon knows of a task of another one after it has read what there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.a2a.types import TaskState
from discreet.agents.cluster import EventFollower
from discreet.agents.live_task import LiveTask, TaskCache
from discreet.agents.stores.interface import LoggedEvent
from discreet.agents.stores.sqlite.store import SqliteStore
from support.roles import AlteredStore
from support.sqlite_files import opened
from support.task_changes import a_task, change, change_to, commit_all, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


class SlowLog(AlteredStore):
    """Its event log holds each answer back until the test lets it go."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.answers: list[anyio.Event] = []

    @property
    def event_log(self) -> SlowLog:
        return self

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[LoggedEvent]:
        batch: Sequence[LoggedEvent] = await self._inner.event_log.read(task_id, after=after, limit=limit)
        may_go = anyio.Event()
        self.answers.append(may_go)
        await may_go.wait()
        return batch


async def test_who_follows_a_task_has_all_that_was_stored_also_where_somebody_else_reads_it(tmp_path: Path) -> None:
    path = str(tmp_path / "tasks.db")
    lost: list[LiveTask] = []
    task = a_task("t", state=TaskState.WORKING)
    async with opened(SqliteStore(path)) as theirs, opened(SqliteStore(path)) as inner:
        await commit_all(theirs, change(task, owner=theirs.owner_id))
        ours = SlowLog(inner)
        cache = TaskCache(ours)
        cache.on_lost = lost.append
        following = EventFollower(cache)
        known: list[int] = []

        async def follow_to_the_end(live: LiveTask) -> None:
            await following.follow(live)
            known.append(live.generation)

        async with cache.pinned("t", None) as live, anyio.create_task_group() as group:
            with anyio.fail_after(DEADLINE_SECONDS):
                await commit_all(theirs, change_to(task, 1, [said("1")], owner=theirs.owner_id))
                group.start_soon(following.follow, live)
                await until(lambda: len(ours.answers) == 1)
                await commit_all(theirs, change_to(task, 2, [said("2"), said("3")], owner=theirs.owner_id))
                group.start_soon(follow_to_the_end, live)
                await until(lambda: len(ours.answers) == 2)
                ours.answers[0].set()
                await until(lambda: len(ours.answers) == 3)  # of the first event, whoever was first reads on
                ours.answers[1].set()

                def let_go() -> bool:
                    for answer in ours.answers:
                        answer.set()
                    return bool(known)

                await anyio.wait_all_tasks_blocked()
                assert not known
                await until(let_go)
        assert known == [4] and not lost
