"""What `discreet doctor` looks at without starting anything. Reads the surroundings, changes nothing."""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ..daemon.settings import OPTIONS, Resolved
from ..daemon.settings.sources import unknown_variables

Status: TypeAlias = Literal["ok", "warn", "fail"]


class Finding(Struct, frozen=True):
    """One line of the report. `warn` works but may surprise; `fail` does not work."""

    check: str
    status: Status
    message: str


class Surroundings(Struct, frozen=True):
    """What the checks look at."""

    resolved: Resolved
    environ: Mapping[str, str]


Check: TypeAlias = Callable[[Surroundings], Iterator[Finding]]

_PACKAGES: Final = ("anyio", "msgspec", "structlog")
_SPARE_FILES: Final = 32
"""Descriptors that the daemon itself and the interpreter need beside those of requests."""
_MESSAGE_COPIES: Final = 4
"""A body is in memory as bytes, as decoded values and as a reply at once; decoded values are the larger part."""
_USUAL_PIPE_BYTES: Final = 65_536
"""pipe(7). A user whose pipes use up the kernel's allowance gets smaller ones."""
_LONG_DRAIN: Final = 10.0
"""Seconds after which editors and supervisors usually kill what does not end."""


def python(_: Surroundings) -> Iterator[Finding]:
    """The interpreter."""
    name, version = platform.python_implementation(), platform.python_version()
    status: Status = "ok" if name == "CPython" else "warn"
    yield Finding("python", status, f"{name} {version}, {sys.executable}")


def packages(_: Surroundings) -> Iterator[Finding]:
    """The packages that the daemon cannot do without."""
    from importlib.metadata import PackageNotFoundError, version

    for name in _PACKAGES:
        try:
            yield Finding("packages", "ok", f"{name} {version(name)}")
        except PackageNotFoundError:
            yield Finding("packages", "fail", f"{name} is not installed")


def system(_: Surroundings) -> Iterator[Finding]:
    """What the operating system offers for noticing the parent's death."""
    name = f"{platform.system()} {platform.release()}"
    if _has_pidfd():
        yield Finding("platform", "ok", f"{name}, pidfd: the death of the parent is noticed at once")
    else:
        yield Finding("platform", "ok", f"{name}, no pidfd: the parent is looked for from time to time")


def settings(surroundings: Surroundings) -> Iterator[Finding]:
    """Where each setting that is not a default comes from."""
    resolved = surroundings.resolved
    for option in OPTIONS:
        if source := resolved.sources.get(option.field):
            value = getattr(resolved.settings, option.field)
            yield Finding("settings", "ok", f"{option.key} = {_shown(value)} (from {source})")
    if resolved.ignored:
        yield Finding("settings", "warn", resolved.ignored)
    if not resolved.sources:
        yield Finding("settings", "ok", "all defaults")
    for name in unknown_variables(surroundings.environ):
        yield Finding("settings", "warn", f"{name} is no variable of discreet and has no effect")


def limits(surroundings: Surroundings) -> Iterator[Finding]:
    """Limits of the process against those of the settings."""
    chosen = surroundings.resolved.settings
    files = _resource_limit("RLIMIT_NOFILE")
    if files is not None:
        needed = chosen.max_threads + _SPARE_FILES
        enough: Status = "ok" if files >= needed else "warn"
        yield Finding("limits", enough, f"{files} open files; max-concurrency may need {needed}")
    memory = min((limit for limit in (_resource_limit("RLIMIT_AS"), _group_memory()) if limit), default=None)
    if memory is not None:
        needed = chosen.max_message_bytes * _MESSAGE_COPIES
        enough = "ok" if memory >= needed else "warn"
        yield Finding("limits", enough, f"{memory} bytes of memory; a largest message may need {needed}")
    pipe = _pipe_bytes()
    if pipe is not None:
        yield Finding("limits", "ok" if pipe >= _USUAL_PIPE_BYTES else "warn", f"pipes hold {pipe} bytes")
    if chosen.drain_timeout > _LONG_DRAIN:
        yield Finding("limits", "warn", f"drain-timeout is {chosen.drain_timeout:g} s; most hosts kill sooner")
    if chosen.request_timeout is None:
        yield Finding("limits", "warn", "request-timeout is none: a request that hangs keeps its place for ever")


def log_sink(surroundings: Surroundings) -> Iterator[Finding]:
    """Whether log lines have somewhere to go."""
    path = surroundings.resolved.settings.log_file
    if not path:
        yield Finding("log", "ok", "stderr")
        return
    target = path if os.path.lexists(path) else os.path.dirname(path)
    usable = os.access(target, os.W_OK) and os.path.isdir(path) is False
    yield Finding("log", "ok" if usable else "warn", path if usable else f"{path} cannot be written; stderr it will be")


def encoding(_: Surroundings) -> Iterator[Finding]:
    """Messages are always UTF-8; names of files follow the locale."""
    name = sys.getfilesystemencoding()
    if name == "utf-8":
        yield Finding("encoding", "ok", "file names are UTF-8")
    else:
        yield Finding("encoding", "warn", f"file names are {name}; set PYTHONUTF8=1 or a UTF-8 locale")


class Quirk(Struct, frozen=True):
    """A habit of a client: the variables that betray it (with a value, or any), and what follows."""

    client: str
    signs: tuple[tuple[str, str], ...]
    advice: str
    framings: tuple[str, ...] = ("content-length", "auto")


_AGENT_ADVICE: Final = "hosts of MCP and ACP servers send one JSON text per line: --framing newline or auto"

QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk(
        "Emacs",
        (("INSIDE_EMACS", ""),),
        "jsonrpc.el and eglot need Content-Length within the first 100 bytes, where it is; they do not speak newline",
    ),
    Quirk(
        "VS Code",
        (("VSCODE_PID", ""), ("TERM_PROGRAM", "vscode")),
        "adds --stdio and --clientProcessId=N to the command line; both are accepted",
    ),
    Quirk("Neovim", (("NVIM", ""),), "takes every line on stderr for an error; --log-file keeps them out of its log"),
    Quirk("Zed", (("ZED_TERM", ""), ("TERM_PROGRAM", "zed")), _AGENT_ADVICE, ("newline", "auto")),
    Quirk("Claude Code", (("CLAUDECODE", ""),), _AGENT_ADVICE, ("newline", "auto")),
)


def quirks(surroundings: Surroundings) -> Iterator[Finding]:
    """What is known of the clients in whose terminal or below which this runs."""
    framing = surroundings.resolved.settings.framing
    for quirk in QUIRKS:
        found = (surroundings.environ.get(name) for name, _ in quirk.signs)
        if any(value and expected in ("", value) for value, (_, expected) in zip(found, quirk.signs, strict=True)):
            fits = framing in quirk.framings
            advice = quirk.advice if fits else f"{quirk.advice} (framing is {framing})"
            yield Finding("clients", "ok" if fits else "warn", f"{quirk.client}: {advice}")


CHECKS: Final[tuple[Check, ...]] = (python, packages, system, settings, limits, log_sink, encoding, quirks)
"""In the order of the report."""


def _has_pidfd() -> bool:
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an old kernel, or a sandbox that refuses the call
        return False
    return True


def _resource_limit(name: str) -> int | None:
    """The soft limit of this process; None where there is none."""
    if sys.platform == "win32":
        return None
    import resource

    soft = resource.getrlimit(getattr(resource, name))[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _group_memory() -> int | None:
    """The memory limit of this control group (cgroups v2, as seen from within a container)."""
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _pipe_bytes() -> int | None:
    if sys.platform != "linux":
        return None
    import fcntl

    reading, writing = os.pipe()
    try:
        return fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)
    finally:
        os.close(reading)
        os.close(writing)


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(str, value)) or "none"
        case None:
            return "none"
        case "":
            return "stderr"
        case _:
            return str(value)
