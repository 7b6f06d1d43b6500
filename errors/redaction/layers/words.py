"""Judges names: does a key, a flag, a header or a variable of this name hold a secret? Never looks at values.

A name is split into words (camelCase, snake_case, kebab-case, dotted, SCREAMING). Its last telling word decides,
words behind that one can take the verdict back (`token_count`, `key_name`), and so can words before it (`public_key`,
`max_tokens`, `primary_key`).
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache


class Verdict(IntEnum):
    """What a name says of its value."""

    PLAIN = 0
    """No secret by its name."""
    SUSPECT = 1
    """A secret when the value looks random: the name is used for both kinds."""
    LIKELY = 2
    """A secret when the value is no word: a name that tells, but only stands beside it."""
    SECRET = 3
    """A secret whatever the value."""


STEMS = (
    "pass", "pw", "secret", "token", "key", "cred", "auth", "cookie", "sess", "sid", "dsn", "jwt", "sig", "otp",
    "cvv", "mnemonic", "phrase", "salt", "bearer", "client_id", "clientid", "client-id",
)  # fmt: skip
"""Every name with a verdict above PLAIN holds one of these in lower case: the prefilter's literals."""

_SECRET = frozenset(
    "password passwords passwd passwds pwd pw passphrase passcode passkey secret secrets token tokens apikey apikeys"
    " credential credentials creds authorization cookie cookies jwt jwts dsn mnemonic otp totp cvv bearer"
    " keyphrase seedphrase".split()
)
_SUSPECT = frozenset("key keys pass auth session sess sid sessionid sig signature salt cred phrase authn authz".split())
_ENDINGS = (
    "password", "passwd", "passphrase", "secret", "token", "tokens", "apikey", "secretkey", "privatekey", "accesskey",
    "accountkey", "authkey", "signingkey", "encryptionkey", "masterkey", "credential", "credentials", "sessid", "pwd",
    "sessionid", "authtoken", "cookie",
)  # fmt: skip

# Before `key`: what makes it open something. Behind any other word it may be a place in a table or a button.
_OPENING = frozenset(
    "api access secret private priv encryption encrypt decryption decrypt enc cipher crypto signing sign master account"
    " storage shared service deploy deployment ssh gpg pgp rsa ec ecdsa ed25519 dsa aes des hmac jwt license licence"
    " app application consumer client webhook auth authentication session cookie symmetric asymmetric subscription"
    " admin root security recovery ssl tls wallet vault sas publisher integration developer dev personal user"
    " stripe openai anthropic github gitlab aws azure gcp google sendgrid twilio mailgun datadog sentry algolia"
    " cloudflare heroku slack discord telegram firebase supabase mapbox maps pusher segment mixpanel amplitude"
    " newrelic pagerduty opsgenie okta auth0 docker npm pypi sonar snyk pepper salt data kek dek kms".split()
)
_PLACES = frozenset(
    "primary foreign cache sort partition row index object group idempotency dedup lock map dict routing composite"
    " natural surrogate unique hot shortcut s3 bucket field column json xml translation i18n host lookup registry"
    " etag range search schema sequence".split()
)
# Before `token(s)`, `secret(s)`, `credentials`…: counters and parsers.
_COUNTERS = frozenset(
    "max min maximum minimum num number total count n avg average mean median sum prompt completion input output"
    " cached reasoning used remaining generated new per unexpected expected invalid bad missing unknown pad"
    " eos bos unk sep mask cls special stop lexer syntax punctuation limit budget context word sub subword".split()
)
_PUBLIC = frozenset("public pub publishable publickey pubkey".split())
_QUESTIONS = frozenset(
    "is has have had use uses used no not require requires required need needs allow allows enable enables enabled"
    " disable disables disabled skip show hide with without can should must forgot forgotten ask prompted if".split()
)
# Behind the telling word: what speaks of the secret and is not it.
_ABOUT = frozenset(
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
    " form screen dialog view button link icon color event_type position offset start end line pos range".split()
)
# Behind the telling word: parts that don't change what the value is.
_TRANSPARENT = frozenset(
    "value values base old new prod production dev development staging stage qa uat live b64 base64 hex pem der raw"
    " str string text plain plaintext data header current previous prev confirm confirmation again repeat repeated"
    " primary secondary default admin root main master backup rw ro read write readonly local remote temp tmp bytes"
    " content material body json decrypted clear cleartext unencrypted key keys token secret env var variable".split()
)

_SPLIT = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_TELLING_CHARACTERS = 128  # of a name: more is no name
_CODE_OWNERS = frozenset("auth authorization otp verification recovery backup mfa security secret".split())


@lru_cache(maxsize=4096)
def judge(name: str) -> Verdict:
    """The verdict on a name of any spelling. Names over 128 characters are judged by their last 128."""
    words = [word.lower() for word in _SPLIT.findall(name[-_TELLING_CHARACTERS:])]
    for at in range(len(words) - 1, -1, -1):
        verdict = _word(words[at])
        if verdict is not Verdict.PLAIN:
            return _weigh(verdict, words[:at], words[at], words[at + 1 :])
    if words[-2:] == ["client", "id"] or words[-1:] == ["clientid"]:
        return Verdict.SUSPECT
    return Verdict.PLAIN


def _word(word: str) -> Verdict:
    if word in _SECRET:
        return Verdict.SECRET
    if word in _SUSPECT:
        return Verdict.SUSPECT
    return Verdict.SECRET if word.endswith(_ENDINGS) else Verdict.PLAIN


def _weigh(verdict: Verdict, before: list[str], word: str, after: list[str]) -> Verdict:
    if not _PUBLIC.isdisjoint(before) or not _QUESTIONS.isdisjoint(before[:1]):
        return Verdict.PLAIN
    if after and not _ABOUT.isdisjoint(after):
        is_code = after == ["code"] and word in _CODE_OWNERS
        return Verdict.SUSPECT if is_code or (after == ["id"] and word in ("session", "sess")) else Verdict.PLAIN
    if word in ("key", "keys"):
        verdict = _key(before)
    elif word in ("pass", "cred", "phrase") and before:
        verdict = Verdict.SECRET
    elif before and before[-1] in _COUNTERS:
        return Verdict.PLAIN
    if any(part not in _TRANSPARENT and not part.isdigit() for part in after):
        return min(verdict, Verdict.SUSPECT)
    return verdict


def _key(before: list[str]) -> Verdict:
    """`key` alone may be anything: the word before it says what it opens, or that it opens nothing."""
    if before and before[-1] in _PLACES:
        return Verdict.PLAIN
    return Verdict.SECRET if before and before[-1] in _OPENING else Verdict.SUSPECT
