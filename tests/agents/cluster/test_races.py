"""Messages to one task that come at several daemons at once: each is queued, executed once, and answered by its turn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from discreet.agents.runtime import Role
from support.places import NewStore
from support.races import Asking, race
from support.roles import FRONT, WORKER
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("works", [False, True], ids=["at once", "with events"])
@pytest.mark.parametrize(
    ("senders", "roles"),
    [(8, (Role(), Role())), (16, (FRONT, FRONT, FRONT, FRONT, WORKER)), (8, (FRONT, Role(), WORKER))],
    ids=["all do both", "four fronts and a worker", "each role"],
)
async def test_messages_that_race_to_one_task_are_queued_and_each_is_answered_by_its_turn(
    works: bool, senders: int, roles: Sequence[Role], serving: Any, on_any_store: NewStore
) -> None:
    executor = Asking(works=works)
    async with AsyncExitStack() as daemons:
        handlers = [await daemons.enter_async_context(serving(executor, on_any_store(), role=role)) for role in roles]
        with anyio.fail_after(DEADLINE_SECONDS):
            outcome = await race(handlers, senders=senders, messages=2)
    assert outcome.faults(executor.texts) == {}
    assert len(executor.texts) == 1 + senders * 2
