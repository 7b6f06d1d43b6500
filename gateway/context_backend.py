"""What the contexts of requests need that came by HTTP: the identity of the caller, and nothing of any other client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, final

from ..daemon.operations.context import NOTHING_SENT, ClientRefused
from ..daemon.operations.request import ClientInfo
from ..errors.codes import METHOD_NOT_FOUND
from ..errors.failures import MethodNotFound

if TYPE_CHECKING:
    from ..daemon.documents import Documents
    from ..daemon.host import Host
    from ..daemon.operations.access import Access
    from ..daemon.operations.identity import Identity
    from ..daemon.operations.request import LogLevel, Request, Sending


@final
class HttpContextBackend:
    """The `ContextBackend` of requests that came by HTTP. Such a client takes no messages but its answers: what is sent to it
    goes nowhere, and a request to it is refused.

    `access` says who the callers are. `url()` is the address under which they reach the gateway; empty where it is not known.
    """

    client: ClientInfo = ClientInfo()

    def __init__(self, host: Host, access: Access, url: Callable[[], str] = str) -> None:
        self.process = host
        self._access = access
        self._url = url
        self.progress_cancels: dict[str | int, Callable[[], None]] = {}

    @property
    def url(self) -> str:
        return self._url()

    @property
    def documents(self) -> Documents:
        from ..daemon.documents import Documents

        return Documents()

    def notify(self, method: str, params: object) -> Sending:
        return NOTHING_SENT

    async def notify_all(self, method: str, params: Iterable[object]) -> None: ...

    def progress_token(self, request: Request) -> str | int | None:
        return None

    def progress(self, token: str | int, value: object) -> Sending | None:
        return None

    def log(self, request: Request, level: LogLevel, data: object) -> Sending | None:
        return None

    def resource_updated(self, uri: str) -> Sending | None:
        return self.process.resource_updated(uri)

    async def ask(self, method: str, params: object, timeout: float) -> bytes:
        raise ClientRefused(METHOD_NOT_FOUND, "the client takes no requests", MethodNotFound())

    def identify(self, metadata: Mapping[str, str]) -> Identity | None:
        return self._access.identify(metadata)
