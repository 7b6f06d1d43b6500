"""How programs use the generated client: type checkers read it, and a test runs it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import assert_never
from uuid import UUID

from kinds_client import (
    KINDS_PETS_ERRORS,
    Busy,
    Cat,
    Client,
    Dog,
    KindsClient,
    KindsPetsError,
    NotThere,
    Odd,
    PermissionError2,
    Point,
    Tree,
)

from discreet.client import Peer


def said(error: KindsPetsError) -> str:
    match error:
        case NotThere():
            return f"no {error.what} near {[place[0] for place in error.near]}"
        case Busy():
            return "busy"
        case PermissionError2():
            return error.path
        case _:
            assert_never(error)


async def run(peer: Peer) -> list[object]:
    kinds = KindsClient(peer, timeout=20.0)
    found: list[object] = [await Client(peer).ping()]
    day, moment = dt.date(2026, 7, 14), dt.datetime(2026, 7, 14, 12, tzinfo=dt.UTC)
    clock, span, name = dt.time(12, 30), dt.timedelta(days=1, seconds=1.5), UUID(int=7)
    scalars = await kinds.scalars(
        1, 1.5, "c", True, None, b"\xff", Decimal("0.10"), moment, day, clock, span, name, {"m": []}
    )
    found.append(scalars == (b"\xff", Decimal("0.10"), moment, day, clock, span, name, {"m": []}))
    found.append(await kinds.enums("green", level=2))
    points: list[Point] = await kinds.list([1], ["n"], (3, "b", True), many=[4])
    found.append([tuple(point) for point in points])
    pets: list[Cat | Dog] = await kinds.pets(Cat(lives=7), [1, 1])
    found.append(pets)
    try:
        await kinds.pets(Dog(name="Rex"), [2, 2.5, "s"])
    except KINDS_PETS_ERRORS as error:
        found.append(said(error))
    odd = Odd(from_=1, a_b="dash", list=[1], msgspec_={}, date=day)
    tree: Tree = await kinds.tree(Tree(nodeName="root"), odd=odd)
    found.append((tree.nodeName, [child.nodeName for child in tree.childNodes], tree.parent and tree.parent.nodeName))
    page = await kinds.hostile_names(result_=7, UNSET_=9, params={"red": [{"a": (1, "b")}]})
    found += [page.items, page.next]
    found.append(await kinds.named(1, second=2))
    found.append(await kinds.either([1]))
    lives = [pet.lives async for pet in kinds.count(2) if isinstance(pet, Cat)]
    found.append(lives)
    return found
