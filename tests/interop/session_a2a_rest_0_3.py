"""A session with the HTTP+JSON client of a2a-sdk 0.3.x; its argument is the gateway's URL."""

import asyncio
import base64
import sys
from typing import Any

import httpx
from a2a import types
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.errors import A2AClientHTTPError

URL = sys.argv[1]
CONTENT = base64.b64encode(b"\x00\xff").decode()


def message(text: str, **configuration: Any) -> Any:
    file = types.FilePart(file=types.FileWithBytes(bytes=CONTENT, mime_type="image/png"))
    parts = [types.Part(root=types.TextPart(text=text)), types.Part(root=file)]
    said = types.Message(message_id="m", role=types.Role.user, parts=parts)
    return types.MessageSendParams(message=said, configuration=types.MessageSendConfiguration(**configuration))


async def status_of(work: Any) -> int:
    try:
        await work
    except A2AClientHTTPError as exc:
        return exc.status_code
    return 200


async def main() -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
        transports = [types.TransportProtocol.http_json]
        config = ClientConfig(httpx_client=http, supported_transports=transports, use_client_preference=True)
        agent: Any = ClientFactory(config).create(card)._transport
        task = await agent.send_message(message("end", blocking=True))
        print(f"send={task.status.state.value}")
        print(f"file={base64.b64decode(task.history[0].parts[1].root.file.bytes).hex()}")
        print(
            f"stream={' '.join([type(event).__name__ async for event in agent.send_message_streaming(message('say end'))])}"
        )
        waiting = await agent.send_message(message("wait", blocking=False))
        events = agent.resubscribe(types.TaskIdParams(id=waiting.id))
        print(f"subscribe={type(await anext(events)).__name__}")
        got = await agent.get_task(types.TaskQueryParams(id=waiting.id, history_length=1))
        print(f"get={got.id == waiting.id}")
        push = types.PushNotificationConfig(id="c", url="https://example.com/hook", token="t")
        config = types.TaskPushNotificationConfig(task_id=waiting.id, push_notification_config=push)
        made = (await agent.set_task_callback(config)).push_notification_config
        print(f"push={made.id} {made.url} {made.token}")
        asked = types.GetTaskPushNotificationConfigParams(id=waiting.id, push_notification_config_id="c")
        print(f"kept={(await agent.get_task_callback(asked)).push_notification_config.url}")
        print(f"cancel={(await agent.cancel_task(types.TaskIdParams(id=waiting.id))).status.state.value}")
        print(f"rest={' '.join([type(event).__name__ async for event in events])}")
        print(f"again={await status_of(agent.cancel_task(types.TaskIdParams(id=waiting.id)))}")
        print(f"unknown={await status_of(agent.get_task(types.TaskQueryParams(id='none')))}")


asyncio.run(main())
