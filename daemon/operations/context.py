"""What a handler may know and do besides its params."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, final

import msgspec

from ...errors.failures import Failure

if TYPE_CHECKING:
    from ..request import Request
    from ..rpc.envelope import Call


class Stopped(BaseException):
    """The request was cancelled or timed out: raised in a worker thread by `Context.check_cancelled`.

    Its answer has already been sent. Not an `Exception`, so that a handler's own `except Exception` lets it pass.
    """


class Host(Protocol):
    """What a context needs of the daemon."""

    def notify(self, method: str, params: object) -> Sending:
        """Send a notification from any thread."""
        ...


class Sending(Protocol):
    """Something on its way out: awaiting it waits until the reader keeps up."""

    def __await__(self) -> Generator[Any, Any, None]: ...


class _Tokens(msgspec.Struct):
    """Where a request may carry a progress token: MCP's `_meta`, or LSP's own member."""

    class Meta(msgspec.Struct, rename="camel"):
        progress_token: str | int | None = None

    meta: Meta | None = msgspec.field(name="_meta", default=None)
    work_done_token: str | int | None = msgspec.field(name="workDoneToken", default=None)


class _Progress(msgspec.Struct):
    token: str | int
    value: object


@final
class Context:
    """One request as its handler sees it. Valid until the handler returns.

    In an async handler cancellation arrives as the event loop's own exception. A `def` handler runs in a worker
    thread, which nobody can interrupt: it looks at `cancelled`, or calls `check_cancelled()` between its steps.
    """

    __slots__ = ("_call", "_host", "_request", "_token", "operation")

    def __init__(self, operation: str, call: Call, host: Host, request: Request | None = None) -> None:
        self.operation = operation
        self._call = call
        self._host = host
        self._request = request
        self._token: str | int | None | msgspec.UnsetType = msgspec.UNSET

    @property
    def request_id(self) -> str | None:
        """The request's id as the JSON text that came; None for a notification."""
        return None if self._call.id is None else self._call.id.decode()

    @property
    def metadata(self) -> Mapping[str, str]:
        """`serviceParams` of this request, keys in lower case. May hold credentials: don't log it."""
        return MappingProxyType(self._call.metadata)

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline (never below 0); None where there is none."""
        request = self._request
        if request is None or request.deadline is None:
            return None
        return max(0.0, request.deadline - monotonic())

    @property
    def ended_by(self) -> Failure | None:
        """Why the request was answered before its handler was done; None while its result is still wanted."""
        return None if self._request is None else self._request.ended_by

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for the result any more: cancelled, timed out, or shutting down."""
        return self.ended_by is not None

    def check_cancelled(self) -> None:
        """Raise `Stopped` where the result is no longer wanted. For worker threads; cheap enough for any loop."""
        if self.ended_by is not None:
            raise Stopped

    def wait_cancelled(self, seconds: float) -> bool:
        """Sleep in a worker thread, at most so long; True at once when the request is cancelled meanwhile."""
        request = self._request
        if request is None:
            raise RuntimeError("an inline handler must not wait")
        return request.stop_event().wait(seconds)

    def notify(self, method: str, params: object = None) -> Sending:
        """Send the client a notification; `params` is anything that encodes to a JSON object or array.

        In an async handler it is on its way when this returns, and awaiting the result waits until the client keeps
        up. In a worker thread the call itself waits for that.
        """
        return self._host.notify(method, {} if params is None else params)

    def progress(self, value: object) -> Sending | None:
        """Tell how far the work is, if the caller asked to know: sends `$/progress {token, value}`, or does nothing.

        Waits as `notify` does.
        """
        if self._token is msgspec.UNSET:
            self._token = _progress_token(self._call)
        if self._token is None:
            return None
        return self._host.notify("$/progress", _Progress(self._token, value))


def _progress_token(call: Call) -> str | int | None:
    if call.params is None:
        return None
    try:
        tokens = msgspec.json.decode(call.params, type=_Tokens)
    except msgspec.DecodeError:  # positional params, or a member of another meaning
        return None
    from_meta = None if tokens.meta is None else tokens.meta.progress_token
    return tokens.work_done_token if from_meta is None else from_meta
