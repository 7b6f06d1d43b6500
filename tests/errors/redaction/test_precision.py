"""Benign text stays as it is: at most one line in a thousand may change."""

from __future__ import annotations

import base64
import hashlib
import random
import string
import uuid
from collections.abc import Callable

import pytest

from discreet.errors.redaction import Scrubber

LINES_OF_A_KIND = 400

WORDS = (
    "the user opened a new session and then closed it again because key settings were missing from its profile while"
    " several workers waited for tokens to be counted by another process that had lost its connection to the queue"
    " after reading secret santa rules about passing cookies around every author of these notes was asked for comments"
).split()
HOSTS = ["example.com", "api.example.org", "cdn.acme.io", "localhost:8080", "10.0.0.12:9000"]
IDENTIFIERS = [
    "getUserByIdAndName", "HTTPResponseHandlerFactory", "max_tokens", "tokenizer", "primary_key", "cacheKey", "is_valid",
    "AbstractSingletonProxyFactoryBean", "TransactionAwarePersistenceManagerFactoryProxy2", "utf8_encode", "sha256sum",
    "org.springframework.web.servlet.DispatcherServlet", "k8s_worker_pool", "x86_64", "keyboard_event", "passed_count",
]  # fmt: skip


class Draw(random.Random):
    def words(self, low: int, high: int) -> str:
        return " ".join(self.choices(WORDS, k=self.randint(low, high)))

    def hex(self, digits: int) -> str:
        return "".join(self.choices("0123456789abcdef", k=digits))

    def uuid(self) -> str:
        made = str(uuid.UUID(int=self.getrandbits(128)))
        return self.choice([made, made.upper()])

    def stamp(self) -> str:
        return f"2026-{self.randint(1, 12):02}-{self.randint(1, 28):02}T{self.randint(0, 23):02}:12:33.{self.randint(0, 999):03}Z"

    def name(self) -> str:
        return self.choice(IDENTIFIERS)

    def url(self) -> str:
        parts = "/".join(
            self.choices(["v1", "users", "orders", "search", "items", str(self.randint(1, 9999)), "static"], k=3)
        )
        query = self.choice(["", "?page=2&sort=asc", "?q=red+shoes&limit=50", f"?id={self.uuid()}", "#top"])
        return f"{self.choice(['http', 'https'])}://{self.choice(HOSTS)}/{parts}{query}"

    def digest(self) -> str:
        raw = hashlib.sha256(self.randbytes(8)).digest()
        kinds = ["sha256:" + raw.hex(), "sha256-" + base64.b64encode(raw).decode(), "md5=" + self.hex(32),
                 "SHA256:" + base64.b64encode(raw).decode().rstrip("="), "h1:" + base64.b64encode(raw).decode(),
                 "checksum " + self.hex(64), "etag \"" + self.hex(32) + "\""]  # fmt: skip
        return self.choice(kinds)


KINDS: dict[str, Callable[[Draw], str]] = {
    "english": lambda d: d.words(6, 20).capitalize() + ".",
    "service log": lambda d: f"{d.stamp()} INFO [worker-{d.randint(1, 9)}] {d.name()} - {d.words(3, 9)}",
    "key=value": lambda d: f"level=info ts={d.stamp()} msg=\"{d.words(2, 6)}\" request_id={d.uuid()} n={d.randint(1, 9999)}",
    "json": lambda d: f'{{"level": "info", "time": {d.randint(10**9, 2 * 10**9)}, "msg": "{d.words(2, 6)}", "id": "{d.uuid()}"}}',
    "uuids": lambda d: f"{d.words(1, 3)} {d.uuid()} -> {d.uuid()} ok",
    "commits": lambda d: f"{d.hex(40)} {d.words(2, 6)} ({d.hex(7)})",
    "digests": lambda d: f"pulled image acme/web {d.digest()} in {d.randint(1, 99)} s",
    "urls": lambda d: f"fetched {d.url()} in {d.randint(1, 999)} ms",
    "access log": lambda d: f'10.1.2.{d.randint(1, 254)} - - [{d.stamp()}] "GET /api/v1/{d.randint(1, 99)} HTTP/1.1" 200 {d.randint(1, 99999)}',
    "kubernetes": lambda d: f"pod/web-{d.hex(10)}-{''.join(d.choices('bcdfghjklmnpqrstvwxz2456789', k=5))} scheduled on ip-10-0-0-{d.randint(1, 99)}",
    "code": lambda d: d.choice([
        f"def {d.choice(['get_token', 'check', 'load_key'])}(self, key: str, token: str = None) -> str:",
        "    if token is None or password == '':", "token = self.lexer.next_token()", "for key, value in items.items():",
        f"import {d.choice(['os.path', 'secrets', 'keyring'])}", f"assert {d.name()}(x) == {d.randint(1, 99)}",
        "self.session = session or Session()", f"return {d.name()}[key]", "const { token, key } = props;",
        "raise KeyError(key)", "public_key = load_pem_public_key(data)", "x = a / b  # ratio", "cache_key = (name, version)",
    ]),
    "parse errors": lambda d: d.choice([
        "SyntaxError: Unexpected token } in JSON at position 12", "invalid token: expected ',' or ']'", "unknown key: name",
        "duplicate key 'name' in object", "missing required key: id", "token 5 of 12 is not valid", "key not found: colour",
    ]),
    "counters": lambda d: f"prompt_tokens={d.randint(1, 9999)} completion_tokens={d.randint(1, 999)} max_tokens: 4096 keys=12",
    "versions": lambda d: f"using python/3.{d.randint(8, 14)} curl/7.68.0 node v20.{d.randint(1, 99)} text/html application/json",
    "identifiers": lambda d: f"{d.name()}: {d.name()} took {d.random():.3f} s, {d.name()}={d.randint(1, 9)}",
    "key presses": lambda d: f"key={d.choice(string.ascii_lowercase)} keyCode={d.randint(1, 99)} keyboard=us pass={d.randint(1, 9)}",
}  # fmt: skip


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber()


@pytest.mark.parametrize("kind", KINDS)
def test_benign_lines_of_a_kind_stay(scrubber: Scrubber, kind: str) -> None:
    draw = Draw(kind)
    changed = [line for _ in range(LINES_OF_A_KIND) if scrubber.scrub(line := KINDS[kind](draw)) != line]
    assert len(changed) <= 1, [(line, scrubber.scrub(line)) for line in changed[:3]]


def test_at_most_one_benign_line_in_a_thousand_changes(scrubber: Scrubber) -> None:
    draw = Draw(1)
    lines = [make(draw) for make in KINDS.values() for _ in range(LINES_OF_A_KIND)]
    changed = [line for line in lines if scrubber.scrub(line) != line]
    assert len(changed) <= len(lines) / 1000, changed[:3]


@pytest.mark.parametrize(
    "word", ["debug", "string", "one of", "us-east-1", "Ascending", "2026-01-01", "utf8mb4", "a" * 32]
)
def test_no_secret_is_found_in_plain_words(scrubber: Scrubber, word: str) -> None:
    assert not scrubber.finds_secret(word)


def test_a_secret_is_found_in_a_word_that_is_one(scrubber: Scrubber) -> None:
    draw = Draw(2)
    assert scrubber.finds_secret("gh" + "p_" + draw.hex(20))
    assert scrubber.finds_secret("x" * 8 + " token=" + draw.hex(12))
    scrubber.register("plain-looking")
    assert scrubber.finds_secret("plain-looking")
