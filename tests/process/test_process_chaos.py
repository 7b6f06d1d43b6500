"""Daemons of all roles on one store while processes and connections fail at random: nothing is lost, every message is executed once and
in its order, and every task ends.

`bench/chaos` runs the same for longer. Where one fails, its seed there shows more.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.chaos.run import Options, Outcome, run_chaos

pytestmark = [pytest.mark.needs("uvicorn"), pytest.mark.needs("httptools")]

SEED = 5


def disturbed(folder: Path, store: str, *, roles: bool = True, resuming: bool = True, tasks: int = 60) -> Outcome:
    return run_chaos(
        Options(
            store=store,
            seed=SEED,
            seconds=10.0,
            tasks=tasks,
            conversations=12 if resuming else 0,
            fronts=2,
            both=1,
            begin_seconds=6.0,
            task_seconds=6.0,
            pause=0.4,
            fault_pause=1.0,
            longest_fault=6.0,
            roles=roles,
            resuming=resuming,
        ),
        folder,
    )


@pytest.mark.parametrize("store", ["sqlite", "postgresql", "redis"])
def test_nothing_is_lost_and_every_task_ends_while_daemons_and_their_store_fail(tmp_path: Path, store: str) -> None:
    outcome = disturbed(tmp_path, store)
    assert outcome.wrong == []
    assert outcome.faults


def test_daemons_that_all_do_both_lose_nothing_either(tmp_path: Path) -> None:
    assert disturbed(tmp_path, "sqlite", roles=False).wrong == []


def test_an_agent_that_can_not_resume_loses_no_task_without_a_reason(tmp_path: Path) -> None:
    assert disturbed(tmp_path, "sqlite", resuming=False, tasks=30).wrong == []
