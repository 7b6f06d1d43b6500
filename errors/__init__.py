"""What can go wrong, and what may be said about it."""

from .codes import TABLE, GrpcStatus, LogLevel, Row, domain_row, grpc_of_http, row_of
from .definitions import ErrorDefinition
from .exceptions import FailureError, OperationError
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

__all__ = [
    "TABLE",
    "AuthenticationRequired",
    "Cancelled",
    "DomainFailure",
    "ErrorDefinition",
    "Failure",
    "FailureError",
    "GrpcStatus",
    "InsufficientPermissions",
    "Internal",
    "InvalidParams",
    "InvalidRequest",
    "LogLevel",
    "MethodNotFound",
    "OperationError",
    "OperationTypeMismatch",
    "Overloaded",
    "ParseFailure",
    "Row",
    "TimedOut",
    "Unavailable",
    "domain_row",
    "grpc_of_http",
    "row_of",
]
