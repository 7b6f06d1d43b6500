"""Who may call the agent: the security requirements of its card, for callers that the daemon itself identifies."""

from __future__ import annotations

from typing import final

from ....errors.exceptions import FailureError
from ....errors.failures import InsufficientPermissions, Internal
from ...operations.access import Access, Identity, challenge
from ..agent import Agent
from ..card.model import required_scopes


@final
class Authorization:
    """Checks identities. The daemon's identity provider has made them from the credentials before."""

    def __init__(self, agent: Agent | None, access: Access) -> None:
        self._provider = access.provider
        self._requirements = () if agent is None else agent.card.security_requirements
        allows_anonymous = any(not requirement.schemes for requirement in self._requirements)
        self._needs_identity = agent is not None and self._provider is not None and not allows_anonymous

    def check(self, identity: Identity | None) -> None:
        """Raises `FailureError(AuthenticationRequired)` or `FailureError(InsufficientPermissions)`.

        One requirement with all its scopes is enough. An identity whose scopes are None may do everything.
        """
        if identity is None:
            if self._needs_identity:
                raise self.authentication_required()
        elif identity.scopes is not None and self._requirements:
            held = identity.scopes
            if not any(held.issuperset(required_scopes(each)) for each in self._requirements):
                raise FailureError(InsufficientPermissions())

    def authentication_required(self) -> FailureError:
        """The error for a caller without an identity, with the schemes and the realm of the provider."""
        return FailureError(Internal() if self._provider is None else challenge(self._provider))
