"""What A2A has on every path: JSON-RPC at the root, the agent card, HTTP+JSON below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final, get_args

import msgspec
from msgspec import Raw

from ...a2a.methods import VERSIONS
from ...daemon.dispatch.dispatcher import Router
from ...daemon.operations.registry import Registry
from ...daemon.operations.request import Request
from ...daemon.rpc import envelope
from ...daemon.rpc.envelope import NULL_ID, NoJson, Refused, json_failure
from ...errors.codes import row_of
from ...errors.exceptions import FailureError
from ...errors.failures import (
    A2AVersion,
    AuthenticationRequired,
    Failure,
    InsufficientPermissions,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    Overloaded,
    Unavailable,
)
from ...errors.wire import encode_error_response, encode_status
from ..answers import JSON, TRANSPORT_STATUSES, Answer, headers_of, status_of
from ..call_runner import CallRunner, response_of
from ..hosted_agent import agent_of
from ..requests import GatewayRequest, note_route
from .cards import CARD_PATHS, DEFAULT_VERSION, WELL_KNOWN, Cards, asked_version, version_to_answer
from .rest.routes import Found, NotAllowed, find_route, path_of, version_of_path

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams
    from starlette.responses import Response
    from starlette.types import Send

    from ...daemon.host import Host
    from ...daemon.operations.params import InputModel


# From path, query and body to the params of a method, as JSON (A2A 1.0, section 11.5). Checks no values: their method does.


_encode: Final = msgspec.json.Encoder().encode
_read_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode

_BOOLEANS: Final = {"true": True, "false": False}


def read_params(found: Found, body: bytes, query: QueryParams, model: InputModel) -> Raw:
    """The params of the method, whose model this is. Raises `FailureError` where they can't be told."""
    if body or found.route.needs_body:
        return _params_of_body(body, found.params)
    return _params_of_query(query, found.params, model)


def _params_of_body(body: bytes, path: Mapping[str, str]) -> Raw:
    """The params that a body holds, and the path: what the path says counts. Raises `FailureError` for what is no JSON."""
    failure = json_failure(body)
    if failure is not None:
        raise FailureError(failure)
    if not path:
        return Raw(body)
    try:
        members = _read_members(body)
    except msgspec.ValidationError:  # no object: the method refuses it
        return Raw(body)
    return Raw(_encode({**{name: value for name, value in members.items() if name not in path}, **path}))


def _params_of_query(query: QueryParams, path: Mapping[str, str], model: InputModel) -> Raw:
    """The params that a query and a path hold. Of the query those count that the method has; the others may be service
    parameters. Empty ones count as absent. Raises `FailureError(InvalidParams)` for one that came twice.

    Numbers stay texts, which ProtoJSON allows; booleans become such.
    """
    params: dict[str, object] = {}
    for field in msgspec.structs.fields(model.type):
        name = field.encode_name
        given = [] if name in path else [value for value in query.getlist(name) if value]
        if len(given) > 1:
            raise FailureError(InvalidParams(name, "one value", "array"))
        if given:
            value = given[0]
            params[name] = _BOOLEANS.get(value, value) if bool in get_args(field.type) else value
    return Raw(_encode({**params, **path}))


# How outcomes are written for clients of HTTP+JSON: results as they are, failures as google.rpc.Status (A2A 1.0, 11.6).


A2A_JSON: Final = "application/a2a+json"


@final
class RestWriter:
    """Answers one request, in a version of A2A, as the type that the header `Accept` asks for."""

    def __init__(self, version: A2AVersion, accept: str | None) -> None:
        self.fails_in_stream = False
        self.failure_event = "error"  # the events are the values themselves: only its name tells a failure from them
        self.completion_event = ""
        self._version: Final[A2AVersion] = version
        self._media_type = JSON if version == "0.3" or (accept and _prefers_json(accept)) else A2A_JSON

    def result(self, result: bytes) -> Answer:
        return Answer(200, result, self._media_type)

    def failure(self, failure: Failure) -> Answer:
        status = status_of(failure)
        return Answer(status, self._status(failure, status), self._media_type, headers_of(failure))

    def not_allowed(self, failure: Failure, allowed: tuple[str, ...]) -> Answer:
        """The answer to a verb that the path does not take."""
        return Answer(405, self._status(failure, 405), self._media_type, {"allow": ", ".join(allowed)})

    def event(self, value: bytes) -> bytes:
        return value

    def last_event(self, failure: Failure) -> bytes:
        return self._status(failure, status_of(failure))

    def _status(self, failure: Failure, status: int) -> bytes:
        return encode_status(failure, status, self._version)


def _prefers_json(accept: str) -> bool:
    """Whether the client would rather have `application/json` than A2A's own type (RFC 9110, section 12.5.1)."""
    weights: dict[str, float] = {}
    for given in accept.lower().split(","):
        media_type, *params = (part.strip() for part in given.split(";"))
        weights[media_type] = next((_weight(each[2:]) for each in params if each.startswith("q=")), 1.0)
    others = weights.get("application/*", weights.get("*/*", 0.0))
    return weights.get(JSON, others) > weights.get(A2A_JSON, others)


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


# Reads one HTTP body as one JSON-RPC request of A2A, and writes its answers (A2A 1.0, section 9). Runs nothing.


def read_call(body: bytes, params: dict[str, str]) -> Request | tuple[bytes, Failure]:
    """The call, with these service parameters and no others; or the id to answer to, and what is wrong.

    Every request has an answer here: one without an id is answered to the id null.
    """
    message = envelope.decode(body)
    match message:
        case Request():
            message.metadata = params
            if message.id is None:
                message.id = NULL_ID
            return message
        case Refused(call_id, failure):
            return call_id, failure
        case NoJson(parse_failure):
            return NULL_ID, parse_failure
        case _:  # a response, or a notification that is broken
            return NULL_ID, InvalidRequest("malformed-envelope")


@final
class JsonRpcWriter:
    """Answers one JSON-RPC request, in a version of A2A."""

    def __init__(self, call_id: bytes, version: A2AVersion) -> None:
        self._id = call_id
        self._version: Final[A2AVersion] = version
        self.fails_in_stream = version == "0.3"
        self.failure_event = ""
        self.completion_event = ""

    def result(self, result: bytes) -> Answer:
        return Answer(200, self.event(result))

    def failure(self, failure: Failure) -> Answer:
        return Answer(status_of_jsonrpc(failure), self.last_event(failure), headers=headers_of(failure))

    def event(self, value: bytes) -> bytes:
        return envelope.encode_result(self._id, value)

    def last_event(self, failure: Failure) -> bytes:
        return encode_error_response(self._id, failure, version=self._version)


def status_of_jsonrpc(failure: Failure) -> int:
    """The status of the response that carries a JSON-RPC error: 200, but where HTTP's own clients must act on it."""
    match failure:
        case AuthenticationRequired() | InsufficientPermissions() | Overloaded() | Unavailable():
            return row_of(failure).http_status
        case InvalidRequest(reason):
            return TRANSPORT_STATUSES.get(reason, 200)
        case _:
            return 200


@final
class A2AEndpoint:
    """Reaches the methods of A2A, and nothing else that the host has."""

    def __init__(self, host: Host, calls: CallRunner) -> None:
        self._calls = calls
        self._settings = host.settings
        methods, rest_methods = (
            Registry((), agent_of(host).lazy_operations),
            Registry((), agent_of(host).rest_operations),
        )
        self._router = Router(methods, host.registry, calls.access, named=False)
        self._rest: Final[Mapping[A2AVersion, tuple[Registry, Router]]] = {
            "1.0": (methods, self._router),
            "0.3": (rest_methods, Router(rest_methods, host.registry, calls.access, named=False)),
        }
        self._cards = Cards(agent_of(host).public_card)

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Response | None:
        path = path.lstrip("/")
        if not path:
            note_route(request, "/")
            if request.method == "POST":
                return await self._jsonrpc(request, send)
            hint = f"JSON-RPC is sent by POST; the agent card is at {WELL_KNOWN}; a page for people is served with --http-page"
            return _not_allowed(_writer(request), ("POST",), hint)
        if f"/{path}" in CARD_PATHS:
            note_route(request, f"/{path}")
            if request.method in ("GET", "HEAD"):
                return self._cards.answer(request, self._calls.url(request))
            return _not_allowed(_writer(request), ("GET", "HEAD"))
        return await self._http_json(request, path, send)

    async def _jsonrpc(self, request: GatewayRequest, send: Send) -> Response | None:
        version = version_to_answer(request)
        body = await self._calls.body(request, JsonRpcWriter(NULL_ID, version))
        if not isinstance(body, bytes):
            return body
        call = read_call(body, self._metadata(request))
        if not isinstance(call, Request):
            call_id, failure = call
            return self._calls.refused(request, JsonRpcWriter(call_id, version), failure, call_id)
        writer = JsonRpcWriter(call.id or NULL_ID, VERSIONS.get(call.method, version))
        return await self._calls.run(request, send, call, writer, self._router, jsonrpc=True)

    async def _http_json(self, request: GatewayRequest, path: str, send: Send) -> Response | None:
        version = version_of_path(path, version_to_answer(request))
        writer = RestWriter(version, request.headers.get("accept"))
        found = find_route(request.method, path, version_to_answer(request))
        match found:
            case None:
                from .rest.meant import meant_by  # late: only errors need it

                meant = meant_by(path, version, request.scope.get("root_path", ""), self._settings)
                return response_of(writer.failure(MethodNotFound(meant)))
            case NotAllowed(allowed):
                return _not_allowed(writer, allowed)
            case Found(route, params):
                note_route(request, path_of(route, version, tenant="tenant" in params))
        methods, router = self._rest[version]
        spec = methods.find(route.method)
        assert spec is not None, "every row of the table is a method"
        call = Request(route.method, NULL_ID, None, self._metadata(request))
        refusal = await self._calls.refusal(request, call, spec)
        if refusal is not None:
            return self._calls.refused(request, writer, refusal, close=route.verb == "POST")
        takes_body = route.verb == "POST"
        body = await self._calls.body(request, writer, needed=route.needs_body) if takes_body else b""
        if not isinstance(body, bytes):
            return body
        try:
            call.params = read_params(found, body, request.query_params, spec.input)
        except FailureError as exc:
            return self._calls.refused(request, writer, exc.failure)
        call.size = len(body)
        return await self._calls.run(request, send, call, writer, router)

    def _metadata(self, request: GatewayRequest) -> dict[str, str]:
        """The service parameters of a request (A2A 1.0, section 3.6.1). The version stands in its headers or in its query."""
        return {**self._calls.service_params(request), "a2a-version": asked_version(request) or DEFAULT_VERSION}


def _writer(request: GatewayRequest) -> RestWriter:
    return RestWriter(version_to_answer(request), request.headers.get("accept"))


def _not_allowed(writer: RestWriter, allowed: tuple[str, ...], suggestion: str = "") -> Response:
    failure = MethodNotFound(suggestion or f"this path takes {' and '.join(allowed)}")
    return response_of(writer.not_allowed(failure, allowed))
