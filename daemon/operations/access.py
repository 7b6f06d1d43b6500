"""Decides who calls and what the caller may call. Never sees params, and never logs a credential.

An operation's rule names scopes that a caller needs. A caller is an identity with scopes. An identity provider makes it from
the text of `serviceParams.authorization`. Without a provider every caller is the process that spawned the daemon, with the
scopes of the setting `scope`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, TypeGuard, final

import msgspec

from ...errors.failures import WRONG_SCHEME, AuthenticationRequired, Failure, InsufficientPermissions, Unavailable
from ...errors.redaction.safe_call import type_name
from ..logs import log
from ..settings.option import TOKEN_FORM, read_token
from .identity import Identity


class CredentialsRefused(msgspec.Struct, frozen=True):
    """A provider's reason not to accept credentials, in a word or two for the log and the metrics, such as `expired`. It must
    hold nothing of the credentials."""

    reason: str


class CredentialsUnchecked(msgspec.Struct, frozen=True):
    """A provider can't tell now whether it accepts credentials: the server that knows does not answer, or was only just asked.
    The call is UNAVAILABLE; it may be tried again after so many milliseconds."""

    retry_after_ms: int = 1000


Resolved: TypeAlias = Identity | CredentialsRefused | CredentialsUnchecked | None
"""The sender of a request, or why there is none; None where it has sent no credentials."""


NOT_ACCEPTED: Final = CredentialsRefused("not accepted")
"""The reason if a provider gives none."""

OTHER_REASON: Final = "other"
MAX_REASONS: Final = 32
"""How many reasons are counted by themselves: a provider may make them up as it goes."""


PARENT: Final = Identity("parent", None)
"""The process that spawned the daemon, where nothing restricts it."""


API_KEY: Final = "ApiKey"
"""The scheme of credentials that came as an API key, in whichever place the agent's card declares."""


class AccessRule(msgspec.Struct, frozen=True):
    """The scopes that a caller needs: all of `all_of`, one of `any_of`, and all of one of the `alternatives`. An empty rule
    allows every caller; where callers must be known, only a `public` one allows those that are not. With `known` they must be
    wherever a provider tells them apart.
    """

    all_of: frozenset[str] = frozenset()
    any_of: frozenset[str] = frozenset()
    public: bool = False
    known: bool = False
    alternatives: tuple[frozenset[str], ...] = ()

    @property
    def open(self) -> bool:
        return not (self.all_of or self.any_of or self.alternatives)

    def allows(self, identity: Identity | None) -> bool:
        """Whether a caller satisfies the rule. None is a caller without accepted credentials."""
        if self.open:
            return True
        if identity is None:
            return False
        held = identity.scopes
        return held is None or (
            self.all_of <= held
            and (not self.any_of or not self.any_of.isdisjoint(held))
            and (not self.alternatives or any(each <= held for each in self.alternatives))
        )


class IdentityProvider(Protocol):
    """Turns credentials into identities. The daemon uses one object for its whole life, on the event loop only."""

    @property
    def schemes(self) -> Sequence[str]:
        """The schemes that it accepts, such as `Bearer`. Callers without accepted credentials are told them with the error."""
        ...

    @property
    def realm(self) -> str:
        """The protection space (RFC 9110, section 11.5). Callers are told it as they are told `schemes`."""
        ...

    def resolve(self, authorization: str) -> Resolved:
        """Return the identity that these credentials prove; None, or a reason, if they are not accepted.

        Called for every request. Must not block.
        """
        ...


class Refreshing(Protocol):
    """An identity provider that goes by what others know, such as their keys, and may have to ask them."""

    def lacks_key(self, authorization: str) -> Hashable:
        """Return what `resolve` lacks for these credentials and `refresh` may bring, equal for those that one answer serves; a
        false value for nothing. Must not block."""
        ...

    def refresh(self, lacking: Hashable, /) -> None:
        """Fetch it. Blocks for a bounded time, in a worker thread. Logs errors instead of raising them."""
        ...


def is_refreshing(provider: IdentityProvider | None) -> TypeGuard[Refreshing]:
    """Tell whether the provider is one that asks others."""
    return callable(getattr(provider, "lacks_key", None)) and callable(getattr(provider, "refresh", None))


@final
class Access:
    """Checks calls against rules. Without a provider, `parent` is the caller. With one and `known_only`, callers without accepted
    credentials may call what is public, and nothing else.
    """

    def __init__(
        self,
        parent: Identity,
        provider: IdentityProvider | None = None,
        *,
        known_only: bool = False,
        refused: Counter[str] | None = None,
    ) -> None:
        self.parent: Final = parent
        self.provider: Final = provider
        self.refused: Final = Counter[str]() if refused is None else refused
        self._known_only = known_only and provider is not None
        self._caller: tuple[Resolved] | None = None
        self.unrestricted: Final = provider is None and parent.scopes is None
        """Every caller may call everything: no check is needed."""
        self.only_caller = parent if provider is None else None
        """The caller of every call; None if the credentials of each decide."""

    @property
    def caller(self) -> Identity | None:
        """The caller that `for_caller` was given."""
        return None if self._caller is None else _known(self._caller[0])

    @property
    def unknown_caller(self) -> AuthenticationRequired | Unavailable | None:
        """The failure for the caller of `for_caller` where only known callers are answered; None for a known one, and without a
        provider.
        """
        if self.provider is None or self.caller is not None:
            return None
        return challenge(self.provider, None if self._caller is None else self._caller[0])

    def for_caller(self, identity: Resolved) -> Access:
        """Restrict this to one caller, whom the provider has named or refused before: it is not asked again."""
        access = Access(self.parent, self.provider, known_only=self._known_only, refused=self.refused)
        access._caller = (identity,)
        access.only_caller = _known(identity)
        return access

    def identify(self, metadata: Mapping[str, str]) -> Identity | None:
        """The sender of a request with this metadata; None where its credentials are missing or not accepted. Raises
        `ProviderFailed`."""
        return _known(self.resolve(metadata))

    def resolve(self, metadata: Mapping[str, str]) -> Resolved:
        """Identify the sender, or say why its credentials are not accepted, which is logged and counted in `refused`. Raises
        `ProviderFailed`."""
        if self._caller is not None:
            return self._caller[0]
        if self.provider is None:
            return self.parent
        authorization = metadata.get("authorization")
        if not authorization:
            return None
        found = _resolved(self.provider, authorization)
        if isinstance(found, Identity):
            self._register_secret(authorization)
            return found
        if isinstance(found, CredentialsUnchecked):
            return found
        refused = NOT_ACCEPTED if found is None else found
        log.info("identity.refused", reason=refused.reason)
        is_new = refused.reason not in self.refused and len(self.refused) >= MAX_REASONS
        self.refused[OTHER_REASON if is_new else refused.reason] += 1
        return refused

    def _register_secret(self, authorization: str) -> None:
        """Keep accepted credentials out of the logs, also where a handler repeats them."""
        from ...errors.redaction import register_caller_secret  # late: only daemons with a provider need it

        register_caller_secret(authorization.strip().partition(" ")[2].strip() or authorization)

    def refusal(self, rule: AccessRule, metadata: Mapping[str, str]) -> Failure | None:
        """Why this call is refused; None where it is allowed."""
        known_only = self._known_only or (rule.known and self.provider is not None)
        if self.unrestricted or rule.public or (rule.open and not known_only):
            return None
        found = self.resolve(metadata)
        identity = _known(found)
        if rule.allows(identity) and not (identity is None and known_only):
            return None
        if identity is None and self.provider is not None:
            return challenge(self.provider, found)
        told = self.provider is not None and "bearer" in [each.lower() for each in self.provider.schemes]
        return InsufficientPermissions(tuple(sorted(rule.all_of | rule.any_of)) if told else ())


def _known(found: Resolved) -> Identity | None:
    return found if isinstance(found, Identity) else None


def challenge(provider: IdentityProvider, found: Resolved = None) -> AuthenticationRequired | Unavailable:
    """Return the failure for a caller whose credentials are missing, or not accepted by this provider as it has `found`."""
    if isinstance(found, CredentialsUnchecked):
        return Unavailable(found.retry_after_ms, upstream=True)
    reason = found.reason if isinstance(found, CredentialsRefused) else None
    return AuthenticationRequired(tuple(provider.schemes), provider.realm, reason)


class ProviderFailed(Exception):
    """An identity provider raised something, which may hold the credential. `error` is the name of its class: nothing else of it
    is kept."""

    def __init__(self, error: str) -> None:
        super().__init__(f"the identity provider raised {error}")
        self.error = error


def _resolved(provider: IdentityProvider, authorization: str) -> Resolved:
    try:
        found = provider.resolve(authorization)
    except BaseException as exc:  # noqa: BLE001 - the boundary: foreign code
        error = type_name(exc)
    else:
        if found is None or isinstance(found, Identity | CredentialsRefused | CredentialsUnchecked):
            return found
        raise TypeError(f"resolve returned a {type_name(found)} and no Identity")  # such as a coroutine
    raise ProviderFailed(error)  # behind the block: it is no context of this


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

    def resolve(self, authorization: str) -> Identity | CredentialsRefused:
        import hashlib  # late: only daemons with tokens need these two
        import hmac

        scheme, _, credential = authorization.strip().partition(" ")
        if scheme.lower() not in self._accepted:
            return CredentialsRefused(WRONG_SCHEME)
        digest = hashlib.sha256(credential.strip().encode("utf-8", "surrogatepass")).hexdigest()
        found: Identity | CredentialsRefused = CredentialsRefused("unknown token")
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
