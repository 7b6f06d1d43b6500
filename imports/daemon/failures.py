"""What a failed call of another daemon means for who called here. Calls nobody.

What that daemon tells of the params and of its errors is told here, too: it is what it declares. What it says of identities is
between it and the mount, and the caller learns nothing of it. The log has why.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import UNSET, Raw
from msgspec.structs import replace

from ...client.errors import ClientError, ConnectionFailed, RemoteError, StreamOverrun
from ...daemon.logs import log
from ...errors import failures
from ...errors.exceptions import FailureError
from ...errors.printable import cut
from ..model import UpstreamError
from .model import DaemonOperation

LONGEST_TEXT: Final = 1000
"""Characters of each text that the other daemon says of a param."""

_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


def raised_for(exc: ClientError, operation: DaemonOperation, name: str) -> UpstreamError | FailureError:
    """The exception in place of this one. `name` is that of the import."""
    match exc:
        case RemoteError():
            return raised_for_failure(exc.failure, operation, name, number=exc.number, data=exc.error.data)
        case ConnectionFailed():
            log.warning("import.unavailable", import_=name, operation=operation.method, reason=exc.loss.reason)
            if exc.loss.gave_up or (exc.sent and not operation.repeatable):
                return FailureError(failures.Internal())  # it would fail again, or may have had its effect
            return FailureError(failures.Unavailable(upstream=True))
        case StreamOverrun():
            log.warning("import.stream_overrun", import_=name, operation=operation.method)
            return FailureError(failures.Overloaded())
        case _:
            log.error("import.invalid_reply", import_=name, operation=operation.method, reason=str(exc))
            return FailureError(failures.Internal())


def raised_for_failure(
    failure: failures.Failure,
    operation: DaemonOperation,
    name: str,
    *,
    number: int = 0,
    data: object = UNSET,
) -> UpstreamError | FailureError:
    """The exception for a failure that the other daemon told. `number` and `data` are those of its JSON-RPC error."""
    if (code := operation.codes.get(number)) is not None:
        return UpstreamError(code, data if isinstance(data, Raw) else None)
    match failure:
        case failures.DomainFailure():
            return UpstreamError(failure.code, failure.details)
        case failures.InvalidParams():
            return FailureError(_params(failure))
        case failures.Unavailable():
            return FailureError(failures.Unavailable(upstream=True))
        case failures.TimedOut() | failures.Overloaded():
            return FailureError(failure)
        case failures.InvalidRequest("oversize"):
            return FailureError(failure)
        case failures.Internal(code=str(code)) if _CODE.fullmatch(code):
            return FailureError(failure)
        case failures.Internal():
            return FailureError(failures.Internal())
        case failures.AuthenticationRequired() | failures.InsufficientPermissions():
            hint = "the import's credential is not accepted there, or has too few scopes"
            log.error("import.refused", import_=name, operation=operation.method, hint=hint)
        case failures.MethodNotFound() | failures.OperationTypeMismatch():
            hint = "the daemon behind the import has other operations than when this one started"
            log.error("import.changed", import_=name, operation=operation.method, hint=hint)
        case _:
            log.error("import.invalid_reply", import_=name, operation=operation.method, reason=type(failure).__name__)
    return FailureError(failures.Internal())


def _params(failure: failures.InvalidParams) -> failures.InvalidParams:
    """What is wrong with the params, at most so long. Other servers say nothing of it in our form."""
    if not failure.expected:
        return failures.InvalidParams("$", "params that the server accepts", "object")
    param, expected, received = (
        cut(text, LONGEST_TEXT) for text in (failure.param, failure.expected, failure.received)
    )
    return replace(failure, param=param, expected=expected, received=received, unknown="")
