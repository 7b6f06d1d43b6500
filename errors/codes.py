"""The one table of what a failure is called: its number, text, data, retry rule, HTTP and gRPC status, log level.

Every other place that states one of these facts (the wire, the client, the documents) derives it from here. The
numbers follow JSON-RPC 2.0 section 5.1 and, for cancellation, LSP 3.17 (`RequestCancelled`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from .failures import (
    AuthenticationRequired,
    Cancelled,
    DomainFailure,
    Failure,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    OperationTypeMismatch,
    Overloaded,
    ParseFailure,
    TimedOut,
    Unavailable,
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
"""Replaces the text of the INVALID_REQUEST row when a JSON array came."""


class Row(msgspec.Struct, frozen=True):
    """One line of the table; `data` describes the shape of `error.data` for readers."""

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


TABLE: tuple[Row, ...] = (
    Row(ParseFailure, PARSE_ERROR, "Parse error", "PARSE_ERROR",
        "bad JSON, bad UTF-8, length mismatch", "{reason}", False, 400, "INVALID_ARGUMENT", "warning"),
    Row(InvalidRequest, INVALID_REQUEST, "Invalid Request", "INVALID_REQUEST",
        "envelope, headers, limits, batch, ids", "{reason}", False, 400, "INVALID_ARGUMENT", "warning"),
    Row(OperationTypeMismatch, INVALID_REQUEST, "Invalid Request", "INVALID_OPERATION_TYPE",
        "a subscription called as a call, or the reverse", "{reason}", False, 400, "INVALID_ARGUMENT", "warning"),
    Row(MethodNotFound, METHOD_NOT_FOUND, "Method not found", "NOT_FOUND",
        "unknown method, or an internal operation called from the wire", "", False, 404, "UNIMPLEMENTED", "warning"),
    Row(InvalidParams, INVALID_PARAMS, "Invalid params", "INVALID_INPUT",
        "wrong, missing, surplus params", "{param, expected, received, accepted?}",
        False, 400, "INVALID_ARGUMENT", "warning"),
    Row(Internal, INTERNAL_ERROR, "Internal error", "INTERNAL",
        "any unexpected fault, undeclared error, invalid output", "{code} of an undeclared typed error, else none",
        False, 500, "INTERNAL", "error"),
    Row(DomainFailure, SERVER_ERROR, "", "",
        "a declared error of an operation: its own text, code, retry flag and status",
        "{code, retryable, details?}", False, 500, "INTERNAL", "info"),
    Row(AuthenticationRequired, SERVER_ERROR, "Authentication required", "FORBIDDEN",
        "no identity where one is needed", "{code, retryable, details: {authSchemes, realm}}",
        False, 401, "UNAUTHENTICATED", "warning"),
    Row(InsufficientPermissions, SERVER_ERROR, "Insufficient permissions", "FORBIDDEN",
        "scopes missing", "{code, retryable}", False, 403, "PERMISSION_DENIED", "warning"),
    Row(TimedOut, SERVER_ERROR, "Request timed out", "TIMEOUT",
        "the operation's deadline passed", "{code, retryable}", True, 504, "DEADLINE_EXCEEDED", "warning"),
    Row(Overloaded, SERVER_ERROR, "Server overloaded", "OVERLOADED",
        "a limit that the operation declares is reached", "{code, retryable, details?: {retryAfterMs}}",
        True, 429, "RESOURCE_EXHAUSTED", "warning"),
    Row(Unavailable, SERVER_ERROR, "Shutting down", "UNAVAILABLE",
        "a request read while draining, or still running when the drain window closed", "{code, retryable}",
        True, 503, "UNAVAILABLE", "info"),
    Row(Cancelled, REQUEST_CANCELLED, "Request cancelled", "CANCELLED",
        "`$/cancelRequest` took effect", "", False, 499, "CANCELLED", "info"),
)  # fmt: skip

_ROWS: dict[type, Row] = {row.failure: row for row in TABLE}

RESERVED_CODES: frozenset[str] = frozenset(
    {"NOT_FOUND", "FORBIDDEN", "INVALID_INPUT", "INVALID_OPERATION_TYPE", "INTERNAL", "TIMEOUT"}
)
"""Protocol codes that no operation may declare: clients give them one meaning whatever the operation."""

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
# The numbers of google/rpc/code.proto's comments, and for the statuses it leaves out the nearest meaning.


def grpc_of_http(status: int) -> GrpcStatus:
    """The gRPC status that stands for an HTTP status; INTERNAL where none is nearer."""
    return _GRPC_OF_HTTP.get(status, "INTERNAL")


def domain_row(failure: DomainFailure) -> Row:
    """The table's line for one declared error, filled with the error's own facts."""
    return msgspec.structs.replace(
        _ROWS[DomainFailure],
        message=failure.message,
        protocol_code=failure.code,
        retryable=failure.retryable,
        http_status=failure.http_status,
        grpc_status=grpc_of_http(failure.http_status),
    )


def row_of(failure: Failure) -> Row:
    """The table's line for a failure. Total: every member of the union has one."""
    if isinstance(failure, DomainFailure):
        return domain_row(failure)
    return _ROWS[type(failure)]


def rows_of_code(code: int) -> tuple[Row, ...]:
    """The lines that share a JSON-RPC number; empty for a number that is not in the table."""
    return tuple(row for row in TABLE if row.code == code)
