"""Who calls, and what the caller may call. Never sees params, and never logs a credential.

An operation's rule names scopes that a caller needs. A caller is an identity with scopes: an identity provider makes it
of the text of `serviceParams.authorization`. Without a provider every caller is the process that spawned the daemon,
with the scopes of the setting `scope`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeGuard, final

import msgspec

from ...errors.failures import AuthenticationRequired, Failure, InsufficientPermissions
from ..logs.safe_call import class_name
from ..settings.token_text import TOKEN_FORM, read_token


class Identity(msgspec.Struct, frozen=True):
    """A caller. `subject` names it for handlers and logs and holds no credential. `scopes` is None for every scope."""

    subject: str
    scopes: frozenset[str] | None = frozenset()


PARENT: Final = Identity("parent", None)
"""The process that spawned the daemon, where nothing restricts it."""


API_KEY: Final = "ApiKey"
"""The scheme of credentials that came as an API key, in whichever place the agent's card declares."""


class AccessRule(msgspec.Struct, frozen=True):
    """The scopes that a caller needs: all of `all_of`, and one of `any_of`. An empty rule allows every caller; where callers must
    be known, only a `public` one allows those that are not.
    """

    all_of: frozenset[str] = frozenset()
    any_of: frozenset[str] = frozenset()
    public: bool = False

    @property
    def open(self) -> bool:
        return not (self.all_of or self.any_of)

    def allows(self, identity: Identity | None) -> bool:
        """Whether a caller satisfies the rule. None is a caller without accepted credentials."""
        if self.open:
            return True
        if identity is None:
            return False
        held = identity.scopes
        return held is None or (self.all_of <= held and (not self.any_of or not self.any_of.isdisjoint(held)))


class IdentityProvider(Protocol):
    """Turns credentials into identities. One object for the daemon's lifetime, used on the event loop only.

    Callers whose credentials are missing or not accepted get `schemes` and `realm` with the error.
    """

    @property
    def schemes(self) -> Sequence[str]: ...

    @property
    def realm(self) -> str: ...

    def resolve(self, authorization: str) -> Identity | None:
        """The caller; None for credentials that are not accepted. It is called for every request and must not block."""
        ...


class Refreshing(Protocol):
    """What an identity provider may offer beside: it holds keys of others, which it may have to fetch."""

    def lacks_key(self, authorization: str) -> bool:
        """Whether `resolve` knows of no key for these credentials, and `refresh` may bring one. Must not block."""
        ...

    def refresh(self) -> None:
        """Fetch the keys. Blocks for a bounded time, in a worker thread. Does not raise: what is wrong is logged."""
        ...


def is_refreshing(provider: IdentityProvider | None) -> TypeGuard[Refreshing]:
    """Whether the provider is one that fetches keys."""
    return callable(getattr(provider, "lacks_key", None)) and callable(getattr(provider, "refresh", None))


@final
class Access:
    """Checks calls against rules. Without a provider, `parent` is the caller. With one and `known_only`, callers without accepted
    credentials may call what is public, and nothing else.
    """

    def __init__(self, parent: Identity, provider: IdentityProvider | None = None, *, known_only: bool = False) -> None:
        self.parent: Final = parent
        self.provider: Final = provider
        self._known_only = known_only and provider is not None
        self._caller: tuple[Identity | None] | None = None
        self.unrestricted: Final = provider is None and parent.scopes is None
        """Every caller may call everything: no check is needed."""

    @property
    def caller(self) -> Identity | None:
        """Whom `for_caller` was given."""
        return None if self._caller is None else self._caller[0]

    @property
    def unknown_caller(self) -> AuthenticationRequired | None:
        """What the caller whom `for_caller` was given gets where only known ones are answered; None for a known one, and where
        nobody tells callers apart.
        """
        return None if self.provider is None or self.caller is not None else challenge(self.provider)

    def for_caller(self, identity: Identity | None) -> Access:
        """The same for one caller, whom the provider has named before: it is not asked again."""
        access = Access(self.parent, self.provider, known_only=self._known_only)
        access._caller = (identity,)
        return access

    def identify(self, metadata: Mapping[str, str]) -> Identity | None:
        """The sender of a request with this metadata; None where its credentials are missing or not accepted. Raises
        `ProviderFailed`."""
        if self._caller is not None:
            return self._caller[0]
        if self.provider is None:
            return self.parent
        authorization = metadata.get("authorization")
        if authorization is None:
            return None
        identity = _resolved(self.provider, authorization)
        if identity is not None:
            self._register_secret(authorization)
        return identity

    def _register_secret(self, authorization: str) -> None:
        """Keep accepted credentials out of the logs, also where a handler repeats them."""
        from ...errors.redaction import register_caller_secret  # late: only daemons with a provider need it

        register_caller_secret(authorization.strip().partition(" ")[2].strip() or authorization)

    def refusal(self, rule: AccessRule, metadata: Mapping[str, str]) -> Failure | None:
        """Why this call is refused; None where it is allowed."""
        if self.unrestricted or rule.public or (rule.open and not self._known_only):
            return None
        identity = self.identify(metadata)
        if rule.allows(identity) and not (identity is None and self._known_only):
            return None
        if identity is None and self.provider is not None:
            return challenge(self.provider)
        return InsufficientPermissions(tuple(sorted(rule.all_of | rule.any_of)))


class ProviderFailed(Exception):
    """An identity provider raised something, which may hold the credential. `error` is the name of its class: nothing else of it
    is kept."""

    def __init__(self, error: str) -> None:
        super().__init__(f"the identity provider raised {error}")
        self.error = error


def _resolved(provider: IdentityProvider, authorization: str) -> Identity | None:
    try:
        identity = provider.resolve(authorization)
    except BaseException as exc:  # noqa: BLE001 - the boundary: foreign code
        error = class_name(exc)
    else:
        if identity is None or isinstance(identity, Identity):
            return identity
        raise TypeError(f"resolve returned a {class_name(identity)} and no Identity")  # such as a coroutine
    raise ProviderFailed(error)  # behind the block: it is no context of this


def challenge(provider: IdentityProvider) -> AuthenticationRequired:
    """What a caller gets whose credentials are missing or not accepted by this provider."""
    return AuthenticationRequired(tuple(provider.schemes), provider.realm)


class Token(msgspec.Struct, frozen=True):
    """One static token: the caller that it stands for, its SHA-256 in hexadecimal, and the caller's scopes."""

    subject: str
    digest: str
    scopes: frozenset[str]


@final
class StaticTokens:
    """An identity provider for bearer tokens. It knows their digests only, and compares in constant time.

    With `api_keys` a token is accepted as an API key, too: with the scheme `ApiKey`.
    """

    def __init__(self, tokens: Sequence[Token], realm: str = "discreet", *, api_keys: bool = False) -> None:
        self._tokens = tuple(tokens)
        self.realm = realm
        self.schemes: Sequence[str] = ("bearer", API_KEY) if api_keys else ("bearer",)
        self._accepted = frozenset(scheme.lower() for scheme in self.schemes)

    def resolve(self, authorization: str) -> Identity | None:
        import hashlib  # late: only daemons with tokens need these two
        import hmac

        scheme, _, credential = authorization.strip().partition(" ")
        if scheme.lower() not in self._accepted:
            return None
        digest = hashlib.sha256(credential.strip().encode("utf-8", "surrogatepass")).hexdigest()
        found: Identity | None = None
        for token in self._tokens:  # all of them, so that the time does not reveal which one matched
            if hmac.compare_digest(digest, token.digest):
                found = Identity(token.subject, token.scopes)
        return found


def parse_token(text: str) -> Token:
    """The token that `SUBJECT:SHA256[:SCOPE+SCOPE…]` declares. Raises `ValueError`, whose message omits the text."""
    found = read_token(text)
    if found is None:
        raise ValueError(f"a token must be {TOKEN_FORM}")
    return Token(found.subject, found.digest, found.scopes)
