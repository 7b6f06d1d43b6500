"""Describes a span: the names of the facts that it may hold, and how it ends. Starts none.

The names are those of OpenTelemetry's semantic conventions (RPC, JSON-RPC, HTTP, database, GenAI and MCP). Values are declared
names, and numbers of the daemon's own. A caller's text never becomes an attribute: no params, ids, paths, queries or
addresses, and an unknown method is `OTHER`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeAlias, final

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import StatusCode

from ...errors.codes import row_of
from ...errors.failures import DomainFailure, Failure
from .problems import note_fault

OTHER: Final = "_OTHER"
"""The name of a method that the daemon does not have, and of an unknown HTTP method."""

ERROR_TYPE: Final = "error.type"
RPC_SYSTEM: Final = "rpc.system.name"
RPC_METHOD: Final = "rpc.method"
RPC_STATUS: Final = "rpc.response.status_code"
JSONRPC_VERSION: Final = "jsonrpc.protocol.version"
HTTP_METHOD: Final = "http.request.method"
HTTP_ROUTE: Final = "http.route"
HTTP_RESEND: Final = "http.request.resend_count"
URL_SCHEME: Final = "url.scheme"
DB_SYSTEM: Final = "db.system.name"
DB_OPERATION: Final = "db.operation.name"
DB_BATCH: Final = "db.operation.batch.size"
GEN_AI_OPERATION: Final = "gen_ai.operation.name"
GEN_AI_AGENT: Final = "gen_ai.agent.name"
OPERATION: Final = "discreet.operation"
TASK_ID: Final = "discreet.task.id"

Attributes: TypeAlias = Mapping[str, str | int]

JSONRPC: Final = "jsonrpc"

_TARGETS: Final[Mapping[str, tuple[str, Attributes]]] = {
    "tools/call": ("gen_ai.tool.name", {GEN_AI_OPERATION: "execute_tool"}),
    "prompts/get": ("gen_ai.prompt.name", {}),
}
"""Of methods that only lead to an operation: the attribute with its name, and what else is said then."""

HTTP_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})
"""The methods of RFC 9110 and RFC 5789."""


def of_jsonrpc(method: str, also_as: str | None) -> Attributes:
    """Of one request or notification of JSON-RPC, whose method is told under another name, too, if given."""
    also = {} if also_as is None else {also_as: method}
    return {RPC_SYSTEM: JSONRPC, JSONRPC_VERSION: "2.0", RPC_METHOD: method, **also}


def of_target(method: str, target: str) -> Attributes:
    """Of a request whose method has led to this operation."""
    name, beside = _TARGETS.get(method, (OPERATION, {}))
    return {name: target, **beside}


def of_failure(failure: Failure) -> Attributes:
    """Of what has failed: the protocol code and the number of the table of errors."""
    row = row_of(failure)
    return {ERROR_TYPE: row.protocol_code, RPC_STATUS: str(row.code)}


def is_fault(failure: Failure) -> bool:
    """Whether the daemon is at fault, and not its caller. A declared error is an answer like any other."""
    return not isinstance(failure, DomainFailure) and row_of(failure).http_status >= 500


@final
class Span:
    """A `Span`. `base` is the context that it was started in, `method` how the caller has named the work.
    Where it is `held`, only `close` ends it: that of an HTTP request lasts longer than the call in it.
    """

    __slots__ = ("_base", "_blamed", "_closed", "_ended", "_held", "_method", "_recorded", "_span")

    def __init__(self, span: trace.Span, base: Context, method: str = "", *, held: bool = False) -> None:
        self._span = span
        self._base = base
        self._method = method
        self._held = held
        self._recorded = span.is_recording()
        self._blamed = self._ended = self._closed = False

    @property
    def context(self) -> Context:
        """The context in which it is the current span."""
        return trace.set_span_in_context(self._span, self._base)

    def enter(self) -> None:
        attach(self.context)

    @contextmanager
    def entered(self) -> Iterator[None]:
        token = attach(self.context)
        try:
            yield
        finally:
            detach(token)

    def lead_to(self, target: str) -> None:
        if self._recorded:
            self._span.update_name(f"{self._method} {target}")
            self._span.set_attributes(of_target(self._method, target))

    def tell(self, name: str, value: str | int) -> None:
        if self._recorded and not self._closed:
            self._span.set_attributes({name: value})

    def record_error(self, error: Failure | str) -> None:
        if not self._recorded or self._closed:
            return
        if not self._blamed:
            self._blamed = True
            self._span.set_attributes({ERROR_TYPE: error} if isinstance(error, str) else of_failure(error))
        if isinstance(error, str) or is_fault(error):
            self._span.set_status(StatusCode.ERROR)

    def end(self, error: Failure | str | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        if not self._held:
            self.close(error)
        elif error is not None:
            self.record_error(error)

    def close(self, error: Failure | str | None = None, told: Attributes | None = None) -> None:
        """End it, also where it is held. `told` are its last attributes."""
        if self._closed:
            return
        if told is not None and self._recorded:
            self._span.set_attributes(told)
        if error is not None:
            self.record_error(error)
        self._closed = True
        try:
            self._span.end()
        except Exception as exc:  # noqa: BLE001 - a processor of the program's own must not cost an answer
            note_fault(exc)

    @property
    def log_fields(self) -> Mapping[str, str]:
        return log_fields(self._span)


def log_fields(span: trace.Span) -> Mapping[str, str]:
    """Return the fields of log lines that belong to this span; none if it is not valid."""
    context = span.get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}
