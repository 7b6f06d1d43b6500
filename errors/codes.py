"""The one table of errors: code, message, data, retry rule, HTTP and gRPC status and log level of every failure.

Every other place that states one of these facts (the wire, the client, the documents) derives it from here. The codes
follow JSON-RPC 2.0 section 5.1, for cancellation LSP 3.17 (`RequestCancelled`), and for agents A2A 1.0 section 5.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from .failures import (
    AgentFailure,
    AuthenticationRequired,
    Cancelled,
    ContentTypeNotSupported,
    DomainFailure,
    EnvelopeMember,
    ExtendedAgentCardNotConfigured,
    ExtensionSupportRequired,
    Failure,
    InsufficientPermissions,
    Internal,
    InvalidAgentResponse,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    OperationTypeMismatch,
    Overloaded,
    ParseFailure,
    PushNotificationNotSupported,
    RequestReason,
    TaskNotCancelable,
    TaskNotFound,
    TimedOut,
    Unavailable,
    UnsupportedOperation,
    VersionNotSupported,
)

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

GrpcStatus: TypeAlias = Literal[
    "CANCELLED",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "UNAUTHENTICATED",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000
REQUEST_CANCELLED = -32800

BATCH_MESSAGE = "Batch requests not supported"
"""Replaces the message of the INVALID_REQUEST row for a JSON array."""

STORE_UNAVAILABLE = "Store unavailable"
"""Replaces that of the UNAVAILABLE row where the daemon goes on, and only the server that keeps its tasks is away."""

UPSTREAM_MESSAGE = "Upstream unavailable"
"""Replaces the message of the UNAVAILABLE row where the daemon itself goes on."""

MEMBER_RULES: Mapping[EnvelopeMember, str] = {
    "jsonrpc": 'jsonrpc must be "2.0"',
    "method": "method must be a string",
    "params": "params must be an object or an array",
    "serviceParams": "serviceParams must be an object of strings",
}
"""Follows the message of the INVALID_REQUEST row where a member of the envelope is missing or wrong."""

REASON_RULES: Mapping[RequestReason, str] = {
    "unsupported-content-type": "Content-Type must be application/vscode-jsonrpc",
    "bad-charset": "the charset must be utf-8",
    "invalid-id-type": "id must be a string, a number or null",
}
"""The same for reasons that say what to send instead, unless the failure has a hint of its own."""


LSP_REQUEST_FAILED = -32803
"""LSP's code for a request that was right and failed (LSP 3.17, `LSPErrorCodes.RequestFailed`). New codes between −32099
and −32000 are not allowed there."""


ACP_REQUEST_FAILED = -32010
"""In ACP: a request that was right and failed. −32000 means there that the user must sign in, −32002 that a resource is not
there, and −32001 to −32009 are those of A2A."""


ACP_RESERVED = frozenset({SERVER_ERROR, REQUEST_CANCELLED})
"""In ACP: numbers whose meaning is fixed, so that no declared error may have them. The user must sign in; the request was
cancelled."""


class ErrorRow(msgspec.Struct, frozen=True):
    """One row of the table. `data` describes the shape of `error.data` for readers. `codes` has the JSON-RPC codes of dialects
    that differ from `code`."""

    failure: type
    code: int
    message: str
    protocol_code: str
    when: str
    data: str
    retryable: bool
    http_status: int
    grpc_status: GrpcStatus
    log_level: LogLevel
    codes: Mapping[str, int] = {}

    def code_in(self, dialect: str) -> int:
        """Return the JSON-RPC code in this dialect."""
        return self.codes.get(dialect, self.code)


_FAILED: dict[str, int] = {"lsp": LSP_REQUEST_FAILED, "acp": ACP_REQUEST_FAILED}
_SIGN_IN: dict[str, int] = {"lsp": LSP_REQUEST_FAILED}
_AGENT_DATA = "{taskId?, currentState?, completedAt?, reason?, suggestion?, accepted?}"

ERROR_TABLE: tuple[ErrorRow, ...] = (
    ErrorRow(ParseFailure, PARSE_ERROR, "Parse error", "PARSE_ERROR",
        "bad JSON, bad UTF-8, length mismatch", "{reason}", False, 400, "INVALID_ARGUMENT", "warning"),
    ErrorRow(InvalidRequest, INVALID_REQUEST, "Invalid Request", "INVALID_REQUEST",
        "envelope, headers, limits, batch, ids", "{reason}", False, 400, "INVALID_ARGUMENT", "warning"),
    ErrorRow(OperationTypeMismatch, INVALID_REQUEST, "Invalid Request", "INVALID_OPERATION_TYPE",
        "a subscription called as a call, or the reverse", "{reason}", False, 400, "INVALID_ARGUMENT", "warning"),
    ErrorRow(MethodNotFound, METHOD_NOT_FOUND, "Method not found", "NOT_FOUND",
        "unknown method, or an internal operation called from the wire", "", False, 404, "UNIMPLEMENTED", "warning"),
    ErrorRow(InvalidParams, INVALID_PARAMS, "Invalid params", "INVALID_INPUT",
        "wrong, missing, surplus params", "{param, expected, received, accepted?}",
        False, 400, "INVALID_ARGUMENT", "warning"),
    ErrorRow(Internal, INTERNAL_ERROR, "Internal error", "INTERNAL",
        "any unexpected fault, undeclared error, invalid output", "{code} of an undeclared typed error, else none",
        False, 500, "INTERNAL", "error"),
    ErrorRow(DomainFailure, SERVER_ERROR, "", "",
        "a declared error of an operation: its own text, code, retry flag and status",
        "{code, retryable, details?: {…, retryAfterMs?}}", False, 500, "INTERNAL", "info", _FAILED),
    ErrorRow(AuthenticationRequired, SERVER_ERROR, "Authentication required", "FORBIDDEN",
        "no identity where one is needed", "{code, retryable, details: {authSchemes, realm}}",
        False, 401, "UNAUTHENTICATED", "warning", _SIGN_IN),
    ErrorRow(InsufficientPermissions, SERVER_ERROR, "Insufficient permissions", "FORBIDDEN",
        "scopes missing", "{code, retryable}", False, 403, "PERMISSION_DENIED", "warning", _FAILED),
    ErrorRow(TimedOut, SERVER_ERROR, "Request timed out", "TIMEOUT",
        "the operation's deadline passed", "{code, retryable}", True, 504, "DEADLINE_EXCEEDED", "warning", _FAILED),
    ErrorRow(Overloaded, SERVER_ERROR, "Server overloaded", "OVERLOADED",
        "a limit of the operation or of the daemon is reached", "{code, retryable, details?: {retryAfterMs}}",
        True, 429, "RESOURCE_EXHAUSTED", "warning", _FAILED),
    ErrorRow(Unavailable, SERVER_ERROR, "Shutting down", "UNAVAILABLE",
        "a request read while draining, or still running when the drain window closed; with the message"
        f" `{UPSTREAM_MESSAGE}`, the program behind an imported operation can't be reached, or the issuer who knows the caller's"
        " token; with the message"
        f" `{STORE_UNAVAILABLE}`, the server that keeps the tasks is away", "{code, retryable, details?: {retryAfterMs}}",
        True, 503, "UNAVAILABLE", "info", {"lsp": INVALID_REQUEST, "acp": ACP_REQUEST_FAILED}),
    ErrorRow(Cancelled, REQUEST_CANCELLED, "Request cancelled", "CANCELLED",
        "`$/cancelRequest` took effect", "", False, 499, "CANCELLED", "info"),
    ErrorRow(TaskNotFound, -32001, "Task not found", "TASK_NOT_FOUND",
        "no such task, or none that the caller may see", _AGENT_DATA, False, 404, "NOT_FOUND", "info"),
    ErrorRow(TaskNotCancelable, -32002, "Task cannot be canceled", "TASK_NOT_CANCELABLE",
        "the task has ended, or its agent keeps on", _AGENT_DATA, False, 400, "FAILED_PRECONDITION", "info",
        {"acp": ACP_REQUEST_FAILED}),
    ErrorRow(PushNotificationNotSupported, -32003, "Push notifications not supported", "PUSH_NOTIFICATION_NOT_SUPPORTED",
        "the agent sends no push notifications", _AGENT_DATA, False, 400, "FAILED_PRECONDITION", "info"),
    ErrorRow(UnsupportedOperation, -32004, "Operation not supported", "UNSUPPORTED_OPERATION",
        "the agent, or a task in its state, does not support it", _AGENT_DATA, False, 400, "FAILED_PRECONDITION", "info"),
    ErrorRow(ContentTypeNotSupported, -32005, "Incompatible content types", "CONTENT_TYPE_NOT_SUPPORTED",
        "a part is of a media type that the agent does not take", _AGENT_DATA, False, 400, "INVALID_ARGUMENT", "info",
        {"acp": INVALID_PARAMS}),
    ErrorRow(InvalidAgentResponse, -32006, "Invalid agent response", "INVALID_AGENT_RESPONSE",
        "the agent's own code answered with what the protocol does not allow", _AGENT_DATA, False, 500, "INTERNAL", "info"),
    ErrorRow(ExtendedAgentCardNotConfigured, -32007, "Extended agent card not configured",
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED", "the agent announces an extended card and has none", _AGENT_DATA,
        False, 400, "FAILED_PRECONDITION", "info"),
    ErrorRow(ExtensionSupportRequired, -32008, "Extension support required", "EXTENSION_SUPPORT_REQUIRED",
        "the agent requires an extension that the caller did not name", _AGENT_DATA, False, 400, "FAILED_PRECONDITION",
        "info"),
    ErrorRow(VersionNotSupported, -32009, "Version not supported", "VERSION_NOT_SUPPORTED",
        "the caller asked for a version that the method does not speak", _AGENT_DATA, False, 400, "FAILED_PRECONDITION",
        "info"),
)  # fmt: skip

A2A_REASONS: Mapping[type, str] = {
    ParseFailure: "PARSE_ERROR",
    InvalidRequest: "INVALID_REQUEST",
    OperationTypeMismatch: "INVALID_REQUEST",
    MethodNotFound: "METHOD_NOT_FOUND",
    InvalidParams: "INVALID_PARAMS",
    Internal: "INTERNAL_ERROR",
    **{row.failure: row.protocol_code for row in ERROR_TABLE if issubclass(row.failure, AgentFailure)},
}
"""The `reason` of the errors that A2A 1.0 knows (5.4 and 9.5). The first ones are named as a2a-sdk names them, whose clients
tell errors without a JSON-RPC code apart by it. All other failures have their protocol codes for reasons."""

_ROWS: dict[type, ErrorRow] = {row.failure: row for row in ERROR_TABLE}

RESERVED_CODES: frozenset[str] = frozenset(
    row.protocol_code for row in ERROR_TABLE if row.protocol_code and not issubclass(row.failure, AgentFailure)
)
"""Protocol codes that no operation may declare: they mean the same for every operation. Those of A2A are told apart by
their numbers."""

_GRPC_OF_HTTP: dict[int, GrpcStatus] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    410: "NOT_FOUND",
    412: "FAILED_PRECONDITION",
    413: "OUT_OF_RANGE",
    415: "INVALID_ARGUMENT",
    416: "OUT_OF_RANGE",
    422: "INVALID_ARGUMENT",
    423: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
# From the comments of google/rpc/code.proto; for statuses that it does not mention, the nearest meaning.


def grpc_of_http(status: int) -> GrpcStatus:
    """Return the gRPC status for an HTTP status; INTERNAL if the table has none."""
    return _GRPC_OF_HTTP.get(status, "INTERNAL")


def domain_row(failure: DomainFailure) -> ErrorRow:
    """Return the row of declared errors, with the message, codes, retry rule and status of this one."""
    return msgspec.structs.replace(
        _ROWS[DomainFailure],
        message=failure.message,
        protocol_code=failure.code,
        retryable=failure.retryable,
        http_status=failure.http_status,
        grpc_status=grpc_of_http(failure.http_status),
        code=SERVER_ERROR if failure.number is None else failure.number,
        codes=_ROWS[DomainFailure].codes if failure.number is None else {},
    )


_UPSTREAM_ROW = msgspec.structs.replace(_ROWS[Unavailable], message=UPSTREAM_MESSAGE, codes=_FAILED)


def row_of(failure: Failure) -> ErrorRow:
    """Return the row of a failure. Total: every member of the union has one."""
    if isinstance(failure, DomainFailure):
        return domain_row(failure)
    if isinstance(failure, Unavailable) and failure.upstream:
        return _UPSTREAM_ROW
    return _ROWS[type(failure)]


def rows_of_code(code: int) -> tuple[ErrorRow, ...]:
    """The rows that share a JSON-RPC code; empty for a code that is not in the table."""
    return tuple(row for row in ERROR_TABLE if row.code == code)
