"""A service whose params and results are tagged unions, and whose types have members with defaults."""

import msgspec

from discreet import Service

shapes = Service("shapes")


class Circle(msgspec.Struct, tag="circle"):
    r: float
    label: str = "no name"


class Square(msgspec.Struct, tag="square"):
    a: float


class Pair(msgspec.Struct):
    left: Circle | Square
    right: Circle | Square | None = None


@shapes.mutation
def area(shape: Circle | Square, scale: int = 1) -> float:
    """The area of one."""
    return scale * (shape.a**2 if isinstance(shape, Square) else 3 * shape.r**2)


@shapes.mutation
def swap(pair: Pair) -> Pair:
    """The other way round."""
    return Pair(pair.right or pair.left, pair.left)
