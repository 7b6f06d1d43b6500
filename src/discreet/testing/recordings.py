"""Recorded sessions as tests: replays what `discreet record` wrote to services in memory, which must answer the same.

Reads recordings, never writes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, final

import anyio

from ..client.validation import Backend, StrPath
from ..daemon.operations.access import IdentityProvider
from ..daemon.operations.service import Service
from ..errors.redaction import load_environment
from ..recording.format import read_recording
from ..recording.replay import WAIT_SECONDS, ReplayReport, ReplayResult, build_script, compare, replay
from .memory import check_hosted, client_framing, memory_daemon, refuse_event_loop, settings_of


@final
class RecordingDiffers(AssertionError):
    """Services answer otherwise than recorded. The message has every difference; `report` is the whole result."""

    def __init__(self, path: str, report: ReplayReport) -> None:
        super().__init__("\n".join([f"{path} is answered differently", *map(str, report.differences), *report.notes]))
        self.report = report


def replayed(
    path: StrPath,
    *services: Service,
    ignore: Iterable[str] = (),
    timeout: float = WAIT_SECONDS,
    backend: Backend = "asyncio",
    provider: IdentityProvider | None = None,
    credentials: Mapping[str, str] | None = None,
    **settings: Any,  # those of `in_memory`
) -> ReplayReport:
    """Replay a recorded session to services in memory. For tests that are plain functions: it runs an event loop (`backend`).

        @pytest.mark.parametrize("path", sorted(Path("tests/sessions").glob("*.jsonl")), ids=lambda path: path.stem)
        def test_sessions_are_answered_as_recorded(path: Path) -> None:
            replayed(path, notes, ignore=["result.created"])

    `ignore` names fields that may differ, as `discreet replay --ignore` does. `timeout` is how long to wait for each
    message of the server, in seconds. The other arguments are those of `in_memory`. The recorded framing has no effect.

    Returns the report, with notes on what could not be played. Raises `RecordingDiffers` (an `AssertionError`) with all
    differences, `RecordingError` for a file that is no recording or can't be read, `ValueError` for an `ignore` that names no
    field, `TypeError` without a service, `RuntimeError` where an event loop runs, and what `in_memory` raises.
    """
    __tracebackhide__ = True  # pytest shows the test's line, not this module
    refuse_event_loop("replayed")
    check_hosted(services)
    if not services:
        raise TypeError("no service is given: replayed(path, notes)")
    script = build_script(read_recording(path))
    load_environment(os.environ)

    chosen = settings_of(settings)

    async def run() -> ReplayResult:
        async with memory_daemon(services, chosen, provider=provider, credentials=credentials) as transport:
            return await replay(script, transport, framing=client_framing(chosen, services), timeout=timeout)

    report = compare(script, anyio.run(run, backend=backend), ignore=ignore)
    if report.differences:
        raise RecordingDiffers(os.fspath(path), report)
    return report
