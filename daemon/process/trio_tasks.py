"""Has trio go on whatever a system task or a callback of an app raises, as asyncio does. Imported late: it imports trio.

trio takes both for faults of its own, and ends all tasks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio._core._run import Runner  # pyright: ignore[reportPrivateUsage]  # trio offers no hook

from ..logs import log


def outlive_system_tasks() -> None:
    """Have all that raises in them logged instead, in this process."""
    spawn = Runner.spawn_system_task

    def spawn_logged(runner: Runner, work: Callable[..., Awaitable[object]], *args: Any, **options: Any) -> Any:
        options["name"] = options.get("name") or work
        return spawn(runner, _run_logged, work, *args, **options)

    Runner.spawn_system_task = spawn_logged  # type: ignore[method-assign, assignment]


async def _run_logged(work: Callable[..., Awaitable[object]], *args: Any) -> None:
    """Run a system task, or what trio runs in one for a callback that raised."""
    try:
        await work(*args)
    except BaseException as exc:  # noqa: BLE001 - the boundary: a SystemExit is a fault like any other
        _, fault = BaseExceptionGroup("", [exc]).split(trio.Cancelled)  # they are cancelled at the end
        if fault is not None:
            log.error("loop.exception", message="a system task or a callback of trio raised", exc=exc)
