"""The client that openapi-python-client generated sends tagged structs, whose tags type checkers miss where they are forgotten."""

import sys

from generated import Client
from generated.api.shapes import shapes_area, shapes_swap
from generated.models import Circle, Pair, ShapesAreaBody, ShapesSwapBody, Square

client = Client(base_url=sys.argv[1])
print(f"area={shapes_area.sync(client=client, body=ShapesAreaBody(shape=Square(type_='square', a=2)))}")
swapped = shapes_swap.sync(client=client, body=ShapesSwapBody(pair=Pair(left=Circle(type_="circle", r=1))))
assert isinstance(swapped, Pair)
assert isinstance(swapped.left, Circle)
print(f"swap={swapped.left.r}")
try:
    Square(a=2)
except TypeError as exc:
    print(f"forgotten={'type_' in str(exc)}")
