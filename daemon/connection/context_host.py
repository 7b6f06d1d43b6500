"""What the contexts of one client's requests need of the client and of the process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final, get_args

import msgspec

from ...errors.codes import METHOD_NOT_FOUND
from ...errors.failures import MethodNotFound
from ..dispatch.inner_calls import target_of
from ..operations.context import ClientInfo, ClientRefused, LogLevel
from ..rpc import envelope

if TYPE_CHECKING:
    from ..dialects.session import Session
    from ..documents.store import Documents
    from ..host import Host
    from ..operations.access import Identity
    from ..operations.context import Sending
    from ..operations.current_request import Caller, CurrentRequest, IncomingCall
    from .client_requests import ClientRequests
    from .notices import Notices


@final
class _Together:
    """Several messages as one to wait for."""

    def __init__(self, sent: Sequence[Sending]) -> None:
        self._sent = sent

    def __await__(self) -> Generator[Any, Any, None]:
        for each in self._sent:
            yield from each.__await__()


@final
class ClientContextHost:
    """The `ContextHost` of one client."""

    url = ""

    def __init__(self, host: Host, notices: Notices, client_requests: ClientRequests, session: Session) -> None:
        self.process = host
        self._notices = notices
        self._client_requests = client_requests
        self.session = session
        self.client = ClientInfo()
        self.progress_cancels: dict[str | int, Callable[[], None]] = {}

    @property
    def documents(self) -> Documents:
        documents = self.session.documents
        if documents is None:
            from ..documents.store import Documents  # late: nobody asks for it where there are none

            documents = Documents()
        return documents

    def notify(self, method: str, params: object) -> Sending:
        return self._notices.send(method, envelope.encode_notification(method, params))

    async def notify_all(self, method: str, params: Iterable[object]) -> None:
        await self._notices.send_all(envelope.encode_notification(method, each) for each in params)

    def progress_token(self, call: IncomingCall) -> str | int | None:
        token = call.progress_token
        return self.session.dialect.progress_token(call.params) if isinstance(token, msgspec.UnsetType) else token

    def progress(self, token: str | int, value: object) -> Sending | None:
        dialect = self.session.dialect
        return self._send(dialect.progress_method, dialect.encode_progress(token, value))

    def log(self, call: IncomingCall, level: LogLevel, data: object) -> Sending | None:
        if level not in get_args(LogLevel):
            raise ValueError(f"the level is one of {', '.join(get_args(LogLevel))}, not {level!r}")
        dialect = self.session.dialect
        return self._send(dialect.log_method, dialect.encode_log(call.rendering, level, data))

    def resource_updated(self, uri: str) -> Sending | None:
        dialect = self.session.dialect
        sent = [self._notices.send(dialect.update_method, message) for message in dialect.encode_updates(uri)]
        return _Together(sent) if sent else None

    def _send(self, method: str, message: bytes | None) -> Sending | None:
        return None if message is None else self._notices.send(method, message)

    async def call(
        self, caller: Caller, parent: CurrentRequest | None, name: str, params: object, *, continue_running: bool
    ) -> bytes:
        spec = target_of(self.process.registry, caller, name)
        inner_calls = self.process.inner_calls
        return await inner_calls.call(spec, params, caller, parent, self, continue_running=continue_running)

    async def ask(self, method: str, params: object, timeout: float) -> bytes:
        if not self.session.dialect.asks:
            raise ClientRefused(METHOD_NOT_FOUND, "the client takes no requests", MethodNotFound())
        return await self._client_requests.ask(method, params, timeout, self.session.dialect.encode_cancel)

    def identify(self, metadata: Mapping[str, str]) -> Identity | None:
        return self.process.access.identify(metadata)
