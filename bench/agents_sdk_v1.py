"""a2a-sdk 1.x as a contestant: its default handler and stores, in this process, without HTTP.

What its JSON-RPC layer does to a request is done here in the same steps with the same calls (`JsonRpcDispatcher`), on
bytes: json, `JSONRPC20Request`, `ParseDict`, the handler, `MessageToDict`, `JSONRPC20Response`, json. Web framework and
Server-Sent Events are left out, in its favour.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from a2a.utils import proto_utils
from agents_inside import Inside
from agents_requests import Requests
from google.protobuf.json_format import MessageToDict, ParseDict
from jsonrpc.jsonrpc2 import JSONRPC20Request, JSONRPC20Response

MODELS = {
    "SendMessage": pb.SendMessageRequest,
    "SendStreamingMessage": pb.SendMessageRequest,
    "GetTask": pb.GetTaskRequest,
    "ListTasks": pb.ListTasksRequest,
}


class Worker(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        match context.get_user_input().split():
            case ["do"]:
                await updater.add_artifact([pb.Part(text="Done.")])
                await updater.complete()
            case ["park"]:
                await updater.requires_input(updater.new_agent_message([pb.Part(text="Which one?")]))
            case ["stream", count, size]:
                chunk = [pb.Part(text="x" * int(size))]
                await updater.add_artifact(chunk, artifact_id="a")
                for _ in range(int(count) - 1):
                    await updater.add_artifact(chunk, artifact_id="a", append=True)
                await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing to let go of."""


class Sdk(Inside):
    def __init__(self, handler: Any) -> None:
        self.requests = Requests("1.0")
        self._handler = handler

    async def answer(self, request: bytes) -> bytes:
        method, params, context, number = _read(request)
        match method:
            case "SendMessage":
                result = MessageToDict(
                    pb.SendMessageResponse(task=await self._handler.on_message_send(params, context))
                )
            case "GetTask":
                result = MessageToDict(await self._handler.on_get_task(params, context))
            case "ListTasks":
                page = await self._handler.on_list_tasks(params, context)
                result = MessageToDict(page, always_print_fields_with_no_presence=True)
                for task in result["tasks"]:  # as it leaves empty lists of artifacts out
                    task.pop("artifacts", None)
            case _:
                raise ValueError(method)
        return _written(JSONRPC20Response(result=result, _id=number).data)

    async def stream(self, request: bytes) -> int:
        _, params, context, number = _read(request)
        events = 0
        async for event in self._handler.on_message_send_stream(params, context):
            result = MessageToDict(proto_utils.to_stream_response(event))
            _written(JSONRPC20Response(result=result, _id=number).data)
            events += 1
        return events


def _read(request: bytes) -> tuple[str, Any, ServerCallContext, Any]:
    body = json.loads(request)
    base = JSONRPC20Request.from_data(body)
    params = ParseDict(body.get("params", {}), MODELS[base.method](), ignore_unknown_fields=True)
    headers = {"a2a-version": "1.0"}
    context = ServerCallContext(state={"headers": headers, "method": base.method, "request_id": base._id})
    return base.method, params, context, base._id


def _written(reply: Any) -> bytes:
    """As web frameworks write it."""
    return json.dumps(reply, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


@asynccontextmanager
async def in_process(version: str, store: str) -> AsyncGenerator[Sdk]:
    card = pb.AgentCard(name="Worker", description="Does what it is told.", version="1")
    card.capabilities.streaming = True
    kept: Any = InMemoryTaskStore()
    if store != "memory":
        from a2a.server.tasks import DatabaseTaskStore
        from sqlalchemy.ext.asyncio import create_async_engine

        url = store.replace("sqlite:", "sqlite+aiosqlite:///", 1)
        kept = DatabaseTaskStore(create_async_engine(url, connect_args={"timeout": 60}))
        await kept.initialize()
    yield Sdk(DefaultRequestHandler(Worker(), kept, card))
