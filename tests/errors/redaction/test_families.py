"""Recall over secrets that stand in sentences, commands, markup, settings, queries, headers and tables; benign twins stay."""

from __future__ import annotations

import random

import pytest

from discreet.errors.redaction import Scrubber

from .families import ANYWHERE, BENIGN_PATHS, FAMILIES, NAMED, PATHS, SHAPELESS, TOKENS, Family, fill, leaked, make

ROUNDS = 6
USERS = ("alice", "jdoe42")


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber()


def missed(scrubber: Scrubber, places: tuple[str, ...] | list[str], template: str = "") -> list[str]:
    """The texts in which a secret is left, of `ROUNDS` for each place."""
    found = []
    for place in places:
        for seed in range(ROUNDS):
            draw = random.Random(f"{template} {place} {seed}")
            text, secrets = fill(place, draw, make(template, draw))
            scrubbed = scrubber.scrub(text)
            if any(leaked(scrubbed, secret) for secret in secrets):
                found.append(text)
    return found


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_secrets_of_a_family_are_found(scrubber: Scrubber, family: Family) -> None:
    assert len(missed(scrubber, family.secret)) <= 0.03 * ROUNDS * len(family.secret)


def test_98_of_100_secrets_of_all_families_are_found(scrubber: Scrubber) -> None:
    places = [place for family in FAMILIES for place in family.secret]
    assert len(missed(scrubber, places)) <= 0.02 * ROUNDS * len(places)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_benign_twins_of_a_family_stay(scrubber: Scrubber, family: Family) -> None:
    assert [text for text in family.benign if scrubber.scrub(text) != text] == []


@pytest.mark.parametrize("family", TOKENS)
def test_a_token_is_found_under_its_name_and_by_its_shape(scrubber: Scrubber, family: str) -> None:
    places = NAMED if family in SHAPELESS else [*ANYWHERE, *NAMED]
    assert len(missed(scrubber, places, TOKENS[family])) <= 0.15 * ROUNDS * len(places)


def test_98_of_100_tokens_are_found(scrubber: Scrubber) -> None:
    found = total = 0
    for family, template in TOKENS.items():
        places = NAMED if family in SHAPELESS else [*ANYWHERE, *NAMED]
        total += ROUNDS * len(places)
        found += ROUNDS * len(places) - len(missed(scrubber, places, template))
    assert found >= 0.98 * total


def test_no_directory_of_a_path_is_left(scrubber: Scrubber) -> None:
    texts = [place.replace("{u}", user).replace("{{", "{").replace("}}", "}") for place in PATHS for user in USERS]
    left = [text for text in texts if any(user in scrubber.scrub(text) for user in USERS)]
    assert len(left) <= 0.03 * len(texts), left


def test_what_only_looks_like_a_path_stays(scrubber: Scrubber) -> None:
    assert [text for text in BENIGN_PATHS if scrubber.scrub(text) != text] == []


def test_a_second_round_changes_no_text_of_a_family(scrubber: Scrubber) -> None:
    for place in (place for family in FAMILIES for place in (*family.secret, *family.benign)):
        text, _ = fill(place, random.Random(place))
        once = scrubber.scrub(text)
        assert scrubber.scrub(once) == once, text
