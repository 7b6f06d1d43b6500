# Written by tools/protocols from the schema of ACP 1. Do not edit.
"""The codes of errors."""

from __future__ import annotations

from ...structs import OpenInt

__all__ = [
    "ErrorCode",
]


class ErrorCode(OpenInt):
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    REQUEST_CANCELLED = -32800
    AUTHENTICATION_REQUIRED = -32000
    RESOURCE_NOT_FOUND = -32002
