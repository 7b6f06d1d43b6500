"""A session with the HTTP+JSON client for 0.3 of a2a-sdk 1.x; its argument is the gateway's URL."""

import asyncio
import sys
from typing import Any
from uuid import uuid4

import httpx
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.client import ClientCallContext
from a2a.compat.v0_3.rest_transport import CompatRestTransport
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import A2AError

URL = sys.argv[1]


def message(text: str, **configuration: Any) -> Any:
    parts = [a2a.Part(text=text), a2a.Part(raw=b"\x00\xff", media_type="image/png")]
    said = a2a.Message(message_id=str(uuid4()), role=a2a.ROLE_USER, parts=parts)
    return a2a.SendMessageRequest(message=said, configuration=a2a.SendMessageConfiguration(**configuration))


async def failure_of(work: Any) -> str:
    try:
        await work
    except A2AError as exc:
        return type(exc).__name__
    return "none"


async def kinds_of(events: Any) -> str:
    return " ".join([event.WhichOneof("payload") async for event in events])


async def main() -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
        agent = CompatRestTransport(http, card, URL)
        context = ClientCallContext(service_parameters={"A2A-Version": "0.3"})
        task = (await agent.send_message(message("end"), context=context)).task
        print(f"send={a2a.TaskState.Name(task.status.state)}")
        print(f"file={task.history[0].parts[1].raw.hex()}")
        print(f"stream={await kinds_of(agent.send_message_streaming(message('say end'), context=context))}")
        waiting = (await agent.send_message(message("wait", return_immediately=True), context=context)).task
        events = agent.subscribe(a2a.SubscribeToTaskRequest(id=waiting.id), context=context)
        print(f"subscribe={(await anext(events)).WhichOneof('payload')}")
        got = await agent.get_task(a2a.GetTaskRequest(id=waiting.id, history_length=1), context=context)
        print(f"get={got.id == waiting.id}")
        push = a2a.TaskPushNotificationConfig(task_id=waiting.id, id="c", url="https://example.com/hook", token="t")
        made = await agent.create_task_push_notification_config(push, context=context)
        print(f"push={made.id} {made.url} {made.token}")
        canceled = await agent.cancel_task(a2a.CancelTaskRequest(id=waiting.id), context=context)
        print(f"cancel={a2a.TaskState.Name(canceled.status.state)}")
        print(f"rest={await kinds_of(events)}")
        again = agent.cancel_task(a2a.CancelTaskRequest(id=waiting.id), context=context)
        print(f"again={await failure_of(again)}")
        unknown = agent.get_task(a2a.GetTaskRequest(id="none"), context=context)
        print(f"unknown={await failure_of(unknown)}")


asyncio.run(main())
