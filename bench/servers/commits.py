"""Commits of new tasks in a second by 1, 2 and 4 daemons on one database of PostgreSQL, each with one commit at a time.

    PYTHONPATH=src python -P bench/servers/commits.py postgresql://HOST/DATABASE

The database must be empty. `commit_delay = 10000` and `commit_siblings = 0` on a server whose disk is memory make it one whose
log takes 10 ms to write, whatever else the machine does.
"""

from __future__ import annotations

import sys
import threading
from time import monotonic

import anyio

from discreet.a2a.task import new_task
from discreet.a2a.types import Message, Part, Role, TaskCreated, new_id
from discreet.agents.stores.interface import QUEUED, TaskChange
from discreet.agents.stores.postgres.store import PostgresStore

SECONDS = 3.0


def a_change() -> TaskChange:
    task = new_task(Message(new_id(), Role.USER, (Part(text="hi"),)))
    return TaskChange(
        task_id=task.id,
        expected_generation=0,
        events=(TaskCreated(task),),
        scope="",
        context_id=task.context_id,
        state=task.status.state,
        status_timestamp=task.status.timestamp or "",
        owner=QUEUED,
        snapshot=task,
    )


async def commit(address: str, begin: threading.Barrier, counts: list[int]) -> None:
    store = PostgresStore(address)
    await store.open()
    begin.wait()
    count, end = 0, monotonic() + SECONDS
    while monotonic() < end:
        assert await store.commit([a_change()]) == [None]
        count += 1
    counts.append(count)
    await store.close()


def main() -> None:
    for daemons in (1, 2, 4):
        begin, counts = threading.Barrier(daemons), list[int]()
        threads = [
            threading.Thread(target=anyio.run, args=(commit, sys.argv[1], begin, counts)) for _ in range(daemons)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.stdout.write(f"{daemons} daemons: {sum(counts) / SECONDS:.0f} commits a second\n")


if __name__ == "__main__":
    main()
