"""What a context needs of the daemon, on behalf of one client; and how what it asks for can fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar, final

import msgspec

from ....errors.failures import Failure, InvalidParams

if TYPE_CHECKING:
    from ...documents.store import Documents
    from ..current_request import Caller, CurrentRequest, IncomingCall
    from ..identity import Identity

T = TypeVar("T")

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""The levels of RFC 5424, from least to most severe."""


class Stopped(BaseException):
    """The request was cancelled or timed out: raised in a worker thread by `Context.check_cancelled`.

    Its answer has already been sent. Not an `Exception`, so that a handler's own `except Exception` lets it pass.
    """


class CallFailed(Exception):
    """A call to another operation failed in a way that the operation does not declare; `failure` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(_told(failure))
        self.failure = failure


def _told(failure: Failure) -> str:
    """What the author of the calling handler sees: declared names, and nothing that was sent."""
    if isinstance(failure, InvalidParams):
        return f"InvalidParams: {failure.param}: expected {failure.expected}, received {failure.received}"
    return type(failure).__name__


class ClientRefused(Exception):
    """The client answered a request of ours with an error; `code` and `message` are its own."""

    def __init__(self, code: int, message: str, failure: Failure) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.failure = failure


class ClientInfo(msgspec.Struct, frozen=True):
    """What the client said of itself in `initialize`; all of it is empty where it said nothing.

    `protocol_version` is that of its protocol which is spoken. `capabilities` are as they came.
    """

    name: str = ""
    version: str = ""
    protocol_version: str | int | None = None
    capabilities: Mapping[str, Any] = {}  # Any: JSON


class Sending(Protocol):
    """Something on its way out: awaiting it waits until the reader keeps up, and for room if there was none."""

    def __await__(self) -> Generator[Any, Any, None]: ...


class DaemonServices(Protocol):
    """What a context needs of the daemon, whoever the client is."""

    def run_from_thread(self, request: CurrentRequest | None, work: Callable[[], Awaitable[T]]) -> T:
        """Run something on the loop, as a part of this request, and wait for it in a worker thread."""
        ...

    def hold_memory(self, size: int) -> None:
        """Count what a handler keeps. Raises `FailureError(Overloaded)` where there is no room."""
        ...

    def state_of(self, namespace: str) -> Any: ...

    async def enter_late(self, namespace: str) -> None:
        """Wait until the lifespan of a service is entered that is entered late."""
        ...

    def credentials_of(self, namespace: str) -> Mapping[str, str]: ...


class ContextBackend(Protocol):
    """What a context needs of the daemon, on behalf of one client."""

    @property
    def process(self) -> DaemonServices: ...

    @property
    def client(self) -> ClientInfo: ...

    @property
    def documents(self) -> Documents: ...

    @property
    def url(self) -> str: ...

    def notify(self, method: str, params: object) -> Sending:
        """Send a notification from any thread."""
        ...

    async def notify_all(self, method: str, params: Iterable[object]) -> None:
        """The same in an async handler, several in one write: when it waits or ends, at the latest."""

    def progress_token(self, call: IncomingCall) -> str | int | None:
        """The token with which the call asks for progress; None where it does not."""
        ...

    def progress(self, token: str | int, value: object) -> Sending | None: ...

    def log(self, call: IncomingCall, level: LogLevel, data: object) -> Sending | None: ...

    def resource_updated(self, uri: str) -> Sending | None: ...

    @property
    def progress_cancels(self) -> dict[str | int, Callable[[], None]]:
        """What to call when the client cancels a progress, by its token."""
        ...

    async def call(
        self, caller: Caller, parent: CurrentRequest | None, name: str, params: object, *, continue_running: bool
    ) -> bytes: ...

    async def ask(self, method: str, params: object, timeout: float) -> bytes: ...

    def identify(self, metadata: Mapping[str, str]) -> Identity | None: ...


@final
class NothingSent:
    """Awaiting it returns at once."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield


NOTHING_SENT: Final = NothingSent()
