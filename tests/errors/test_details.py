"""Details are scrubbed along their declared type: texts lose their secrets, and the published schema still holds."""

from __future__ import annotations

import datetime
import enum
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import pytest

from discreet import Service
from discreet.daemon.operations.service import DeclarationError
from discreet.errors import DomainFailure, OperationError
from discreet.errors.exceptions import failure_of, hidden_facts
from discreet.errors.redaction import register, unregister

TOKEN = "gh" + "p_" + "a1B2" * 9


class State(enum.Enum):
    MISSING = "missing"
    EXPIRED = "expired credentials"


class Owner(msgspec.Struct):
    token: Literal["missing", "expired"]
    note: str = ""


class Person(msgspec.Struct, tag=True):
    credentials: State


class Robot(msgspec.Struct, tag=True):
    secret: int
    note: str


class Arm(msgspec.Struct, tag=True, array_like=True):
    secret: int
    note: str


class KeyRefused(OperationError, code="KEY_REFUSED"):
    """The key is refused."""

    api_key: Literal["missing", "expired"]
    token: State
    password: bool
    secret: int
    credential: float
    private_key: Decimal
    access_key: uuid.UUID
    cookie: datetime.datetime
    jwt: datetime.timedelta
    tokens: list[Literal["one", "two"]]
    secrets: dict[str, Literal["one", "two"]]
    passphrase: tuple[Literal["one"], int] | None
    owner: Owner
    holder: Person | Robot
    arm: Arm
    note: str


FACTS: dict[str, Any] = {
    "api_key": "missing",
    "token": State.EXPIRED,
    "password": True,
    "secret": 123456789012345,
    "credential": 0.5,
    "private_key": Decimal("1.25"),
    "access_key": uuid.UUID(int=2**127 + 987654321987654321),
    "cookie": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "jwt": datetime.timedelta(hours=1),
    "tokens": ["one", "two"],
    "secrets": {"a": "one"},
    "passphrase": ("one", 3),
    "owner": Owner("expired"),
    "holder": Person(State.MISSING),
    "arm": Arm(987654321987654, "plain"),
    "note": "plain",
}


def details(exc: OperationError) -> Any:
    failure = failure_of(exc, [type(exc)])
    assert isinstance(failure, DomainFailure) and failure.details is not None
    msgspec.json.decode(failure.details, type=exc.definition.details)  # the published schema holds
    return msgspec.json.decode(failure.details)


def test_closed_lists_numbers_and_formats_are_left_alone_whatever_their_names() -> None:
    assert details(KeyRefused(**FACTS)) == msgspec.json.decode(msgspec.json.encode(FACTS))


@pytest.mark.parametrize(
    "changed",
    [
        {"note": f"got {TOKEN}"},
        {"owner": Owner("missing", f"got {TOKEN}")},
        {"holder": Robot(5, f"got {TOKEN}")},
        {"arm": Arm(5, f"got {TOKEN}")},
        {"secrets": {TOKEN: "one"}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_texts_lose_their_secrets_wherever_they_stand(changed: dict[str, Any]) -> None:
    seen = details(KeyRefused(**{**FACTS, **changed}))
    assert TOKEN not in str(seen)
    assert "<redacted>" in str(seen)
    assert (seen["api_key"], seen["token"], seen["access_key"]) == (
        "missing",
        State.EXPIRED.value,
        str(FACTS["access_key"]),
    )


class Mixed(OperationError, code="MIXED"):
    """Something of several types."""

    anything: object
    either: str | int | Literal["auto"] | None
    raw: bytes
    short: Annotated[str, msgspec.Meta(max_length=48)] = ""
    tight: Annotated[str, msgspec.Meta(max_length=9)] = ""


def test_what_may_be_anything_is_scrubbed_as_text() -> None:
    seen = details(Mixed(anything={"password": "hunter22", "n": [TOKEN]}, either=TOKEN, raw=b"\x00" * 3))
    assert seen["anything"] == {"password": "<redacted>", "n": ["<redacted>"]}
    assert seen["either"] == "<redacted>"
    covered = details(Mixed(anything={"password": {"short": "hunter22"}}, either=1, raw=b""))
    assert covered["anything"] == {"password": {"short": "<redacted>"}}
    assert details(Mixed(anything=None, either="auto", raw=b""))["either"] == "auto"
    assert details(Mixed(anything=None, either=7, raw=b""))["either"] == 7


def test_bytes_stay_unless_they_hold_a_known_secret() -> None:
    raw = bytes(range(7, 250, 3))
    assert details(Mixed(anything=1, either=1, raw=raw))["raw"] == msgspec.to_builtins(raw)
    register("open sesame, please")
    try:
        with pytest.raises(msgspec.ValidationError):
            failure_of(Mixed(anything=1, either=1, raw=b"x open sesame, please x"), [Mixed])
    finally:
        unregister("open sesame, please")


def test_details_that_break_their_schema_without_a_secret_are_not_sent() -> None:
    assert details(Mixed(anything=1, either=1, raw=b"", short=TOKEN))["short"] == "<redacted>"
    register("abcd efgh")
    try:
        with pytest.raises(msgspec.ValidationError):
            failure_of(Mixed(anything=1, either=1, raw=b"", tight="abcd efgh"), [Mixed])
    finally:
        unregister("abcd efgh")


class Deep(msgspec.Struct):
    api_key: str | None
    below: list[Deep] = []


class Slots(msgspec.Struct, array_like=True):
    text: str


class Named(NamedTuple):
    text: str


@pytest.mark.parametrize(
    ("tp", "named"),
    [
        (Deep, "fact.api_key"),
        (list[Deep], "fact.api_key"),
        (dict[str, Deep | None], "fact.*.api_key"),
        (dict[Literal["password"], str], "fact.password"),
        (dict[str, dict[Literal["size", "password"], str]], "fact.*.password"),
        (dict[Literal["secrets"], dict[str, str]], "fact.secrets.*"),
    ],
)
def test_a_text_inside_a_fact_that_would_never_be_seen_is_named_by_its_place(tp: Any, named: str) -> None:
    assert hidden_facts(msgspec.defstruct("Details", [("fact", tp)])) == [named]


@pytest.mark.parametrize(
    "kind", [str, list[str], str | None, dict[str, Deep], tuple[int, str], Any, object, msgspec.Raw, Slots, Named]
)
def test_a_text_that_would_never_be_seen_is_refused_when_it_is_declared(kind: Any) -> None:
    class Refused(OperationError, code="REFUSED"):
        """No."""

        __annotations__ = {"secret_key": kind}

    assert hidden_facts(Refused.definition.details)
    service = Service("keys")
    with pytest.raises(DeclarationError, match=r"keys/check: Refused\.secret_key.*rename it.*Literal or Enum"):

        @service.query(errors=[Refused])
        async def check() -> int:
            return 1


def test_closed_lists_of_such_names_and_texts_of_other_names_may_be_declared() -> None:
    assert hidden_facts(KeyRefused.definition.details) == []
    assert hidden_facts(Mixed.definition.details) == []
    assert hidden_facts(Deep) == ["api_key"]
