"""Makes a `Service` of what another program offers. Params are checked before it is called, and its answers before they go on.

Knows no protocol: an `Upstream` makes the calls.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ..daemon.declarations import PAGE_SCHEME, ExternalNames, Offer, Prompt, Resource
from ..daemon.logs import log
from ..daemon.operations.access import AccessRule
from ..daemon.operations.context import context_backend_of
from ..daemon.operations.params import META_MEMBERS, Arguments, InputDecoder, InputModel
from ..daemon.operations.service import Service
from ..daemon.operations.spec import OperationSpec, ServerEvent, Timeout, Visibility, check_name
from ..errors.decoders import DECODE_ERRORS, ExternalSchema, build_decoder
from ..errors.exceptions import ExternalError, FailureError, given_error
from ..errors.failures import Internal, InvalidParams, Unavailable
from ..schemas.documents import OfferSchema
from ..schemas.phrases import json_kind
from .model import ImportFailed, UpstreamError
from .validation import Checker, Fault

if TYPE_CHECKING:
    from ..daemon.operations.context import Context
    from .archive import Entry, ImportArchive
    from .model import ImportedError, ImportedOperation, JsonSchema, Schema

Validate: TypeAlias = Literal["on", "log", "off"]
"""The treatment of params or answers that are not as declared: an error for the caller, a line in the log, or nothing."""

_CHECKERS: Final = 128
"""Schemas of one import that are kept ready to check values."""
_LOWEST_STATUS, _BAD_GATEWAY = 400, 502


class Upstream(Protocol):
    """Calls the program that operations were imported from. Arguments fit the operation's input."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """For as long as the daemon serves. It may put off what takes time to the first call."""
        ...

    async def call(self, operation: Any, arguments: dict[str, Any], ctx: Context) -> Raw:
        """The result as JSON text. Raises `UpstreamError` for a declared error, and `FailureError`."""
        ...

    def stream(
        self, operation: Any, arguments: dict[str, Any], ctx: Context
    ) -> AsyncGenerator[Raw | ServerEvent[Raw], None]:
        """The events of a subscription as JSON texts, with their numbers where it is `numbered`. Raises the same."""
        ...


class ImportOptions(Struct, frozen=True, kw_only=True):
    """How imported operations are served. `expose` are patterns of names, or all of them, that callers see; others can only be
    called by operations of the daemon. `scopes` are what a caller needs. `credentials` are those that the upstream uses. Without
    `check_input` the upstream is left to check the params: another daemon says better what is wrong with them. Each operation
    declares `errors` beside its own.
    """

    expose: bool | Sequence[str] = False
    validate: Validate = "on"
    timeout: Timeout = UNSET
    scopes: Sequence[str] = ()
    credentials: Sequence[str] = ()
    check_input: bool = True
    errors: tuple[ImportedError, ...] = ()

    def visibility(self, name: str) -> Visibility:
        """Return the visibility of an operation, by its name without the namespace."""
        if isinstance(self.expose, bool):
            return "external" if self.expose else "internal"
        return "external" if any(fnmatchcase(name, pattern) for pattern in self.expose) else "internal"


def imported_service(namespace: str, packed: ImportArchive[Any], upstream: Upstream, options: ImportOptions) -> Service:
    """The service of these operations, under a name. Raises `ImportFailed`: a name can't be one, or is there twice."""
    head = packed.head
    service = Service(
        namespace,
        description=head.description,
        version=head.version,
        credentials=options.credentials,
        lifespan=upstream.opened,
    )
    service.enters_late = True
    maker = _Maker(namespace, packed, upstream, options)
    service.operations.extend(maker.spec(index, entry) for index, entry in enumerate(packed.entries))
    return service


@final
class _Maker:
    """Makes the operations of one import. Schemas, errors and checks are made when they are needed first."""

    def __init__(self, namespace: str, packed: ImportArchive[Any], upstream: Upstream, options: ImportOptions) -> None:
        self._namespace = namespace
        self._packed = packed
        self._upstream = upstream
        self._options = options
        self._access = AccessRule(frozenset(options.scopes))
        self._read = build_decoder(Raw)
        self._classes: dict[bytes, type[ExternalError]] = {}
        self._checker = lru_cache(_CHECKERS)(self._make_checker)

    def spec(self, index: int, entry: Entry) -> OperationSpec:
        name = f"{self._namespace}/{entry.name}" if self._namespace else entry.name
        try:
            check_name(name)
        except ValueError as exc:
            raise ImportFailed(f"an operation called {entry.name!r}: {exc}") from None
        streams = entry.kind == "subscription"
        run = self._stream if streams else self._call
        return OperationSpec(
            name=name,
            kind=entry.kind,
            mode="stream" if streams else "async",
            input=self._input(index),
            invoke=lambda ctx, arguments: run(index, name, ctx, *arguments),
            returns=ExternalSchema(partial(self._schema, index, "output")) if entry.has_result else None,
            output=self._read,
            errors=_Errors(partial(self._error_types, index)) if entry.errors or self._options.errors else (),
            description=entry.description,
            timeout=self._timeout(entry),
            visibility=self._options.visibility(entry.name),
            access=self._access,
            namespace=self._namespace,
            source=f"imported as {self._namespace}",
            idempotent=entry.idempotent,
            numbered=entry.numbered,
            offer=None if entry.offer is None else _offer_here(self._namespace, entry.offer),
        )

    def _timeout(self, entry: Entry) -> Timeout:
        """The import's own for calls, else the one that the operation declares. Without one, streams have none."""
        streams = entry.kind == "subscription"
        if not (streams or isinstance(self._options.timeout, UnsetType)):
            return self._options.timeout
        return None if streams and entry.timeout is UNSET else entry.timeout

    def operation(self, index: int) -> ImportedOperation:
        found: ImportedOperation = self._packed.operation(index)
        return found

    async def _call(self, index: int, name: str, ctx: Context, params: dict[str, Any], prefix: str) -> Raw:
        await self._ready(index, name, ctx)
        try:
            result = await self._upstream.call(self.operation(index), params, ctx)
        except (UpstreamError, FailureError) as exc:
            raise self._to_raise(index, name, exc, prefix) from None
        return self._checked(index, name, result)

    async def _stream(
        self, index: int, name: str, ctx: Context, params: dict[str, Any], prefix: str
    ) -> AsyncGenerator[Raw | ServerEvent[Raw], None]:
        await self._ready(index, name, ctx)
        events = self._upstream.stream(self.operation(index), params, ctx)
        try:
            async for event in events:
                self._checked(index, name, event.value if isinstance(event, ServerEvent) else event)
                yield event
        except (UpstreamError, FailureError) as exc:
            raise self._to_raise(index, name, exc, prefix) from None
        finally:
            await events.aclose()

    async def _ready(self, index: int, name: str, ctx: Context) -> None:
        """Wait until the upstream is opened, which the first call does. Raises `FailureError` where the answer could not be
        checked: a call may change something."""
        if self._options.validate == "on":
            self._usable(index, ("output", 0), name)
        await context_backend_of(ctx).process.enter_late(self._namespace)

    def _error_types(self, index: int) -> tuple[type[ExternalError], ...]:
        return tuple(map(self._error, self._errors(index)))

    def _errors(self, index: int) -> tuple[ImportedError, ...]:
        return (*self.operation(index).errors, *self._options.errors)

    def _to_raise(self, index: int, name: str, exc: UpstreamError | FailureError, prefix: str) -> Exception:
        """Return the exception of a handler whose call has failed, or was answered with an error."""
        if isinstance(exc, FailureError):
            return _below(prefix, exc)
        declared = next((each for each in self._errors(index) if each.code == exc.code), None)
        if declared is None:
            log.error("import.error_undeclared", operation=name, code=exc.code)
            return FailureError(Internal())
        details = exc.details if declared.schema is not None else None
        if details is not None and self._options.validate != "off":
            place = self._errors(index).index(declared)
            fault = self._fault(index, ("error", place), details, name)
            if fault is not None:
                log.warning(
                    "import.error_invalid", operation=name, code=exc.code, param=fault.path, keyword=fault.keyword
                )
                details = details if self._options.validate == "log" else None
        return self._error(declared)(details, retry_after_ms=exc.retry_after_ms)

    def _checked(self, index: int, name: str, result: Raw) -> Raw:
        """Return the result or event if it is as declared. Raises `FailureError` if it is not."""
        if self._options.validate == "off":
            return result
        fault = self._fault(index, ("output", 0), result, name)
        if fault is not None:
            facts = {"operation": name, "param": fault.path, "keyword": fault.keyword}
            if self._options.validate == "on":
                log.error("import.reply_invalid", **facts)
                raise FailureError(Internal())
            log.warning("import.reply_invalid", **facts)
        return result

    def _usable(self, index: int, part: tuple[str, int], name: str) -> Checker | None:
        """None where nothing is checked. Raises `FailureError` for a schema that can't be used, unless that is only logged."""
        checker = self._checker(index, part)
        if not isinstance(checker, ImportFailed):
            return checker
        log.error("import.schema_unusable", operation=name, part=part[0], reason=str(checker))
        if self._options.validate == "on" and part[0] != "error":
            raise FailureError(Unavailable())
        return None

    def _fault(self, index: int, part: tuple[str, int], value: Raw, name: str) -> Fault | None:
        checker = self._usable(index, part, name)
        if checker is None:
            return None
        try:
            return checker.fault(msgspec.json.decode(value))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Fault("$", "json", "", "malformed")

    def _make_checker(self, index: int, part: tuple[str, int]) -> Checker | ImportFailed | None:
        """None where there is nothing to check; why, where that can't be done, which is kept: finding out takes long."""
        schema = self._part(index, part)
        try:
            return None if schema in (True, {}) else Checker(self._packed.document(schema))
        except ImportFailed as exc:
            return ImportFailed(str(exc))  # without the traceback, which would keep the frames

    def _part(self, index: int, part: tuple[str, int]) -> Schema:
        operation, (kind, place) = self.operation(index), part
        if kind == "error":
            schema = self._errors(index)[place].schema
            return True if schema is None else schema
        return operation.input if kind == "input" else operation.output

    def _schema(self, index: int, kind: str) -> JsonSchema:
        return self._packed.document(self._part(index, (kind, 0)))

    def _error(self, error: ImportedError) -> type[ExternalError]:
        key = msgspec.msgpack.encode(error)
        if key not in self._classes:
            schema = None if error.schema is None else ExternalSchema(partial(self._packed.document, error.schema))
            self._classes[key] = given_error(
                error.code,
                message=error.message,
                description=error.description,
                http_status=error.http_status if error.http_status >= _LOWEST_STATUS else _BAD_GATEWAY,
                retryable=error.retryable,
                schema=schema,
            )
        return self._classes[key]

    def _input(self, index: int) -> InputModel:
        load = partial(self._schema, index, "input")
        return InputModel(ExternalSchema(load), (), None, True, (), self._decoder(index), whole=True)

    def _decoder(self, index: int) -> InputDecoder:
        def decode(raw: Raw | bytes | None, prefix: str = "") -> Arguments:
            given = None if raw is None else _json_of(raw, prefix)
            properties = self.operation(index).input.get("properties", {})
            if isinstance(given, list):
                if len(given) > len(properties):
                    raise FailureError(InvalidParams(prefix or "$", f"at most {len(properties)} params", "array"))
                given = dict(zip(properties, given, strict=False))
            params = {} if given is None else given
            if isinstance(params, dict):
                for name in META_MEMBERS:
                    if name not in properties:
                        params.pop(name, None)
            checks = self._options.check_input and self._options.validate != "off"
            checker = self._usable(index, ("input", 0), self.operation(index).name) if checks else None
            fault = None if checker is None else checker.fault(params, prefix=prefix)
            if fault is not None and self._options.validate == "log":
                name = self.operation(index).name
                log.warning("import.params_invalid", operation=name, param=fault.path, keyword=fault.keyword)
            elif fault is not None:
                raise FailureError(fault.as_invalid_params())
            if not isinstance(params, dict):
                raise FailureError(InvalidParams(prefix or "$", "object", json_kind(params)))
            return params, prefix

        return decode


def _offer_here(namespace: str, offer: OfferSchema) -> Offer | None:
    """As what clients of MCP get an operation of another daemon. A page of an app is none: its tool does not lead to it."""
    if offer.uri.startswith(PAGE_SCHEME):
        return None
    if not offer.uri:
        return Prompt(offer.title)
    return Resource(ExternalNames(namespace).uri(offer.uri), offer.mime_type, offer.title)


def _json_of(raw: Raw | bytes, prefix: str) -> Any:
    """Params as values. Raises `FailureError` for what msgspec does not read: numbers out of range, what is nested too deeply."""
    try:
        return msgspec.json.decode(raw)
    except DECODE_ERRORS:
        pass  # and drop it: its message may quote the params
    from ..daemon.operations.input_errors import find_input_error  # late: neither the start nor a valid call needs it

    raise FailureError(find_input_error(Any, raw, prefix=prefix))


@final
class _Errors(Sequence["type[ExternalError]"]):
    """The classes of an operation's errors, which are made when somebody looks at them."""

    def __init__(self, load: Callable[[], tuple[type[ExternalError], ...]]) -> None:
        self._load = load

    def __getitem__(self, index: Any) -> Any:
        return self._load()[index]

    def __len__(self) -> int:
        return len(self._load())

    def __iter__(self) -> Iterator[type[ExternalError]]:
        return iter(self._load())


def _below(prefix: str, exc: FailureError) -> FailureError:
    """Return the failure with another path; the param that it names is one below `prefix` in what the caller sent."""
    failure = exc.failure
    if not (prefix and isinstance(failure, InvalidParams)):
        return exc
    path = failure.param.removeprefix("$")
    joined = f"{prefix}.{path}" if path and not path.startswith("[") else prefix + path
    return FailureError(msgspec.structs.replace(failure, param=joined))
