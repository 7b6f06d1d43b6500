"""The server that `stdio_bench.py` measures: `echo` and `sleep`, with `echo` in each way to run a handler.

`./echo.py:inline`, `./echo.py:coroutine` and `./echo.py:thread` are three apps. `./echo.py:checked` declares the types of what
`inline` takes as it comes. `./echo.py:registered_10` and the like have so many operations, `echo` among them.
"""

from typing import Any

import msgspec

from discreet import Service

inline, coroutine, thread, checked = Service(""), Service(""), Service(""), Service("")


class Position(msgspec.Struct):
    line: int
    character: int


class Echoed(msgspec.Struct):
    seq: int
    uri: str
    position: Position
    text: str


async def sleep(ms: float) -> dict[str, Any]:
    import anyio  # late: the first reply should not pay for it

    await anyio.sleep(ms / 1000)
    return {}


for service in (inline, coroutine, thread):
    service.query()(sleep)


@inline.query(inline=True, name="echo")
def echo_inline(**params: Any) -> dict[str, Any]:
    return params


@coroutine.query(name="echo")
async def echo_coroutine(**params: Any) -> dict[str, Any]:
    return params


@thread.query(name="echo")
def echo_thread(**params: Any) -> dict[str, Any]:
    return params


@checked.query(inline=True, name="echo")
def echo_checked(seq: int, uri: str, position: Position, text: str) -> Echoed:
    return Echoed(seq, uri, position, text)


def __getattr__(name: str) -> Service:
    """The service `registered_N`."""
    if not name.startswith("registered_"):
        raise AttributeError(name)
    service = Service("")
    service.query(inline=True, name="echo")(echo_checked)
    for number in range(int(name.removeprefix("registered_")) - 1):
        service.query(inline=True, name=f"operation{number}")(echo_checked)
    return service
