"""What every call of an agent's methods passes: admission, interceptors, the store; and how its errors are written.

Knows no method. A failure of A2A leaves it in the version of the call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeVar, final

from ...a2a.card.model import Extension
from ...a2a.errors import InvalidStateTransition
from ...a2a.types import TaskState
from ...a2a.versions.version import ProtocolVersion, failure_in
from ...daemon.operations.context import Context
from ...errors.exceptions import FailureError
from ...errors.failures import (
    ExtensionSupportRequired,
    Failure,
    Internal,
    Unavailable,
    UnsupportedOperation,
    VersionNotSupported,
)
from ..caller import Caller
from ..interceptor import AgentCall, Interceptor
from ..stores.failures import log_failure
from ..stores.interface import StoreError, StoreUnavailableError
from .authorization import Authorization
from .interceptor_chain import intercepted
from .request_handler import RequestHandler
from .runtime import Runtime

# Who calls the agent, and whether it may: the version that it asks for, its identity, the extensions that it names.


_VERSION_SUGGESTIONS: Final[Mapping[str, str]] = {
    "1.0": "Send A2A-Version: 1.0. By HTTP a request without that header is one of 0.3.",
    "0.3": "Send A2A-Version: 0.3, or none.",
}


@final
class Admission:
    """One per daemon. `extensions` are those of the agent."""

    def __init__(self, authorization: Authorization, extensions: Sequence[Extension]) -> None:
        self._authorization = authorization
        self._required = frozenset(each.uri for each in extensions if each.required)

    def caller(self, ctx: Context, version: ProtocolVersion) -> Caller:
        """Who makes this call of a method of `version`. Raises `FailureError` where it is refused."""
        params = ctx.service_params
        identity = ctx.identity
        self._authorization.check(identity)
        refusal = self.refusal(version, params)
        if refusal is not None:
            raise FailureError(refusal)
        scope = "" if identity is None else identity.subject
        return Caller(scope, version.name, identity, _extensions(params), params)

    def refusal(self, version: ProtocolVersion, params: Mapping[str, str]) -> Failure | None:
        """Why a call of a method of `version` with these service parameters is refused, whoever makes it."""
        wanted = params.get("a2a-version")
        if wanted and wanted.strip() and not version.covers(wanted.strip()):
            suggestion = _VERSION_SUGGESTIONS[version.name]
            return VersionNotSupported(version=version.name, accepted=(version.name,), suggestion=suggestion)
        missing = self._required.difference(_extensions(params))
        return ExtensionSupportRequired(version=version.name, accepted=tuple(sorted(missing))) if missing else None


def _extensions(params: Mapping[str, str]) -> tuple[str, ...]:
    named = params.get("a2a-extensions")
    return tuple(filter(None, (uri.strip() for uri in named.split(",")))) if named else ()


_POLL: Final = "Send the message without streaming, and poll its task with GetTask."
T = TypeVar("T")


class Settle(Protocol):
    """Notes the result of a call for its interceptors, and returns it."""

    def __call__(self, result: T, /) -> T: ...


def _ignore(result: T, /) -> T:
    return result


@final
class CallPipeline:
    """One per daemon. `streaming` says whether the agent streams."""

    def __init__(
        self,
        runtime: Runtime,
        admission: Admission,
        *,
        streaming: bool,
        interceptors: Sequence[Interceptor],
        request_timeout: float | None,
    ) -> None:
        self._runtime = runtime
        self._admission = admission
        self._streaming = streaming
        self._interceptors = interceptors
        self._request_timeout = request_timeout

    @asynccontextmanager
    async def call(
        self,
        ctx: Context,
        version: ProtocolVersion,
        params: object,
        *,
        task_id: str | None = None,
        streaming: bool = False,
    ) -> AsyncIterator[tuple[RequestHandler, Caller, Settle]]:
        """The block is the call: it gets the request handler, the caller, and what it tells its result.

        Raises `FailureError` where the call is refused, or the store fails. The `FailureError` of the block is raised as this
        version writes it, its other exceptions as they are.
        """
        try:
            caller = self._admission.caller(ctx, version)
            if streaming and not self._streaming:
                raise FailureError(UnsupportedOperation(reason="The agent does not stream.", suggestion=_POLL))
            handler = await self._runtime.ready()
            if not self._interceptors:
                yield handler, caller, _ignore
                return
            call = AgentCall(ctx.operation, caller.version, caller.identity, caller.service_params, task_id, params)
            results: list[object] = []

            def settled(result: T, /) -> T:
                results.append(result)
                return result

            async with intercepted(self._interceptors, call, results, timeout=self._request_timeout):
                yield handler, caller, settled
        except FailureError as exc:
            raise FailureError(failure_in(version, exc.failure)) from None
        except InvalidStateTransition as exc:
            current, target = (version.state_name(TaskState(each)) for each in (exc.current, exc.target))
            raise InvalidStateTransition(current=current, target=target) from None
        except StoreUnavailableError as exc:
            log_failure(exc)
            raise FailureError(Unavailable(exc.retry_after_ms)) from None
        except StoreError as exc:
            log_failure(exc)
            raise FailureError(Internal()) from None
