"""`discreet replay`: sends a server what a recorded client sent, and reports every answer that differs.

stdout carries the differences. stderr carries the server's own, notes on what could not be played, and the summary.
"""

import argparse
import os

import msgspec

from ...client import ConnectionFailed, spawn
from ...client.json_path import parse_pattern
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.settings import UsageError
from ...errors.printable import printable
from ...errors.redaction import load_environment
from ...framing.events import Framing
from ...recording.format import RecordingError, read_recording
from ...recording.replay import WAIT_SECONDS, ReplayResult, replay
from ...recording.report import Difference, ReplayReport, compare
from ...recording.script import Script, build_script
from ..arguments import positive_seconds
from ..exit_status import EXIT_CONNECTION
from ..output import require_stdout, write_stderr, write_stdout
from ..signals import Interrupted, run_until_signal


class LoadedRecording(msgspec.Struct, frozen=True):
    """What is needed of a recording to replay it. `exit_status` is the server's, None unless it ended by itself."""

    script: Script
    framing: Framing
    exit_status: int | None


def load_recording(path: str, framing: Framing | None) -> LoadedRecording:
    """Read the file. `framing` None is the recorded one. Raises `UsageError` for a file that is no recording."""
    try:
        recording = read_recording(path)
        script = build_script(recording)
    except RecordingError as exc:
        raise UsageError(str(exc)) from exc
    recorded = recording.start.framing
    status = None if recording.end is None else recording.end.status
    return LoadedRecording(
        script,
        framing or ("content-length" if recorded == "auto" else recorded),  # never decided: the daemon's default
        None if status is None or status < 0 else status,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The recording, what may differ, and the server's command line after `--`."""
    parser.set_defaults(command=())
    parser.add_argument("file", metavar="FILE", help="a recording, as discreet record writes it")
    parser.add_argument(
        "--ignore",
        metavar="FIELD",
        action="append",
        default=[],
        type=_field_pattern,
        help="a field that may differ, as in result.entries[0].mtime; * is any one step, ** any number (repeatable)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=positive_seconds,
        default=WAIT_SECONDS,
        help=f"how long to wait for each message of the server (default: {WAIT_SECONDS:g})",
    )
    parser.add_argument(
        "--framing",
        choices=("content-length", "newline"),
        default=None,
        help="how messages are delimited (default: as recorded)",
    )


def run(args: argparse.Namespace) -> int:
    """Replay and print. Returns an exit status out of `REPLAY_STATUSES`; raises `UsageError` before anything is started."""
    if not args.command:
        raise UsageError("the server's command line goes after `--`: discreet replay FILE -- discreet serve")
    loaded = load_recording(args.file, args.framing)
    require_stdout()
    load_environment(os.environ)
    try:
        played, status = run_until_signal(_play, loaded, list(args.command), args.timeout)
    except ConnectionFailed as exc:
        write_stderr(str(exc))
        return EXIT_CONNECTION
    except Interrupted as exc:
        return exc.status
    report = compare(loaded.script, played, ignore=args.ignore)
    differences = (*report.differences, *_status_difference(loaded.exit_status, status))
    return _print(msgspec.structs.replace(report, differences=differences))


async def _play(loaded: LoadedRecording, command: list[str], timeout: float) -> tuple[ReplayResult, int | None]:
    async with spawn(command) as server:
        played = await replay(loaded.script, server, framing=loaded.framing, timeout=timeout)
    return played, server.returncode


def _status_difference(recorded: int | None, status: int | None) -> list[Difference]:
    if recorded is None or recorded == status:
        return []
    return [Difference("exit status", "", str(recorded), _status_text(status))]


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


def _field_pattern(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("it names nothing; ** is everything")
    try:
        parse_pattern(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
    return text
