"""Registered secrets are redacted in every encoding, whether from the environment or from handlers."""

from __future__ import annotations

import base64
import json
import random
import string
import threading
from collections.abc import Callable
from itertools import product
from typing import Any, SupportsIndex
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.errors import redaction
from discreet.errors.redaction import Scrubber
from discreet.errors.redaction.known_secrets import MAX_CHARACTERS, MAX_SECRET_LENGTH, MAX_SECRETS, KnownSecrets
from discreet.errors.redaction.scrubber import (
    LIFETIME_SECONDS,
    MAX_CALLER_CHARACTERS,
    MAX_CALLER_SECRET_LENGTH,
    MAX_CALLER_SECRETS,
)
from support.timing import Clock

SECRET = 'correct horse+battery/staple\\ "quoted" é%'


@pytest.fixture
def scrubber() -> Scrubber:
    made = Scrubber()
    made.register(SECRET)
    return made


@pytest.mark.parametrize(
    "encoded",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        repr(SECRET)[1:-1],
        repr(SECRET.encode())[2:-1],
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
    ],
)
def test_a_registered_secret_is_hidden_in_every_encoding(scrubber: Scrubber, encoded: str) -> None:
    assert scrubber.scrub(f"got {encoded} here") == "got <redacted> here"


ENCODINGS: dict[str, Callable[[str], str]] = {
    "hex": lambda s: s.encode().hex(),
    "hex, upper case": lambda s: s.encode().hex().upper(),
    "hex with spaces": lambda s: s.encode().hex(" "),
    "hex with colons": lambda s: s.encode().hex(":").upper(),
    "hex numbers": lambda s: ", ".join(f"0x{byte:02x}" for byte in s.encode()),
    "hex escapes": lambda s: "".join(f"\\x{byte:02x}" for byte in s.encode()),
    "escapes of JSON": lambda s: "".join(f"\\u{ord(char):04x}" for char in s),
    "escapes of JSON, upper case": lambda s: "".join(f"\\u{ord(char):04X}" for char in s),
    "escapes of JSON in JSON": lambda s: "".join(f"\\\\u{ord(char):04x}" for char in s),
    "one escape of JSON": lambda s: f"{s[:3]}\\u{ord(s[3]):04x}{s[4:]}",
    "escapes of JavaScript": lambda s: "".join(f"\\u{{{ord(char):x}}}" for char in s),
    "percent": lambda s: "".join(f"%{byte:02x}" for byte in s.encode()),
    "percent, upper case": lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
    "one percent": lambda s: f"{s[:3]}%{ord(s[3]):02X}{s[4:]}",
    "percent twice": lambda s: "".join(f"%25{byte:02X}" for byte in s.encode()),
    "HTML": lambda s: "".join(f"&#{ord(char)};" for char in s),
    "HTML in hex": lambda s: "".join(f"&#x{ord(char):x};" for char in s),
    "spaces": " ".join,
    "dashes": "-".join,
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings_that_spell_every_character_hide_nothing(encoding: str) -> None:
    draw = random.Random(encoding)
    for _ in range(3):
        secret = "".join(draw.choices(string.ascii_letters + string.digits + "!#$&*+-./:=?@_", k=draw.randint(9, 40)))
        scrubber = Scrubber()
        scrubber.register(secret)
        encoded = ENCODINGS[encoding](secret)
        assert scrubber.scrub(f"got ({encoded}) here") == "got (<redacted>) here", (secret, encoded)


def test_what_stands_around_an_escaped_secret_stays() -> None:
    scrubber = Scrubber()
    scrubber.register("open-sesame")
    text = "100%25 of \\u0022open%2Dsesame\\u0022 and open-sesam%65, %zz \\x"
    assert scrubber.scrub(text) == "100%25 of \\u0022<redacted>\\u0022 and <redacted>, %zz \\x"


def test_many_secrets_are_found_like_few() -> None:
    scrubber = Scrubber()
    for number in range(200):
        scrubber.register(f"secret-number-{number:06}")
    for number in (0, 77, 199):
        assert scrubber.scrub(f"x secret-number-{number:06} y") == "x <redacted> y"
        assert scrubber.scrub(f"x secret%2Dnumber-{number:06} y") == "x <redacted> y"
    assert scrubber.scrub("x secret-number-000200 y") == "x secret-number-000200 y"


def test_base64_hides_nothing_at_any_alignment() -> None:
    draw = random.Random(1)
    for before, after in product(("", "a", "ab", "abc"), ("", "z", "zz", "zzz")):
        secret = "".join(draw.choices(string.ascii_lowercase, k=draw.randint(9, 30)))
        scrubber = Scrubber()
        scrubber.register(secret)
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(f"{before}{secret}{after}".encode()).decode()
            assert "<redacted>" in scrubber.scrub(f"x {text}"), (before, after, encode)


def test_each_line_of_a_secret_is_one() -> None:
    scrubber = Scrubber()
    scrubber.register("first line\nsecond line\r\nok\n  third line  ")
    assert (
        scrubber.scrub("a first line b second line c third line d ok") == "a <redacted> b <redacted> c <redacted> d ok"
    )


def test_the_longest_secret_goes_first() -> None:
    scrubber = Scrubber()
    scrubber.register("abcdefgh")
    scrubber.register("abcdefgh-and-more")
    assert scrubber.scrub("x abcdefgh-and-more y") == "x <redacted> y"


@pytest.mark.parametrize(
    "value", ["short", "production", "localhost", "password", "undefined", "        ", "aaaaaaaaaaaa"]
)
def test_short_and_common_values_are_not_secrets(value: str) -> None:
    scrubber = Scrubber()
    scrubber.register(value)
    assert scrubber.scrub(f"in {value} here") == f"in {value} here"


@pytest.mark.parametrize("value", ["redacted", "<redacted>", "edacted>", "redacted> and <redacted"])
def test_a_secret_made_of_marks_does_no_harm(value: str) -> None:
    scrubber = Scrubber()
    scrubber.register(value)
    once = scrubber.scrub("token=abc123def <redacted> and <redacted>")
    assert scrubber.scrub(once) == once
    assert "abc123def" not in once


def test_a_forgotten_secret_is_shown_again() -> None:
    scrubber = Scrubber()
    scrubber.register("open sesame")
    scrubber.unregister("open sesame")
    scrubber.unregister("never known")
    assert scrubber.scrub("open sesame") == "open sesame"


def test_the_store_forgets_the_oldest_when_it_is_full() -> None:
    known = KnownSecrets()
    for number in range(MAX_SECRETS + 3):
        known.add(f"secret-number-{number:06}")
    assert len(known) == MAX_SECRETS
    assert known.scrub("secret-number-000002 secret-number-000003", lambda _: "*") == "secret-number-000002 *"


def test_the_characters_of_all_secrets_are_bounded() -> None:
    known = KnownSecrets()
    count = MAX_CHARACTERS // MAX_SECRET_LENGTH
    for number in range(count + 1):
        known.add(f"{number:08}" * (MAX_SECRET_LENGTH // 8))
    assert len(known) == count
    known.discard(f"{count:08}" * (MAX_SECRET_LENGTH // 8))
    known.add("short-secret")
    assert len(known) == count


def test_secrets_that_overlap_are_hidden_as_a_whole() -> None:
    known = KnownSecrets()
    for secret in ("abcdefgh1234", "gh1234567890-longer", "abcdefgh", "a1b2c3d4e5"):
        known.add(secret)
    assert known.scrub("x abcdefgh1234567890-longer a1b2c3d4e5a1b2c3d4e5", lambda _: "*") == "x * **"
    assert known.scrub("x %61bcdefgh%31234567890-longe%72 y", lambda _: "*") == "x * y"


class Counted(str):
    """A text that counts how many of its characters a search looks at."""

    __slots__ = ("looked_at",)

    def __new__(cls, text: str) -> Counted:
        made = super().__new__(cls, text)
        made.looked_at = 0
        return made

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = super().__getitem__(key)
        self.looked_at += len(found)
        return found

    def __contains__(self, part: object) -> bool:
        self.looked_at += len(self)
        return super().__contains__(part)  # type: ignore[operator]

    def find(self, *where: Any) -> int:
        self.looked_at += len(self)
        return super().find(*where)

    def split(self, *at: Any) -> list[str]:  # type: ignore[override]
        self.looked_at += len(self)
        return super().split(*at)


PIECES = st.text("ab-", min_size=1, max_size=12)
LOOKED_AT_PER_CHARACTER = 256


@example(piece=None, repeats=1_000, secrets=[("-" * 12, 12, "x")], number=100, tail="")
@example(piece=None, repeats=1_000, secrets=[("ab-" * 4, 300, "x")], number=100, tail="-")
@settings(max_examples=15, deadline=None)
@given(
    piece=PIECES | st.none(),
    repeats=st.integers(1, 1_000),
    secrets=st.lists(st.tuples(PIECES, st.integers(8, 300), PIECES), min_size=1, max_size=4),
    number=st.sampled_from([1, 100]),
    tail=st.text("ab-xyz", max_size=20),
)
def test_a_search_looks_at_each_character_a_bounded_number_of_times(
    piece: str | None, repeats: int, secrets: list[tuple[str, int, str]], number: int, tail: str
) -> None:
    known = KnownSecrets()
    added = [f"{(begin * size)[:size]}{end}{index}" for begin, size, end in secrets for index in range(number)]
    for secret in added:
        known.add(secret)
    text = Counted((piece or secrets[0][0]) * repeats + tail)
    scrubbed = known.scrub(text, lambda _: "*")
    assert text.looked_at <= LOOKED_AT_PER_CHARACTER * len(text) + 4 * 2**20
    assert not any(secret in scrubbed for secret in added if len(set(secret)) > 2)


@pytest.mark.parametrize("number", [1, 300])
def test_a_text_that_is_too_costly_to_search_is_cut(number: int) -> None:
    known = KnownSecrets()
    for index in range(number):
        known.add("-" * 1_000 + f"secret{index}")
    assert known.scrub("-" * 400 + "secret0", lambda _: "*") == "-" * 400 + "secret0"
    assert known.scrub("-" * 100_000 + "secret0", lambda _: "*") == "<cut>"


def test_known_secrets_are_not_shown_by_the_store() -> None:
    known = KnownSecrets()
    known.add("open sesame")
    assert repr(known) == "<KnownSecrets: 1>"


def test_variables_with_telling_names_give_their_values() -> None:
    scrubber = Scrubber()
    scrubber.load_environment(
        {
            "ACME_API_TOKEN": "zebra crossing",
            "DB_PASSWORD": "umbrella stand",
            "DATABASE_URL": "postgres://bob:marmalade-jar@db/x",
            "TOKEN_COUNT": "twelve tokens",
            "EDITOR": "some-editor",
            "DEBUG_TOKEN": "true",
        }
    )
    text = "zebra crossing, umbrella stand, marmalade-jar, twelve tokens, some-editor, true"
    assert scrubber.scrub(text) == "<redacted>, <redacted>, <redacted>, twelve tokens, some-editor, true"


def test_threads_may_register_while_others_scrub() -> None:
    scrubber = Scrubber()
    seen: list[str] = []

    def register(first: int) -> None:
        for number in range(first, first + 50):
            scrubber.register(f"thread-secret-{number:04}")
            seen.append(scrubber.scrub(f"x thread-secret-{number:04}"))

    threads = [threading.Thread(target=register, args=(first,)) for first in range(0, 200, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen == ["x <redacted>"] * 200


def test_bytes_are_registered_as_the_text_that_they_are() -> None:
    redaction.register(b"k7Qzp2Lw-of-bytes")  # type: ignore[arg-type]
    try:
        assert redaction.scrub("token is k7Qzp2Lw-of-bytes") == "token is <redacted>"
    finally:
        redaction.unregister("k7Qzp2Lw-of-bytes")


def test_directories_of_the_shell_are_no_passwords() -> None:
    scrubber = Scrubber()
    scrubber.load_environment({"PWD": "/srv/some-folder", "OLDPWD": "/srv/some-folder"})
    assert scrubber.scrub_secrets("/srv/some-folder/notes.txt") == ("/srv/some-folder/notes.txt", 0)


# -- credentials of callers: no caller can make the log unreadable or fill the memory with them ------------------------


def credential(number: int, length: int = 24) -> str:
    return "".join(random.Random(number).choices(string.ascii_letters + string.digits, k=length))


def long(number: int, length: int) -> str:
    """A credential of that length whose beginning looks random. Its shape alone does not give it away."""
    return (credential(number) + " and words" * length)[:length]


def shown(scrubber: Scrubber, text: str) -> bool:
    return text in scrubber.scrub(f"got {text} here")


@pytest.mark.parametrize(
    "word",
    ["request.failed", "timestamp", "level=warn", "method=fs/read", "files/read", "secretcredential", "2026-01-31"],
)
def test_a_credential_of_words_does_not_blind_the_log(word: str) -> None:
    scrubber = Scrubber()
    scrubber.register_caller_secret(word)
    assert scrubber.scrub(f"event {word} happened") == f"event {word} happened"


def test_a_random_credential_is_redacted_in_every_encoding() -> None:
    scrubber = Scrubber()
    scrubber.register_caller_secret(credential(1, 14))
    assert scrubber.scrub(f"got {credential(1, 14)} here") == "got <redacted> here"
    assert scrubber.scrub(f"got {credential(1, 14).encode().hex()} here") == "got <redacted> here"


def test_a_credential_is_forgotten_an_hour_after_its_last_use() -> None:
    clock = Clock()
    scrubber = Scrubber(clock=clock)
    scrubber.register_caller_secret(credential(1))
    scrubber.register_caller_secret(credential(2))
    clock.now += LIFETIME_SECONDS - 1
    scrubber.register_caller_secret(credential(1))
    clock.now += 2
    assert not shown(scrubber, credential(1))
    assert shown(scrubber, credential(2))


def test_the_number_of_credentials_is_bounded_and_the_least_recently_used_goes_first() -> None:
    scrubber = Scrubber()
    for number in range(MAX_CALLER_SECRETS):
        scrubber.register_caller_secret(credential(number))
    scrubber.register_caller_secret(credential(0))
    scrubber.register_caller_secret(credential(MAX_CALLER_SECRETS))
    assert not shown(scrubber, credential(0))
    assert shown(scrubber, credential(1))


def test_the_characters_of_all_credentials_are_bounded() -> None:
    scrubber = Scrubber()
    most = MAX_CALLER_CHARACTERS // MAX_CALLER_SECRET_LENGTH
    for number in range(most + 1):
        scrubber.register_caller_secret(long(number, MAX_CALLER_SECRET_LENGTH))
    assert [shown(scrubber, long(number, MAX_CALLER_SECRET_LENGTH)) for number in (0, 1, most)] == [True, False, False]
    scrubber.register_caller_secret(long(99, MAX_CALLER_SECRET_LENGTH + 1))
    assert shown(scrubber, long(99, MAX_CALLER_SECRET_LENGTH + 1))


def test_a_caller_who_sends_a_secret_of_the_program_can_not_make_it_forgotten() -> None:
    scrubber = Scrubber()
    scrubber.register(credential(0))
    scrubber.register_caller_secret(credential(0))
    for number in range(1, MAX_CALLER_SECRETS + 2):
        scrubber.register_caller_secret(credential(number))
    assert scrubber.scrub(f"got {credential(0)}") == "got <redacted>"
