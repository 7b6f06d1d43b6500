"""The table of settings. Flags, variables, keys, help, completion and documentation derive from it.

A field is a row: its type, its default, and what `OptionInfo` adds. The annotations are evaluated when this module is
imported, so it must not use `from __future__ import annotations`.
"""

from typing import Annotated, Final, Literal, TypeAlias, final

from msgspec import Struct

from .. import plugins
from .imports import ImportSettings
from .option import MEMORY, SERVICES, Option, OptionInfo, option_from_field

# The settings of the HTTP gateway: rows of the table of settings.
#
# The annotations are evaluated by it, so it must not use `from __future__ import annotations`.


HTTP: Final = "HTTP"

HttpAddress: TypeAlias = Annotated[
    str | None,
    OptionInfo(
        group=HTTP,
        found_file="no",
        kind="address",
        help="serve A2A by HTTP, too, at HOST:PORT or unix:PATH",
        default_text="none: stdin and stdout only",
    ),
]

HttpNoStdio: TypeAlias = Annotated[
    bool, OptionInfo(group=HTTP, found_file="no", help="serve by HTTP only; stdin is not read")
]

HttpOperations: TypeAlias = Annotated[
    bool,
    OptionInfo(
        group=HTTP, found_file="no", help="serve operations by HTTP, too: POST /operations/NAME, GET /openapi.json"
    ),
]

HttpMetrics: TypeAlias = Annotated[
    bool,
    OptionInfo(group=HTTP, found_file="no", help="serve metrics for Prometheus, too: GET /metrics"),
]

HttpOpen: TypeAlias = Annotated[
    bool,
    OptionInfo(group=HTTP, found_file="no", help="let anybody call who reaches an address beyond this machine"),
]

HttpPage: TypeAlias = Annotated[
    bool,
    OptionInfo(group=HTTP, found_file="no", help="serve a page for people at the address itself"),
]

HttpUrl: TypeAlias = Annotated[
    str | None,
    OptionInfo(
        group=HTTP,
        found_file="no",
        kind="url",
        help="the public address, for the agent card, where a proxy stands in front",
        default_text="what the client asks for",
    ),
]

HttpHosts: TypeAlias = Annotated[
    tuple[str, ...] | None,
    OptionInfo(
        group=HTTP,
        found_file="no",
        kind="words",
        key="http-host",
        help="a name that clients may ask for; may be repeated; *.example.org for all below it",
        default_text="this machine's own names on a loopback address, else any",
    ),
]

HttpOrigins: TypeAlias = Annotated[
    tuple[str, ...] | None,
    OptionInfo(
        group=HTTP,
        found_file="no",
        kind="words",
        key="http-origin",
        help="an origin whose web pages may call, such as https://app.example; may be repeated; * for all",
        default_text="none",
    ),
]

HttpCert: TypeAlias = Annotated[
    str | None,
    OptionInfo(
        group=HTTP,
        found_file="no",
        kind="readable",
        help="the certificate chain for TLS, in PEM form",
        default_text="none: no TLS",
    ),
]

HttpKey: TypeAlias = Annotated[
    str | None,
    OptionInfo(
        group=HTTP,
        found_file="no",
        kind="readable",
        help="the certificate's private key, in PEM form",
        default_text="in the file of the certificate",
    ),
]

HttpMcp: TypeAlias = Annotated[
    bool,
    OptionInfo(group=HTTP, found_file="no", help="serve the operations as tools at /mcp, too (Streamable HTTP of MCP)"),
]

HttpMaxSessions: TypeAlias = Annotated[
    int,
    OptionInfo(
        group=HTTP,
        found_file="lower",
        unit="sessions",
        minimum=1,
        maximum=100_000,
        help="how many sessions of MCP one caller may have",
    ),
]

HttpSessionTimeout: TypeAlias = Annotated[
    float,
    OptionInfo(
        group=HTTP,
        found_file="lower",
        unit="seconds",
        minimum=0.05,
        maximum=86_400,
        help="how long a session of MCP lasts that nobody uses",
    ),
]

HttpKeepAlive: TypeAlias = Annotated[
    float,
    OptionInfo(
        group=HTTP,
        found_file="yes",
        unit="seconds",
        minimum=0.05,
        maximum=3600,
        help="how often a stream that is silent gets a comment, so that proxies keep it open",
    ),
]

HttpMaxConnections: TypeAlias = Annotated[
    int,
    OptionInfo(
        group=HTTP,
        found_file="lower",
        unit="connections",
        minimum=1,
        maximum=1_000_000,
        help="how many connections one address may have",
    ),
]

HttpMaxRequests: TypeAlias = Annotated[
    int,
    OptionInfo(
        group=HTTP,
        found_file="lower",
        unit="requests",
        minimum=1,
        maximum=100_000,
        help="how many requests of one caller may be under way, streams among them",
    ),
]


# The settings of imported operations, and of the agent's tasks: rows of the table of settings.
#
# The annotations are evaluated by it, so it must not use `from __future__ import annotations`.


Imports: TypeAlias = Annotated[
    tuple[ImportSettings, ...],
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="imports",
        key="import",
        help="operations of an OpenAPI document, as NAME=FILE or NAME=URL; may be repeated",
        default_text="none",
    ),
]
ImportPrivate: TypeAlias = Annotated[
    bool, OptionInfo(group=SERVICES, found_file="no", help="allow calls of imported operations to private addresses")
]

Store: TypeAlias = Annotated[
    str,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="store",
        help="where the agent keeps its tasks: memory; sqlite:PATH, postgresql://... or redis://... to outlive it",
    ),
]
Role: TypeAlias = Annotated[
    Literal["both", "front", "worker"],
    OptionInfo(
        group=SERVICES,
        found_file="no",
        help="of daemons on one store: a front takes calls and leaves the work to workers; both does both",
    ),
]
MaxRuns: TypeAlias = Annotated[
    int,
    OptionInfo(
        group=SERVICES,
        found_file="lower",
        minimum=1,
        maximum=1024,
        help="how many tasks may be worked on here when more are taken from the store's queue",
    ),
]
MaxEndedTasks: TypeAlias = Annotated[
    int,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        minimum=0,
        maximum=10**12,
        help="how many tasks that have ended the store keeps; the oldest are deleted first",
    ),
]
EndedTaskSeconds: TypeAlias = Annotated[
    float | None,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        unit="seconds",
        minimum=1,
        maximum=100 * 365 * 86_400.0,
        none_word="none",
        help="how long it keeps them; 0 or none means for ever",
    ),
]


# The settings of JSON Web Tokens: rows of the table of settings.
#
# The annotations are evaluated by it, so it must not use `from __future__ import annotations`.


JwtIssuer: TypeAlias = Annotated[
    str | None,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="word",
        help="accept the JSON Web Tokens of this issuer: the value of their iss",
        default_text="none",
    ),
]

JwtAudience: TypeAlias = Annotated[
    str | None,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="word",
        help="what the tokens must be issued for: a value of their aud",
        default_text="none; needed with jwt-issuer",
    ),
]

JwtKeys: TypeAlias = Annotated[
    str | None,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="keys",
        help="the issuer's public keys, a JSON Web Key Set, as a file or an address",
        default_text="none; needed with jwt-issuer",
    ),
]

JwtAlgorithms: TypeAlias = Annotated[
    tuple[str, ...] | None,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="words",
        key="jwt-algorithm",
        help="an algorithm of the tokens' signatures, of public keys; may be repeated",
        default_text="RS256 and ES256",
    ),
]


FramingSetting: TypeAlias = Literal["content-length", "newline", "auto"]

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
        OptionInfo(
            group=SERVICES,
            found_file="no",
            kind="apps",
            help="a service to host: an installed module's, or a file's; may be repeated",
            default_text="the built-in fs service",
        ),
    ] = ()
    app_dir: Annotated[
        str | None,
        OptionInfo(
            group=SERVICES,
            found_file="no",
            kind="directory",
            help="a directory whose modules are importable, too, where no installed one has the name",
            default_text="none: only what is installed, and what stands beside an app's file",
        ),
    ] = None
    root: Annotated[
        str,
        OptionInfo(
            group=SERVICES,
            found_file="no",
            kind="directory",
            help="the directory that the fs service serves; nothing outside it is reachable",
            default_text="the working directory",
        ),
    ] = "."
    allow_write: Annotated[
        bool, OptionInfo(group=SERVICES, found_file="no", help="let the fs service write below the root")
    ] = False
    scopes: Annotated[
        tuple[str, ...] | None,
        OptionInfo(
            group=SERVICES,
            found_file="yes",
            kind="words",
            key="scope",
            help="a scope that callers have; may be repeated; an empty one grants no scope",
            default_text="all scopes",
        ),
    ] = None
    tokens: Annotated[
        tuple[str, ...] | None,
        OptionInfo(
            group=SERVICES,
            found_file="no",
            kind="tokens",
            key="token",
            help="a bearer token that is accepted, as SUBJECT:SHA256[:SCOPE+SCOPE]; may be repeated",
            default_text="none: callers need no token",
        ),
    ] = None
    identity: Annotated[
        str | None,
        OptionInfo(
            group=SERVICES,
            found_file="no",
            kind="object",
            help="an identity provider of your own, as an app is named, instead of tokens",
            default_text="none",
        ),
    ] = None
    jwt_issuer: JwtIssuer = None
    jwt_audience: JwtAudience = None
    jwt_jwks: JwtKeys = None
    jwt_algorithms: JwtAlgorithms = None
    credentials: Annotated[
        tuple[str, ...] | None,
        OptionInfo(
            group=SERVICES,
            found_file="no",
            kind="files",
            key="credential",
            help="a credential for handlers that declare it, in a file; may be repeated",
            default_text="none",
        ),
    ] = None
    imports: Imports = ()
    import_private: ImportPrivate = False
    store: Store = MEMORY
    role: Role = "both"
    max_runs: MaxRuns = 100
    max_ended_tasks: MaxEndedTasks = 10_000
    ended_task_seconds: EndedTaskSeconds = _DAY
    push_private: Annotated[
        bool,
        OptionInfo(group=SERVICES, found_file="no", help="allow push notifications to private and loopback addresses"),
    ] = False
    dialect: Annotated[
        str | None,
        OptionInfo(
            group=_PROTOCOL,
            found_file="no",
            kind="dialect",
            help="what clients speak; auto goes by the first message",
            default_text="what the services declare, else plain",
        ),
    ] = None
    tcp: Annotated[
        str | None,
        OptionInfo(
            group=_PROTOCOL,
            found_file="no",
            kind="address",
            help="serve one client at HOST:PORT or unix:PATH in the place of stdin and stdout, as editors do to debug a server",
            default_text="none: stdin and stdout",
        ),
    ] = None
    framing: Annotated[
        FramingSetting | None,
        OptionInfo(
            group=_PROTOCOL,
            found_file="no",
            help="how messages are separated; auto chooses by the first byte: { or [ means newline",
            default_text="that of the dialect: newline for mcp and acp, auto for auto, else content-length",
        ),
    ] = None
    ordered: Annotated[
        bool, OptionInfo(group=_PROTOCOL, found_file="yes", help="run requests one at a time, in the order of arrival")
    ] = False
    max_concurrency: Annotated[
        int,
        OptionInfo(
            group=_PROTOCOL,
            found_file="lower",
            unit="requests",
            minimum=1,
            maximum=100_000,
            help="how many requests may run on the event loop at the same time",
        ),
    ] = 1024
    max_threads: Annotated[
        int,
        OptionInfo(
            group=_PROTOCOL,
            found_file="lower",
            unit="threads",
            minimum=1,
            maximum=1000,
            help="how many requests may run in worker threads at the same time",
        ),
    ] = 64
    max_call_depth: Annotated[
        int,
        OptionInfo(
            group=_PROTOCOL,
            found_file="lower",
            unit="calls",
            minimum=1,
            maximum=10_000,
            help="how deep operations may call each other",
        ),
    ] = 64
    max_message_bytes: Annotated[
        int,
        OptionInfo(
            group=_PROTOCOL,
            found_file="lower",
            unit="bytes",
            minimum=1,
            maximum=1024 * _MIB,
            help="the largest message body that is accepted",
        ),
    ] = 10 * _MIB
    max_header_bytes: Annotated[
        int,
        OptionInfo(
            group=_PROTOCOL,
            found_file="lower",
            unit="bytes",
            minimum=64,
            maximum=_MIB,
            help="the largest header block that is accepted",
        ),
    ] = 8192
    max_memory: Annotated[
        int,
        OptionInfo(
            group=_PROTOCOL,
            found_file="lower",
            unit="bytes",
            minimum=16 * _MIB,
            maximum=1024 * 1024 * _MIB,
            help="what requests, replies, events, watches and tasks may take in memory together",
        ),
    ] = 512 * _MIB
    frame_timeout: Annotated[
        float,
        OptionInfo(
            group=_PROTOCOL,
            found_file="lower",
            unit="seconds",
            minimum=0.01,
            maximum=_DAY,
            help="the time limit from the first byte of a message to its last",
        ),
    ] = 30.0
    http: HttpAddress = None
    no_stdio: HttpNoStdio = False
    http_operations: HttpOperations = False
    http_metrics: HttpMetrics = False
    http_open: HttpOpen = False
    http_page: HttpPage = False
    http_url: HttpUrl = None
    http_hosts: HttpHosts = None
    http_origins: HttpOrigins = None
    http_cert: HttpCert = None
    http_key: HttpKey = None
    http_mcp: HttpMcp = False
    http_keep_alive: HttpKeepAlive = 15.0
    http_max_connections: HttpMaxConnections = 1024
    http_max_requests: HttpMaxRequests = 1024
    http_max_sessions: HttpMaxSessions = 1024
    http_session_timeout: HttpSessionTimeout = 1800.0
    request_timeout: Annotated[
        float | None,
        OptionInfo(
            group=_LIFECYCLE,
            found_file="lower",
            unit="seconds",
            minimum=0.001,
            maximum=_DAY,
            none_word="none",
            help="the deadline of a query or mutation; 0 or none means no deadline",
        ),
    ] = 30.0
    blocked_after: Annotated[
        float | None,
        OptionInfo(
            group=_LIFECYCLE,
            found_file="yes",
            unit="seconds",
            minimum=0.01,
            maximum=_DAY,
            none_word="none",
            help="log a handler that keeps the event loop this long; 0 or none means never",
        ),
    ] = 0.25
    drain_timeout: Annotated[
        float,
        OptionInfo(
            group=_LIFECYCLE,
            found_file="lower",
            unit="seconds",
            minimum=0,
            maximum=3600,
            help="how long running requests may take at the end; a quarter, at most 0.5 s, is kept for the last answers",
        ),
    ] = 2.0
    parent_pid: Annotated[
        int | None,
        OptionInfo(
            group=_LIFECYCLE,
            found_file="no",
            minimum=1,
            maximum=2**32 - 1,
            flag_aliases=("--clientProcessId",),
            help="end when this process has ended",
            default_text="the process that started the daemon",
        ),
    ] = None
    reload: Annotated[
        bool,
        OptionInfo(
            group=_LIFECYCLE,
            found_file="no",
            help="restart when files of the services change; the connection stays open",
        ),
    ] = False
    debug: Annotated[
        bool,
        OptionInfo(
            group=_LIFECYCLE,
            found_file="no",
            help="stop at breakpoint() until `discreet attach` lets it go on; no request has a deadline",
        ),
    ] = False
    backend: Annotated[
        Literal["asyncio", "uvloop", "trio"],
        OptionInfo(
            group=_LIFECYCLE,
            found_file="no",
            help="the event loop; uvloop (`pip install discreet[uvloop]`) and trio (for tests) must be installed",
        ),
    ] = "asyncio"
    log_level: Annotated[
        Literal["debug", "info", "warn", "error"] | None,
        OptionInfo(
            group=_LOGS,
            found_file="yes",
            synonyms={"warning": "warn"},
            help="the lowest level that is logged",
            default_text="warn when stderr is a pipe, else info",
        ),
    ] = None
    log_format: Annotated[
        Literal["auto", "console", "keyvalue", "json", "journald"],
        OptionInfo(
            group=_LOGS,
            found_file="yes",
            help="the form of a log line; auto means console on a terminal, journald under systemd, else keyvalue",
        ),
    ] = "auto"
    log_file: Annotated[
        str | None,
        OptionInfo(
            group=_LOGS,
            found_file="no",
            kind="file",
            variable="DISCREET_LOG",
            help="a file that log lines are appended to, or - for stderr",
            default_text="stderr",
        ),
    ] = None
    """Empty for an explicit stderr (`-`), None if not set."""
    otel: Annotated[
        bool,
        OptionInfo(
            group=_LOGS, found_file="no", help="record spans of OpenTelemetry, as its own variables say (OTEL_…)"
        ),
    ] = False
    no_color: Annotated[
        bool,
        OptionInfo(
            group=_LOGS, found_file="yes", presence_variable="NO_COLOR", help="no colours, not even on a terminal"
        ),
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
    def uses_stdio(self) -> bool:
        """Whether a client speaks by stdin and stdout, and not by `--tcp` or HTTP alone."""
        return not self.no_stdio and self.tcp is None


OPTIONS: Final[tuple[Option, ...]] = tuple(
    option_from_field(field, Settings.__annotations__[field], getattr(Settings(), field))
    for field in Settings.__struct_fields__
)
"""The rows, in the order of the documentation."""
