"""The agent of these measurements on a2a-sdk 0.3.x and uvicorn, as its samples serve one. server_v03.py PORT STORE LOOP"""

import asyncio
import sys
from typing import Any

import uvicorn
from a2a import types
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from agents_sdk_v03 import Worker


async def main(port: int, store: str) -> None:
    card = types.AgentCard(
        name="Worker",
        description="Does what it is told.",
        version="1",
        url=f"http://127.0.0.1:{port}/",
        capabilities=types.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[],
    )
    kept: Any = InMemoryTaskStore()
    if store != "memory":
        from a2a.server.tasks import DatabaseTaskStore
        from sqlalchemy.ext.asyncio import create_async_engine

        url = store.replace("sqlite:", "sqlite+aiosqlite:///", 1)
        kept = DatabaseTaskStore(create_async_engine(url, connect_args={"timeout": 60}))
        await kept.initialize()
    app = A2AStarletteApplication(card, DefaultRequestHandler(Worker(), kept)).build()
    config = uvicorn.Config(app, port=port, http="httptools", loop="none", access_log=False, log_level="warning")
    await uvicorn.Server(config).serve()


if sys.argv[3] == "uvloop":
    import uvloop

    uvloop.run(main(int(sys.argv[1]), sys.argv[2]))
else:
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
