"""What an OpenAPI document says beside the operations: of the server, of its namespaces, of how callers authenticate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ...a2a.card.model import AgentCard, HttpAuth
from ...a2a.card.v03 import OAuth203, Scheme03, scheme_to_v03
from ...daemon.operations.access import AccessRule, IdentityProvider
from ...daemon.operations.registry import server_of
from ...daemon.operations.service import Service
from .objects import SecurityRequirement

# How callers authenticate, as OpenAPI says it: the schemes of the agent's card, else those of the identity provider.


class Security(msgspec.Struct, frozen=True):
    """The schemes by their names, and the alternatives of which a caller fulfils one."""

    schemes: dict[str, Scheme03] = {}
    alternatives: tuple[Mapping[str, Sequence[str]], ...] = ()

    def required(self, rule: AccessRule) -> tuple[SecurityRequirement, ...]:
        """What a caller needs under this rule, which is not public: one of these. Empty where nobody is told apart."""
        others = [] if rule.all_of & rule.any_of else sorted(rule.any_of)
        return tuple(
            {name: tuple(sorted({*scopes, *rule.all_of, *more})) for name, scopes in alternative.items()}
            for alternative in self.alternatives
            for more in [[other] for other in others] or [[]]
        )


def security_of(provider: IdentityProvider | None, card: AgentCard | None) -> Security:
    """The security of a daemon with this identity provider and the card that its agent declares."""
    if provider is None:
        return Security()
    if card is not None and card.security_schemes:
        schemes = {name: _without_metadata(scheme_to_v03(each.scheme)) for name, each in card.security_schemes.items()}
        required = [
            req.schemes for req in card.security_requirements if req.schemes
        ]  # the empty one is the agent's alone
        declared = [{name: each.list for name, each in schemes.items()} for schemes in required]
        return Security(schemes, tuple(declared or ({name: ()} for name in schemes)))
    names = dict.fromkeys(scheme.lower() for scheme in provider.schemes)
    bearer_format: str | None = getattr(provider, "bearer_format", None)
    schemes = {
        name: scheme_to_v03(HttpAuth(name, bearer_format=bearer_format if name == "bearer" else None)) for name in names
    }
    return Security(schemes, tuple({name: ()} for name in schemes))


def _without_metadata(scheme: Scheme03) -> Scheme03:
    """Without what A2A adds to the schemes of OpenAPI 3.1."""
    return msgspec.structs.replace(scheme, oauth2_metadata_url=None) if isinstance(scheme, OAuth203) else scheme


class About(msgspec.Struct, frozen=True, kw_only=True):
    """`url` is where the operations are served; `namespaces` describes each by its name."""

    title: str
    version: str
    url: str = "/"
    namespaces: Mapping[str, str] = {}
    security: Security = Security()


def about(
    services: Sequence[Service], card: AgentCard | None, provider: IdentityProvider | None, *, version: str, url: str
) -> About:
    """Describe a daemon of this `version` that hosts these services and an agent with this card, and that tells callers apart
    by this provider.
    """
    title, shown_version = server_of(services, version)
    return About(
        title=title,
        version=shown_version,
        url=url.rstrip("/") or "/",  # paths begin with a slash
        namespaces={service.namespace: service.description for service in services if service.description},
        security=security_of(provider, card),
    )
