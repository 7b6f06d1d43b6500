"""Serves the page for people to all who may reach the gateway, and to each caller its last requests.

The page is one document, the same for all, without a fact of the daemon. Its script asks for the facts that it shows. So is the
empty document in which it runs apps of MCP: the page sends it the HTML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, final

import msgspec

from ...daemon.operations.access import Access
from ...errors.codes import RESERVED_CODES
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.failures import InvalidParams, MethodNotFound
from ...lazy import anyio
from ...pages.inline import DOM, MESSAGES, MESSAGES_CSS, PALETTE, policy, script_of, styles_of, text_of
from ...version import __version__
from ..answers import Answer, compressed, with_etag
from ..calls import agent_of
from ..operations import OperationWriter, not_allowed
from ..requests import GatewayRequest, note_route
from .all_tasks import Asked, TasksOfAll, fresh
from .recent_requests import RecentRequest, RecentRequests

if TYPE_CHECKING:
    from ...daemon.host import Host
    from ..asgi import Send
    from ..calls import CallRunner

REQUESTS: Final = "page/requests"
LOG: Final = "page/log"
RESTART: Final = "page/restart"
CHECK: Final = "page/check"
APP: Final = "page/app"
"""The paths of what the page alone asks for."""

_HERE: Final = __package__ or ""
_SHELL: Final = ("requests.js", "form.js", "parts.js")
_OF_DAEMON: Final = ("operations.js", "tasks.js", "all_tasks.js", "agent.js", "daemon.js", "page.js")
_OF_MCP: Final = ("mcp.js", "questions.js", "results.js", "apps.js", "offers.js", "inspector.js", "page.js")
_MORE_OF_MCP: Final = ("media-src data:", "frame-src 'self'")
"""Frames are the page's for apps alone: all other documents of the daemon stand in none."""
_WRITER: Final = OperationWriter()
_MAX_DIGITS: Final = 15


class Document(msgspec.Struct, frozen=True):
    """The page, and the policy (CSP) that it must be sent with."""

    body: bytes
    policy: str


def document(*, has_operations: bool) -> Document:
    """The page of a daemon: its operations, where it serves any, its agent and its tasks."""
    told = {"PROTOCOL_CODES": sorted(RESERVED_CODES), "HAS_OPERATIONS": has_operations}
    return _document(told, [DOM, *_named(*_SHELL, *_OF_DAEMON)], [PALETTE, *_named("page.css")])


def mcp_document(*, has_log: bool) -> Document:
    """The page of an MCP server behind a bridge: what it offers, and the messages. With `has_log` also its stderr."""
    from ...dialects.mcp.generated.tables import LEGACY_REVISIONS, MODERN_REVISION  # late: few pages need them
    from ...dialects.mcp.revision import APP_TYPE, LEVELS

    told = {
        "VERSION": __version__,
        "MODERN": MODERN_REVISION,
        "LEGACY": LEGACY_REVISIONS[::-1],
        "LEVELS": LEVELS,
        "APP_TYPE": APP_TYPE,
        "HAS_LOG": has_log,
    }
    scripts = [DOM, MESSAGES, *_named(*_SHELL, *_OF_MCP)]
    return _document(told, scripts, [PALETTE, MESSAGES_CSS, *_named("page.css", "inspector.css")], *_MORE_OF_MCP)


def _named(*names: str) -> list[tuple[str, str]]:
    return [(_HERE, name) for name in names]


def _document(
    told: Mapping[str, object], scripts: list[tuple[str, str]], styles: list[tuple[str, str]], *policies: str
) -> Document:
    """Connects to its own origin only, and stands in no frame. The script begins with the constants that it is `told`."""
    css = styles_of(text_of(*styles))
    constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in told.items())
    script = script_of(constants, text_of(*scripts))
    html = text_of((_HERE, "page.html")).replace("CSS", css).replace("SCRIPT", script)
    more = (*policies, "connect-src 'self'", "frame-ancestors 'none'")
    return Document(html.encode("ascii"), policy(css, script, *more))


# What an app may load from, by the members of `_meta.ui.csp`, and without any (MCP Apps 2026-01-26, UI Resource Format). The
# specification's 'self' is left out: that is the daemon here.
_OF_APP: Final = {
    "script-src": ("resourceDomains", "'unsafe-inline'"),
    "style-src": ("resourceDomains", "'unsafe-inline'"),
    "img-src": ("resourceDomains", "data:"),
    "media-src": ("resourceDomains", "data:"),
    "font-src": ("resourceDomains",),
    "connect-src": ("connectDomains",),
    "frame-src": ("frameDomains",),
    "base-uri": ("baseUriDomains",),
}
_ORIGIN: Final = re.compile(
    r"(?:https?|wss?)://(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::\d{1,5})?/?", re.ASCII | re.IGNORECASE
)
_APP: Final = text_of((_HERE, "app.html")).encode("ascii")


def app_policy(csp: Mapping[str, list[str]]) -> str | InvalidParams:
    """The policy of an app's document, by the origins that its resource declares. What is no origin is refused, for it could be a
    directive.
    """
    for member in ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"):
        for at, origin in enumerate(csp.get(member, ())):
            if _ORIGIN.fullmatch(origin) is None:
                return InvalidParams(f"csp.{member}[{at}]", "an origin, such as https://cdn.example", "string")
    sources = {name: " ".join((*csp.get(member, ()), *more)) for name, (member, *more) in _OF_APP.items()}
    return "; ".join(
        (
            "default-src 'none'",
            *(f"{name} {listed}" if listed else f"{name} 'none'" for name, listed in sources.items()),
            "form-action 'none'",
            "frame-ancestors 'self'",
            "sandbox allow-scripts allow-forms",
        )
    )


class OutputCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a value does not fit its schema, and what was expected there; or why that can't be told. Empty where it fits."""

    path: str = ""
    expected: str = ""
    received: str = ""
    unchecked: str = ""


class _Output(msgspec.Struct, frozen=True):
    schema: dict[str, Any]  # JSON
    value: Any  # JSON


class ServerLog(Protocol):
    """The lines that the servers of a bridge wrote to stderr."""

    def after(self, number: int) -> tuple[int, list[str]]:
        """Return the number of the last line, and the lines behind this number."""
        ...


class Bridge(Protocol):
    """The bridge to the server that the page is about."""

    @property
    def server_log(self) -> ServerLog | None: ...

    def restart(self) -> None: ...

    def check_output(self, schema: dict[str, Any], value: Any) -> OutputCheck:
        """Check what a tool gave against its output schema."""
        ...


class _Lines(msgspec.Struct, frozen=True):
    last: int
    lines: list[str]


class _Requests(msgspec.Struct, frozen=True):
    requests: list[RecentRequest]


@final
class PageEndpoint:
    """The root, but for A2A's JSON-RPC, and what the page asks for. It has the calls keep their last requests.

    Behind a bridge that keeps a log, the page also asks for that, and has the server started anew.
    """

    def __init__(self, host: Host, calls: CallRunner, *, local_only: bool) -> None:
        self._calls = calls
        self._recent = calls.recent = RecentRequests()
        bridge = cast("Bridge | None", host.bridge)
        self._bridge: Final = bridge
        has_log = bridge is not None and bridge.server_log is not None
        if bridge is None:
            made = document(has_operations=host.settings.http_operations)
        else:
            made = mcp_document(has_log=has_log)
        self._body = made.body
        self._headers: Final = {
            "content-security-policy": made.policy,
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), geolocation=(), microphone=()",
            "referrer-policy": "no-referrer",
        }
        self._asked: Final[Mapping[str, Asked]] = {
            REQUESTS: ("GET", self._requests),
            **(TasksOfAll(agent_of(host), local_only=local_only).asked if bridge is None else {}),
            **({LOG: ("GET", self._log), RESTART: ("POST", self._restart)} if has_log else {}),
        }
        self._paths: Final = {"", *self._asked, *(() if bridge is None else (APP, CHECK))}

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        if path not in self._paths:
            return _WRITER.failure(MethodNotFound())
        note_route(request, f"/{path}")
        if path == APP:
            return self._app(request)
        if path == CHECK:
            return await self._check(request)
        if path:
            return await self._answer(request, path)
        if request.method not in ("GET", "HEAD"):
            return not_allowed("GET, HEAD, POST")
        page = Answer(200, self._body, "text/html; charset=utf-8", {**self._headers})
        return await compressed(request, with_etag(request, page))

    async def _answer(self, request: GatewayRequest, path: str) -> Answer:
        method, answer = self._asked[path]
        if request.method != method and (method, request.method) != ("GET", "HEAD"):
            return not_allowed("GET, HEAD" if method == "GET" else method)
        access = await self._calls.known_access(request, path)
        if not isinstance(access, Access):
            return _WRITER.failure(access)
        found = answer(request, access)
        return await compressed(request, found if isinstance(found, Answer) else await found)

    def _app(self, request: GatewayRequest) -> Answer:
        """The document of an app, without the app. The query has the origins that its resource declares."""
        if request.method not in ("GET", "HEAD"):
            return not_allowed("GET, HEAD")
        policy = app_policy(request.query)
        if isinstance(policy, InvalidParams):
            return _WRITER.failure(policy)
        headers = {**self._headers, "content-security-policy": policy, "cache-control": "no-store"}
        return Answer(200, _APP, "text/html; charset=utf-8", headers)

    async def _check(self, request: GatewayRequest) -> Answer | None:
        """Check what a tool gave. The body has the `schema` and the `value`."""
        if request.method != "POST":
            return not_allowed("POST")
        access = await self._calls.known_access(request, CHECK)
        if not isinstance(access, Access):
            return _WRITER.failure(access)
        body = await self._calls.body(request, _WRITER)
        if not isinstance(body, bytes):
            return body
        try:
            given = decoder_for(_Output)(body)
        except DECODE_ERRORS:
            return _WRITER.failure(InvalidParams("$", "a schema and a value", "malformed"))
        assert self._bridge is not None
        return fresh(await anyio.to_thread.run_sync(self._bridge.check_output, given.schema, given.value))

    def _requests(self, _: GatewayRequest, access: Access) -> Answer:
        """Return the last requests of this caller; without an identity provider those of all."""
        return fresh(_Requests(self._recent.of(access)))

    def _log(self, request: GatewayRequest, _: Access) -> Answer:
        """Return the lines behind the one of this number."""
        assert self._bridge is not None and self._bridge.server_log is not None
        number = request.query.get("after", ["0"])[-1]
        known = int(number) if number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS else 0
        return fresh(_Lines(*self._bridge.server_log.after(known)))

    def _restart(self, _: GatewayRequest, __: Access) -> Answer:
        """Have the server end. The next request begins with a new one."""
        assert self._bridge is not None
        self._bridge.restart()
        return Answer(204, media_type="")
