"""`discreet replay`: says to a server what a recorded client said, and reports what it answers differently.

stdout carries the differences; stderr the rest: the server's own, what could not be result, and the sum.
"""

import argparse
import os
from collections.abc import Mapping
from typing import Final

import msgspec

from ...client import ConnectionFailed, spawn
from ...client.json_path import parse_pattern
from ...daemon.lifecycle import EXIT_OK
from ...daemon.printable import printable
from ...daemon.settings import UsageError
from ...errors.redaction import load_environment
from ...framing.events import Framing
from ...recording.format import Recording, RecordingError, read_recording
from ...recording.json_values import JSON_ERRORS
from ...recording.replay import WAIT_SECONDS, ReplayResult, replay
from ...recording.report import Difference, ReplayReport, compare
from ...recording.script import Script, build_script
from .. import interrupts
from ..exit_status import EXIT_CONNECTION
from ..output import complain, out, require_stdout

EXIT_DIFFERENT: Final = 1

MEANINGS: Final[Mapping[int, str]] = {
    EXIT_OK: "the server answered as recorded",
    EXIT_DIFFERENT: "it answered differently, or nobody reads stdout any more",
    2: "the command line is wrong, or FILE is no recording; nothing was started",
    EXIT_CONNECTION: "the server could not be started",
    **interrupts.MEANINGS,
}
"""Every exit status; docs/recording.md says the same."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The recording, what may differ, and the server behind `--`."""
    parser.set_defaults(command=())
    parser.add_argument("file", metavar="FILE", help="what discreet record wrote")
    parser.add_argument(
        "--ignore",
        metavar="FIELD",
        action="append",
        default=[],
        type=_place,
        help="what may differ, as in result.entries[0].mtime; * is any one step, ** any number (repeatable)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=WAIT_SECONDS,
        help=f"how long to wait for what the server had said (default: {WAIT_SECONDS:g})",
    )
    parser.add_argument(
        "--framing",
        choices=("content-length", "newline"),
        default=None,
        help="how messages are told apart (default: as recorded)",
    )


def run(args: argparse.Namespace) -> int:
    """Replay and print. Returns an exit status out of `MEANINGS`; raises `UsageError` before anything is started."""
    if not args.command:
        raise UsageError("the server stands behind `--`: discreet replay FILE -- discreet serve")
    recording, script = _read(args.file)
    require_stdout()
    load_environment(os.environ)
    framing = args.framing or _framing(recording)
    try:
        result, status = interrupts.run_until_signal(_play, script, list(args.command), framing, args.timeout)
    except ConnectionFailed as exc:
        complain(str(exc))
        return EXIT_CONNECTION
    except interrupts.Interrupted as exc:
        return exc.status
    report = compare(script, result, ignore=args.ignore)
    return _report(msgspec.structs.replace(report, differences=(*report.differences, *_ends(recording, status))))


def _read(path: str) -> tuple[Recording, Script]:
    try:
        recording = read_recording(path)
        return recording, build_script(recording)
    except OSError as exc:
        raise UsageError(f"{path}: {os.strerror(exc.errno or 0)}") from exc
    except RecordingError as exc:
        raise UsageError(str(exc)) from exc
    except JSON_ERRORS as exc:
        raise UsageError(f"{path}: a message in it is no JSON") from exc


def _framing(recording: Recording) -> Framing:
    """What the recorded client spoke. Where nobody said anything while it was to be found out, the daemon's default."""
    framing = recording.start.framing
    return "content-length" if framing == "auto" else framing


async def _play(
    script: Script, command: list[str], framing: Framing, timeout: float
) -> tuple[ReplayResult, int | None]:
    async with spawn(command) as server:
        result = await replay(script, server, framing=framing, timeout=timeout)
    return result, server.returncode


def _ends(recording: Recording, status: int | None) -> list[Difference]:
    """How the two ends differ, where the recorded server ended by itself."""
    end = recording.end
    if end is None or end.status is None or end.status < 0 or end.status == status:
        return []
    return [Difference("exit status", "", str(end.status), _status(status))]


def _status(status: int | None) -> str:
    if status is None:
        return "it does not end"
    return str(status) if status >= 0 else f"ended by signal {-status}"


def _report(report: ReplayReport) -> int:
    for note in report.notes:
        complain(note)
    for difference in report.differences:
        out("\n".join(map(printable, str(difference).split("\n"))))
    complain(str(report))
    return EXIT_DIFFERENT if report.differences else EXIT_OK


def _place(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("it names nothing; ** is everything")
    try:
        parse_pattern(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0")
    return seconds
