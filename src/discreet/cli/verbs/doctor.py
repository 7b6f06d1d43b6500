"""`discreet doctor`: checks the environment, tries the daemon out, and reports what it found. Changes nothing."""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ...client.dialects import DIALECTS
from ...daemon import plugins
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.settings import OPTIONS, Resolved, Settings, UsageError, resolve_here
from ...daemon.settings.option import without_password
from ...daemon.settings.resolution import unknown_variables
from ...errors.printable import printable
from ...errors.redaction import load_environment, scrub_secrets
from ...flags import file_from_flags, from_flags, to_argv
from ..commands import SERVE
from ..conversation import Finding, Status, converse, declared_dialect, start_unasked
from ..exit_status import run_until_signal
from ..output import write_stdout


class Report(msgspec.Struct, frozen=True):
    """The document that `--json` prints. `ok` means that nothing failed."""

    ok: bool
    findings: list[Finding]


def run(args: argparse.Namespace) -> int:
    """Run the checks and the conversations, and report. Returns 1 if something failed, else 0."""
    findings = []
    load_environment(os.environ)
    for found in examine(args):
        finding = replace(found, message=scrub_secrets(found.message)[0])  # whatever a setting or a server holds
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
    command = [
        *SERVE,
        *to_argv(from_flags(args), file_from_flags(args)),
        "--log-file=-",  # here, instead of where it is set to go
        "--log-format=json",
        "--log-level=info",
    ]
    settings = found.settings
    if settings.dialect is None and settings.apps and settings.uses_stdio:
        settings = replace(settings, dialect=run_until_signal(declared_dialect, command))
    for check in CHECKS:
        yield from check(replace(found, settings=settings), os.environ)
    if settings.uses_stdio:
        yield from try_out(command, settings)
    else:
        source = found.sources["tcp" if settings.tcp else "no_stdio"]
        yield Finding(
            "reply", "warn", f"the doctor speaks on stdin and stdout, which {source} closes: it starts nothing"
        )


def try_out(command: Sequence[str], settings: Settings) -> Iterator[Finding]:
    """Start the daemon once for each dialect that it is to speak, and talk to it as a client of that one."""
    chosen = settings.dialect or "plain"
    for dialect in plugins.BUILT_IN["dialect"] if chosen == "auto" else (chosen,):
        if dialect not in DIALECTS:  # of an installed package
            yield Finding(
                dialect, "warn", f"the doctor does not speak {dialect}: it starts the daemon and asks nothing"
            )
            yield from run_until_signal(start_unasked, command)
            return
        usual, framing = DIALECTS[dialect].framing, settings.framing_in(chosen)
        if dialect != "plain" and framing not in ("auto", usual):
            yield Finding(dialect, "warn", f"clients of {dialect} use --framing {usual}, and the framing is {framing}")
        spoken = usual if framing == "auto" else framing
        talk = partial(converse, command, spoken, dialect, drain_seconds=settings.drain_timeout)
        findings = run_until_signal(talk)
        yield from findings
        if any(finding.check == "reply" and finding.status == "fail" for finding in findings):
            return  # no client would get further


# -- the checks that start nothing --------------------------------------------------------------------------------

Check: TypeAlias = Callable[[Resolved, Mapping[str, str]], Iterator[Finding]]
"""Takes the resolved settings and the environment variables."""

EXTRAS: Final[dict[str, tuple[str, str, str]]] = {
    "cli": ("rich", "JSON on a terminal has no colours", "'discreet[cli]'"),
    "fast": ("ahocorasick_rs", "logs are scrubbed more slowly", "'discreet[fast]'"),
    "grpc": ("grpc", "agents are not served by gRPC", "'discreet[grpc]'"),
    "http": ("httptools", "agents are neither served nor called by HTTP", "'discreet[http]'"),
    "install": ("tomlkit", "no server can be written into the settings of Codex", "'discreet[install]'"),
    "jwt": ("jwt", "callers can't be told apart by JSON Web Tokens", "'discreet[jwt]'"),
    "mcp": ("jsonschema_rs", "no MCP server and no other daemon can be imported", "'discreet[mcp]'"),
    "metrics": ("prometheus_client", "there are no metrics by HTTP", "'discreet[metrics]'"),
    "openapi": ("yaml", "no OpenAPI document can be imported", "'discreet[openapi]'"),
    "otel": ("opentelemetry", "no spans are recorded", "'discreet[otel]'"),
    "postgres": ("psycopg", "tasks can't be kept in PostgreSQL", "'discreet[postgres]'"),
    "push": ("h11", "agents send no push notifications", "'discreet[push]'"),
    "redis": ("redis", "tasks can't be kept in Redis", "'discreet[redis]'"),
    "uvloop": ("uvloop", "there is no --backend uvloop", "'discreet[uvloop]'"),
    "watch": ("watchfiles", "fs/watch lists directories at intervals", "'discreet[watch]'"),
    "trio": ("trio", "the backend is asyncio", "trio"),
}
"""Of each extra: its module, what is missing without it, and what to install."""
_SPARE_FILES: Final = 32
"""Descriptors that the daemon and the interpreter need in addition to those of requests."""
_LONG_DRAIN: Final = 10.0
"""Seconds after which editors and supervisors usually kill a process that does not end."""


def check_python(*_: object) -> Iterator[Finding]:
    """Check the interpreter."""
    name, version = platform.python_implementation(), platform.python_version()
    yield Finding("python", "ok" if name == "CPython" else "warn", f"{name} {version}, {sys.executable}")


def check_extras(*_: object) -> Iterator[Finding]:
    """Say what each optional package adds, and how to install it."""
    for extra, (module, without, install) in EXTRAS.items():
        there = find_spec(module) is not None
        what = f"{module} is installed" if there else f"without {module} {without}; pip install {install}"
        yield Finding("extras", "ok", f"{extra}: {what}")


def check_settings(resolved: Resolved, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Say where each setting comes from that is not a default."""
    for option in OPTIONS:
        if source := resolved.sources.get(option.field):
            value = getattr(resolved.settings, option.field)
            shown = without_password(value) if option.kind == "store" else _shown(value)
            yield Finding("settings", "ok", f"{option.key} = {shown} (from {source})")
    if resolved.ignored:
        yield Finding("settings", "warn", resolved.ignored)
    if not resolved.sources:
        yield Finding("settings", "ok", "all defaults")
    for name in unknown_variables(environ):
        yield Finding("settings", "warn", f"{name} is not a variable of discreet and has no effect")


def check_limits(resolved: Resolved, _: object) -> Iterator[Finding]:
    """Compare the limits of the process with those of the settings."""
    chosen = resolved.settings
    if sys.platform != "win32":
        import resource

        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        needed = chosen.max_threads + _SPARE_FILES
        if files != resource.RLIM_INFINITY:
            enough: Status = "ok" if files >= needed else "warn"
            yield Finding("limits", enough, f"{files} open files, of which max-threads may need {needed}")
    if chosen.drain_timeout > _LONG_DRAIN:
        message = f"drain-timeout is {chosen.drain_timeout:g} s; most hosts kill a process sooner"
        yield Finding("limits", "warn", message)
    if chosen.request_timeout is None:
        yield Finding("limits", "warn", "request-timeout is none: a request that hangs is never ended")


def check_log(resolved: Resolved, _: object) -> Iterator[Finding]:
    """Check whether the log file can be written."""
    path = resolved.settings.log_file
    if not path:
        yield Finding("log", "ok", "stderr")
        return
    target = path if os.path.lexists(path) else os.path.dirname(path)
    if os.access(target, os.W_OK) and not os.path.isdir(path):
        yield Finding("log", "ok", path)
    else:
        yield Finding("log", "warn", f"{path} cannot be written; the daemon will log to stderr")


CHECKS: Final[tuple[Check, ...]] = (check_python, check_extras, check_settings, check_limits, check_log)
"""In the order of the report."""


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(str(getattr(each, "shown", each)) for each in value) or "none"
        case None:
            return "none"
        case "":
            return "stderr"
        case _:
            return str(value)
