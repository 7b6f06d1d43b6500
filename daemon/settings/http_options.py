"""The settings of the HTTP gateway: rows of the table of settings.

The annotations are evaluated by it, so it must not use `from __future__ import annotations`.
"""

from typing import Annotated, Final, TypeAlias

from .option import OptionInfo

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
