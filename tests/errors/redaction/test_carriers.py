"""No notation lets more than three characters of a secret through, whatever its characters are; benign counterparts stay."""

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
from .families import SHAPELESS, TOKENS, make


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
def test_an_encoded_token_is_found_by_its_shape(scrubber: Scrubber, encoding: str) -> None:
    spell = TOKEN_ENCODINGS[encoding]
    for family in sorted(TOKENS.keys() - SHAPELESS):
        token = make(TOKENS[family], random.Random(f"{family} {encoding}"))
        for place in PLACES:
            scrubbed = scrubber.scrub(place.replace("{T}", spell(token)))
            assert spell(token[-10:]) not in scrubbed, (family, place)


BENIGN = (
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
