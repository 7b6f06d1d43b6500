"""The checks of `discreet doctor` that start nothing. They read the environment and change nothing."""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ...daemon.settings import OPTIONS, Resolved
from ...daemon.settings.imports import ImportSettings
from ...daemon.settings.option import without_password
from ...daemon.settings.resolution import unknown_variables

Status: TypeAlias = Literal["ok", "warn", "fail"]


class Finding(Struct, frozen=True):
    """One line of the report. `warn` works but may surprise; `fail` does not work."""

    check: str
    status: Status
    message: str


class CheckContext(Struct, frozen=True):
    """What the checks read: the resolved settings and the environment variables."""

    resolved: Resolved
    environ: Mapping[str, str]


Check: TypeAlias = Callable[[CheckContext], Iterator[Finding]]

EXTRAS: Final[dict[str, tuple[str, str, str]]] = {
    "cli": ("rich", "JSON on a terminal has no colours", "'discreet[cli]'"),
    "fast": ("ahocorasick_rs", "logs are scrubbed more slowly", "'discreet[fast]'"),
    "http": ("uvicorn", "agents are neither served nor called by HTTP", "'discreet[http]'"),
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


def check_python(_: CheckContext) -> Iterator[Finding]:
    """The interpreter."""
    name, version = platform.python_implementation(), platform.python_version()
    status: Status = "ok" if name == "CPython" else "warn"
    yield Finding("python", status, f"{name} {version}, {sys.executable}")


def check_extras(_: CheckContext) -> Iterator[Finding]:
    """What is optional: what each of these packages adds, and how to install it."""
    from importlib.util import find_spec

    for extra, (module, without, install) in EXTRAS.items():
        if find_spec(module) is not None:
            yield Finding("extras", "ok", f"{extra}: {module} is installed")
        else:
            yield Finding("extras", "ok", f"{extra}: without {module} {without}; pip install {install}")


def check_settings(context: CheckContext) -> Iterator[Finding]:
    """The source of each setting that is not a default."""
    resolved = context.resolved
    for option in OPTIONS:
        if source := resolved.sources.get(option.field):
            value = getattr(resolved.settings, option.field)
            shown = without_password(value) if option.kind == "store" else _shown(value)
            yield Finding("settings", "ok", f"{option.key} = {shown} (from {source})")
    if resolved.ignored:
        yield Finding("settings", "warn", resolved.ignored)
    if not resolved.sources:
        yield Finding("settings", "ok", "all defaults")
    for name in unknown_variables(context.environ):
        yield Finding("settings", "warn", f"{name} is not a variable of discreet and has no effect")


def check_limits(context: CheckContext) -> Iterator[Finding]:
    """The limits of the process, compared with those of the settings."""
    chosen = context.resolved.settings
    files = _open_files()
    if files is not None:
        needed = chosen.max_threads + _SPARE_FILES
        enough: Status = "ok" if files >= needed else "warn"
        yield Finding("limits", enough, f"{files} open files, of which max-threads may need {needed}")
    if chosen.drain_timeout > _LONG_DRAIN:
        yield Finding(
            "limits", "warn", f"drain-timeout is {chosen.drain_timeout:g} s; most hosts kill a process sooner"
        )
    if chosen.request_timeout is None:
        yield Finding("limits", "warn", "request-timeout is none: a request that hangs is never ended")


def check_log(context: CheckContext) -> Iterator[Finding]:
    """Whether the log file can be written."""
    path = context.resolved.settings.log_file
    if not path:
        yield Finding("log", "ok", "stderr")
        return
    target = path if os.path.lexists(path) else os.path.dirname(path)
    usable = os.access(target, os.W_OK) and os.path.isdir(path) is False
    yield Finding(
        "log",
        "ok" if usable else "warn",
        path if usable else f"{path} cannot be written; the daemon will log to stderr",
    )


CHECKS: Final[tuple[Check, ...]] = (
    check_python,
    check_extras,
    check_settings,
    check_limits,
    check_log,
)
"""In the order of the report."""


def _open_files() -> int | None:
    """How many files this process may open; None for no limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(each.shown if isinstance(each, ImportSettings) else str(each) for each in value) or "none"
        case None:
            return "none"
        case "":
            return "stderr"
        case _:
            return str(value)
