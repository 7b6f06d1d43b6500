"""What every client calls in its session: something that answers, something that fails, something to cancel."""

import anyio

from discreet import OperationError, Service

app = Service("session")


class Refusal(OperationError, code="REFUSED", http_status=409):
    """It was refused."""

    why: str


@app.query(inline=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.query(errors=[Refusal])
async def refuse(why: str) -> None:
    """Fail with a declared error."""
    raise Refusal(why=why)


@app.query(timeout=None)
async def wait() -> None:
    """Take for ever, unless cancelled."""
    await anyio.sleep_forever()
