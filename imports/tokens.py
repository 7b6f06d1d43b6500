"""The tokens with which an import calls its server: a credential of the app as it is, or what an OAuth client gets for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final

from ..client.errors import ConnectionFailed, ConnectionLoss
from ..client.oauth import AccessTokens, TokenRefused, is_oauth, parse_oauth
from ..daemon.logs import log
from ..errors.exceptions import FailureError
from ..errors.failures import AuthenticationRequired, Failure, InsufficientPermissions, Internal, Unavailable

if TYPE_CHECKING:
    from ..daemon.operations.context import Context

_BEARER: Final = "bearer"


def exchanges(credential: str) -> bool:
    """Whether calls with a credential are made as their callers."""
    return is_oauth(credential) and parse_oauth(credential).grant == "token-exchange"


def bearer_of(service_params: Mapping[str, str]) -> str:
    """The bearer token of a caller; empty where there is none."""
    scheme, _, token = service_params.get("authorization", "").strip().partition(" ")
    return token.strip() if scheme.lower() == _BEARER else ""


@final
class UpstreamTokens:
    """The tokens of one import, whose `name` the log says. Used on one event loop."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tokens = AccessTokens()

    async def for_call(self, credential: str, ctx: Context) -> str:
        """The token for a call: with a token exchange that of its caller. Raises `FailureError`."""
        if not is_oauth(credential):
            return credential
        caller = ""
        if exchanges(credential):
            caller = bearer_of(ctx.service_params)
            if not caller or ctx.identity is None:
                log.warning("import.no_caller", import_=self._name, operation=ctx.operation)
                raise FailureError(AuthenticationRequired((_BEARER,), self._name))
        try:
            return await self._tokens.bearer(credential, caller)
        except TokenRefused as exc:
            raise FailureError(self._told(exc)) from exc

    async def for_itself(self, credential: str, caller: str = "") -> str:
        """The token for what the import asks by itself, or as this caller. Raises `ConnectionFailed`."""
        try:
            return await self._tokens.bearer(credential, caller)
        except TokenRefused as exc:
            self._told(exc)
            raise ConnectionFailed(ConnectionLoss(f"the authorization server: {exc.reason}"), sent=False) from exc

    def _told(self, exc: TokenRefused) -> Failure:
        log.warning("import.token_refused", import_=self._name, reason=exc.reason)
        if exc.of_caller:
            return InsufficientPermissions()
        return Unavailable(upstream=True) if exc.may_pass else Internal()
