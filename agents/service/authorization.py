"""Checks who may call the agent: makes the security requirements of its card a rule for callers that the daemon identifies."""

from __future__ import annotations

from typing import Final, final

from ...a2a.card.model import required_scopes
from ...daemon.operations.access import Access, AccessRule, challenge
from ...daemon.operations.identity import Identity
from ...errors.exceptions import FailureError
from ...errors.failures import InsufficientPermissions, Internal
from ..agent import Agent


@final
class Authorization:
    """Checks identities. The daemon's identity provider has made them from the credentials before.

    `rule` is that of the agent's methods: one requirement with all its scopes is enough.
    """

    def __init__(self, agent: Agent | None, access: Access) -> None:
        self._provider = access.provider
        requirements = () if agent is None else agent.card.security_requirements
        self.rule: Final = AccessRule(
            public=any(not requirement.schemes for requirement in requirements),
            known=agent is not None,
            alternatives=tuple(map(required_scopes, requirements)),
        )

    def check(self, identity: Identity | None) -> None:
        """Raises `FailureError(AuthenticationRequired)` or `FailureError(InsufficientPermissions)`."""
        if self.rule.public:
            return
        if identity is None:
            if self.rule.known and self._provider is not None:
                raise self.authentication_required()
        elif not self.rule.allows(identity):
            raise FailureError(InsufficientPermissions())

    def authentication_required(self) -> FailureError:
        """The error for a caller without an identity, with the schemes and the realm of the provider."""
        return FailureError(Internal() if self._provider is None else challenge(self._provider))
