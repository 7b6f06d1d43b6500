"""Serves the page for people to all who may reach the gateway, and to each caller its last requests.

The page is one document, the same for all, without a fact of the daemon. Its script asks for the facts that it shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, cast, final

import msgspec

from ...daemon.operations.access import Access
from ...errors.codes import RESERVED_CODES
from ...errors.failures import MethodNotFound
from ...pages.inline import DOM, MESSAGES, MESSAGES_CSS, PALETTE, policy, script_of, styles_of, text_of
from ...version import __version__
from ..answers import Answer, compressed, with_etag
from ..operations import OperationWriter, not_allowed
from ..requests import GatewayRequest, note_route
from .recent_requests import RecentRequest, RecentRequests

if TYPE_CHECKING:
    from ...daemon.host import Host
    from ..asgi import Send
    from ..calls import CallRunner

REQUESTS: Final = "page/requests"
LOG: Final = "page/log"
RESTART: Final = "page/restart"
"""The paths of what the page alone asks for."""

_HERE: Final = __package__ or ""
_SHELL: Final = ("requests.js", "form.js", "parts.js")
_OF_DAEMON: Final = ("operations.js", "tasks.js", "agent.js", "daemon.js", "page.js")
_OF_MCP: Final = ("mcp.js", "questions.js", "results.js", "offers.js", "inspector.js", "page.js")
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
    from ...dialects.mcp.revision import LEVELS

    told = {
        "VERSION": __version__,
        "MODERN": MODERN_REVISION,
        "LEGACY": LEGACY_REVISIONS[::-1],
        "LEVELS": LEVELS,
        "HAS_LOG": has_log,
    }
    scripts = [DOM, MESSAGES, *_named(*_SHELL, *_OF_MCP)]
    return _document(told, scripts, [PALETTE, MESSAGES_CSS, *_named("page.css", "inspector.css")], "media-src data:")


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

    def __init__(self, host: Host, calls: CallRunner) -> None:
        self._calls = calls
        self._recent = calls.recent = RecentRequests()
        bridge = cast("Bridge | None", host.bridge)
        self._bridge = None if bridge is None or bridge.server_log is None else bridge
        if bridge is None:
            made = document(has_operations=host.settings.http_operations)
        else:
            made = mcp_document(has_log=self._bridge is not None)
        self._body = made.body
        self._headers: Final = {
            "content-security-policy": made.policy,
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), geolocation=(), microphone=()",
            "referrer-policy": "no-referrer",
        }
        self._asked: Final[Mapping[str, tuple[str, Callable[[GatewayRequest, Access], Answer]]]] = {
            REQUESTS: ("GET", self._requests),
            **({} if self._bridge is None else {LOG: ("GET", self._log), RESTART: ("POST", self._restart)}),
        }

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        if path and path not in self._asked:
            return _WRITER.failure(MethodNotFound())
        note_route(request, f"/{path}")
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
        return await compressed(request, answer(request, access))

    def _requests(self, _: GatewayRequest, access: Access) -> Answer:
        """Return the last requests of this caller; without an identity provider those of all."""
        return _fresh(_Requests(self._recent.of(access)))

    def _log(self, request: GatewayRequest, _: Access) -> Answer:
        """Return the lines behind the one of this number."""
        assert self._bridge is not None and self._bridge.server_log is not None
        number = request.query.get("after", ["0"])[-1]
        known = int(number) if number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS else 0
        return _fresh(_Lines(*self._bridge.server_log.after(known)))

    def _restart(self, _: GatewayRequest, __: Access) -> Answer:
        """Have the server end. The next request begins with a new one."""
        assert self._bridge is not None
        self._bridge.restart()
        return Answer(204, media_type="")


def _fresh(value: msgspec.Struct) -> Answer:
    return Answer(200, msgspec.json.encode(value), headers={"cache-control": "no-store"})
