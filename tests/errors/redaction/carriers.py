"""Secrets of every alphabet in every notation that carries one: the product of two tables.

A carrier is a text with the secret missing, and says how the notation spells the secret. Its benign counterpart is the same
text with a value that is no secret.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterator
from html import escape
from typing import NamedTuple
from urllib.parse import quote

LONGEST_LEFT = 3
"""Characters of a secret that may be left in a row: more would help to guess it."""

URL_SPECIALS = "@/:#?&%+=!$,;*()[]|^~"
"""What people put into the password of a URL without encoding it, although half of it ends the user info."""

QUOTED_SPECIALS = URL_SPECIALS + " {}<>`"


class Carrier(NamedTuple):
    name: str
    text: str
    """`{S}` stands for the secret as the notation spells it, `{A}` and `{B}` for its halves."""
    spell: Callable[[str], str] = str
    specials: str = ""
    """Characters that may stand within the secret."""
    words: bool = False
    """Whether the secret may also be a word without digits."""


def halves(secret: str) -> tuple[str, str]:
    return secret[: len(secret) // 2], secret[len(secret) // 2 :]


def as_json(secret: str) -> str:
    return json.dumps(secret)[1:-1]


def with_escaped_slashes(secret: str) -> str:
    return as_json(secret).replace("/", "\\/")


def as_unicode_escapes(secret: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in secret)


def as_bytes_escapes(secret: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in secret.encode())


def as_percent(secret: str) -> str:
    return "".join(f"%{byte:02X}" for byte in secret.encode())


def as_entities(secret: str) -> str:
    return "".join(f"&#{ord(char)};" for char in secret)


def as_hex(secret: str) -> str:
    return secret.encode().hex()


def percent_encoded(secret: str) -> str:
    return quote(secret, safe="")


URLS = [
    Carrier(f"{scheme} {name}", text.replace("SCHEME", scheme), specials=URL_SPECIALS)
    for scheme in ("postgres", "mongodb+srv", "https")
    for name, text in {
        "bare": "SCHEME://svc:{S}@db.example.org/app",
        "port": "SCHEME://svc:{S}@db.example.org:5432/app",
        "no path": "connect SCHEME://svc:{S}@db.example.org failed",
        "single label": "SCHEME://svc:{S}@cache:6379/0",
        "address": "SCHEME://svc:{S}@10.1.2.3:5432/app?sslmode=require",
        "quoted": 'dial "SCHEME://svc:{S}@db.example.org/app": timeout',
        "in a setting": "DATABASE_URL=SCHEME://svc:{S}@db.example.org/app",
        "in JSON": '{"url": "SCHEME://svc:{S}@db.example.org/app"}',
        "no user": "SCHEME://:{S}@db.example.org:6379/0",
        "brackets": "(SCHEME://svc:{S}@db.example.org/app)",
        "in prose": "cannot reach SCHEME://svc:{S}@db.example.org, trying again",
    }.items()
]
ENCODED_URLS = [
    Carrier("URL in JSON with escaped slashes", '{"url":"https:\\/\\/svc:{S}@db.example.org\\/app"}', with_escaped_slashes,
            "@/:#?&%+=!$,;"),
    Carrier("URL in JSON in JSON", '"{\\"url\\":\\"https:\\\\/\\\\/svc:{S}@db.example.org\\\\/app\\"}"', specials=":#+=!$,;"),
    Carrier("URL with unicode escapes", '"https:\\u002f\\u002fsvc:{S}@db.example.org/app"', specials=":#+=!$"),
    Carrier("URL, percent-encoded password", "postgres://svc:{S}@db.example.org/app", percent_encoded, URL_SPECIALS),
    Carrier("percent-encoded URL", "?next=https%3A%2F%2Fsvc%3A{S}%40db.example.org%2Fapp", percent_encoded, "@/:#+=!$"),
    Carrier("URL with token for a user", "https://{S}@git.example.org/acme/app.git"),
    Carrier("JDBC", "jdbc:postgresql://svc:{S}@db.example.org/app", specials=":#+=!$/@"),
    Carrier("repr of a URL", "URL('postgres://svc:{S}@db.example.org/app')", specials=URL_SPECIALS),
    Carrier("HTML", "<a href=\"https://svc:{S}@db.example.org/\">x</a>", escape, "@/:#+=!$&"),
]  # fmt: skip
JSON = [
    Carrier(f"JSON {name}", text, as_json, QUOTED_SPECIALS + "\"'\\", words)
    for name, words, text in (
        ("flat", True, '{"user": "bob", "password": "{S}"}'),
        ("compact", True, '{"user":"bob","password":"{S}"}'),
        ("pass", True, '{"user": "svc", "pass": "{S}"}'),
        ("pass first", True, '{"pass":"{S}","username":"svc"}'),
        ("pwd", True, '{"pwd": "{S}"}'),
        ("nested value", True, '{"password": {"v": "{S}"}}'),
        ("nested twice", True, '{"password": {"a": {"b": "{S}"}}}'),
        ("nested compact", True, '{"password":{"v":"{S}"},"user":"bob"}'),
        ("list", True, '{"passwords": ["{S}"]}'),
        ("second of a list", True, '{"passwords": ["aaa", "{S}"]}'),
        ("list of mappings", True, '{"secrets": [{"v": "{S}"}]}'),
        ("credentials", True, '{"credentials": {"user": "svc", "value": "{S}"}}'),
        ("credentials of a host", True, '{"host": "db", "credentials": {"login": "svc", "data": ["{S}"]}}'),
        ("pair", True, '{"name": "password", "value": "{S}"}'),
        ("pretty", True, '{\n  "user": "bob",\n  "password": "{S}"\n}'),
        ("pretty nested", True, '{\n  "password": {\n    "v": "{S}"\n  }\n}'),
        ("pretty list", True, '{\n  "passwords": [\n    "{S}"\n  ]\n}'),
        ("in a sentence", True, 'refused {"password": {"v": "{S}"}} of bob'),
    )
]
JSON_IN_JSON = [
    Carrier("JSON in JSON", '{"body": "{\\"password\\": \\"{S}\\"}"}', specials="@/:#?&%+=!$,;*()|^~ "),
    Carrier("nested JSON in JSON", '{"body": "{\\"password\\": {\\"v\\": \\"{S}\\"}}"}', specials="@/:#?&%+=!$;*()|^~ "),
    Carrier("JSON in JSON in JSON", '"{\\"body\\": \\"{\\\\\\"password\\\\\\": \\\\\\"{S}\\\\\\"}\\"}"', specials="@/:#?&%+=!$,;*()|^~ "),
]  # fmt: skip
SETTINGS = [
    Carrier("INI", "[api]\napi_key = {S}\nuser = bob", specials="@/:?&%+=!$*()|^~", words=True),
    Carrier("INI, one line", "api_key = {S}", specials="@/:?&%+=!$*()|^~", words=True),
    Carrier("INI, secret", "client_secret = {S}", specials="@/:?&%+=!$*()|^~", words=True),
    Carrier("INI, two words", "api_key = {A} {B}"),
    Carrier("INI, quoted", 'api_key = "{S}"', specials=URL_SPECIALS, words=True),
    Carrier("dotenv", "API_KEY={S}", specials="@/:?&%+=!$*()|^~", words=True),
    Carrier("properties", "spring.datasource.password={S}", specials="@/:?&%+=!$*()|^~#", words=True),
    Carrier("YAML", "db:\n  password: {S}\n  user: bob", specials="@/?&%+=!$*()|^~", words=True),
    Carrier("YAML, quoted", "password: '{S}'", specials=URL_SPECIALS, words=True),
    Carrier("YAML, nested", "password:\n  v: {S}\nuser: bob", specials="@/?&%+=!$*()|^~"),
    Carrier("YAML, nested, quoted", 'credentials:\n  user: svc\n  v: "{S}"\nhost: db', specials="@/?&%+=!$*()|^~"),
    Carrier("YAML, list", "passwords:\n  - {S}\nuser: bob", specials="@/?&%+=!$*()|^~"),
    Carrier("YAML, flow", "password: {v: {S}}", specials="@/?&%+=!$*|^~"),
    Carrier("YAML, flow, quoted", "password: {v: '{S}'}", specials="@/?&%+=!$*()|^~"),
    Carrier("TOML inline table", "password = { v = \"{S}\" }", specials="@/?&%+=!$*()|^~"),
]  # fmt: skip
SHELL = [
    Carrier("export", "export DB_PASSWORD={S}", specials="@/:?%+=!^~", words=True),
    Carrier("export, quoted", "export DB_PASSWORD='{S}'", specials=QUOTED_SPECIALS, words=True),
    Carrier("flag", "tool --password {S} --verbose", specials="@/:?%+=!^~", words=True),
    Carrier("flag with =", "tool --password={S} --verbose", specials="@/:?%+=!^~", words=True),
    Carrier("flag, quoted", 'tool --password "{S}" --verbose', specials=URL_SPECIALS, words=True),
    Carrier("argument list", "['tool', '--password', '{S}', '-v']", specials=URL_SPECIALS, words=True),
    Carrier("curl", "curl -u svc:{S} https://api.example.org/", specials="@/:?%+=!^~"),
    Carrier("curl, quoted", "curl -u 'svc:{S}' https://api.example.org/", specials=QUOTED_SPECIALS, words=True),
    Carrier("mysql", "mysql -usvc -p{S} app", specials="@/:?%+=!^~"),
    Carrier("environment of a command", "PGPASSWORD={S} psql -h db", specials="@/:?%+=!^~", words=True),
]  # fmt: skip
HEADERS = [
    Carrier("header", "X-Api-Key: {S}", specials="@/:?%+=!^~", words=True),
    Carrier("bearer", "Authorization: Bearer {S}", specials="/+=~"),
    Carrier("bearer in JSON", '{"headers": {"Authorization": "Bearer {S}"}}', specials="/+=~"),
    Carrier("bearer in JSON, list", '{"Authorization": ["Bearer {S}"]}', specials="/+=~"),
    Carrier("cookie", "Cookie: theme=dark; sid={S}", specials="/+=!%"),
    Carrier("query", "GET /x?api_key={S}&page=2 HTTP/1.1", percent_encoded, "@/:#?&%+=!"),
    Carrier("query of a URL", "https://api.example.org/x?access_token={S}&page=2", percent_encoded, "@/:#?&%+=!"),
    Carrier("fragment of a URL", "https://api.example.org/cb#access_token={S}&state=x", percent_encoded, "@/:#?&%+=!"),
    Carrier("form", "grant_type=password&username=svc&password={S}", percent_encoded, "@/:#?&%+=!", True),
]  # fmt: skip
SQL = [
    Carrier("CREATE USER", "CREATE USER svc IDENTIFIED BY '{S}'", specials=URL_SPECIALS, words=True),
    Carrier("ALTER ROLE", "ALTER ROLE svc WITH PASSWORD '{S}'", specials=URL_SPECIALS, words=True),
    Carrier("UPDATE", "UPDATE users SET password = '{S}' WHERE id = 1", specials=URL_SPECIALS, words=True),
    Carrier("INSERT", "INSERT INTO users (name, password) VALUES ('bob', '{S}')", specials=URL_SPECIALS, words=True),
    Carrier("connection string", "Server=db;User Id=svc;Password={S};Encrypt=yes", specials="@/:#?&%+!$*()|^~"),
    Carrier("keywords", "host=db user=svc password={S} dbname=app", specials="@/:?%+!^~", words=True),
]  # fmt: skip
CODE = [
    Carrier("repr of a mapping", "{'user': 'bob', 'password': '{S}'}", lambda secret: repr(secret)[1:-1], URL_SPECIALS, True),
    Carrier("repr of a nested mapping", "{'password': {'v': '{S}'}}", specials="@/:#?&%+=!$;*()|^~", words=True),
    Carrier("repr of bytes", "{b'password': b'{S}'}", specials=URL_SPECIALS, words=True),
    Carrier("repr of a record", "Config(user='bob', password='{S}', port=5432)", specials=URL_SPECIALS, words=True),
    Carrier("repr of a record in a record", "Config(password=Secret(value='{S}'), port=5432)", specials="@/:#?&%+=!$;*|^~"),
    Carrier("repr of a record with a list", "Config(passwords=['{S}'], port=5432)", specials="@/:#?&%+=!$;*()|^~"),
    Carrier("Rust", 'Config { user: "bob", password: "{S}", port: 5432 }', specials=URL_SPECIALS, words=True),
    Carrier("Rust, nested", 'Config { password: Secret("{S}"), port: 5432 }', specials="@/:#?&%+=!$;*|^~"),
    Carrier("Rust, optional", 'Config { password: Some("{S}") }', specials="@/:#?&%+=!$;*|^~"),
    Carrier("Go", "{User:bob Password:{S} Port:5432}", specials="@/?%+!^~"),
    Carrier("call", "connect(password='{S}')", specials=URL_SPECIALS, words=True),
    Carrier("XML", "<password>{S}</password>", escape, "@/:#?%+=!$,;*()|^~", True),
    Carrier("XML, nested", "<password><v>{S}</v></password>", escape, "@/:#?%+=!$,;*()|^~"),
]  # fmt: skip
CONCATENATIONS = [
    Carrier(f"concatenation {name}", text, specials="@/:#?&%=!*^~")
    for name, text in (
        ("+", "password = '{A}' + '{B}'"),
        ("+ without spaces", "password='{A}'+'{B}'"),
        ("+ in double quotes", 'password = "{A}" + "{B}"'),
        ("of a mapping", "{'password': '{A}' + '{B}', 'user': 'bob'}"),
        ("Lua", 'password = "{A}" .. "{B}"'),
        ("PHP", "$password = '{A}' . '{B}';"),
        ("SQL", "password = '{A}' || '{B}'"),
        ("Visual Basic", 'password = "{A}" & "{B}"'),
        ("Perl 6", "password = '{A}' ~ '{B}'"),
        ("side by side", 'password = "{A}" "{B}"'),
        ("without spaces", "password='{A}''{B}'"),
        ("in brackets", "password = ('{A}' + '{B}')"),
        ("side by side, in brackets", "password = ('{A}' '{B}')"),
        ("over a line end", "password = '{A}' + \\\n    '{B}'"),
        ("over a line end in brackets", "password = (\n    '{A}'\n    '{B}'\n)"),
        ("with + over a line end in brackets", "password = (\n    '{A}' +\n    '{B}'\n)"),
        ("with + at the end of the line", "String password = \"{A}\" +\n    \"{B}\";"),
        ("with + on the next line", "String password = \"{A}\"\n    + \"{B}\";"),
        ("of f-strings", "password = f'{A}' + f'{B}'"),
        ("as an argument", "connect(password='{A}' + '{B}', user='bob')"),
        ("of a flag", "--password='{A}'\"{B}\""),
        ("value on the next line", "password = \\\n    '{A}{B}'"),
        ("value in brackets on the next line", "password = (\n    '{A}{B}'\n)"),
        ("value after = on the next line", "password =\n    \"{A}{B}\""),
    )
]  # fmt: skip
ENCODINGS = [
    Carrier(f"{name} {encoding}", text, spell)
    for encoding, spell in {
        "in unicode escapes": as_unicode_escapes,
        "in byte escapes": as_bytes_escapes,
        "percent-encoded": as_percent,
        "in HTML": as_entities,
        "in hexadecimal": as_hex,
        "spaced": " ".join,
    }.items()
    for name, text in {
        "JSON": '{"password": "{S}"}',
        "setting": "password = {S}",
        "quoted setting": "password = '{S}'",
        "YAML": "password: {S}",
    }.items()
]
CARRIERS = [
    *URLS, *ENCODED_URLS, *JSON, *JSON_IN_JSON, *SETTINGS, *SHELL, *HEADERS, *SQL, *CODE, *CONCATENATIONS, *ENCODINGS,
]  # fmt: skip

WORDS = ("Willow-Hollow", "opensesame", "correcthorse")


def secrets(carrier: Carrier, seed: int = 0) -> Iterator[str]:
    """Passwords of letters and digits, one with each character that may stand within, and words."""
    draw = random.Random(f"{carrier.name} {seed}")

    def part(length: int) -> str:
        letters = "".join(draw.choices(string.ascii_letters, k=length - 1))
        return letters[:2] + draw.choice(string.digits) + letters[2:]

    yield part(12)
    yield "Willow-Hollow-86"
    for special in carrier.specials:
        yield part(6) + special + part(6)
        yield part(5) + special + part(4) + draw.choice(carrier.specials) + part(5)
    if carrier.words:
        yield from WORDS


def filled(carrier: Carrier, secret: str) -> str:
    first, second = halves(secret)
    text = carrier.text.replace("{S}", carrier.spell(secret))
    return text.replace("{A}", carrier.spell(first)).replace("{B}", carrier.spell(second))


def longest_left(carrier: Carrier, secret: str, scrubbed: str) -> str:
    """The longest part of the secret that is left, plain or as the notation spells it."""
    longest = ""
    for first in range(len(secret)):
        for last in range(first + len(longest) + 1, len(secret) + 1):
            part = secret[first:last]
            spelled = carrier.spell(part)
            if part in scrubbed or spelled in scrubbed or part in scrubbed.replace("\\/", "/"):
                longest = part
            else:
                break
    return longest
