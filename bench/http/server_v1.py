"""The agent of these measurements on a2a-sdk 1.x and uvicorn, as its samples serve one. server_v1.py PORT STORE LOOP"""

import asyncio
import sys
from typing import Any

import uvicorn
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import a2a_pb2 as pb
from agents_sdk_v1 import Worker
from starlette.applications import Starlette


async def main(port: int, store: str) -> None:
    url = f"http://127.0.0.1:{port}/"
    card = pb.AgentCard(name="Worker", description="Does what it is told.", version="1")
    card.supported_interfaces.append(pb.AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0"))
    card.capabilities.streaming = True
    card.default_input_modes.append("text/plain")
    card.default_output_modes.append("text/plain")
    card.skills.append(pb.AgentSkill(id="work", name="Work", description="Works.", tags=["work"]))
    kept: Any = InMemoryTaskStore()
    if store != "memory":
        from a2a.server.tasks import DatabaseTaskStore
        from sqlalchemy.ext.asyncio import create_async_engine

        url = store.replace("sqlite:", "sqlite+aiosqlite:///", 1).replace("postgresql:", "postgresql+asyncpg:", 1)
        pool = {"pool_size": 32} if store.startswith("postgresql:") else {}  # as many as it has clients
        kept = DatabaseTaskStore(create_async_engine(url, connect_args={"timeout": 60}, **pool))
        await kept.initialize()
    handler = DefaultRequestHandler(Worker(), kept, card)
    app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])
    config = uvicorn.Config(app, port=port, http="httptools", loop="none", access_log=False, log_level="warning")
    await uvicorn.Server(config).serve()


if sys.argv[3] == "uvloop":
    import uvloop

    uvloop.run(main(int(sys.argv[1]), sys.argv[2]))
else:
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
