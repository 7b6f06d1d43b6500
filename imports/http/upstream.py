"""Calls the operations of an OpenAPI document by HTTP.

Each call is one request: nothing is sent twice. Credentials go to the operation's server and nowhere else. What goes wrong is
logged here with its facts, never with a body, a query or a credential; the caller gets a declared error or a failure without any
of the upstream's text.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, final  # Any: JSON values
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec import Raw

from ... import call_tracing
from ...client.outbound.network import EXPECTED_PUBLIC_URL, Destination, parse_url
from ...daemon.logs import log
from ...daemon.rpc.envelope import json_failure
from ...errors.codes import row_of
from ...errors.exceptions import FailureError
from ...errors.failures import Internal
from ...lazy import anyio
from ...version import __version__
from ..model import UpstreamError
from ..targets import PRIVATE
from ..tokens import UpstreamTokens
from .model import (
    STREAMS,
    UNDECLARED,
    FaultReason,
    HttpImport,
    HttpOperation,
    Reply,
    UpstreamFault,
    failure_of,
    retry_after_ms,
)
from .replies import NULL, accepted_types, declared_reply, form_of, json_of, json_text, parse_media_type
from .request import (
    Alternatives,
    Chosen,
    Credentials,
    HttpRequest,
    authorize,
    build_request,
    check_schemes,
    choose_security,
)

if TYPE_CHECKING:
    from ...client.outbound.connection import Response
    from ...client.outbound.network import Network, Origin
    from ...client.outbound.pool import ConnectionPool
    from ...daemon.operations.context import Context
    from ..model import ImportedOperation


def server_of(server: str, *, base_url: str, document_url: str, allow_private: bool) -> Destination:
    """The server of an operation: `base_url` if there is one, else the document's, resolved against where the document came from.

    Its path has no slash at the end. Raises `ValueError`.
    """
    what, url = ("base_url", base_url) if base_url else ("the document's server", server)
    if not url and not document_url:
        raise ValueError("the document names no server; give base_url")
    if not urlsplit(url).scheme:
        if base_url or not document_url:
            raise ValueError(f"{what} {url!r} is relative; give base_url, an absolute http or https URL")
        url = urljoin(document_url, url or "/")
    if urlsplit(url).query:
        raise ValueError(f"{what} {_shown(url)!r} must have no query")
    found = parse_url(url, allow_private=allow_private)
    if found == EXPECTED_PUBLIC_URL:
        raise ValueError(f"{what} {_shown(url)!r} {PRIVATE}")
    if isinstance(found, str):
        raise ValueError(f"{what} {_shown(url)!r} must be an {found}")
    return Destination(found.scheme, found.host, found.port, found.request_target.rstrip("/"))


def _shown(url: str) -> str:
    """The URL for people, without what may be a secret in it."""
    head, _, rest = url.partition("?")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return f"{head}://{authority.rpartition('@')[2]}{slash}{path}" if rest else head


MAX_ERROR_BYTES: Final = 16 * 1024
"""Of the body of an undeclared error. A larger one is left out: a part of it might hold a part of a secret."""

INTERNAL: Final = row_of(Internal()).protocol_code

_LOWEST_ERROR: Final = 400
_WITHOUT_BODY: Final = frozenset({204, 205, 304})


class HttpLimits(msgspec.Struct, frozen=True):
    """Bytes of a response when it is decompressed, and of one event, as large as the daemon's largest message. Seconds until a
    stream begins, as subscriptions have no deadline. Streams at a time, half of the connections: the others are for calls.
    """

    response_bytes: int = 10 * 1024 * 1024
    event_bytes: int = 10 * 1024 * 1024
    stream_head_seconds: float = 60.0
    streams: int = 64


class _Route(msgspec.Struct, frozen=True):
    """The server of an operation's requests, and their credentials."""

    to: Destination
    security: Chosen


@final
class HttpUpstream:
    """The upstream of an `HttpImport`. `name` is what the log calls it.

    `base_url` replaces the servers of the document; without it, a relative one is resolved against `document_url`, where the
    document came from. `credentials` are names of credentials by the names of security schemes, or one name for all of them.
    Private addresses are refused unless `allow_private`, also a `base_url` that names one.

    With `error_bodies` a status of 400 or more that is not declared is the error `UNDECLARED`, which the service has to declare.

    Calls for which there is no credential go without. Raises `ValueError` for an operation that has no server, in one line for
    the operator.
    """

    def __init__(  # noqa: PLR0913 - what can be said of an import
        self,
        imported: HttpImport,
        *,
        name: str = "",
        base_url: str = "",
        document_url: str = "",
        credentials: Credentials | None = None,
        allow_private: bool = False,
        error_bodies: bool = False,
        limits: HttpLimits = HttpLimits(),  # noqa: B008 - immutable
        network: Network | None = None,
    ) -> None:
        self._name = name or imported.title
        self._allow_private = allow_private
        self._error_bodies = error_bodies
        self._limits = limits
        self._network = network
        self._pool: ConnectionPool | None = None
        self._is_open = False
        self._streams = 0
        self._base_url = base_url
        self._document_url = document_url
        self._schemes = imported.security_schemes
        self._credentials = credentials or {}
        self._routes: dict[tuple[str, Alternatives], _Route] = {}
        self._lacking: set[str] = set()
        self._tokens = UpstreamTokens(self._name)
        check_schemes(self._schemes, self._credentials)
        for route in imported.routes:
            try:
                self._add_route(route.server, route.security)
            except ValueError as exc:
                raise ValueError(f"operation {route.first!r}: {exc}") from None

    @property
    def credentials(self) -> frozenset[str]:
        """The names of the credentials that calls take, which the service has to declare."""
        return frozenset(name for route in self._routes.values() for _, name in route.security)

    @property
    def origins(self) -> frozenset[Origin]:
        """The servers that are called."""
        return frozenset(route.to.origin for route in self._routes.values())

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Calls can be made within the block. Connections are made when they are needed, and closed at its end."""
        self._is_open = True
        if self._lacking:
            log.warning("import.no_credential", import_=self._name, schemes=", ".join(sorted(self._lacking)))
        try:
            yield
        finally:
            self._is_open = False
            pool, self._pool = self._pool, None
            if pool is not None:
                await pool.aclose()

    async def call(self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context) -> Raw:
        """The JSON text of the result; `null` where there is none.

        Raises `UpstreamError` for a declared error, and `FailureError`. If this is cancelled, its connection is closed.
        """
        described = _described(operation)
        with self._logged(described):
            request = await self._request(described, arguments, ctx, streamed=False)
            async with self._sent(described, request) as response:
                reply = await self._reply(described, response, ctx)
                return await self._result(described, reply, response, ctx)

    async def stream(
        self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context
    ) -> AsyncGenerator[Raw, None]:
        """The JSON text of each event. The response is read only as far as events are taken; closing this closes the connection.

        Raises as `call` does. A response that is no stream is one event.
        """
        from .replies import event_decoder  # late: only subscriptions need it

        described = _described(operation)
        with self._logged(described), self._counted():
            request = await self._request(described, arguments, ctx, streamed=True)
            async with self._sent(described, request, head_seconds=self._limits.stream_head_seconds) as response:
                reply = await self._reply(described, response, ctx)
                media_type = parse_media_type(response.value(b"content-type"))
                form = form_of(reply, media_type)
                if form in STREAMS and response.is_compressed:
                    raise UpstreamFault("encoding", response.status)  # a few bytes would become megabytes of no events
                decoder = None if form is None else event_decoder(form, media_type.name, limit=self._limits.event_bytes)
                if decoder is None:
                    yield await self._result(described, reply, response, ctx)
                    return
                while not decoder.is_over and (piece := await response.read()):
                    for event in decoder.feed(piece):
                        yield event
                for event in decoder.end():
                    yield event

    # -- the request -------------------------------------------------------------------------------------------

    def _route(self, operation: HttpOperation) -> _Route:
        return self._routes[operation.server, operation.security]

    def _add_route(self, server: str, security: Alternatives) -> None:
        to = server_of(
            server, base_url=self._base_url, document_url=self._document_url, allow_private=self._allow_private
        )
        chosen = choose_security(security, self._schemes, self._credentials)
        if chosen is None:
            self._lacking.update(name for alternative in security for name in alternative)
        self._routes[server, security] = _Route(to, chosen or ())

    async def _request(
        self, operation: HttpOperation, arguments: Mapping[str, Any], ctx: Context, *, streamed: bool
    ) -> HttpRequest:
        route = self._route(operation)
        headers = {
            "user-agent": f"discreet/{__version__}",
            "accept": accepted_types(operation, streamed=streamed, asked=arguments.get(operation.accept, "")),
            "accept-encoding": "identity" if streamed else "gzip",
        }
        credentials = ctx.credentials if route.security else {}
        values = {
            name: await self._tokens.for_call(credentials[name], ctx)
            for _, name in route.security
            if name in credentials
        }
        authorization = authorize(route.security, values)
        return build_request(
            operation, arguments, base_path=route.to.request_target, authorization=authorization, headers=headers
        )

    @asynccontextmanager
    async def _sent(
        self, operation: HttpOperation, request: HttpRequest, *, head_seconds: float = math.inf
    ) -> AsyncGenerator[Response]:
        from ...client.outbound.connection import OutboundError  # late: loads h11

        pool = self._open_pool()
        to = self._route(operation).to
        tracer = call_tracing.tracer
        span = None if tracer is None else tracer.http_request(request.method, to.host, to.port)
        if span is not None:
            named = {name for name, _ in request.headers}
            traced = tuple(each for each in span.headers.items() if each[0].lower() not in named)
            request = msgspec.structs.replace(request, headers=(*request.headers, *traced))
        error: BaseException | None = None
        try:
            async with _open_response(pool, to, request, head_seconds=head_seconds) as response:
                if span is not None:
                    span.answered(response.status)
                yield response
        except OutboundError as exc:
            error = exc
            raise UpstreamFault(exc.reason) from exc
        except (GeneratorExit, UpstreamError):  # the consumer has enough; the status says it
            raise
        except BaseException as exc:
            error = exc
            raise
        finally:
            if span is not None:
                span.end(error)

    def _open_pool(self) -> ConnectionPool:
        from ...client.outbound.pool import ConnectionPool  # late: loads h11 and ssl

        if not self._is_open:
            raise RuntimeError("the import is not open: its lifespan has not begun, or has ended")
        if self._pool is None:
            self._pool = ConnectionPool(allow_private=self._allow_private, network=self._network)
        return self._pool

    # -- the response ------------------------------------------------------------------------------------------

    async def _reply(self, operation: HttpOperation, response: Response, ctx: Context) -> Reply:
        """The reply of a successful response. Raises `UpstreamError`, and `UpstreamFault` for a status that is not declared."""
        status = response.status
        reply = declared_reply(operation, status)
        if reply is not None and 200 <= status < 300:
            return reply
        if reply is not None and reply.code:
            await self._refusal(operation, reply, response, ctx)
        reason: FaultReason = "redirect" if _is_redirect(response) else "status"
        fault = UpstreamFault(reason, status, retry_after_ms=retry_after_ms(response))
        if self._error_bodies and isinstance(failure_of(fault, repeatable=False), Internal) and status >= _LOWEST_ERROR:
            self._warn("import.failed", operation, reason, status, told=UNDECLARED.code)
            raise UpstreamError(UNDECLARED.code, await self._undeclared(response, ctx))
        raise fault

    async def _undeclared(self, response: Response, ctx: Context) -> Raw:
        """The details of `UNDECLARED`."""
        media_type = parse_media_type(response.value(b"content-type"))
        details: dict[str, object] = {"status": response.status}
        with suppress(UpstreamFault):  # the status alone says it
            body = await _read_all(response, MAX_ERROR_BYTES, ctx)
            if json_failure(body) is None:  # by any media type: the names of its members tell secrets
                details["body"] = json_text(body)
            elif media_type.name.startswith("text/"):
                details["body"] = json_of("text", body, media_type.charset)
        return Raw(msgspec.json.encode(details))

    async def _refusal(self, operation: HttpOperation, reply: Reply, response: Response, ctx: Context) -> NoReturn:
        """Raises `UpstreamError`, the declared error. Details that can't be read are left out, and the log says so."""
        details: Raw | None = None
        try:
            found = await self._result(operation, reply, response, ctx)
            details = None if found is NULL else found
        except UpstreamFault as exc:
            self._warn("import.details_unreadable", operation, exc.reason, response.status)
        raise UpstreamError(reply.code, details, retry_after_ms=retry_after_ms(response))

    async def _result(self, operation: HttpOperation, reply: Reply, response: Response, ctx: Context) -> Raw:
        media_type = parse_media_type(response.value(b"content-type"))
        has_body = response.status not in _WITHOUT_BODY and operation.method != "HEAD"
        form = form_of(reply, media_type) if has_body else "nothing"
        if form == "nothing":
            await response.drain()
            return NULL
        if form in STREAMS or (form is None and media_type.name):
            raise UpstreamFault("content-type", response.status)
        body = await _read_all(response, self._limits.response_bytes, ctx)
        if not (body or media_type.name):
            return NULL
        try:
            return json_of(form, body, media_type.charset)
        except UpstreamFault as exc:
            raise UpstreamFault(exc.reason, response.status) from exc

    # -- what goes wrong ---------------------------------------------------------------------------------------

    @contextmanager
    def _logged(self, operation: HttpOperation) -> Generator[None]:
        """A fault within the block is logged, and becomes the failure that the caller is told."""
        try:
            yield
        except UpstreamFault as exc:
            failure = failure_of(exc, repeatable=operation.repeatable)
            self._warn("import.failed", operation, exc.reason, exc.status, told=row_of(failure).protocol_code)
            raise FailureError(failure) from exc

    @contextmanager
    def _counted(self) -> Generator[None]:
        if self._streams >= self._limits.streams:
            raise UpstreamFault("connections")
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    def _warn(self, event: str, operation: HttpOperation, reason: FaultReason, status: int | None, **more: str) -> None:
        facts: dict[str, object] = {**more} if status is None else {"status": status, **more}
        host = self._route(operation).to.authority
        say = log.error if more.get("told") == INTERNAL else log.warning  # the operator is the one who can do something
        say(event, import_=self._name, operation=operation.name, host=host, reason=reason, **facts)


# -- one exchange ----------------------------------------------------------------------------------------------------------

MAX_REDIRECTS: Final = 5
_FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})
_SAFE: Final = frozenset({"GET", "HEAD"})


@asynccontextmanager
async def _open_response(
    pool: ConnectionPool, to: Destination, request: HttpRequest, *, head_seconds: float
) -> AsyncGenerator[Response]:
    """The response to a request. Redirects of a GET or HEAD within the server are followed, others are responses."""
    target, headers = request.target, dict(request.headers)
    response: Response | None = None
    for _ in range(MAX_REDIRECTS + 1):
        async with pool.connection(to) as connection:
            with anyio.move_on_after(head_seconds) as waiting:
                response = await connection.request(request.method, to, headers, request.body, target=target)
            if waiting.cancelled_caught or response is None:
                raise UpstreamFault("timeout")
            followed = _target_of_redirect(response, to, request.method, target)
            if followed is None:
                yield response
                return
            await response.drain()
        target = followed
    raise UpstreamFault("redirect", response.status if response else None)


def _target_of_redirect(response: Response, to: Destination, method: str, target: str) -> str | None:
    """Return the target of a redirect on the same server; None for one that must not be followed.

    The same server is the same scheme, host and port (RFC 6454), so no credential goes to another one, nor over another scheme.
    """
    location = response.value(b"location")
    if response.status not in _FOLLOWED or method not in _SAFE or not location:
        return None
    try:
        found = parse_url(urljoin(f"{to.scheme}://{to.authority}{target}", location), allow_private=True)
    except ValueError:
        return None
    return found.request_target if isinstance(found, Destination) and found.origin == to.origin else None


async def _read_all(response: Response, limit: int, ctx: Context) -> bytes:
    """The whole body. Raises `UpstreamFault` for one that is too large, or that can't be decompressed."""
    from ...client.outbound.connection import OutboundError  # late: loads h11

    try:
        return await response.read_all(limit, ctx.hold_memory)
    except OutboundError as exc:
        if exc.reason in ("encoding", "too-large"):
            raise UpstreamFault(exc.reason, response.status) from exc
        raise


def _described(operation: ImportedOperation) -> HttpOperation:
    assert isinstance(operation, HttpOperation), "an operation of an OpenAPI document"
    return operation


def _is_redirect(response: Response) -> bool:
    return 300 <= response.status < 400 and bool(response.value(b"location"))
