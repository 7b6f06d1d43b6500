"""The echoes that operations_bench.py calls: a struct in and out, checked on both sides."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from discreet import Service


class Echo(msgspec.Struct):
    text: str
    count: Annotated[int, Meta(ge=0)]
    tags: list[str]


service = Service("bench")


@service.query(inline=True)
def echo_inline(text: str, count: Annotated[int, Meta(ge=0)], tags: list[str]) -> Echo:
    return Echo(text, count, tags)


@service.query
async def echo(text: str, count: Annotated[int, Meta(ge=0)], tags: list[str]) -> Echo:
    return Echo(text, count, tags)
