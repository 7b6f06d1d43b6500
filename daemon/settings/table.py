"""The table of settings. Flags, variables, keys, help, completion and documentation derive from it.

A field is a row: its type, its default, and what `Row` adds. The annotations are evaluated when this module is
imported, so it must not use `from __future__ import annotations`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, final

from msgspec import Struct

from .. import plugins
from .option import MEMORY, SERVICES, Option, Row, options_of

FramingSetting: TypeAlias = Literal["content-length", "newline", "auto"]

HTTP: Final = "HTTP"
_PROTOCOL: Final = "protocol"
_LIFECYCLE: Final = "time-outs and lifecycle"
_LOGS: Final = "logs"

_DAY: Final = 86_400.0
_MIB: Final = 1024 * 1024


@final
class Settings(Struct, frozen=True, kw_only=True):
    """The settings of `discreet serve`. Times are in seconds, sizes in bytes; `resolve_settings` makes paths absolute."""

    apps: Annotated[
        tuple[str, ...],
        Row(
            "a service to host: an installed module's, or a file's; may be repeated",
            group=SERVICES,
            kind="apps",
            default="the built-in fs service",
        ),
    ] = ()
    app_dir: Annotated[
        str | None,
        Row(
            "a directory whose modules are importable, too, where no installed one has the name",
            kind="directory",
            default="none: only what is installed, and what stands beside an app's file",
        ),
    ] = None
    root: Annotated[
        str,
        Row(
            "the directory that the fs service serves; nothing outside it is reachable",
            kind="directory",
            default="the working directory",
        ),
    ] = "."
    allow_write: Annotated[bool, Row("let the fs service write below the root")] = False
    scopes: Annotated[
        tuple[str, ...] | None,
        Row(
            "a scope that callers have; may be repeated; an empty one grants no scope",
            found_file="yes",
            default="all scopes",
        ),
    ] = None
    tokens: Annotated[
        tuple[str, ...] | None,
        Row(
            "a bearer token that is accepted, as SUBJECT:SHA256[:SCOPE+SCOPE]; may be repeated",
            kind="tokens",
            default="none: callers need no token",
        ),
    ] = None
    identity: Annotated[
        str | None, Row("an identity provider of your own, as an app is named, instead of tokens", kind="object")
    ] = None
    jwt_issuer: Annotated[str | None, Row("accept the tokens of this issuer: the value of their iss")] = None
    jwt_audience: Annotated[
        str | None,
        Row("what the tokens must be issued for: a value of their aud", default="none; needed with jwt-issuer"),
    ] = None
    jwt_jwks: Annotated[
        str | None,
        Row(
            "the issuer's public keys, a JSON Web Key Set, as a file or an address",
            kind="keys",
            default="none; needed with jwt-issuer, unless there is auth-introspect",
        ),
    ] = None
    jwt_algorithms: Annotated[
        tuple[str, ...] | None,
        Row("an algorithm of the tokens' signatures, of public keys; may be repeated", default="RS256 and ES256"),
    ] = None
    auth_introspect: Annotated[
        str | None,
        Row("ask this address of the issuer whether tokens are active (RFC 7662), instead of keys", kind="url"),
    ] = None
    auth_client: Annotated[
        str | None,
        Row(
            "a file with the client as which auth-introspect is asked: ID:SECRET",
            kind="readable",
            default="none; needed with auth-introspect",
        ),
    ] = None
    credentials: Annotated[
        tuple[str, ...] | None,
        Row("a credential for services or imports that declare it, in a file; may be repeated", kind="files"),
    ] = None
    imports: Annotated[
        tuple[Any, ...],  # `ImportSettings` of imports/settings, which who imports something loads
        Row("operations of an OpenAPI document, as NAME=FILE or NAME=URL; may be repeated", kind="imports"),
    ] = ()
    import_private: Annotated[bool, Row("allow calls of imported operations to private addresses")] = False
    store: Annotated[
        str,
        Row(
            "where the agent keeps its tasks: memory; sqlite:PATH, postgresql://... or redis://... to outlive it",
            kind="store",
        ),
    ] = MEMORY
    role: Annotated[
        Literal["both", "front", "worker"],
        Row("of daemons on one store: a front takes calls and leaves the work to workers; both does both"),
    ] = "both"
    max_runs: Annotated[
        int,
        Row(
            "how many tasks may be worked on here when more are taken from the store's queue",
            found_file="lower",
            limits=(1, 1024),
        ),
    ] = 100
    max_ended_tasks: Annotated[
        int, Row("how many tasks that have ended the store keeps; the oldest are deleted first", limits=(0, 10**12))
    ] = 10_000
    ended_task_seconds: Annotated[
        float | None, Row("how long it keeps them; 0 or none means for ever", limits=(1, 100 * 365 * 86_400.0))
    ] = _DAY
    push_private: Annotated[bool, Row("allow push notifications to private and loopback addresses")] = False
    dialect: Annotated[
        str | None,
        Row(
            "what clients speak; auto goes by the first message",
            group=_PROTOCOL,
            kind="dialect",
            default="what the services declare, else plain",
        ),
    ] = None
    acp_version: Annotated[
        int, Row("the latest version of ACP that is spoken; 2 is a draft, which still changes", limits=(1, 2))
    ] = 1
    tool_search: Annotated[
        bool, Row("list two tools of MCP, search_tools and call_tool, in the place of all others")
    ] = False
    tcp: Annotated[
        str | None,
        Row(
            "serve one client at HOST:PORT or unix:PATH in the place of stdin and stdout, as editors do to debug a server",
            kind="address",
            default="none: stdin and stdout",
        ),
    ] = None
    framing: Annotated[
        FramingSetting | None,
        Row(
            "how messages are separated; auto chooses by the first byte: { or [ means newline",
            default="that of the dialect: newline for mcp and acp, auto for auto, else content-length",
        ),
    ] = None
    ordered: Annotated[bool, Row("run requests one at a time, in the order of arrival", found_file="yes")] = False
    max_concurrency: Annotated[
        int,
        Row("how many requests may run on the event loop at the same time", found_file="lower", limits=(1, 100_000)),
    ] = 1024
    max_threads: Annotated[
        int, Row("how many requests may run in worker threads at the same time", found_file="lower", limits=(1, 1000))
    ] = 64
    max_call_depth: Annotated[
        int, Row("how deep operations may call each other", found_file="lower", limits=(1, 10_000))
    ] = 64
    max_message_bytes: Annotated[
        int, Row("the largest message body that is accepted", found_file="lower", limits=(1, 1024 * _MIB))
    ] = 10 * _MIB
    max_header_bytes: Annotated[
        int, Row("the largest header block that is accepted", found_file="lower", limits=(64, _MIB))
    ] = 8192
    max_memory: Annotated[
        int,
        Row(
            "what requests, replies, events, watches and tasks may take in memory together",
            found_file="lower",
            limits=(16 * _MIB, 1024 * 1024 * _MIB),
        ),
    ] = 512 * _MIB
    frame_timeout: Annotated[
        float,
        Row("the time limit from the first byte of a message to its last", found_file="lower", limits=(0.01, _DAY)),
    ] = 30.0
    http: Annotated[
        str | None,
        Row(
            "serve A2A by HTTP, too, at HOST:PORT or unix:PATH",
            group=HTTP,
            kind="address",
            default="none: stdin and stdout only",
        ),
    ] = None
    grpc: Annotated[
        str | None, Row("serve A2A by gRPC, too, at HOST:PORT; unix:PATH is refused", kind="address", default="none")
    ] = None
    no_stdio: Annotated[bool, Row("serve by HTTP and gRPC only; stdin is not read")] = False
    http_operations: Annotated[bool, Row("serve operations by HTTP, too: POST /operations/NAME, GET /openapi.json")] = (
        False
    )
    http_metrics: Annotated[bool, Row("serve metrics for Prometheus, too: GET /metrics")] = False
    http_open: Annotated[bool, Row("let anybody call who reaches an address beyond this machine")] = False
    http_page: Annotated[bool, Row("serve a page for people at the address itself")] = False
    http_url: Annotated[
        str | None,
        Row(
            "the public address, for the agent card, where a proxy stands in front",
            kind="url",
            default="what the client asks for",
        ),
    ] = None
    http_hosts: Annotated[
        tuple[str, ...] | None,
        Row(
            "a name that clients may ask for; may be repeated; *.example.org for all below it",
            default="this machine's own names on a loopback address, else any",
        ),
    ] = None
    http_origins: Annotated[
        tuple[str, ...] | None,
        Row("an origin whose web pages may call, such as https://app.example; may be repeated; * for all"),
    ] = None
    http_cert: Annotated[
        str | None, Row("the certificate chain for TLS, in PEM form", kind="readable", default="none: no TLS")
    ] = None
    http_key: Annotated[
        str | None,
        Row("the certificate's private key, in PEM form", kind="readable", default="in the file of the certificate"),
    ] = None
    http_mcp: Annotated[bool, Row("serve the operations as tools at /mcp, too (Streamable HTTP of MCP)")] = False
    mcp_key: Annotated[
        str | None,
        Row(
            "the secret keys that daemons behind one balancer share, a line each; what the first has sealed, all open",
            kind="readable",
            default="a random key of this process",
        ),
    ] = None
    card_key: Annotated[
        str | None,
        Row(
            "private keys that sign the agent's card, in PEM form; each of them signs", kind="readable", default="none"
        ),
    ] = None
    http_keep_alive: Annotated[
        float,
        Row(
            "how often a stream that is silent gets a comment, so that proxies keep it open",
            found_file="yes",
            limits=(0.05, 3600),
        ),
    ] = 15.0
    http_max_connections: Annotated[
        int, Row("how many connections one address may have", found_file="lower", limits=(1, 1_000_000))
    ] = 1024
    http_max_requests: Annotated[
        int,
        Row(
            "how many requests of one caller may be under way, streams among them",
            found_file="lower",
            limits=(1, 100_000),
        ),
    ] = 1024
    http_max_sessions: Annotated[
        int, Row("how many sessions of MCP one caller may have", found_file="lower", limits=(1, 100_000))
    ] = 1024
    http_session_timeout: Annotated[
        float, Row("how long an unused session of MCP lasts", found_file="lower", limits=(0.05, 86_400))
    ] = 1800.0
    request_timeout: Annotated[
        float | None,
        Row(
            "the deadline of a query or mutation; 0 or none means no deadline",
            found_file="lower",
            group=_LIFECYCLE,
            limits=(0.001, _DAY),
        ),
    ] = 30.0
    blocked_after: Annotated[
        float | None,
        Row(
            "log a handler that keeps the event loop this long; 0 or none means never",
            found_file="yes",
            limits=(0.01, _DAY),
        ),
    ] = 0.25
    drain_timeout: Annotated[
        float,
        Row(
            "how long running requests may take at the end; a quarter, at most 0.5 s, is kept for the last answers",
            found_file="lower",
            limits=(0, 3600),
        ),
    ] = 2.0
    parent_pid: Annotated[
        int | None,
        Row(
            "end when this process has ended",
            limits=(1, 2**32 - 1),
            default="the process that started the daemon",
            flag_aliases=("--clientProcessId",),
        ),
    ] = None
    reload: Annotated[bool, Row("restart when files of the services change; the connection stays open")] = False
    debug: Annotated[
        bool, Row("stop at breakpoint() until `discreet attach` lets it go on; no request has a deadline")
    ] = False
    backend: Annotated[
        Literal["asyncio", "uvloop", "trio"],
        Row("the event loop; uvloop (`pip install discreet[uvloop]`) and trio (for tests) must be installed"),
    ] = "asyncio"
    log_level: Annotated[
        Literal["debug", "info", "warn", "error"] | None,
        Row(
            "the lowest level that is logged",
            found_file="yes",
            group=_LOGS,
            default="warn when stderr is a pipe, else info",
            synonyms={"warning": "warn"},
        ),
    ] = None
    log_format: Annotated[
        Literal["auto", "console", "keyvalue", "json", "journald"],
        Row(
            "the form of a log line; auto means console on a terminal, journald under systemd, else keyvalue",
            found_file="yes",
        ),
    ] = "auto"
    log_file: Annotated[
        str | None,
        Row(
            "a file that log lines are appended to, or - for stderr",
            kind="file",
            variable="DISCREET_LOG",
            default="stderr",
        ),
    ] = None
    """Empty for an explicit stderr (`-`), None if not set."""
    otel: Annotated[bool, Row("record spans of OpenTelemetry, as its own variables say (OTEL_…)")] = False
    no_color: Annotated[
        bool, Row("no colours, not even on a terminal", found_file="yes", presence_variable="NO_COLOR")
    ] = False

    def framing_in(self, dialect: str) -> FramingSetting:
        """How messages are separated where clients speak this. Raises `PluginError`."""
        if self.framing is not None:
            return self.framing
        if dialect == plugins.AUTO:
            return "auto"
        framing: FramingSetting = plugins.load("dialect", dialect).FRAMING
        return framing

    @property
    def listens(self) -> bool:
        """Whether clients may come by HTTP or gRPC."""
        return self.http is not None or self.grpc is not None

    @property
    def uses_stdio(self) -> bool:
        """Whether a client speaks by stdin and stdout, and not by `--tcp` or HTTP alone."""
        return not self.no_stdio and self.tcp is None


OPTIONS: Final = tuple(options_of(Settings()))
"""The rows, in the order of the documentation."""

OPTION_OF: Final[Mapping[str, Option]] = {option.field: option for option in OPTIONS}
"""The rows by field."""
