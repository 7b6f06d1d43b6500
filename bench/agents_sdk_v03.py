"""a2a-sdk 0.3.x as a contestant: its default handler and stores, in this process, without HTTP.

What its JSON-RPC layer does to a request is done here in the same steps with the same calls (`JSONRPCApplication`), on
bytes: json, `JSONRPCRequest`, the method's own model, `JSONRPCHandler`, `model_dump`, json. Web framework and
Server-Sent Events are left out, in its favour.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from a2a import types
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.jsonrpc_handler import JSONRPCHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.utils import new_task
from agents_inside import Inside
from agents_requests import Requests

MODELS: dict[str, Any] = {
    "message/send": types.SendMessageRequest,
    "message/stream": types.SendStreamingMessageRequest,
    "tasks/get": types.GetTaskRequest,
}


class Worker(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        match context.get_user_input().split():
            case ["do"]:
                await updater.add_artifact([_text("Done.")])
                await updater.complete()
            case ["park"]:
                await updater.requires_input(updater.new_agent_message([_text("Which one?")]))
            case ["stream", count, size]:
                chunk = [_text("x" * int(size))]
                await updater.add_artifact(chunk, artifact_id="a")
                for _ in range(int(count) - 1):
                    await updater.add_artifact(chunk, artifact_id="a", append=True)
                await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing to let go of."""


class Sdk(Inside):
    def __init__(self, handler: JSONRPCHandler) -> None:
        self.requests = Requests("0.3")
        self._handler = handler

    async def answer(self, request: bytes) -> bytes:
        read, context = _read(request)
        match read:
            case types.SendMessageRequest():
                reply: Any = await self._handler.on_message_send(read, context)
            case types.GetTaskRequest():
                reply = await self._handler.on_get_task(read, context)
            case _:
                raise ValueError(type(read).__name__)
        return _written(reply.root.model_dump(mode="json", exclude_none=True))

    async def stream(self, request: bytes) -> int:
        read, context = _read(request)
        events = 0
        async for item in self._handler.on_message_send_stream(read, context):
            item.root.model_dump_json(exclude_none=True).encode()
            events += 1
        return events


def _text(text: str) -> types.Part:
    return types.Part(root=types.TextPart(text=text))


def _read(request: bytes) -> tuple[Any, ServerCallContext]:
    body = json.loads(request)
    base = types.JSONRPCRequest.model_validate(body)
    read = MODELS[base.method].model_validate(body)
    context = ServerCallContext(state={"headers": {}, "method": base.method})
    return types.A2ARequest(root=read).root, context


def _written(reply: Any) -> bytes:
    """As web frameworks write it."""
    return json.dumps(reply, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


async def served(url: str, store: str) -> tuple[types.AgentCard, DefaultRequestHandler]:
    """The agent with this address, and its handler with this store."""
    card = types.AgentCard(
        name="Worker",
        description="Does what it is told.",
        version="1",
        url=url,
        capabilities=types.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[],
    )
    kept: Any = InMemoryTaskStore()
    if store != "memory":
        from a2a.server.tasks import DatabaseTaskStore
        from sqlalchemy.ext.asyncio import create_async_engine

        database = store.replace("sqlite:", "sqlite+aiosqlite:///", 1)
        kept = DatabaseTaskStore(create_async_engine(database, connect_args={"timeout": 60}))
        await kept.initialize()
    return card, DefaultRequestHandler(Worker(), kept)


@asynccontextmanager
async def in_process(version: str, store: str) -> AsyncGenerator[Sdk]:
    yield Sdk(JSONRPCHandler(*await served("http://localhost/", store)))
