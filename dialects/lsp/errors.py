"""Errors that LSP defines and that handlers may raise. LSP 3.17, `LSPErrorCodes`."""

from __future__ import annotations

from ...errors.exceptions import OperationError


class ContentModified(OperationError, code="CONTENT_MODIFIED", number=-32801, retryable=True):
    """The content was modified while the request was handled"""


class ServerCancelled(OperationError, code="SERVER_CANCELLED", number=-32802, retryable=True):
    """The server cancelled the request"""

    retriggerRequest: bool = True  # noqa: N815 - the name on the wire, of `DiagnosticServerCancellationData`
