"""The agent of these measurements on a2a-sdk 0.3.x and uvicorn, as its samples serve one. server_v03.py PORT STORE LOOP"""

import asyncio
import sys

import uvicorn
from a2a.server.apps import A2AStarletteApplication
from agents_sdk_v03 import served


async def main(port: int, store: str) -> None:
    card, handler = await served(f"http://127.0.0.1:{port}/", store)
    app = A2AStarletteApplication(card, handler).build()
    config = uvicorn.Config(app, port=port, http="httptools", loop="none", access_log=False, log_level="warning")
    await uvicorn.Server(config).serve()


if sys.argv[3] == "uvloop":
    import uvloop

    uvloop.run(main(int(sys.argv[1]), sys.argv[2]))
else:
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
