"""`discreet doctor`: checks the environment, tries the daemon out, and reports what it found."""

import argparse
import os
from collections.abc import Iterator

import msgspec

from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.settings import Resolved, UsageError, resolve_here
from ...daemon.settings.flags import add_setting_flags, file_from_flags, from_flags, to_argv
from ...errors.printable import printable
from ..doctor.checks import CHECKS, CheckContext, Finding
from ..doctor.trial import run_trial, trial_findings
from ..output import write_stdout
from ..server_command import SERVE


class Report(msgspec.Struct, frozen=True):
    """The document that `--json` prints. `ok` means that nothing failed."""

    ok: bool
    findings: list[Finding]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `serve`, whose daemon is tried out, and the form of the report."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_setting_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Run the checks and the trial, and report. Returns 1 if something failed, else 0."""
    findings = []
    for finding in examine(args):
        findings.append(finding)
        if not args.json:
            write_stdout(f"{finding.status:<4}  {finding.check:<8}  {printable(finding.message)}")
    failed = sum(finding.status == "fail" for finding in findings)
    if args.json:
        write_stdout(msgspec.json.encode(Report(not failed, findings)).decode())
    else:
        warned = sum(finding.status == "warn" for finding in findings)
        write_stdout(f"\n{failed} failed, {warned} warned, {len(findings) - failed - warned} ok")
    return EXIT_FAILED if failed else EXIT_OK


def examine(args: argparse.Namespace) -> Iterator[Finding]:
    """Yield each finding as soon as it is made."""
    try:
        found = resolve_here(from_flags(args), file_from_flags(args))
    except UsageError as exc:
        yield Finding("settings", "fail", str(exc))
        return
    for check in CHECKS:
        yield from check(CheckContext(found, os.environ))
    yield from _trial(args, found)


def _trial(args: argparse.Namespace, found: Resolved) -> Iterator[Finding]:
    """Try out a daemon with these flags. Its log comes here instead of where it is set to go."""
    command = [
        *SERVE,
        *to_argv(from_flags(args), file_from_flags(args)),
        "--log-file=-",
        "--log-format=json",
        "--log-level=info",
    ]
    framing = found.settings.framing_in(found.settings.dialect or "plain")
    yield from trial_findings(run_trial(command, framing), framing, found.settings.drain_timeout)
