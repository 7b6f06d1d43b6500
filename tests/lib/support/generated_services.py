"""Services of generated operations: of every kind, with params, results and errors of many types."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, NamedTuple, Optional

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET, Meta

from discreet import OperationError, ServerEvent, Service


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Tree(msgspec.Struct):
    """A node and what is below it."""

    value: int
    below: Annotated[list[Tree], Meta(max_length=2)] = []


class Closed(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    first_name: str
    last_name: str | None = None


class Slots(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    a: int
    b: str = ""


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Pair(NamedTuple):
    left: int
    right: str


Other = msgspec.defstruct("Closed", [("another", Tree)])
"""A type of a name that another one has, too."""

LEAVES: tuple[Any, ...] = (
    str, int, float, bool, bytes, Any, Literal["a", "b"], Literal["a", 1], Color, decimal.Decimal, uuid.UUID, datetime.date,
    datetime.datetime, datetime.time, datetime.timedelta, Tree, Closed, Other, Slots, Pair, Cat | Dog, tuple[int, str],
    frozenset[int], int | str, Annotated[str, Meta(min_length=2, max_length=5)], Annotated[int, Meta(ge=3, le=300)],
    Annotated[str, Meta(pattern="^[a-z]{2,4}[0-9]$", description="A word.", examples=["ab1"])],
    Annotated[datetime.datetime, Meta(tz=True)],
)  # fmt: skip

WRAPPERS: tuple[Any, ...] = (lambda tp: list[tp], lambda tp: dict[str, tp], lambda tp: Optional[tp])  # noqa: UP045
TYPES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.builds(lambda wrap, tp: wrap(tp), st.sampled_from(WRAPPERS), inner),
    max_leaves=2,
)
NAMES = st.sampled_from(("alpha", "beta", "gamma", "delta"))
KINDS = st.sampled_from(("query", "mutation", "subscription"))
CODES = ("GONE", "BUSY", "LIMIT_REACHED", "NOT_HERE")


@st.composite
def errors(draw: st.DrawFn) -> list[type[OperationError]]:
    """Declared errors of distinct codes, with details or without."""
    found: list[type[OperationError]] = []
    for code in draw(st.lists(st.sampled_from(CODES), max_size=3, unique=True)):
        fields = draw(st.dictionaries(NAMES, TYPES, max_size=2))
        body: dict[str, Any] = {
            "__annotations__": fields,
            "__doc__": draw(st.sampled_from(("It is so.", "Two. Parts."))),
        }
        status = draw(st.sampled_from((400, 404, 409, 429, 500, 503)))
        message = draw(st.sampled_from((None, "Told to callers")))
        options = {"code": code, "http_status": status, "retryable": draw(st.booleans()), "message": message}
        found.append(type(OperationError)(code.title(), (OperationError,), body, **options))
    return found


@st.composite
def services(draw: st.DrawFn, namespace: str = "s") -> Service:
    """A service with up to four operations."""
    service = Service(namespace, description="Generated.", version="1.2.3")
    for name in draw(st.lists(NAMES, min_size=1, unique=True)):
        kind = draw(KINDS)
        options: dict[str, Any] = {"errors": draw(errors()), "description": draw(st.sampled_from(("", "Does it.")))}
        timeout = draw(st.sampled_from((UNSET, None, 1.5)))
        if timeout is not UNSET:
            options["timeout"] = timeout
        getattr(service, kind)(name=name, **options)(_handler(draw, kind))
    return service


def _handler(draw: st.DrawFn, kind: str) -> Any:
    params = draw(st.dictionaries(NAMES, TYPES, max_size=3))
    default = draw(st.booleans())
    written = ", ".join(f"{name}=None" if default else name for name in params)
    returns = draw(TYPES | st.none())
    if kind == "subscription":
        event = draw(TYPES)
        returns = AsyncIterator[ServerEvent[event]] if draw(st.booleans()) else AsyncIterator[event]  # type: ignore[valid-type]
    scope: dict[str, Any] = {}
    body = "    yield None\n" if kind == "subscription" else "    return None\n"
    exec(f"async def handler({written}):\n{body}", scope)
    handler = scope["handler"]
    hints = {name: Optional[tp] if default else tp for name, tp in params.items()}  # noqa: UP045
    handler.__annotations__ = {**hints, "return": returns}
    return handler
