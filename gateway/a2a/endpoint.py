"""Serves A2A on its paths: JSON-RPC at the root, the agent card, HTTP+JSON below."""

from __future__ import annotations

from collections.abc import Mapping
from time import time
from typing import TYPE_CHECKING, Any, Final, final, get_args

import msgspec
from msgspec import Raw

from ...a2a.card_v03 import card_to_v03
from ...a2a.methods import VERSIONS
from ...a2a.version import covers_version
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
from ..answers import JSON, TRANSPORT_STATUSES, Answer, headers_of, status_of, with_etag
from ..calls import CallRunner, agent_of
from ..requests import GatewayRequest, note_route
from .routes import CARD_PATHS, WELL_KNOWN, Found, NotAllowed, find_route, meant_by, path_of, version_of_path

if TYPE_CHECKING:
    from ...daemon.host import Host
    from ...daemon.operations.params import InputModel
    from ..asgi import Send


# Which version of A2A a request is of (A2A 1.0, section 3.6).


DEFAULT_VERSION: Final = "0.3"
"""The version of a request that names none (A2A 1.0, section 3.6.2)."""


def asked_version(request: GatewayRequest) -> str | None:
    """The version of A2A that a request names, in its headers or its query."""
    version = request.headers.get("a2a-version") or request.query.get("A2A-Version", [""])[-1]
    return version.strip() or None


def version_to_answer(request: GatewayRequest) -> A2AVersion:
    """The version in which a request is answered whose method does not tell it."""
    return "1.0" if covers_version("1.0", asked_version(request) or DEFAULT_VERSION) else "0.3"


# The public agent card (A2A 1.0, sections 8.2, 8.6 and 14.3) in the version that is asked for, for caches, too.


MAX_AGE_SECONDS: Final = 300
"""How long a cache may use a card without asking: cards change with a new start only."""

_CACHING: Final = {"cache-control": f"public, max-age={MAX_AGE_SECONDS}", "vary": "a2a-version, host"}


def _merged(new: Any, old: Any) -> Any:  # JSON
    if isinstance(new, dict) and isinstance(old, dict):
        return {**old, **{name: _merged(value, old[name]) if name in old else value for name, value in new.items()}}
    if isinstance(new, list | tuple) and isinstance(old, list | tuple) and len(new) == len(old):
        return [_merged(*pair) for pair in zip(new, old, strict=True)]
    return new


# From path, query and body to the params of a method, as JSON (A2A 1.0, section 11.5). Checks no values: their method does.


_encode: Final = msgspec.json.Encoder().encode
_read_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode

_BOOLEANS: Final = {"true": True, "false": False}


def read_params(found: Found, body: bytes, query: Mapping[str, list[str]], model: InputModel) -> Raw:
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


def _params_of_query(query: Mapping[str, list[str]], path: Mapping[str, str], model: InputModel) -> Raw:
    """The params that a query and a path hold. Of the query those count that the method has; the others may be service
    parameters. Empty ones count as absent. Raises `FailureError(InvalidParams)` for one that came twice.

    Numbers stay texts, which ProtoJSON allows; booleans become such.
    """
    params: dict[str, object] = {}
    for field in msgspec.structs.fields(model.type):
        name = field.encode_name
        given = [] if name in path else [value for value in query.get(name, ()) if value]
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

    def not_allowed(self, *allowed: str, hint: str = "") -> Answer:
        """The answer to a verb that the path does not take."""
        failure = MethodNotFound(hint or f"this path takes {' and '.join(allowed)}")
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
        try:
            weights[media_type] = next((float(each[2:]) for each in params if each.startswith("q=")), 1.0)
        except ValueError:
            weights[media_type] = 0.0
    others = weights.get("application/*", weights.get("*/*", 0.0))
    return weights.get(JSON, others) > weights.get(A2A_JSON, others)


# How outcomes are written for clients of JSON-RPC (A2A 1.0, section 9).


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


_MALFORMED: Final[Failure] = InvalidRequest("malformed-envelope")
_ROOT_HINT: Final = (
    f"JSON-RPC is sent by POST; the agent card is at {WELL_KNOWN}; a page for people is served with --http-page"
)


@final
class A2AEndpoint:
    """Reaches the methods of A2A, and nothing else that the host has."""

    def __init__(self, host: Host, calls: CallRunner) -> None:
        self._calls = calls
        self._settings = host.settings
        agent = agent_of(host)
        methods, rest_methods = Registry((), agent.lazy_operations), Registry((), agent.rest_operations)
        self._router = Router(methods, host.registry, calls.access, named=False)
        self._rest: Final[Mapping[A2AVersion, Registry]] = {"1.0": methods, "0.3": rest_methods}
        self._public_card = agent.public_card
        self._started = int(time())

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        path = path.lstrip("/")
        is_card = f"/{path}" in CARD_PATHS
        if path and not is_card:
            return await self._http_json(request, path, send)
        note_route(request, f"/{path}")
        if is_card and request.method in ("GET", "HEAD"):
            return self._card(request)
        if not path and request.method == "POST":
            return await self._jsonrpc(request, send)
        writer = RestWriter(version_to_answer(request), request.headers.get("accept"))
        return writer.not_allowed("GET", "HEAD") if is_card else writer.not_allowed("POST", hint=_ROOT_HINT)

    def _card(self, request: GatewayRequest) -> Answer:
        """The card, or 304 where the client has it already (RFC 9110, section 13)."""
        card, version = self._public_card(self._calls.url(request)), asked_version(request)
        if version is None:  # which version it speaks is not known, and clients of 1.0 don't say so here: one for both
            body = msgspec.json.encode(_merged(msgspec.to_builtins(card), msgspec.to_builtins(card_to_v03(card))))
        else:
            body = msgspec.json.encode(card_to_v03(card) if covers_version("0.3", version) else card)
        return with_etag(request, Answer(200, body), caching=_CACHING, modified=self._started)

    async def _jsonrpc(self, request: GatewayRequest, send: Send) -> Answer | None:
        version = version_to_answer(request)
        body = await self._calls.body(request, JsonRpcWriter(NULL_ID, version))
        if not isinstance(body, bytes):
            return body
        message = envelope.decode(body)
        if isinstance(message, Request):
            message.id = message.id or NULL_ID  # every request has an answer here
            message.metadata = self._metadata(request)
            writer = JsonRpcWriter(message.id, VERSIONS.get(message.method, version))
            return await self._calls.run(request, send, message, writer, self._router)
        call_id = message.id if isinstance(message, Refused) else NULL_ID
        failure = message.failure if isinstance(message, Refused | NoJson) else _MALFORMED
        return self._calls.refused(request, JsonRpcWriter(call_id, version), failure, call_id)

    async def _http_json(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        version = version_of_path(path, version_to_answer(request))
        writer = RestWriter(version, request.headers.get("accept"))
        found = find_route(request.method, path, version_to_answer(request))
        match found:
            case None:
                meant = meant_by(path, version, request.scope.get("root_path", ""), self._settings)
                return writer.failure(MethodNotFound(meant))
            case NotAllowed(allowed):
                return writer.not_allowed(*allowed)
            case Found(route, params):
                note_route(request, path_of(route, version, tenant="tenant" in params))
        spec = self._rest[version].find(route.method)
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
            call.params = read_params(found, body, request.query, spec.input)
        except FailureError as exc:
            return self._calls.refused(request, writer, exc.failure)
        call.spec, call.size = spec, len(body)
        return await self._calls.run(request, send, call, writer)

    def _metadata(self, request: GatewayRequest) -> dict[str, str]:
        return {**self._calls.service_params(request), "a2a-version": asked_version(request) or DEFAULT_VERSION}
