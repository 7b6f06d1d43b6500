"""Tells from a name (of a key, flag, header or variable) whether its value is a secret. Never looks at values.

A name is split into words (camelCase, snake_case, kebab-case, dotted, SCREAMING). Its last sensitive word decides. Words
after it can reverse that (`token_count`, `key_name`), and so can words before it (`public_key`, `max_tokens`,
`primary_key`).
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache


class Sensitivity(IntEnum):
    """How surely a value with this name is a secret."""

    NONE = 0
    """The name does not point to a secret."""
    POSSIBLE = 1
    """A secret if the value looks random: such names are used for secrets and for other values."""
    PROBABLE = 2
    """A secret if the value looks random or like a password: the name is sensitive, but only stands next to the value."""
    LIKELY = 3
    """The same, and UUIDs and long numbers too: only a sign between them joins the name and the value."""
    CERTAIN = 4
    """A secret, whatever the value."""


SENSITIVE_STEMS = (
    "pass", "pw", "secret", "token", "key", "cred", "auth", "cookie", "sess", "sid", "dsn", "jwt", "sig", "otp",
    "cvv", "mnemonic", "phrase", "salt", "bearer", "client_id", "clientid", "client-id", "kennwort", "contraseña",
    "contrasena", "senha",
)  # fmt: skip
"""Every name with a sensitivity above NONE contains one of these in lower case: the prefilter's literals."""

_SECRET_WORDS = frozenset(
    "password passwords passwd passwds pwd pw passphrase passcode passkey secret secrets token tokens apikey apikeys"
    " credential credentials creds authorization cookie cookies jwt jwts dsn mnemonic otp totp cvv bearer"
    " keyphrase seedphrase requirepass masterauth rootpw bindpw passwort kennwort contraseña contrasena senha".split()
)
_AMBIGUOUS_WORDS = frozenset(
    "key keys pass passe auth session sess sid sessionid sig signature salt cred phrase authn authz".split()
)
_SECRET_ENDINGS = (
    "password", "passwd", "passphrase", "secret", "token", "tokens", "apikey", "secretkey", "privatekey", "accesskey",
    "accountkey", "authkey", "signingkey", "encryptionkey", "masterkey", "credential", "credentials", "sessid", "pwd",
    "sessionid", "authtoken", "cookie", "passwort", "kennwort",
)  # fmt: skip

# Words before `key` that make it a secret. After any other word it may be a column of a table or a button.
_KEY_PURPOSES = frozenset(
    "api access secret private priv encryption encrypt decryption decrypt enc cipher crypto signing sign master account"
    " storage shared service deploy deployment ssh gpg pgp rsa ec ecdsa ed25519 dsa aes des hmac jwt license licence"
    " app application consumer client webhook auth authentication session cookie symmetric asymmetric subscription"
    " admin root security recovery ssl tls wallet vault sas publisher integration developer dev personal user"
    " stripe openai anthropic github gitlab aws azure gcp google sendgrid twilio mailgun datadog sentry algolia"
    " cloudflare heroku slack discord telegram firebase supabase mapbox maps pusher segment mixpanel amplitude"
    " newrelic pagerduty opsgenie okta auth0 docker npm pypi sonar snyk pepper salt data kek dek kms".split()
)
_NON_SECRET_KEYS = frozenset(
    "primary foreign cache sort partition row index object group idempotency dedup lock map dict routing composite"
    " natural surrogate unique hot shortcut s3 bucket field column json xml translation i18n host lookup registry"
    " etag range search schema sequence".split()
)
# Words before `token(s)`, `secret(s)`, `credentials`…: counters and parsers.
_COUNTER_WORDS = frozenset(
    "max min maximum minimum num number total count n avg average mean median sum prompt completion input output"
    " cached reasoning used remaining generated new per unexpected expected invalid bad missing unknown pad"
    " eos bos unk sep mask cls special stop lexer syntax punctuation limit budget context word sub subword".split()
)
_PUBLIC_WORDS = frozenset("public pub publishable publickey pubkey".split())
_QUESTION_WORDS = frozenset(
    "is has have had use uses used no not require requires required need needs allow allows enable enables enabled"
    " disable disables disabled skip show hide with without can should must forgot forgotten ask prompted if".split()
)
# Words after the sensitive word: the value describes the secret and is not the secret.
_DESCRIBING_WORDS = frozenset(
    "count counts name names type types id ids length len size sizes limit limits max min ttl expiry expires expire"
    " expired expiration exp age at path paths file filename files dir directory url urls uri uris endpoint endpoints"
    " host port policy status state enabled disabled required optional supported version versions algorithm alg algo"
    " usage used format prefix prefixes field fields column label kind class error errors invalid valid missing"
    " manager store stores provider providers service server handler factory generator validator verifier parser"
    " rotation created updated changed reset hint strength rules attempts bits fingerprint thumbprint ref refs"
    " reference arn alias aliases board boards code codes down up press pressed ring rings word words stone frame"
    " frames space scope scopes audience issuer method methods mode model index per rate budget window left"
    " remaining stream stats bucket vault usages ops exists present found set loaded source location locations domain"
    " consent jar samesite secure httponly schema mapping map list kid input placeholder prompt only agent sock socket"
    " stdin callback middleware guard exception timeout interval duration lifetime date time timestamp ms seconds"
    " ok failed failure success user username users owner author group groups role roles permission permissions level"
    " event events log logs test tests lock server params param request requests response responses page"
    " form screen dialog view button link icon color event_type position offset start end line pos range namespace"
    " description".split()
)
# Words after the sensitive word that do not change what the value is.
_NEUTRAL_WORDS = frozenset(
    "value values base old new prod production dev development staging stage qa uat live b64 base64 hex pem der raw"
    " str string text plain plaintext data header current previous prev confirm confirmation again repeat repeated"
    " primary secondary default admin root main master backup rw ro read write readonly local remote temp tmp bytes"
    " content material body json decrypted clear cleartext unencrypted key keys token secret".split()
)

_WORDS = r"[A-ZÑ]{2,}s?(?![a-zñ])|[A-ZÑ]?[a-zñ]+|[A-ZÑ]+|\d+"
_MAX_NAME_LENGTH = 128  # characters; more is no name
_CODE_OWNERS = frozenset("auth authorization otp verification recovery backup mfa security secret".split())


@lru_cache(maxsize=4096)
def name_sensitivity(name: str) -> Sensitivity:
    """The sensitivity of a name in any notation. Of names over 128 characters the last 128 count."""
    words = [word.lower() for word in re.findall(_WORDS, name[-_MAX_NAME_LENGTH:])]
    for at in range(len(words) - 1, -1, -1):
        sensitivity = _word_sensitivity(words[at])
        if sensitivity is not Sensitivity.NONE:
            return _in_context(sensitivity, words[:at], words[at], words[at + 1 :])
    if words[-2:] == ["client", "id"] or words[-1:] == ["clientid"]:
        return Sensitivity.POSSIBLE
    return Sensitivity.NONE


def _word_sensitivity(word: str) -> Sensitivity:
    if word in _SECRET_WORDS:
        return Sensitivity.CERTAIN
    if word in _AMBIGUOUS_WORDS:
        return Sensitivity.POSSIBLE
    return Sensitivity.CERTAIN if word.endswith(_SECRET_ENDINGS) else Sensitivity.NONE


def _in_context(sensitivity: Sensitivity, before: list[str], word: str, after: list[str]) -> Sensitivity:
    if not _PUBLIC_WORDS.isdisjoint(before) or not _QUESTION_WORDS.isdisjoint(before[:1]):
        return Sensitivity.NONE
    if after and not _DESCRIBING_WORDS.isdisjoint(after):
        is_code = after == ["code"] and word in _CODE_OWNERS
        return (
            Sensitivity.POSSIBLE if is_code or (after == ["id"] and word in ("session", "sess")) else Sensitivity.NONE
        )
    if word in ("key", "keys"):
        sensitivity = _key_sensitivity(before)
    elif word in ("pass", "passe", "cred", "phrase") and before:
        sensitivity = Sensitivity.CERTAIN
    elif word in ("pass", "passe") and not after:
        sensitivity = Sensitivity.LIKELY
    elif before and before[-1] in _COUNTER_WORDS:
        return Sensitivity.NONE
    if any(part not in _NEUTRAL_WORDS and not part.isdigit() for part in after):
        return min(sensitivity, Sensitivity.POSSIBLE)
    return sensitivity


def _key_sensitivity(before: list[str]) -> Sensitivity:
    """`key` alone may be anything: the word before it tells whether it is a secret."""
    if before and before[-1] in _NON_SECRET_KEYS:
        return Sensitivity.NONE
    return Sensitivity.CERTAIN if before and before[-1] in _KEY_PURPOSES else Sensitivity.POSSIBLE
