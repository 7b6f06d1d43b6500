"""Gets access tokens as a client of OAuth 2.0: with credentials of its own (RFC 6749, section 4.4), by a refresh token
(section 6), or in exchange for the token of the caller (RFC 8693).

An OAuth client is a text: the table `[oauth]` of TOML. It stands where a token may stand, in the same files. Tokens are kept in
memory, for some minutes, as many as `MAX_TOKENS`. What an authorization server says is never logged.
"""

from __future__ import annotations

import hashlib
import os
import time
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, final
from urllib.parse import quote_plus, urlencode

import msgspec

from ..errors.decoders import DECODE_ERRORS, convert, decoder_for
from ..errors.nearest import nearest_hint
from ..errors.redaction import register, register_caller_secret
from ..lazy import anyio

if TYPE_CHECKING:
    from ssl import SSLContext

    from .outbound.network import Destination

HEADING: Final = "[oauth]"
"""The first line of a text that is an OAuth client and no token."""

GRANTS: Final = ("client-credentials", "refresh-token", "token-exchange")
AUTHENTICATIONS: Final = ("basic", "post", "private-key")

MAX_CLIENTS: Final = 64
"""Texts that are kept read."""
TOKEN_SECONDS: Final = 10.0
"""How long the authorization server may take for a token."""
MAX_ANSWER: Final = 64 * 1024
MAX_TOKEN: Final = 16 * 1024
MAX_TOKENS: Final = 1024
"""That are kept: one for each caller with a token exchange. At most 16 MiB."""
KEPT_SECONDS: Final = 300.0
"""How long a token is used at most: for so long one that was revoked may be sent."""
EARLY_SECONDS: Final = 30.0
"""How long before its end a token is replaced, or half of its life where that is less."""

_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_JWT_BEARER: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_OF_CLIENT: Final = frozenset({"invalid_client", "unauthorized_client", "unsupported_grant_type"})
"""Errors that no other token of a caller would change (RFC 6749, section 5.2)."""
_ERRORS: Final = _OF_CLIENT | {"invalid_request", "invalid_grant", "invalid_scope", "invalid_target"}


class OAuthClient(msgspec.Struct, frozen=True, rename="kebab"):
    """The table `[oauth]`. `resource` is sent as RFC 8707 says. `client_secret_env` names a variable with the secret, and
    `private_key_file` has a PEM for `private-key` (RFC 7523). A new refresh token is written to `refresh_token_file`.
    """

    token_url: str
    client_id: str
    grant: str = "client-credentials"
    authentication: str = ""
    client_secret: str = ""
    client_secret_env: str = ""
    private_key_file: str = ""
    key_id: str = ""
    algorithm: str = "RS256"
    refresh_token_file: str = ""
    scope: str = ""
    resource: str = ""
    audience: str = ""

    @property
    def way(self) -> str:
        """How the client proves who it is."""
        return self.authentication or ("private-key" if self.private_key_file else "basic")


class TokenRefused(Exception):
    """There is no token. `reason` is an error of OAuth, or a word for what else is wrong. `of_caller`: that of another caller may
    be exchanged; `may_pass`: the server may answer later."""

    def __init__(self, reason: str, *, of_caller: bool = False, may_pass: bool = False) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.of_caller: Final = of_caller
        self.may_pass: Final = may_pass


def is_oauth(text: str) -> bool:
    """Whether a credential is an OAuth client."""
    return text.startswith(HEADING)


def check_credential(text: str) -> bool:
    """Check a credential, and tell whether it is an OAuth client. Raises `ValueError` as `read_oauth`."""
    return is_oauth(text) and bool(read_oauth(text))


def read_oauth(text: str) -> OAuthClient:
    """Read an OAuth client, and check what it refers to. Raises `ValueError`, whose text names the key and never a value that may
    be secret.
    """
    client = parse_oauth(text)
    _check(client)
    return client


@lru_cache(MAX_CLIENTS)
def parse_oauth(text: str) -> OAuthClient:
    """Read an OAuth client without checking what it refers to. Raises `ValueError` as `read_oauth`."""
    import tomllib  # late: only OAuth clients need it

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise ValueError(f"{HEADING}: no TOML") from None
    if surplus := [name for name in table if name != "oauth"]:
        raise ValueError(f"{HEADING}: {surplus[0]}: no other table may stand there")
    given, keys = table["oauth"], OAuthClient.__struct_encode_fields__
    for name, value in given.items():
        if name not in keys:
            raise ValueError(f"{HEADING}: {name}: there is no such key{nearest_hint(name, keys)}")
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise ValueError(f"{HEADING}: {name}: expected a text of one line")
    if missing := [name for name in ("token-url", "client-id") if name not in given]:
        raise ValueError(f"{HEADING}: {' and '.join(missing)}: missing")
    client: OAuthClient = convert(given, OAuthClient)
    return client


def _check(client: OAuthClient) -> None:
    for name, value, words in (("grant", client.grant, GRANTS), ("authentication", client.way, AUTHENTICATIONS)):
        if value not in words:
            raise ValueError(f"{HEADING}: {name}: expected one of {', '.join(words)}")
    _address(client)
    secrets = [bool(client.client_secret), bool(client.client_secret_env), bool(client.private_key_file)]
    if sum(secrets) != 1 or (client.way == "private-key") != bool(client.private_key_file):
        raise ValueError(
            f"{HEADING}: expected one of client-secret, client-secret-env and private-key-file (for private-key)"
        )
    if (client.grant == "refresh-token") != bool(client.refresh_token_file):
        raise ValueError(f"{HEADING}: refresh-token-file: needed with the grant refresh-token, and only then")
    if lacking := [name for name in ("jwt", "cryptography") if client.way == "private-key" and find_spec(name) is None]:
        raise ValueError(f"{HEADING}: private-key-file needs {lacking[0]}: pip install 'discreet[jwt]'")
    if find_spec("h11") is None:
        raise ValueError(f"{HEADING}: it needs h11: pip install 'discreet[http]'")
    if client.way == "private-key":
        _assertion(client)
    elif not _secret(client):
        raise ValueError(f"{HEADING}: client-secret-env: there is no such variable")
    if client.refresh_token_file and not _refresh_token(client):
        raise ValueError(f"{HEADING}: refresh-token-file: it can't be read, or is empty")
    if client.refresh_token_file and not os.access(
        os.path.dirname(os.path.realpath(client.refresh_token_file)), os.W_OK
    ):
        raise ValueError(f"{HEADING}: refresh-token-file: its folder can't be written, where a new token replaces it")


def _address(client: OAuthClient) -> Destination:
    """The token endpoint. The operator has named it, so it may be private; without TLS it must be on this machine."""
    from .outbound.network import parse_url  # late: loads what only HTTP needs

    to = parse_url(client.token_url, allow_private=True)
    if isinstance(to, str) or (to.scheme != "https" and not _is_loopback(to.host)):
        raise ValueError(f"{HEADING}: token-url: expected https://..., or http:// on this machine")
    return to


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address  # late: as above

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _secret(client: OAuthClient) -> str:
    secret = client.client_secret or os.environ.get(client.client_secret_env, "").strip()
    register(secret)
    return secret


def _refresh_token(client: OAuthClient) -> str:
    try:
        token = Path(client.refresh_token_file).read_text("utf-8").strip()
    except (OSError, ValueError):
        return ""
    register(token)
    return token


def _assertion(client: OAuthClient) -> str:
    """The client's proof (RFC 7523, section 3). Raises `ValueError` for a key that is none, or of another algorithm."""
    import jwt  # late: an extra

    now = int(time.time())
    claims = {
        "iss": client.client_id,
        "sub": client.client_id,
        "aud": client.token_url,
        "iat": now,
        "exp": now + 60,
        "jti": os.urandom(16).hex(),
    }
    try:
        key = Path(client.private_key_file).read_text("ascii")
        return jwt.encode(claims, key, client.algorithm, {"kid": client.key_id} if client.key_id else None)
    except (OSError, ValueError, TypeError, NotImplementedError, jwt.PyJWTError):
        raise ValueError(f"{HEADING}: private-key-file: expected a PEM with a key for {client.algorithm}") from None


class _Issued(msgspec.Struct, frozen=True):
    """RFC 6749, sections 5.1 and 5.2. Some servers write the seconds as a text."""

    access_token: str | None = None
    token_type: str | None = None
    expires_in: float | str | None = None
    refresh_token: str | None = None
    error: str | None = None

    @property
    def life(self) -> float:
        """How long the token is used, in seconds."""
        try:
            given = KEPT_SECONDS if self.expires_in is None else float(self.expires_in)
        except ValueError:
            return 0
        return min(KEPT_SECONDS, given - min(EARLY_SECONDS, given / 2))


class _Kept(msgspec.Struct, frozen=True):
    """`until` is in seconds of the event loop's clock."""

    token: str
    until: float


@final
class _Asking:
    """A question for a token. Calls that need the same one wait for it, and fail as it does."""

    def __init__(self) -> None:
        self.ended: Final = anyio.Event()
        self.refused: TokenRefused | None = None


@final
class AccessTokens:
    """The tokens of some OAuth clients. Used on one event loop."""

    def __init__(self) -> None:
        self._kept: dict[bytes, _Kept] = {}
        self._asking: dict[bytes, _Asking] = {}
        self._trust: SSLContext | None = None

    async def bearer(self, credential: str, caller: str = "") -> str:
        """The token to send: the credential itself, unless that is an OAuth client. `caller` is the token of the caller as whom
        it is got by a token exchange; without it the client gets one for itself. Raises `TokenRefused`.
        """
        if not is_oauth(credential):
            return credential
        key = hashlib.sha256(f"{len(credential)}:{credential}{caller}".encode()).digest()
        while (asking := self._asking.get(key)) is not None:
            await asking.ended.wait()
            if asking.refused is not None:
                raise asking.refused
        kept = self._kept.get(key)
        if kept is not None and anyio.current_time() < kept.until:
            return kept.token
        asking = self._asking[key] = _Asking()
        try:
            kept = await self._ask(parse_oauth(credential), caller)
        except TokenRefused as exc:
            asking.refused = exc
            raise
        except ValueError as exc:  # what it refers to has changed since it was checked
            asking.refused = TokenRefused(str(exc))
            raise asking.refused from None
        finally:
            del self._asking[key]
            asking.ended.set()
        self._kept.pop(key, None)
        if len(self._kept) >= MAX_TOKENS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = kept
        return kept.token

    async def _ask(self, client: OAuthClient, caller: str) -> _Kept:
        headers = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
        form = _form(client, caller)
        match client.way:
            case "basic":  # RFC 6749, section 2.3.1
                pair = f"{quote_plus(client.client_id)}:{quote_plus(_secret(client))}"
                headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
                register(headers["authorization"].partition(" ")[2])
            case "post":
                form |= {"client_id": client.client_id, "client_secret": _secret(client)}
            case _:
                form |= {"client_assertion_type": _JWT_BEARER, "client_assertion": _assertion(client)}
        began = anyio.current_time()
        status, body = await self._post(_address(client), headers, urlencode(form).encode())
        try:
            issued: _Issued = decoder_for(_Issued)(body)
        except DECODE_ERRORS:
            raise TokenRefused(f"HTTP {status}", may_pass=status >= 500) from None
        if status != 200:
            reason = issued.error if issued.error is not None and issued.error in _ERRORS else f"HTTP {status}"
            of_caller = bool(caller) and reason in _ERRORS - _OF_CLIENT
            raise TokenRefused(reason, of_caller=of_caller, may_pass=status >= 500 or status == 429)
        token = issued.access_token or ""
        if not 0 < len(token) <= MAX_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
            raise TokenRefused("the answer holds no token")
        if (issued.token_type or "").lower() != "bearer":
            raise TokenRefused("the token is no bearer token")
        register_caller_secret(token)
        if client.refresh_token_file and issued.refresh_token:
            register(issued.refresh_token)
            await anyio.to_thread.run_sync(_write, client.refresh_token_file, issued.refresh_token)
        return _Kept(token, began + issued.life)

    async def _post(self, to: Destination, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        from .outbound.connection import OutboundError  # late: loads h11
        from .outbound.network import SystemNetwork
        from .outbound.pool import ConnectionPool

        if to.scheme == "https" and self._trust is None:
            self._trust = await anyio.to_thread.run_sync(SystemNetwork().ssl_context)
        pool = ConnectionPool(allow_private=True, ssl_context=self._trust)
        try:
            with anyio.fail_after(TOKEN_SECONDS):
                async with pool.connection(to) as connection:
                    response = await connection.request("POST", to, headers, body)
                    return response.status, await response.read_all(MAX_ANSWER)
        except OutboundError as exc:
            raise TokenRefused(
                exc.reason, may_pass=exc.reason not in ("tls", "protocol", "encoding", "too-large")
            ) from exc
        except TimeoutError:
            raise TokenRefused("timeout", may_pass=True) from None
        finally:
            await pool.aclose()


def _form(client: OAuthClient, caller: str) -> dict[str, str]:
    form = {"scope": client.scope, "resource": client.resource, "audience": client.audience}
    if client.grant == "refresh-token":
        form |= {"grant_type": "refresh_token", "refresh_token": _refresh_token(client)}
    elif client.grant == "token-exchange" and caller:
        form |= {"grant_type": _EXCHANGE, "subject_token": caller, "subject_token_type": _ACCESS_TOKEN}
    else:
        form["grant_type"] = "client_credentials"
    return {name: value for name, value in form.items() if value}


def _write(path: str, token: str) -> None:
    """Replace a file at once, which only its owner may read. Raises `ValueError` where it can't be written."""
    import tempfile  # late: few clients need it

    place = os.path.realpath(path)
    try:
        number, name = tempfile.mkstemp(dir=os.path.dirname(place), prefix=".discreet-")
        try:
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(f"{token}\n")
            os.replace(name, place)
        except OSError:
            os.unlink(name)
            raise
    except OSError:
        raise ValueError(f"{HEADING}: refresh-token-file: the new token can't be written") from None
