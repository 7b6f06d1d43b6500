"""Daemons of all roles on one store while processes and connections fail at random, and answers are lost: nothing else is, every message is
executed once and in its order, also one that is sent again, no step runs again that is stored, and every task ends.

`bench/chaos` runs the same for longer. Where one fails, its seed there shows more.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.chaos.run import Options, run_chaos

pytestmark = [pytest.mark.needs(name) for name in ("httptools", "httpx")]

SEED = 5


@pytest.mark.parametrize(
    ("store", "roles", "resuming", "steps"),
    [("postgresql", True, True, True), ("redis", False, True, False), ("sqlite", True, False, False)],
    ids=["postgresql, steps", "redis, all do both", "sqlite, no resume"],
)
def test_nothing_is_lost_and_every_task_ends_while_daemons_and_their_store_fail(
    tmp_path: Path, store: str, roles: bool, resuming: bool, steps: bool
) -> None:
    options = Options(
        store=store,
        seed=SEED,
        seconds=7.0,
        tasks=40,
        conversations=10 if resuming else 0,
        losses=3,
        fronts=2,
        both=1,
        begin_seconds=4.0,
        task_seconds=4.0,
        pause=0.4,
        fault_pause=0.8,
        longest_fault=4.0,
        roles=roles,
        resuming=resuming,
        steps=steps,
    )
    outcome = run_chaos(options, tmp_path)
    assert outcome.wrong == []
    assert outcome.faults
