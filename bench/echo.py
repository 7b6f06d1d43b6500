"""The server that `stdio_bench.py` measures: `echo` and `sleep`, with `echo` in each way to run a handler.

`./echo.py:inline`, `./echo.py:coroutine` and `./echo.py:thread` are three apps.
"""

from typing import Any

from discreet import Service

inline, coroutine, thread = Service(""), Service(""), Service("")


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
