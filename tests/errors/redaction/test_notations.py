"""No notation lets a secret through, whatever its characters are; benign counterparts stay."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable

import pytest

from discreet.errors.redaction import Scrubber

from .carriers import (
    CARRIERS,
    LONGEST_LEFT,
    Carrier,
    as_bytes_escapes,
    as_entities,
    as_hex,
    as_percent,
    as_unicode_escapes,
    filled,
    longest_left,
    secrets,
)
from .families import FAMILIES, SHAPELESS, TOKENS, Family, fill, leaked, make

ROUNDS = 6


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber()


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.name)
def test_no_more_than_three_characters_of_a_secret_are_left(scrubber: Scrubber, carrier: Carrier) -> None:
    for secret in secrets(carrier):
        text = filled(carrier, secret)
        scrubbed = scrubber.scrub(text)
        assert len(longest_left(carrier, secret, scrubbed)) <= LONGEST_LEFT, (text, scrubbed)
        assert scrubber.scrub(scrubbed) == scrubbed


VALUE = "tr0ub4dor" + "&3"

NOTATIONS = [
    "PASSWORD=%s", "export DB_PASSWORD=%s", "password: %s", '"password": "%s"', "'password': '%s'",
    '{"user":"bob","password":"%s","x":1}', '\\"password\\": \\"%s\\"', '{\\\\\\"api_key\\\\\\":\\\\\\"%s\\\\\\"}',
    "--password %s", "--password=%s", "--password '%s' --verbose", "-Dpassword=%s", "https://x.io/?token=%s&b=1",
    "https://x.io/a?b=1&access_token=%s#frag", "X-Api-Key: %s", "Authorization: Token %s", "Authorization: %s",
    "{'Authorization': 'Basic %s'}", "(b'authorization', b'Bearer %s')", '("password", "%s")',
    "Cookie: session=%s; theme=dark", "Set-Cookie: sid=%s; Path=/; HttpOnly", "password => %s", ':password=>"%s"',
    'config["secret_key"] = "%s"', "os.environ['API_TOKEN'] = '%s'", 'clientSecret: "%s"', "client-secret=%s",
    "user[password]=%s", "password%%3D%s", "password%%22%%3A%%22%s", "Server=db;User Id=sa;Password=%s;Encrypt=true",
    "<password>%s</password>", '<add key="Password" value="%s"/>', '{"name": "DB_PASSWORD", "value": "%s"}',
    "- name: API_TOKEN\n  value: %s", 'password = "%s"', "secret=%s,user=bob", 'connect(user="bob", password="%s")',
    "User{name=bob, password=%s}", "the password is %s", 'Login with password "%s" failed', "Password: %s (wrong)",
    "API key: %s", "password=`%s`", 'password="%s', "password=%s\\nNEXT=1", "PASSWORD\t=\t%s", "//r.npmjs.org/:_authToken=%s",
    "\x1b[36mpassword\x1b[0m=\x1b[35m%s\x1b[0m", "ALTER USER bob WITH PASSWORD '%s'", '{"tokens": ["%s"]}',
    "passwords: ['%s', '%s']", 'token="Bearer %s"', "password: |\n  %s\nnext: 1", "password = \\\n    \"%s\"",
    "password=[%s]", "password=x%s<y>z",
    "pass\u200bword=%s", "password\0=%s", "p\u00adass\ufe0fword\u2060: %s", "pass\x1b[1mword\x1b[0m=%s", "\x1b]8;;x\x07to\x1b(Bken\x07=%s",
    "A=b\0PASSWORD=%s\0C=d", "max_\0TOKEN=%s", "Passwort: %s", "DB_KENNWORT=%s", "contrase\u00f1a: %s", "CONTRASE\u00d1A=%s",
    "mot de passe : %s", "senha=%s",
]  # fmt: skip


@pytest.mark.parametrize("notation", NOTATIONS)
def test_a_value_is_hidden_in_every_notation(scrubber: Scrubber, notation: str) -> None:
    scrubbed = scrubber.scrub(notation.replace("%s", VALUE).replace("%%", "%"))
    assert "tr0ub" not in scrubbed and "dor&3" not in scrubbed


def missed(scrubber: Scrubber, places: tuple[str, ...]) -> list[str]:
    """The texts in which a secret is left, of `ROUNDS` for each place."""
    found = []
    for place in places:
        for seed in range(ROUNDS):
            text, secrets = fill(place, random.Random(f"{place} {seed}"))
            scrubbed = scrubber.scrub(text)
            assert scrubber.scrub(scrubbed) == scrubbed, text
            if any(leaked(scrubbed, secret) for secret in secrets):
                found.append(text)
    return found


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_98_of_100_secrets_of_a_family_are_found_and_its_benign_twins_stay(scrubber: Scrubber, family: Family) -> None:
    assert len(missed(scrubber, family.secret)) <= 0.02 * ROUNDS * len(family.secret)
    assert [text for text in family.benign if scrubber.scrub(text) != text] == []


TOKEN_ENCODINGS: dict[str, Callable[[str], str]] = {
    "unicode escapes": as_unicode_escapes,
    "bytes escapes": as_bytes_escapes,
    "percent": as_percent,
    "HTML": as_entities,
    "hexadecimal": as_hex,
    "capital hexadecimal": lambda token: as_hex(token).upper(),
    "spaced hexadecimal": lambda token: token.encode().hex(" "),
    "hexadecimal with colons": lambda token: token.encode().hex(":"),
    "spaced": " ".join,
    "dashes": "-".join,
    "dots": ".".join,
    "base64": lambda token: base64.b64encode(token.encode()).decode(),
    "half in escapes": lambda token: token[: len(token) // 2] + as_unicode_escapes(token[len(token) // 2 :]),
}
PLACES = ("{T}", "got {T} here", '"{T}"', "x={T}", '{"note": "{T}"}')


@pytest.mark.parametrize("encoding", TOKEN_ENCODINGS)
def test_99_of_100_encoded_tokens_are_found_by_their_shape(scrubber: Scrubber, encoding: str) -> None:
    spell = TOKEN_ENCODINGS[encoding]
    families = sorted(TOKENS.keys() - SHAPELESS)
    left = []
    for family in families:
        token = make(TOKENS[family], random.Random(f"{family} {encoding}"))
        texts = [place.replace("{T}", spell(token)) for place in PLACES]
        left += [(family, text) for text in texts if spell(token[-10:]) in scrubber.scrub(text)]
    assert len(left) <= 0.01 * len(families) * len(PLACES), left


BENIGN = (
    # what is no value
    "token=$TOKEN", "token=${TOKEN}", "--token <token>", "password=********", "password: [REDACTED]", "token={token}",
    "token=%s", "password = getpass()", "token = get_token()", "self.token = token", "if token == '':",
    'api_key = os.environ["API_KEY"]', "def f(password: str, token: str = None) -> None:", "password=None",
    'password=""', "password: null", "token: string;", "tokens=512", "secrets: 3", "pass=10 fail=2",
    "invalid token: unexpected end of input", "Unexpected token } in JSON at position 3", "password is required",
    "secret not found", "missing key: name", "key: value", "cache key=user:123", "key=42", '"key": "name"',
    "Bearer authentication failed", "basic usage of the tool", "auth: basic", "token expired for user bob",
    "password policy: at least 8 characters", "key=550e8400-e29b-41d4-a716-446655440000", "keys=[a, b]",
    "authenticated user bob", "session started", "signature valid", 'accesskey="n"', "id-token: write",
    "\x1b[1mkey\x1b[0m: value", "zero\u200bwidth\ufe0f and \0 stay", "password\u200b is required", "Passwort falsch",
    # mappings and lists under a sensitive name that describe a secret, count, or refer to it
    '{"password": {"type": "string", "format": "password"}}', '{"properties": {"token": {"type": "string"}}}',
    '{"tokens": {"input": 12, "output": 4096}}', '{"usage": {"tokens": {"prompt": 12, "total": 14}}}', '{"credentials": {}}',
    '{"cookies": []}', '{"secret": {"name": "db", "namespace": "shop"}}', '{"credentials": {"type": "basic", "required": true}}',
    '{"password": null, "user": {"name": "bob"}}', "{'token': {'expires': 3600, 'type': 'bearer'}}", "tokens: {input: 12, output: 30}",
    "secret:\n  secretName: shop-tls\n  optional: true\n", "password:\n  min_length: 12\n  policy: strong\n", "tokens:\n  limit: 4096\n  used: 12\n",
    "cookie:\n  secure: true\n  path: /\n", '{\n  "token": {\n    "type": "string",\n    "ttl": 3600\n  }\n}',
    # code
    "token = get_token(request)", "password = getpass(\"Password: \")", "secret = os.environ[\"SHOP_SECRET\"]", "password = Field(default=None)",
    "token = tokens[0] + tokens[1]", "api_key = settings.api_key", "key = prefix + name", "password: Optional[str] = None",
    "credentials = load_credentials(\n    path,\n)", "token = self._next() if more else None", "assert token == \"\" + \"\"", "pass",
    "for token in tokens:\n    pass", "if password: {", "class Token(Base): pass", "token = sha256(data).hexdigest()", "api_key = None",
    # URLs
    "https://example.org/a/b@c", "https://example.org:8443/@bob/posts/42", "https://example.org/x?email=bob@example.org",
    "http://localhost:8080/path/to/@scope/package@1.2.3", "https://cdn.example.org/npm/react@18.2.0/umd/react.js", "postgres://db.example.org:5432/x",
    "git@github.com:acme/web.git", "ssh://git@github.com/acme/web.git", "https:\\/\\/example.org\\/a@b", "mailto:bob@example.org",
    "https%3A%2F%2Fexample.org%2Fa%40b", "see https://example.org, or write to bob@example.org", "http://[::1]:8080/a@b",
    # encodings
    "caf\\u00e9 and na\\u00efve", "100%25 sure", "/search?q=red%20shoes&lang=de", "a%2Fb%2Fc", "&#8217;s", "&amp; &lt;b&gt;", "\\x1b[31mred\\x1b[0m",
    "5d41402abc4b2a76b9719d911017c592", "48656c6c6f2c20776f726c642c20686f772061726520796f753f", "ab:cd:ef:01:23:45:67:89:ab:cd:ef:01:23:45:67:89",
    "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f", "a b c d e f g h i j k l m n o p q r s t", "t h e  q u i c k  b r o w n  f o x  j u m p s",
    "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8", "x-y-z", "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17", "+ - * / % = < > | & ! ? : ; , . ~ ^",
    # names that are words
    '{"pass": true, "fail": false}', '{"pass": 12, "fail": 3}', "pass: 12, fail: 3", "first pass: parse", "pass = 2", "pass 2 of 3",
    "api_key = \"${API_KEY}\"", "token = token", "db_password = db_password", "access_token = null",
)  # fmt: skip


@pytest.mark.parametrize("text", BENIGN)
def test_a_benign_counterpart_stays(scrubber: Scrubber, text: str) -> None:
    assert scrubber.scrub(text) == text


def test_only_the_value_goes(scrubber: Scrubber) -> None:
    assert scrubber.scrub(f"a=1 password={VALUE} b=2") == "a=1 password=<redacted> b=2"
    assert scrubber.scrub(f"https://x.io/?token={VALUE[:9]}&page=2") == "https://x.io/?token=<redacted>&page=2"
    assert scrubber.scrub(f"secret={VALUE},user=bob") == "secret=<redacted>,user=bob"
    assert scrubber.scrub(f"(token={VALUE})") == "(token=<redacted>)"
    assert scrubber.scrub("token=a1b2c3\nnext line") == "token=<redacted>\nnext line"


def test_a_mnemonic_goes_to_the_end_of_the_line(scrubber: Scrubber) -> None:
    text = "seed_phrase: gravity machine north sort system female\nnext: 1"
    assert scrubber.scrub(text) == "seed_phrase: <redacted>\nnext: 1"


def test_a_long_value_goes_whole(scrubber: Scrubber) -> None:
    value = "x1" * 50_000
    assert scrubber.scrub(f"token={value}") == "token=<redacted>"
    assert scrubber.scrub(f'token="{value}"') == 'token="<redacted>"'
