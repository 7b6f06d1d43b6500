"""`discreet doctor`: looks at the surroundings, tries the daemon out, and says what it found."""

import argparse
import os
import sys
from collections.abc import Iterator

import msgspec

from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.printable import printable
from ...daemon.settings import Resolved, UsageError
from ...daemon.settings.flags import add_setting_flags, from_flags, to_argv
from ..doctor_checks import CHECKS, Finding, Surroundings
from ..doctor_trial import judge, try_out
from ..output import out
from .serve import resolved


class Report(msgspec.Struct, frozen=True):
    """The document that `--json` prints. `ok` means that nothing failed."""

    ok: bool
    findings: list[Finding]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `serve`, whose daemon is tried out, and the form of the report."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_setting_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Examine and report; 1 when something failed."""
    findings = []
    for finding in examine(args):
        findings.append(finding)
        if not args.json:
            out(f"{finding.status:<4}  {finding.check:<8}  {printable(finding.message)}")
    failed = sum(finding.status == "fail" for finding in findings)
    if args.json:
        out(msgspec.json.encode(Report(not failed, findings)).decode())
    else:
        warned = sum(finding.status == "warn" for finding in findings)
        out(f"\n{failed} failed, {warned} to look at, {len(findings) - failed - warned} ok")
    return EXIT_FAILED if failed else EXIT_OK


def examine(args: argparse.Namespace) -> Iterator[Finding]:
    """All findings, one after the other as they are made."""
    try:
        found = resolved(args)
    except UsageError as exc:
        yield Finding("settings", "fail", str(exc))
        return
    for check in CHECKS:
        yield from check(Surroundings(found, os.environ))
    yield from _trial(args, found)


def _trial(args: argparse.Namespace, found: Resolved) -> Iterator[Finding]:
    """The daemon as it was asked for, but for its log, which is read here."""
    command = [sys.executable, "-P", "-m", "discreet", "serve", *to_argv(from_flags(args))]
    command += ["--log-file=-", "--log-format=json", "--log-level=info"]
    framing = found.settings.framing
    yield from judge(try_out(command, framing), framing, found.settings.drain_timeout)
