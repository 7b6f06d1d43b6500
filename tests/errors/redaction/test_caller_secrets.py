"""The credentials of callers are redacted, but no caller can make the log unreadable or fill the memory with them."""

from __future__ import annotations

import random
import string

import pytest

from discreet.errors.redaction import Scrubber
from discreet.errors.redaction.scrubber import (
    LIFETIME_SECONDS,
    MAX_CALLER_CHARACTERS,
    MAX_CALLER_SECRET_LENGTH,
    MAX_CALLER_SECRETS,
)
from support.timing import Clock


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
