"""`discreet doctor`: checks the environment, tries the daemon out, and reports what it found."""

import argparse
import os
from collections.abc import Iterator, Sequence
from importlib import import_module

import msgspec
from msgspec.structs import replace

from ...client.dialects import DIALECTS
from ...daemon import plugins
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.settings import Settings, UsageError, resolve_here
from ...errors.printable import printable
from ...errors.redaction import load_environment, scrub_secrets
from ...flags import add_setting_flags, file_from_flags, from_flags, to_argv
from ...framing.events import Framing
from ..arguments import SERVE
from ..doctor.checks import CHECKS, CheckContext, Finding
from ..doctor.conversation import Talk, converse, declared_dialect, talk_plain
from ..output import write_stdout
from ..signals import Interrupted, run_until_signal


def talk_in(dialect: str) -> Talk:
    """What a client of this dialect says and asks. Each but the plain one loads the tables of its protocol."""
    return talk_plain if dialect == "plain" else import_module(f"discreet.cli.doctor.{dialect}").talk


class Report(msgspec.Struct, frozen=True):
    """The document that `--json` prints. `ok` means that nothing failed."""

    ok: bool
    findings: list[Finding]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `serve`, whose daemon is tried out, and the form of the report."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_setting_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Run the checks and the conversations, and report. Returns 1 if something failed, else 0."""
    findings = []
    load_environment(os.environ)
    try:
        for found in examine(args):
            finding = replace(found, message=scrub_secrets(found.message)[0])  # whatever a setting or a server holds
            findings.append(finding)
            if not args.json:
                write_stdout(f"{finding.status:<4}  {finding.check:<8}  {printable(finding.message)}")
    except Interrupted as exc:
        return exc.status
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
    command = [
        *SERVE,
        *to_argv(from_flags(args), file_from_flags(args)),
        "--log-file=-",  # here, instead of where it is set to go
        "--log-format=json",
        "--log-level=info",
    ]
    settings = found.settings
    if settings.dialect is None and settings.apps:
        settings = replace(settings, dialect=run_until_signal(declared_dialect, command))
    for check in CHECKS:
        yield from check(CheckContext(replace(found, settings=settings), os.environ))
    yield from try_out(command, settings)


def try_out(command: Sequence[str], settings: Settings) -> Iterator[Finding]:
    """Start the daemon once for each dialect that it is to speak, and talk to it as a client of that one."""
    chosen = settings.dialect or "plain"
    framing = settings.framing_in(chosen)
    for dialect in plugins.BUILT_IN["dialect"] if chosen == "auto" else (chosen,):
        if dialect not in DIALECTS:  # of an installed package
            yield Finding(dialect, "ok", f"the doctor does not speak {dialect}, so it has asked nothing")
            return
        usual = DIALECTS[dialect].framing
        if dialect != "plain" and framing not in ("auto", usual):
            yield Finding(dialect, "warn", f"clients of {dialect} use --framing {usual}, and the framing is {framing}")
        findings = run_until_signal(_conversation, command, usual if framing == "auto" else framing, dialect, settings)
        yield from findings
        if any(finding.check == "reply" and finding.status == "fail" for finding in findings):
            return  # nobody would get further


async def _conversation(command: Sequence[str], framing: Framing, dialect: str, settings: Settings) -> list[Finding]:
    return await converse(command, framing, dialect, talk_in(dialect), drain_seconds=settings.drain_timeout)
