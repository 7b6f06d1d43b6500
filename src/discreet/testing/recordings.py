"""Recorded sessions as tests: what `discreet record` wrote is said again to services in memory, which must answer the same.

Reads recordings, never writes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, final

import anyio

from ..daemon.operations.access import IdentityProvider
from ..daemon.operations.service import Service
from ..errors.redaction import load_environment
from ..recording.format import read_recording
from ..recording.replay import WAIT_SECONDS, ReplayResult, replay
from ..recording.report import ReplayReport, compare
from ..recording.script import build_script
from .peers import framing_of, settings_of, wired

StrPath: TypeAlias = "str | os.PathLike[str]"


@final
class RecordingDiffers(AssertionError):
    """Services do not answer as recorded; the message holds every difference, `verdict` all that was seen."""

    def __init__(self, path: str, verdict: ReplayReport) -> None:
        super().__init__("\n".join([f"{path} goes differently", *map(str, verdict.differences), *verdict.notes]))
        self.verdict = verdict


def replayed(
    path: StrPath,
    *services: Service,
    ignore: Iterable[str] = (),
    timeout: float = WAIT_SECONDS,
    backend: str = "asyncio",
    provider: IdentityProvider | None = None,
    credentials: Mapping[str, str] | None = None,
    **settings: Any,  # those of `in_memory`
) -> ReplayReport:
    """Play a recorded session to services in memory; for plain tests, as it runs an event loop of its own (`backend`).

        @pytest.mark.parametrize("path", sorted(Path("tests/sessions").glob("*.jsonl")), ids=lambda path: path.stem)
        def test_sessions_go_as_recorded(path: Path) -> None:
            replayed(path, notes, ignore=["result.created"])

    `ignore` names what may differ, as `discreet replay --ignore` does; `timeout` is how long to wait for each thing that
    was said in the recording, in seconds. The rest is as in `in_memory`. The framing of the recording says nothing here.

    Returns what was compared, with notes on what could not be played. Raises `RecordingDiffers` (an `AssertionError`) with
    all differences, `RecordingError` for a file that is no recording, `OSError`, `ValueError` for an `ignore` that names no
    place, and what `in_memory` raises.
    """
    script = build_script(read_recording(path))
    load_environment(os.environ)

    chosen = settings_of(settings)

    async def run() -> ReplayResult:
        async with wired(services, chosen, provider=provider, credentials=credentials) as transport:
            return await replay(script, transport, framing=framing_of(chosen.framing), timeout=timeout)

    verdict = compare(script, anyio.run(run, backend=backend), ignore=ignore)
    if verdict.differences:
        raise RecordingDiffers(os.fspath(path), verdict)
    return verdict
