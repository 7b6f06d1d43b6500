"""A service of two hundred operations: each type that params and results may have, in each place where it may stand."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from discreet import OperationError, ServerEvent, Service


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Point(msgspec.Struct):
    """A place."""

    x: int
    y: Annotated[int, Meta(ge=-1000, le=1000)] = 0


class Closed(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    first_name: str
    last_name: str | None = None


class Tree(msgspec.Struct):
    value: int
    below: Annotated[list[Tree], Meta(max_length=2)] = []


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


TYPES: dict[str, Any] = {
    "text": str,
    "short_text": Annotated[str, Meta(min_length=2, max_length=5)],
    "patterned": Annotated[str, Meta(pattern="^[a-z]{2,4}[0-9]$")],
    "whole": int,
    "bounded": Annotated[int, Meta(ge=3, le=300)],
    "stepped": Annotated[int, Meta(multiple_of=5)],
    "fraction": float,
    "truth": bool,
    "number_or_text": int | str,
    "choice": Literal["a", "b"],
    "mixed_choice": Literal["a", 1],
    "color": Color,
    "size": Size,
    "data": bytes,
    "exact": decimal.Decimal,
    "key": uuid.UUID,
    "day": datetime.date,
    "moment": datetime.datetime,
    "zoned": Annotated[datetime.datetime, Meta(tz=True)],
    "clock": datetime.time,
    "span": datetime.timedelta,
    "point": Point,
    "closed": Closed,
    "tree": Tree,
    "slots": Slots,
    "pair": Pair,
    "animal": Cat | Dog,
    "two": tuple[int, str],
    "several": frozenset[int],
    "table": dict[str, int],
    "numbered_table": dict[int, bool],
    "anything": Any,
}


class Refused(OperationError, code="REFUSED", http_status=409):
    """It was refused."""

    why: Literal["because"]


class Later(OperationError, code="LATER", http_status=409, retryable=True):
    """It may be tried later."""

    retryAfterMs: int = 0  # noqa: N815


service = Service("all", description="Everything that an operation may be.", version="1.0.0")


def declare(name: str, kind: str, handler: Callable[..., Any], **annotations: Any) -> None:
    handler.__annotations__ = annotations
    getattr(service, kind)(name=name, description=f"Gives {name} back.")(handler)


def optional(tp: Any) -> Any:
    return tp | None


for name, tp in TYPES.items():
    declare(name, "query", lambda value: value, value=tp, **{"return": tp})
    declare(f"{name}_or_none", "query", lambda value=None: value, value=optional(tp), **{"return": optional(tp)})
    declare(f"{name}s", "query", lambda values: values, values=list[tp], **{"return": list[tp]})
    declare(f"{name}_by_name", "mutation", lambda **values: values, values=tp, **{"return": dict[str, tp]})
    holder = msgspec.defstruct(f"Holder_of_{name}", [("id", int), ("value", tp), ("also", list[tp] | None, None)])
    declare(f"{name}_held", "mutation", lambda holder: holder, holder=holder, **{"return": holder})

    async def whole(params: Any, /) -> Any:
        yield params

    declare(f"{name}_stream", "subscription", whole, params=holder, **{"return": AsyncIterator[holder]})


@service.query(errors=[Refused, Later], etag=True)
def refuse(why: Literal["because", "later", "not"]) -> str:
    """Fail in one of two ways, or not."""
    match why:
        case "because":
            raise Refused(why=why)
        case "later":
            raise Later(retryAfterMs=1500)
        case _:
            return why


@service.mutation(errors=[Refused])
def nothing(really: bool = False) -> None:
    """Do nothing."""
    if really:
        raise Refused(why="because")


@service.notification()
def hear(text: str) -> None:
    """Take it."""


@service.subscription()
async def count(until: Annotated[int, Meta(ge=0, le=5)]) -> AsyncIterator[ServerEvent[int]]:
    """Count."""
    for number in range(1, until + 1):
        yield ServerEvent(number, id=number)


@service.query()
def ping() -> str:
    """Answer."""
    return "pong"


@service.query(visibility="internal")
def hidden() -> None: ...


for number in range(200 - len(service.operations) + 1):
    declare(
        f"more_{number}",
        "query",
        lambda first, second=0: [first] * second,
        first=str,
        second=Annotated[int, Meta(ge=0, le=9)],
        **{"return": list[str]},
    )
