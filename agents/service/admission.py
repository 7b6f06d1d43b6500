"""Who calls the agent, and whether it may: the version that it asks for, its identity, the extensions that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from ...a2a.card.model import Extension
from ...a2a.versions.version import ProtocolVersion
from ...daemon.operations.context import Context
from ...errors.exceptions import FailureError
from ...errors.failures import ExtensionSupportRequired, Failure, VersionNotSupported
from ..caller import Caller
from .authorization import Authorization

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
