"""What every call of an agent's methods passes: version, caller, extensions, interceptors; and how its errors are written.

Knows no method. A failure of A2A leaves it in the dialect of the call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn, final

import msgspec

from ....errors.exceptions import FailureError
from ....errors.failures import (
    AgentFailure,
    ExtensionSupportRequired,
    Internal,
    UnsupportedOperation,
    VersionNotSupported,
)
from ...operations.context import Context
from ..card.model import Capabilities
from ..interceptor import AgentCall, Interceptor
from ..model.types import TaskState
from ..requests import Caller
from ..stores.failures import log_failure
from ..stores.interface import StoreError
from ..versions.version import ProtocolVersion
from .authorization import Authorization
from .interceptor_chain import intercepted
from .request_handler import RequestHandler
from .runtime import Runtime


@final
class CallPipeline:
    """One per daemon. `spawn` starts a coroutine in the daemon's task group."""

    def __init__(
        self,
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
        runtime: Runtime,
        authorization: Authorization,
        *,
        capabilities: Capabilities,
        interceptors: Sequence[Interceptor],
        request_timeout: float | None,
    ) -> None:
        self._spawn = spawn
        self._runtime = runtime
        self._authorization = authorization
        self._interceptors = interceptors
        self._request_timeout = request_timeout
        self._streaming = capabilities.streaming
        self._required_extensions = frozenset(each.uri for each in capabilities.extensions if each.required)

    @asynccontextmanager
    async def call(
        self, ctx: Context, dialect: ProtocolVersion, *, task_id: str | None = None, streaming: bool = False
    ) -> AsyncIterator[tuple[RequestHandler, Caller]]:
        """The block is the call: it gets the request handler and the caller.

        Raises `FailureError` where the call is refused, or the store fails. The `FailureError` of the block is raised in
        this dialect, its other exceptions as they are.
        """
        try:
            caller = self._caller(ctx, dialect)
            if streaming and not self._streaming:
                raise FailureError(UnsupportedOperation(reason="The agent does not stream."))
            handler = await self._runtime.ready(self._spawn)
            if not self._interceptors:
                yield handler, caller
                return
            call = AgentCall(ctx.operation, caller.dialect, caller.identity, caller.service_params, task_id)
            async with intercepted(self._interceptors, call, timeout=self._request_timeout):
                yield handler, caller
        except FailureError as exc:
            _raise_in(dialect, exc)
        except StoreError as exc:
            log_failure(exc)
            raise FailureError(Internal()) from None

    def _caller(self, ctx: Context, dialect: ProtocolVersion) -> Caller:
        params = ctx.service_params
        version = params.get("a2a-version", "").strip()
        if version and not dialect.covers(version):
            raise FailureError(VersionNotSupported(accepted=(dialect.name,)))
        identity = ctx.identity
        self._authorization.check(identity)
        extensions = tuple(filter(None, (uri.strip() for uri in params.get("a2a-extensions", "").split(","))))
        missing = self._required_extensions.difference(extensions)
        if missing:
            raise FailureError(ExtensionSupportRequired(accepted=tuple(sorted(missing))))
        scope = "" if identity is None else identity.subject
        return Caller(scope, dialect.name, identity, extensions, params)


def _raise_in(dialect: ProtocolVersion, exc: FailureError) -> NoReturn:
    """Raise the failure as this dialect writes it."""
    failure = exc.failure
    if not isinstance(failure, AgentFailure):
        raise exc
    state = failure.current_state
    raise FailureError(
        msgspec.structs.replace(
            failure,
            dialect=dialect.name,
            current_state=None if state is None else dialect.state_name(TaskState(state)),
        )
    ) from None
