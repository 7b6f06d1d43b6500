"""What every client calls in its session: something that answers, something that fails, something to cancel."""

import os
from pathlib import Path

import anyio

from discreet import Context, OperationError, Service

app = Service("session")

if folder := os.environ.get("SESSION_PIDS"):
    Path(folder, str(os.getpid())).touch()


class Refusal(OperationError, code="REFUSED", http_status=409):
    """It was refused."""

    why: str


@app.query(inline=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.query(inline=True)
def echo(text: str) -> str:
    """Give back what came."""
    return text


@app.query(errors=[Refusal])
async def refuse(why: str) -> None:
    """Fail with a declared error."""
    raise Refusal(why=why)


@app.query()
async def count(ctx: Context, to: int) -> int:
    """Tell of every step."""
    for step in range(1, to + 1):
        if sending := ctx.progress(step):
            await sending
    return to


@app.query(timeout=None)
async def wait() -> None:
    """Take for ever, unless cancelled."""
    await anyio.sleep_forever()


@app.mutation()
def chatter(lines: int) -> int:
    """Print what belongs into no stream, more than a pipe holds."""
    for number in range(lines):
        print(number, "." * 200)
    return lines
