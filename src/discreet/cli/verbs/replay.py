"""`discreet replay`: sends a server what a recorded client sent, and reports every answer that differs.

stdout carries the differences. stderr carries the server's own, notes on what could not be played, and the summary.
"""

import argparse
import os

import msgspec

from ...client import ConnectionFailed, spawn
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.settings import UsageError
from ...errors.printable import printable
from ...errors.redaction import load_environment
from ...recording.format import RecordingError, read_recording
from ...recording.replay import Difference, ReplayReport, ReplayResult, Script, build_script, compare, replay
from ..exit_status import EXIT_CONNECTION, run_until_signal
from ..output import require_stdout, write_stderr, write_stdout


def load_script(path: str) -> Script:
    """Read the script of a recording. Raises `UsageError` for a file that is none."""
    try:
        return build_script(read_recording(path))
    except RecordingError as exc:
        raise UsageError(str(exc)) from exc


def run(args: argparse.Namespace) -> int:
    """Replay and print. Returns an exit status; raises `UsageError` before anything is started."""
    if not args.command:
        raise UsageError("the server's command line goes after `--`: discreet replay FILE -- discreet serve")
    script = load_script(args.file)
    require_stdout()
    load_environment(os.environ)
    try:
        played, status = run_until_signal(_play, script, args)
    except ConnectionFailed as exc:
        write_stderr(str(exc))
        return EXIT_CONNECTION
    report = compare(script, played, ignore=args.ignore)
    recorded = script.exit_status
    if recorded is not None and recorded != status:
        ended = Difference("exit status", "", str(recorded), _status_text(status))
        report = msgspec.structs.replace(report, differences=(*report.differences, ended))
    return _print(report)


async def _play(script: Script, args: argparse.Namespace) -> tuple[ReplayResult, int | None]:
    async with spawn(list(args.command)) as server:
        played = await replay(script, server, framing=args.framing or script.framing, timeout=args.timeout)
    return played, server.returncode


def _status_text(status: int | None) -> str:
    if status is None:
        return "it does not end"
    return str(status) if status >= 0 else f"ended by signal {-status}"


def _print(report: ReplayReport) -> int:
    for note in report.notes:
        write_stderr(note)
    for difference in report.differences:
        write_stdout("\n".join(map(printable, str(difference).split("\n"))))
    write_stderr(str(report))
    return EXIT_FAILED if report.differences else EXIT_OK
