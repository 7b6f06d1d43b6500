"""Signatures of agent cards: what was signed verifies, and nothing else does."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.card_keys import KINDS, private_pem, public_pem
from support.cards import cards, whole_agent

jwt = pytest.importorskip("jwt")

from discreet.a2a.card import AgentCard  # noqa: E402 - after what it needs
from discreet.a2a.signing import CardKeys, CardSigner, canonical_forms, read_signer  # noqa: E402
from discreet.agents.host import card_signer  # noqa: E402
from discreet.daemon.apps import AppError  # noqa: E402

CARD = cards(agent=whole_agent()).public("https://example.com/")


def signer_of(*kinds: str) -> CardSigner:
    return read_signer("".join(private_pem(kind) for kind in kinds))


def signed(*kinds: str) -> dict[str, Any]:
    """A card as it is received."""
    members: dict[str, Any] = json.loads(msgspec.json.encode(signer_of(*kinds).sign(CARD)))
    return members


@pytest.mark.parametrize("kind", KINDS)
def test_a_card_that_was_signed_is_verified_by_the_public_key_in_either_form(kind: str) -> None:
    card = signed(kind)
    assert CardKeys(public_pem(kind)).verify(card)
    assert CardKeys(signer_of(kind).public_keys.decode()).verify(card)
    others = [each for each in KINDS if each != kind]
    assert not any(CardKeys(public_pem(other)).verify(card) for other in others)


def test_each_key_of_a_file_signs_so_that_keys_can_be_replaced() -> None:
    card = signed("P-256", "RSA")
    assert CardKeys(public_pem("P-256")).verify(card) and CardKeys(public_pem("RSA")).verify(card)
    assert CardKeys(public_pem("Ed25519") + public_pem("RSA")).verify(card)


def test_public_keys_hold_nothing_private() -> None:
    keys = json.loads(signer_of(*KINDS).public_keys)["keys"]
    assert {name for key in keys for name in key} <= {"kty", "crv", "x", "y", "n", "e", "kid", "alg", "use"}
    assert len({key["kid"] for key in keys}) == len(KINDS)


def changed_places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something of a card can be changed: each member and item."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [each for name, item in items for each in ((*place, name), *changed_places(item, (*place, name)))]


@given(data=st.data())
def test_a_card_of_which_anything_was_changed_is_not_verified(data: st.DataObject) -> None:
    card = signed("P-256")
    signatures = card.pop("signatures")
    *way, last = data.draw(st.sampled_from(changed_places(card)))
    part: Any = card
    for name in way:
        part = part[name]
    part[last] = {"changed": True}
    assert not CardKeys(public_pem("P-256")).verify({**card, "signatures": signatures})


def with_header(card: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The card with a signature of the right key, whose protected header has these members."""
    form = canonical_forms(card)[0]
    compact = jwt.api_jws.encode(form, private_pem("P-256"), "ES256", {"kid": "k", **members})
    protected, _, signature = compact.split(".")
    return {**card, "signatures": [{"protected": protected, "signature": signature}]}


def encoded(text: bytes) -> str:
    return urlsafe_b64encode(text).decode().rstrip("=")


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyJWT warns of short keys
def test_neither_no_algorithm_nor_a_shared_secret_nor_a_critical_header_is_taken() -> None:
    card = signed("P-256")
    keys = CardKeys(public_pem("P-256"))
    assert keys.verify(with_header(card))
    assert not keys.verify(with_header(card, crit=["x"], x=1))
    none = {"protected": encoded(b'{"alg":"none"}'), "signature": ""}
    assert not keys.verify({**card, "signatures": [none]})
    form = canonical_forms(card)[0]
    protected = encoded(b'{"alg":"HS256"}')
    signing = f"{protected}.{encoded(form)}".encode()
    signature = encoded(hmac.digest(public_pem("P-256").encode(), signing, "sha256"))
    assert not keys.verify({**card, "signatures": [{"protected": protected, "signature": signature}]})
    with pytest.raises(ValueError, match="that can verify"):
        CardKeys(json.dumps({"keys": [{"kty": "oct", "k": encoded(b"s" * 32), "alg": "HS256"}]}))


@given(
    signatures=st.recursive(
        st.none() | st.text() | st.integers(),
        lambda part: st.lists(part) | st.dictionaries(st.sampled_from(["protected", "signature", "header"]), part),
    )
)
def test_whatever_stands_for_signatures_is_not_verified(signatures: Any) -> None:
    assert not CardKeys(public_pem("P-256")).verify({**signed("P-256"), "signatures": signatures})


def test_a_card_without_a_canonical_form_is_not_verified() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    card = signed("P-256")
    for params in (deep, 2**70):
        assert not CardKeys(public_pem("P-256")).verify({**card, "more": params})


def test_what_is_empty_makes_no_difference_as_for_other_signers() -> None:
    card = signed("P-256")
    assert CardKeys(public_pem("P-256")).verify({**card, "extra": "", "more": [], "skills": [*card["skills"], {}]})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "found 0"),
        ("no key", "found 0"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "can't be read"),
        ("é", "no ASCII"),
    ],
)
def test_a_file_without_keys_fails_at_the_start_in_one_line(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "key.pem"
    file.write_text(text, "utf-8")
    with pytest.raises(AppError, match=f"--card-key: .*{why}"):
        card_signer(str(file))


@pytest.mark.parametrize("kind", ["weak RSA", "P-224"])
def test_a_key_that_is_too_weak_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="expected a key on P-256"):
        signer_of(kind)
    with pytest.raises(ValueError, match="expected a JWK Set, or public keys"):
        CardKeys(public_pem(kind))


def test_a_weak_key_is_refused_in_a_set_too() -> None:
    (key,) = json.loads(signer_of("RSA").public_keys)["keys"]
    weak = jwt.algorithms.RSAAlgorithm.to_jwk(
        jwt.algorithms.RSAAlgorithm("").prepare_key(public_pem("weak RSA")), as_dict=True
    )
    with pytest.raises(ValueError, match="that can verify"):
        CardKeys(json.dumps({"keys": [{**weak, "alg": "RS256"}]}))
    assert CardKeys(json.dumps({"keys": [key, {**weak, "alg": "RS256"}]})).verify(signed("RSA"))
    with pytest.raises(ValueError, match="1 to 16 keys"):
        CardKeys(json.dumps({"keys": [key] * 17}))


@pytest.mark.parametrize(
    "text", ["", "{", '{"keys": 1}', '{"keys": []}', "x", "-----BEGIN PUBLIC KEY-----\nA\n-----END PUBLIC KEY-----"]
)
def test_public_keys_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a JWK Set, or public keys"):
        CardKeys(text)


def test_the_cards_of_a_daemon_are_signed_once_for_each_content() -> None:
    signer = signer_of("P-256")
    built = cards(agent=whole_agent(), sign=signer.sign)
    here, there = built.public("https://example.com/"), built.public("https://example.org/")
    assert isinstance(here, AgentCard) and here.signatures != there.signatures
    assert built.public("https://example.com/").signatures == here.signatures
