"""What the server asks of this side: its requests are answered by handlers, its notifications handed to them.

Handlers belong to the peer, and serve one connection after the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias, final

import msgspec
from anyio import CancelScope
from msgspec import Raw

from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import Cancelled, Failure, Internal, MethodNotFound, ParseFailure
from ...errors.wire import encode_error as error_text
from ...errors.wire import failure_of
from .. import log
from ..dialects import PLAIN, Dialect
from ..errors import RemoteError
from ..messages import UNREADABLE, ServerNotification, ServerRequest, encode_error, encode_result

RequestHandler: TypeAlias = Callable[[Any], Awaitable[Any]]  # JSON values in, anything that msgspec encodes out
NotificationHandler: TypeAlias = Callable[[Any], object]  # JSON values in


@final
class Handlers:
    """Handlers by method. Requests of methods without a handler are answered METHOD_NOT_FOUND.

    `unidentified` hears of errors that the server could not ascribe to a request.
    """

    def __init__(self, dialect: Dialect = PLAIN) -> None:
        self.dialect = dialect
        self.requests: dict[str, RequestHandler] = {}
        self.notifications: dict[str, NotificationHandler] = {}
        self.unidentified: Callable[[RemoteError], object] | None = None
        self._running: dict[bytes, CancelScope] = {}

    def notify(self, message: ServerNotification) -> None:
        """Hand a notification over. What the handler raises is logged."""
        if message.method == self.dialect.cancel:
            self._cancel(message.params)
        elif handler := self.notifications.get(message.method):
            try:
                values = _values(message.params)
            except FailureError:
                return  # nobody is told of a broken notification
            guarded(f"the handler of {message.method}", partial(handler, values))

    def admit(self, request: ServerRequest) -> CancelScope:
        """Take note of a request, so that the server can cancel it from now on. The scope is for `answer`."""
        self._running[request.id] = scope = CancelScope()
        return scope

    async def answer(self, request: ServerRequest, scope: CancelScope) -> bytes:
        """Run the request's handler; the body of the reply.

        `OperationError` and `FailureError` become error replies; anything else that a handler raises is logged, and
        INTERNAL to the server.
        """
        with scope:
            try:
                handler = self.requests.get(request.method)
                if handler is None:
                    return _refusal(request, MethodNotFound())
                return encode_result(request.id, await handler(_values(request.params)))
            except OperationError as exc:
                return _refusal(request, failure_of(exc, (type(exc),)))
            except FailureError as exc:
                return _refusal(request, exc.failure)
            except Exception as exc:  # noqa: BLE001 - the boundary to foreign code: other calls must not suffer
                log.failed(f"the handler of {request.method}", exc)
                return _refusal(request, Internal())
            finally:
                self._running.pop(request.id, None)
        return _refusal(request, Cancelled())

    def _cancel(self, params: Raw | None) -> None:
        try:
            members = msgspec.json.decode(params or b"", type=dict[str, Raw])
        except UNREADABLE:
            return
        wanted = bytes(members.get(self.dialect.cancel_member, b""))
        if scope := self._running.get(wanted):
            scope.cancel()


def guarded(what: str, handler: Callable[[], object]) -> None:
    """Call a handler that answers nobody; what it raises is logged."""
    try:
        handler()
    except Exception as exc:  # noqa: BLE001 - the boundary to foreign code, as above
        log.failed(what, exc)


def _refusal(request: ServerRequest, failure: Failure) -> bytes:
    return encode_error(request.id, error_text(failure))


def _values(params: Raw | None) -> Any:  # JSON
    try:
        return None if params is None else msgspec.json.decode(params)
    except UNREADABLE as exc:
        raise FailureError(ParseFailure("invalid-json")) from exc
