"""The one table of settings. Flags, variables, keys, help, completion and documentation derive from it.

A field is a row: its type, its default, and what `Detail` adds. The annotations are read when this module is
imported, so `from __future__ import annotations` must not stand here.
"""

from typing import Annotated, Final, Literal, TypeAlias, final

from msgspec import Struct

from .option import MEMORY, Detail, Option, option_of

Framing: TypeAlias = Literal["content-length", "newline", "auto"]
LogLevel: TypeAlias = Literal["debug", "info", "warn", "error"]
LogFormat: TypeAlias = Literal["auto", "console", "keyvalue", "json", "journald"]
Backend: TypeAlias = Literal["asyncio", "trio"]

_SERVED: Final = "what is served"
_WIRE: Final = "the wire"
_LIFE: Final = "time and life"
_LOGS: Final = "logs"

_DAY: Final = 86_400.0
_MIB: Final = 1024 * 1024


@final
class Settings(Struct, frozen=True, kw_only=True):
    """What `discreet serve` runs with. Paths that `load` gives are absolute; times are in seconds, sizes in bytes."""

    apps: Annotated[
        tuple[str, ...],
        Detail(
            group=_SERVED,
            kind="apps",
            help="a service to host, as pkg.module:service; several may be given",
            default_text="the built-in fs service",
        ),
    ] = ()
    root: Annotated[
        str,
        Detail(
            group=_SERVED,
            kind="directory",
            help="the directory that the fs service serves; nothing outside it is reachable",
            default_text="the working directory",
        ),
    ] = "."
    allow_write: Annotated[bool, Detail(group=_SERVED, help="let the fs service write under the root")] = False
    scopes: Annotated[
        tuple[str, ...] | None,
        Detail(
            group=_SERVED,
            kind="words",
            key="scope",
            help="a scope that callers have; may be repeated, and an empty one grants none",
            default_text="all scopes",
        ),
    ] = None
    tokens: Annotated[
        tuple[str, ...] | None,
        Detail(
            group=_SERVED,
            kind="words",
            key="token",
            help="a bearer token that is accepted, as SUBJECT:SHA256[:SCOPE+SCOPE]; may be repeated",
            default_text="none: callers need no token",
        ),
    ] = None
    identity: Annotated[
        str | None,
        Detail(
            group=_SERVED,
            kind="object",
            help="an identity provider of your own, as pkg.module:object, instead of tokens",
            default_text="none",
        ),
    ] = None
    capabilities: Annotated[
        tuple[str, ...] | None,
        Detail(
            group=_SERVED,
            kind="words",
            key="capability",
            help="a credential for handlers that declare it, as NAME=FILE; may be repeated",
            default_text="none",
        ),
    ] = None
    store: Annotated[
        str,
        Detail(
            group=_SERVED, kind="store", help="where the agent keeps its tasks: memory, or sqlite:PATH to outlive it"
        ),
    ] = MEMORY
    push_private: Annotated[
        bool, Detail(group=_SERVED, help="let push notifications go to private and loopback addresses")
    ] = False
    framing: Annotated[
        Framing,
        Detail(group=_WIRE, help="how messages are told apart; auto goes by the first byte, { or [ means newline"),
    ] = "content-length"
    ordered: Annotated[
        bool, Detail(group=_WIRE, help="answer requests one after the other, in the order they came")
    ] = False
    max_concurrency: Annotated[
        int,
        Detail(
            group=_WIRE,
            unit="requests",
            least=1,
            most=100_000,
            help="how many requests may run on the event loop at the same time",
        ),
    ] = 1024
    max_threads: Annotated[
        int,
        Detail(
            group=_WIRE,
            unit="threads",
            least=1,
            most=1000,
            help="how many requests may run in worker threads at the same time",
        ),
    ] = 64
    max_call_depth: Annotated[
        int,
        Detail(
            group=_WIRE,
            unit="calls",
            least=1,
            most=10_000,
            help="how deep operations may call each other",
        ),
    ] = 64
    max_message_bytes: Annotated[
        int,
        Detail(group=_WIRE, unit="bytes", least=1, most=1024 * _MIB, help="the largest body of a message that is read"),
    ] = 10 * _MIB
    max_header_bytes: Annotated[
        int,
        Detail(group=_WIRE, unit="bytes", least=64, most=_MIB, help="the largest header block that is read"),
    ] = 8192
    frame_timeout: Annotated[
        float,
        Detail(
            group=_WIRE,
            unit="seconds",
            least=0.01,
            most=_DAY,
            help="how long a message may take from its first byte to its last",
        ),
    ] = 30.0
    request_timeout: Annotated[
        float | None,
        Detail(
            group=_LIFE,
            unit="seconds",
            least=0.001,
            most=_DAY,
            none_word="none",
            help="how long a query or mutation may run; 0 or none means no limit",
        ),
    ] = 30.0
    drain_timeout: Annotated[
        float,
        Detail(
            group=_LIFE,
            unit="seconds",
            least=0,
            most=3600,
            help="how long running requests get to finish when the daemon ends",
        ),
    ] = 2.0
    parent_pid: Annotated[
        int | None,
        Detail(
            group=_LIFE,
            least=1,
            most=2**32 - 1,
            other_flags=("--clientProcessId",),
            help="end when this process is gone",
            default_text="the process that started the daemon",
        ),
    ] = None
    reload: Annotated[
        bool, Detail(group=_LIFE, help="start anew when files of the services change; the client notices nothing")
    ] = False
    backend: Annotated[
        Backend, Detail(group=_LIFE, help="the event loop; trio has to be installed (advanced, for tests)")
    ] = "asyncio"
    log_level: Annotated[
        LogLevel | None,
        Detail(
            group=_LOGS, help="the least level that is logged", default_text="warn when stderr is a pipe, else info"
        ),
    ] = None
    log_format: Annotated[
        LogFormat,
        Detail(
            group=_LOGS,
            help="the form of a log line; auto is console on a terminal, journald under systemd, else keyvalue",
        ),
    ] = "auto"
    log_file: Annotated[
        str | None,
        Detail(
            group=_LOGS,
            kind="file",
            variable="DISCREET_LOG",
            help="a file that log lines are appended to, or - for stderr",
            default_text="stderr",
        ),
    ] = None
    """Empty when stderr was asked for by name (`-`), None when nothing was."""
    no_color: Annotated[bool, Detail(group=_LOGS, presence="NO_COLOR", help="no colours, not even on a terminal")] = (
        False
    )


OPTIONS: Final[tuple[Option, ...]] = tuple(
    option_of(field, Settings.__annotations__[field], getattr(Settings(), field))
    for field in Settings.__struct_fields__
)
"""The rows, in the order in which documentation lists them."""
