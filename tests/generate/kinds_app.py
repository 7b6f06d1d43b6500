"""An app with an operation for every kind of type that an operation can have, and names that no language likes."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any, Generic, Literal, NamedTuple, Required, TypedDict, TypeVar

import anyio
from msgspec import Meta, Struct, defstruct

from discreet import Context, OperationError, Service

T = TypeVar("T")


class Color(enum.Enum):
    """A colour of the rainbow, more or less."""

    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Point(Struct, array_like=True, frozen=True):
    """A place."""

    x: float
    y: float = 0.0


class Pair(NamedTuple):
    name: str
    count: int = 1


class Cat(Struct, tag="cat"):
    """Meows."""

    lives: int = 9


class Dog(Struct, tag="dog"):
    name: str
    friends: list[Cat | Dog] = []


class Circle(Struct, tag=1, array_like=True):
    radius: float


class Square(Struct, tag=2, array_like=True):
    side: float
    name: str


class Tree(Struct, rename="camel"):
    r"""A tree, which may hold "trees" and a \ backslash, and even */ the end of a comment.

    For readers of this code.
    """

    node_name: str
    child_nodes: list[Tree] = []
    parent: Tree | None = None


class Page(Struct, Generic[T]):
    items: list[T]
    next: str | None = None


class Given(TypedDict, total=False):
    class_: Required[str]
    yes: bool


@dataclasses.dataclass
class Noted:
    a: int
    b: Annotated[str, Meta(max_length=5, description='Ends with a "quote"')] = 'x"y'


class Odd(Struct, rename={"from_": "from", "dash": "a-b", "list_": "list", "field_": "msgspec", "renamed": "x-y"}):
    from_: int
    dash: str
    list_: list[int]
    field_: dict[str, int]
    date: datetime.date
    renamed: list[int] = []
    since: datetime.date = datetime.date(2020, 1, 1)
    word: Literal["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"] = "one"


class NotThere(OperationError, code="NOT_THERE", http_status=404):
    """There is no such thing."""

    what: str
    near: list[Point] = []  # noqa: RUF012


class Busy(OperationError, code="BUSY", retryable=True):
    """Somebody else has it."""


class NotPermitted(
    OperationError,
    code="PERMISSION_ERROR",
    http_status=403,
    message='A message that goes on for quite some time, so that it "breaks" the line',
):
    path: str


app = Service("kinds")


@app.query()
def scalars(
    a: int,
    b: float,
    c: str,
    d: bool,
    e: None,
    f: bytes,
    g: decimal.Decimal,
    h: datetime.datetime,
    i: datetime.date,
    j: datetime.time,
    k: datetime.timedelta,
    l: uuid.UUID,  # noqa: E741
    m: Any,
) -> tuple[bytes, decimal.Decimal, datetime.datetime, datetime.date, datetime.time, datetime.timedelta, uuid.UUID, Any]:
    """Every scalar, and those back for which JSON has no type."""
    return (f, g, h, i, j, k, l, m)


@app.query()
def enums(color: Color, level: Level = Level.LOW, rights: Rights = Rights.READ) -> tuple[Color, Level]:
    return (color, level)


@app.query(name="list")
def arrays(
    point: Point, pair: Pair, triple: tuple[int, str, bool], none: tuple[()] = (), many: tuple[int, ...] = ()
) -> list[Point]:
    """Arrays of all sorts."""
    return [point, Point(pair.count, triple[0]), *map(Point, many)]


@app.query(errors=[NotThere, Busy, NotPermitted], scopes=["pets:read"], any_scope=["cats", "dogs"])
def pets(pet: Cat | Dog, shape: Circle | Square, alone: Cat | None = None) -> list[Cat | Dog]:
    """Pets, of which this description says a lot, so much that it has to be broken into several lines, at least two.

    For readers of this code.
    """
    if isinstance(pet, Dog):
        raise NotThere(what=pet.name, near=[Point(shape.side if isinstance(shape, Square) else shape.radius)])
    return [pet, Dog("Rex", [Cat(1)])]


@app.mutation(errors=[Busy])
def take(*, amount: Annotated[int, Meta(ge=1, le=9)] = 1, what: str) -> None:
    raise Busy()


@app.query()
def tree(tree: Tree, odd: Odd | None = None) -> Tree:
    return Tree(tree.node_name, [tree], None if odd is None else Tree(odd.dash))


@app.query()
def trees(noted: Noted, given: Given) -> Page[Tree]:
    return Page([Tree(noted.b), Tree(given["class_"])])


@app.query()
def hostile_names(
    result: int = 1,
    timeout: int = 2,
    type: Literal["a", 1, None] = "a",
    params: dict[Color, list[dict[str, tuple[int, str]]]] = {},  # noqa: B006
    UNSET: int = 5,  # noqa: N803
) -> Page[int]:
    return Page([result, timeout, len(params), UNSET], next=str(type))


@app.query()
def named(first: int, **others: int) -> dict[str, int]:
    return {"first": first, **others}


@app.query()
def anything(**others: Any) -> Any:
    return others


@app.query(name="1.nothing")
def nothing() -> None:
    """ "Nothing" is what this is about."""


@app.query()
def either(
    value: int | str | list[int] | bool | None, yes: Literal[True] = True
) -> int | str | list[int] | bool | None:
    return value


@app.query()
def tree_of_another_kind(tree: Annotated[defstruct("Tree", [("leaf", int)]), Meta(description="Another one.")]) -> int:  # type: ignore[valid-type]
    return int(tree.leaf)


@app.mutation(timeout=None)
async def sleep() -> None:
    await anyio.sleep_forever()


@app.subscription(errors=[NotThere])
async def count(to: Annotated[int, Meta(ge=0, description="How far.")]) -> AsyncIterator[Cat | Dog]:
    """Count, and fail behind 3."""
    for lives in range(1, min(to, 3) + 1):
        yield Cat(lives)
    if to > 3:
        raise NotThere(what="more")


@app.subscription()
async def forever() -> AsyncIterator[int]:
    number = 0
    while True:
        number += 1
        yield number


@app.query()
def traced(ctx: Context) -> dict[str, str]:
    """What travelled beside the params."""
    return dict(ctx.service_params)


@app.subscription()
async def traces(ctx: Context) -> AsyncIterator[dict[str, str]]:
    yield dict(ctx.service_params)


bare = Service("")


@bare.query()
def ping() -> Literal["pong"]:
    return "pong"
