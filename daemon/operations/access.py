"""Who calls, and what they may call. Decides; never sees params, and never logs a credential.

An operation's rule names scopes: all of some, and any of others. A caller is an identity with scopes; a provider turns
the text of `serviceParams.authorization` into one. Without a provider every caller is the process that spawned the
daemon, with the scopes of the setting `scope`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, final

import msgspec

from ...errors.failures import AuthenticationRequired, Failure, InsufficientPermissions

if TYPE_CHECKING:
    from ...errors.redaction.caller_secrets import CallerSecrets


class Identity(msgspec.Struct, frozen=True):
    """A caller. `subject` names it for handlers and logs, never with a credential; `scopes` None means every scope."""

    subject: str
    scopes: frozenset[str] | None = frozenset()


PARENT: Final = Identity("parent", None)
"""The process that spawned the daemon, where nothing restricts it."""


class AccessRule(msgspec.Struct, frozen=True):
    """The scopes that an operation asks for. An empty rule lets everyone in, with or without an identity."""

    all_of: frozenset[str] = frozenset()
    any_of: frozenset[str] = frozenset()

    @property
    def open(self) -> bool:
        return not (self.all_of or self.any_of)

    def allows(self, identity: Identity | None) -> bool:
        """Whether a caller (None: nobody in particular) satisfies the rule."""
        if self.open:
            return True
        if identity is None:
            return False
        held = identity.scopes
        return held is None or (self.all_of <= held and (not self.any_of or not self.any_of.isdisjoint(held)))


class IdentityProvider(Protocol):
    """Turns credentials into identities. One object for the daemon's life, used on the event loop only.

    `schemes` and `realm` are told to callers who come without credentials.
    """

    @property
    def schemes(self) -> Sequence[str]: ...

    @property
    def realm(self) -> str: ...

    def resolve(self, authorization: str) -> Identity | None:
        """Who this is; None for credentials that are not accepted. Called for every request, so it must not block."""
        ...


@final
class Access:
    """Checks calls against rules. `parent` is who calls where there is no provider."""

    def __init__(self, parent: Identity, provider: IdentityProvider | None = None) -> None:
        self._parent = parent
        self.provider: Final = provider
        self._guests: CallerSecrets | None = None
        self.trusting: Final = provider is None and parent.scopes is None
        """True where every caller may do everything, so that nothing needs to be asked."""

    def identify(self, metadata: Mapping[str, str]) -> Identity | None:
        """Who sent a request with this metadata."""
        if self.provider is None:
            return self._parent
        authorization = metadata.get("authorization")
        identity = None if authorization is None else self.provider.resolve(authorization)
        if authorization is not None and identity is not None:
            self._conceal(authorization)
        return identity

    def _conceal(self, authorization: str) -> None:
        """Credentials that are accepted are worth something: the logs must not hold them, whoever repeats them."""
        if self._guests is None:
            from ...errors.redaction.caller_secrets import CallerSecrets  # late: only daemons with a provider need it

            self._guests = CallerSecrets()
        self._guests.add(authorization.strip().partition(" ")[2].strip() or authorization)

    def refusal(self, rule: AccessRule, metadata: Mapping[str, str]) -> Failure | None:
        """Why this call may not be made; None where it may."""
        if self.trusting or rule.open:
            return None
        identity = self.identify(metadata)
        if rule.allows(identity):
            return None
        if identity is None and self.provider is not None:
            return AuthenticationRequired(tuple(self.provider.schemes), self.provider.realm)
        return InsufficientPermissions()


class Token(msgspec.Struct, frozen=True):
    """One static token: whose it is, its SHA-256 in hexadecimal, and its scopes."""

    subject: str
    digest: str
    scopes: frozenset[str]


@final
class StaticTokens:
    """Bearer tokens that are known by their digests only, compared in constant time."""

    schemes: Sequence[str] = ("bearer",)

    def __init__(self, tokens: Sequence[Token], realm: str = "discreet") -> None:
        self._tokens = tuple(tokens)
        self.realm = realm

    def resolve(self, authorization: str) -> Identity | None:
        import hashlib  # late: only daemons with tokens need them
        import hmac

        scheme, _, credential = authorization.strip().partition(" ")
        if scheme.lower() != "bearer":
            return None
        digest = hashlib.sha256(credential.strip().encode("utf-8", "surrogatepass")).hexdigest()
        found: Identity | None = None
        for token in self._tokens:  # all of them, so that the time tells nothing about which one matched
            if hmac.compare_digest(digest, token.digest):
                found = Identity(token.subject, token.scopes)
        return found


def parse_token(text: str) -> Token:
    """Read `SUBJECT:SHA256[:SCOPE+SCOPE…]`. Raises `ValueError` that says what a token looks like, without the text."""
    subject, _, rest = text.partition(":")
    digest, _, scopes = rest.partition(":")
    if not subject or len(digest) != 64 or set(digest.lower()) - set("0123456789abcdef"):
        raise ValueError("a token is SUBJECT:SHA256[:SCOPE+SCOPE], with the SHA-256 of the token in 64 hex digits")
    return Token(subject, digest.lower(), frozenset(filter(None, scopes.split("+"))))
