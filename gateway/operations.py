"""Operations by plain HTTP: `POST /operations/{name}` with the params as a JSON object, queries also by GET; and
`GET /openapi.json`, the OpenAPI document of what the caller may call, at the address under which the caller asks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, final
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Raw

from ..daemon.dispatch.execution import Raised, attempt_now
from ..daemon.operations.access import Access
from ..daemon.operations.context import last_event_id
from ..daemon.operations.params import InputModel
from ..daemon.operations.registry import Registry
from ..daemon.operations.request import Request
from ..daemon.rpc.envelope import json_failure
from ..errors.exceptions import FailureError
from ..errors.failures import Failure, Internal, InvalidParams, MethodNotFound, OperationTypeMismatch, ParseFailure
from ..errors.nearest import nearest_hint
from ..errors.wire import encode_call_error
from ..schemas.documents import input_schema
from .answers import SMALLEST, Answer, compressed, etag_of, headers_of, status_of, with_etag
from .calls import CallRunner, agent_of
from .openapi.document import about, openapi_document
from .openapi.query_params import Form, QueryParam, query_params
from .requests import GatewayRequest, note_route

if TYPE_CHECKING:
    from ..daemon.host import Host
    from ..daemon.operations.spec import OperationSpec
    from .asgi import Send


COMPLETED: Final = "completed"
"""The event that tells that a subscription has ended by itself: without it the connection was lost."""


class OperationWriter(msgspec.Struct):
    """Answers calls of one operation. `has_result` is false where its result is always null."""

    has_result: bool = True
    fails_in_stream: bool = False
    failure_event: str = "error"
    completion_event: str = COMPLETED

    def result(self, result: bytes) -> Answer:
        return Answer(200, result) if self.has_result else Answer(204, media_type="")

    def failure(self, failure: Failure) -> Answer:
        return Answer(status_of(failure), encode_call_error(failure), headers=headers_of(failure))

    def event(self, value: bytes) -> bytes:
        return value

    def last_event(self, failure: Failure) -> bytes:
        return encode_call_error(failure)


def not_allowed(allowed: str, hint: str = "") -> Answer:
    """The answer to a verb that the operation does not take."""
    failure = OperationTypeMismatch(hint or f"the path takes {allowed}")
    return Answer(405, encode_call_error(failure), headers={"allow": allowed})


# Reads whole numbers however they are written: to JSON Schema `5.0` and `5e0` are integers, to the decoder they are not.


_MAYBE_WHOLE: Final = re.compile(rb"\d(?:\.0*[,\]}\s]|\.0*$|(?:\.\d+)?[eE])").search
"""Finds what may be such a number; most bodies hold none. One in a string does no harm."""
_STRING_OR_NUMBER: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', re.DOTALL)

_MAX_EXPONENT: Final = 400
"""Numbers with more digits are left as they are: no float is larger."""

MAX_BYTES: Final = 16 * 1024
"""Larger params are left as they are: to look at each of their numbers takes the loop too long, and what is written in five
bytes may have hundreds of digits."""


def with_whole_numbers(params: bytes, model: InputModel) -> bytes:
    """Params as JSON text, in which whole numbers are written as integers if the input takes them only so.

    Else they stay as they came: a decimal keeps its zeros. So do those that are large.
    """
    if len(params) > MAX_BYTES or not _MAYBE_WHOLE(params):
        return params
    taken = attempt_now(lambda: model.decode(params))
    if not (isinstance(taken, Raised) and isinstance(taken.exc, FailureError)):
        return params
    return _STRING_OR_NUMBER.sub(_plain, params)


def _plain(found: re.Match[bytes]) -> bytes:
    text = found[0]
    if text.startswith(b'"') or not (b"." in text or b"e" in text or b"E" in text):
        return text
    try:
        number = Decimal(text.decode())
    except ArithmeticError:  # its exponent is beyond those of decimals
        return text
    is_whole = abs(number.adjusted()) <= _MAX_EXPONENT and number == number.to_integral_value()
    return b"%d" % int(number) if is_whole else text


# From the query of a URL to params as JSON, by the form that each has there. Checks no values: the operation does.


_encode: Final = msgspec.json.Encoder().encode
_NOT_SCALAR: Final = frozenset(b'"[{n \t\r\n')
"""How a JSON text begins that is no number and no boolean."""


def read_query(query: bytes, params: Mapping[str, QueryParam], ignored: Collection[str] = ()) -> bytes:
    """The params that a query holds; those of other names are told to the operation, which knows whether it takes them.

    Raises `FailureError(InvalidParams)` for a query that is no UTF-8, for one value too many, and for what should be JSON.
    """
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise FailureError(InvalidParams("$", "percent-encoded UTF-8", "string")) from None
    values: dict[str, object] = {}
    for name, text in pairs:
        param = params.get(name)
        if name in ignored:
            continue
        value = text if param is None else _value(param, text)
        if param is not None and param.repeated:
            values.setdefault(name, [])
            listed = values[name]
            assert isinstance(listed, list), "each param has one form"
            listed.append(value)
        elif name in values:
            raise FailureError(InvalidParams(name if param else "$", "one value", "array"))
        else:
            values[name] = value
    return _encode(values)


def _value(param: QueryParam, text: str) -> str | Raw:
    """The value in the form of this param. A scalar that is none stays a text, and the param's own type says what it expects."""
    form: Form = param.form
    if form == "text":
        return text
    written = text.encode()
    if form == "json":
        if json_failure(written) is not None:
            raise FailureError(InvalidParams(param.name, "JSON", "string"))
        return Raw(written)
    is_scalar = written and written[0] not in _NOT_SCALAR and written[-1:] > b" " and json_failure(written) is None
    return Raw(written) if is_scalar else text


PREFIX: Final = "operations/"

MAX_NAME: Final = 64
"""Characters of an unknown name that is compared: each one more costs time."""

MAX_COMPARED: Final = 256
"""Names that it is compared with. That takes the loop a few milliseconds at most."""

_EMPTY: Final = ParseFailure("invalid-json", "the body is empty; without params it is {}")
_WRITER: Final = OperationWriter()
"""For what is no operation's."""


@final
class OperationsEndpoint:
    """Reaches the external operations of the hosted services, and nothing else that the host has."""

    def __init__(self, host: Host, calls: CallRunner) -> None:
        self._calls = calls
        self._services = Registry(host.catalogue.services)
        self._served = _served(self._services)
        host.operation_watchers.append(self._refresh)
        self._in_query = frozenset(key.name for key in agent_of(host).api_keys if key.location == "query")

    def _refresh(self) -> None:
        self._services.refresh()
        self._served = _served(self._services)

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        served = self._served.get(unquote(path) if "%" in path else path)
        if served is None:
            name = unquote(path.removeprefix(PREFIX))
            return self._calls.refused(request, _WRITER, await self._not_found(request, name))
        if request.record is not None:
            request.record.route = served.route
        call = self._calls.call(request, served.spec.name)
        refusal = await self._calls.refusal(request, call, served.spec)
        if refusal is not None:
            return self._calls.refused(request, served.writer, refusal, close=request.method == "POST")
        match request.method:
            case "POST":
                answer = await self._post(request, call, served, send)
            case "GET" | "HEAD" if served.params is not None:
                answer = await self._get(request, call, served, send)
            case _:
                return not_allowed(served.allowed, served.hint)
        if answer is None or len(answer.body) < SMALLEST:  # most are small
            return answer
        return await compressed(request, answer)

    async def _not_found(self, request: GatewayRequest, name: str) -> Failure:
        """It names the nearest operation that the caller may call. Who must be known first gets the same for names that there are
        and for others.
        """
        access = await self._calls.known_access(request, PREFIX)
        if not isinstance(access, Access):
            return access
        if len(name) > MAX_NAME:
            return MethodNotFound()
        specs = (served.spec for served in self._served.values())
        known = (spec.name for spec in specs if access.refusal(spec.access, {}) is None)
        return MethodNotFound(nearest_hint(name, islice(known, MAX_COMPARED)).removeprefix("; "))

    async def _post(self, request: GatewayRequest, call: Request, served: _Served, send: Send) -> Answer | None:
        body = await self._calls.body(request, served.writer)
        if not isinstance(body, bytes):
            return body
        failure = _EMPTY if not body else json_failure(body) or served.wrong_form(body)
        if failure is not None:
            return self._calls.refused(request, served.writer, failure)
        return await self._run(request, call, served, body, send)

    async def _get(self, request: GatewayRequest, call: Request, served: _Served, send: Send) -> Answer | None:
        try:
            given = read_query(request.scope["query_string"], served.params or {}, self._in_query)
        except FailureError as exc:
            return self._calls.refused(request, served.writer, exc.failure)
        answer = await self._run(request, call, served, given, send)
        if answer is None or answer.status != 200:
            return answer
        if served.spec.etag:
            return with_etag(request, answer)
        answer.headers["cache-control"] = "no-store"
        return answer

    async def _run(
        self, request: GatewayRequest, call: Request, served: _Served, params: bytes, send: Send
    ) -> Answer | None:
        params = with_whole_numbers(params, served.spec.input)
        if served.spec.numbered:
            try:
                last_event_id(call.metadata)
            except FailureError as exc:
                return self._calls.refused(request, served.writer, exc.failure)
        call.spec, call.params, call.size = served.spec, Raw(params), len(params)
        return await self._calls.run(request, send, call, served.writer)


@final
class _Served:
    """One operation. `allowed` are the verbs that it takes, `params` those of a query that may stand in a URL."""

    def __init__(self, spec: OperationSpec) -> None:
        self.spec: Final = spec
        self.route: Final = f"/{PREFIX}{spec.name}"
        self.writer: Final = OperationWriter(has_result=spec.has_result)

    @cached_property
    def params(self) -> Mapping[str, QueryParam] | None:
        found = query_params(input_schema(self.spec.input)) if self.spec.kind == "query" else None
        return None if found is None else {param.name: param for param in found}

    @property
    def allowed(self) -> str:
        return "POST" if self.params is None else "GET, HEAD, POST"

    @property
    def hint(self) -> str:
        """The hint for a wrong verb."""
        by = "POST" if self.params is None else "GET, or by POST"
        return f"this {self.spec.kind} is called by {by} with its params as a JSON object"

    def wrong_form(self, body: bytes) -> Failure | None:
        """Return the failure of a body that holds no object, though the params are one."""
        first = body.lstrip()[:1]
        if first == b"{" or (self.spec.input.whole and input_schema(self.spec.input).get("type") != "object"):
            return None
        return InvalidParams("$", "object", _KINDS.get(first, "number"))


def _served(services: Registry) -> dict[str, _Served]:
    return {f"{PREFIX}{spec.name}": _Served(spec) for spec in services if spec.visibility == "external"}


_KINDS: Final = {b"[": "array", b'"': "string", b"t": "boolean", b"f": "boolean", b"n": "null"}
"""The JSON types of texts by their first byte; of all others it is a number."""


# The OpenAPI document.


PATH: Final = "openapi.json"

MAX_DOCUMENTS: Final = 16
"""Documents that are kept, the last ones that were asked for. Callers who may call the same have the same."""

_SERVERS: Final = b'"servers":[{"url":"/"}]'
"""The stand-in for the address in each document."""


class _Document(msgspec.Struct):
    """What stands before its servers, and what behind; and as it was sent last to those who ask at `url`: compressed once, where
    somebody takes it so.
    """

    before: bytes
    after: bytes
    url: str = ""
    body: bytes = b""
    etag: str = ""
    gzipped: bytes | None = None

    def write(self, url: str) -> None:
        """Make it what is sent to those who ask at this address."""
        self.url = url
        self.body = b'%b"servers":%b%b' % (self.before, msgspec.json.encode([{"url": url}]), self.after)
        self.etag, self.gzipped = etag_of(self.body), None


@final
class DocumentEndpoint:
    """The documents of one host."""

    def __init__(self, host: Host, calls: CallRunner) -> None:
        self._host = host
        self._calls = calls
        self._documents: dict[tuple[str, ...], _Document] = {}
        self._change_count = host.change_count

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        if path != PATH:
            return _WRITER.failure(MethodNotFound())
        note_route(request, f"/{PATH}")
        if request.method not in ("GET", "HEAD"):
            return not_allowed("GET, HEAD")
        access = await self._calls.access_of(request, self._calls.call(request, PATH))
        if isinstance(access, Internal):
            return _WRITER.failure(access)
        visible = self._host.catalogue.visible_to(access.identify({}))
        specs = [spec for spec in visible if access.refusal(spec.access, {}) is None]
        if not specs and (unknown := access.unknown_caller) is not None:
            return _WRITER.failure(unknown)
        document = self._document(specs)
        url = self._calls.url(request).rstrip("/")  # paths begin with a slash
        if document.url != url or not document.body:
            document.write(url)
        answer = with_etag(request, Answer(200, document.body), document.etag)
        if answer.status == 200:
            answer = await compressed(request, answer, document.gzipped)
            if "content-encoding" in answer.headers:
                document.gzipped = answer.body
        return answer

    def _document(self, specs: list[OperationSpec]) -> _Document:
        if self._change_count != self._host.change_count:
            self._documents.clear()
            self._change_count = self._host.change_count
        key = tuple(spec.name for spec in specs)
        document = self._documents.pop(key, None) or self._made(specs)
        self._documents[key] = document  # behind all others
        if len(self._documents) > MAX_DOCUMENTS:
            del self._documents[next(iter(self._documents))]
        return document

    def _made(self, specs: list[OperationSpec]) -> _Document:
        host = self._host
        told = about(host.catalogue.services, agent_of(host).card, host.access.provider, version=host.version, url="/")
        before, _, after = msgspec.json.encode(openapi_document(specs, told)).partition(_SERVERS)
        return _Document(before, after)
