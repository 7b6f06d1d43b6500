"""The names and values of attributes, after OpenTelemetry's semantic conventions (RPC, JSON-RPC, HTTP, database, GenAI and MCP).

Values are declared names, and numbers of the daemon's own. Nothing that a caller has sent becomes an attribute: no params, ids,
paths, queries or addresses, and an unknown method is `OTHER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from ...errors.codes import row_of
from ...errors.failures import DomainFailure, Failure

OTHER: Final = "_OTHER"
"""What stands for a method that the daemon does not have, and for an unknown HTTP method."""

ERROR_TYPE: Final = "error.type"
RPC_SYSTEM: Final = "rpc.system.name"
RPC_METHOD: Final = "rpc.method"
RPC_STATUS: Final = "rpc.response.status_code"
JSONRPC_VERSION: Final = "jsonrpc.protocol.version"
HTTP_METHOD: Final = "http.request.method"
HTTP_ROUTE: Final = "http.route"
HTTP_STATUS: Final = "http.response.status_code"
HTTP_RESEND: Final = "http.request.resend_count"
URL_SCHEME: Final = "url.scheme"
DB_SYSTEM: Final = "db.system.name"
DB_OPERATION: Final = "db.operation.name"
DB_BATCH: Final = "db.operation.batch.size"
GEN_AI_OPERATION: Final = "gen_ai.operation.name"
GEN_AI_AGENT: Final = "gen_ai.agent.name"
OPERATION: Final = "discreet.operation"
TASK_ID: Final = "discreet.task.id"
TASK_STATE: Final = "discreet.task.state"

SCOPE_MEMBER: Final = "discreet.request"
"""The member of an ASGI scope that holds the record of its request."""

Attributes: TypeAlias = Mapping[str, str | int]

JSONRPC: Final = "jsonrpc"

_TARGETS: Final[Mapping[str, tuple[str, Attributes]]] = {
    "tools/call": ("gen_ai.tool.name", {GEN_AI_OPERATION: "execute_tool"}),
    "prompts/get": ("gen_ai.prompt.name", {}),
}
"""Of methods that only lead to an operation: the attribute with its name, and what else is said then."""

HTTP_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})
"""Those of RFC 9110 and RFC 5789."""


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
