"""What the contexts of one client's requests need of the client and of the process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, final, get_args

import msgspec

from ...errors.codes import METHOD_NOT_FOUND
from ...errors.failures import MethodNotFound
from ..operations.context import ClientRefused
from ..operations.request import ClientInfo, LogLevel
from ..rpc import envelope

if TYPE_CHECKING:
    from ..documents.store import Documents
    from ..host import Host
    from ..operations.access import Access
    from ..operations.identity import Identity
    from ..operations.request import Request, Sending
    from .notices import ClientRequests, Notices
    from .session import Session


class Peer(Protocol):
    """The client, as far as the contexts of its requests are concerned."""

    @property
    def session(self) -> Session: ...

    @property
    def client(self) -> ClientInfo:
        """What it said of itself."""
        ...

    def tell_updated(self, uri: str) -> Sending | None:
        """Tell it that a resource has changed, if it wants to hear of it. From any thread."""
        ...


@final
class Together:
    """Several messages as one to wait for."""

    def __init__(self, sent: Sequence[Sending]) -> None:
        self._sent = sent

    def __await__(self) -> Generator[Any, Any, None]:
        for each in self._sent:
            yield from each.__await__()


@final
class ClientContextBackend:
    """The `ContextBackend` of one client, or of one of its requests. `access` says who calls, and `url` is the address
    under which the client reaches the daemon, where it has one.
    """

    def __init__(
        self,
        host: Host,
        peer: Peer,
        notices: Notices,
        client_requests: ClientRequests,
        access: Access | None = None,
        url: str = "",
    ) -> None:
        self.process = host
        self._peer = peer
        self._notices = notices
        self._client_requests = client_requests
        self._access = access or host.access
        self.url = url
        self.progress_cancels: dict[str | int, Callable[[], None]] = {}

    @property
    def client(self) -> ClientInfo:
        return self._peer.client

    @property
    def documents(self) -> Documents:
        documents = self._peer.session.documents
        if documents is None:
            from ..documents.store import Documents  # late: nobody asks for it where there are none

            documents = Documents()
        return documents

    def notify(self, method: str, params: object) -> Sending:
        return self._notices.send(method, envelope.encode_notification(method, params))

    async def notify_all(self, method: str, params: Iterable[object]) -> None:
        await self._notices.send_all(envelope.encode_notification(method, each) for each in params)

    def progress_token(self, request: Request) -> str | int | None:
        token = request.progress_token
        return (
            self._peer.session.dialect.progress_token(request.params) if isinstance(token, msgspec.UnsetType) else token
        )

    def progress(self, token: str | int, value: object) -> Sending | None:
        dialect = self._peer.session.dialect
        return self._send(dialect.progress_method, dialect.encode_progress(token, value))

    def log(self, request: Request, level: LogLevel, data: object) -> Sending | None:
        if level not in get_args(LogLevel):
            raise ValueError(f"the level is one of {', '.join(get_args(LogLevel))}, not {level!r}")
        dialect = self._peer.session.dialect
        return self._send(dialect.log_method, dialect.encode_log(request.rendering, level, data))

    def resource_updated(self, uri: str) -> Sending | None:
        return self.process.resource_updated(uri, self._peer.tell_updated)

    def _send(self, method: str, message: bytes | None) -> Sending | None:
        return None if message is None else self._notices.send(method, message)

    async def ask(self, method: str, params: object, timeout: float) -> bytes:
        dialect, output = self._peer.session.dialect, self._notices.output
        if not dialect.asks:
            raise ClientRefused(METHOD_NOT_FOUND, "the client takes no requests", MethodNotFound())
        requests, cancel = self._client_requests, dialect.encode_cancel
        if self.process.tracing is None:
            return await requests.ask(output, method, params, timeout, cancel)
        with self.process.tracing.asking(method, dialect.method_attribute) as headers:
            params, service_params = dialect.with_trace(params, headers)
            return await requests.ask(output, method, params, timeout, cancel, service_params)

    def identify(self, metadata: Mapping[str, str]) -> Identity | None:
        return self._access.identify(metadata)
