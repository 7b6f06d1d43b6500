"""A whole session with the client of a2a-sdk 0.3.x: URL, binding, token.

It finds the interface in the card, and for JSON-RPC its credentials, too: for HTTP+JSON it has no interceptors.
"""

import asyncio
import base64
import sys
from typing import Any
from uuid import uuid4

import httpx
from a2a import types
from a2a.client import ClientConfig, ClientFactory
from a2a.client.auth.credentials import CredentialService
from a2a.client.auth.interceptor import AuthInterceptor
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from session_a2a_webhook import webhook

URL, BINDING, TOKEN = sys.argv[1:]
CONTENT = base64.b64encode(b"\x00\xff").decode()


class Credentials(CredentialService):
    async def get_credentials(self, security_scheme_name: str, context: Any) -> str:
        return TOKEN


def message(text: str) -> types.Message:
    file = types.FilePart(file=types.FileWithBytes(bytes=CONTENT, mime_type="image/png"))
    parts = [types.Part(root=types.TextPart(text=text)), types.Part(root=file)]
    return types.Message(message_id=str(uuid4()), role=types.Role.user, parts=parts)


async def failure_of(work: Any) -> str:
    """The code of JSON-RPC or the status of HTTP with which it fails."""
    try:
        await work
    except A2AClientHTTPError as exc:
        return str(exc.status_code)
    except A2AClientJSONRPCError as exc:
        return str(exc.error.code)
    return "none"


async def kinds_of(events: Any) -> str:
    """What the events of a stream are: the updates, or the task alone."""
    return " ".join([type(update or task).__name__ async for task, update in events])


async def first(events: Any) -> types.Task:
    """The task of an answer that is no stream."""
    ((task, _),) = [each async for each in events]
    return task


async def main() -> None:
    headers = {} if BINDING == "JSONRPC" else {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(headers=headers) as http, httpx.AsyncClient() as other:
        card = await A2ACardResolver(http, URL).get_agent_card()

        def client(**options: Any) -> Any:
            config = ClientConfig(
                httpx_client=http, supported_transports=[BINDING], use_client_preference=True, **options
            )
            return ClientFactory(config).create(card, interceptors=[AuthInterceptor(Credentials())])

        streaming, blocking, polling = client(), client(streaming=False), client(streaming=False, polling=True)
        print(f"interface={card.protocol_version}")
        task = await first(blocking.send_message(message("end")))
        print(f"send={task.status.state.value}")
        print(f"file={base64.b64decode(task.history[0].parts[1].root.file.bytes).hex()}")
        print(f"stream={await kinds_of(streaming.send_message(message('say end')))}")
        waiting = await first(polling.send_message(message("wait")))
        print(f"started={waiting.status.state.value in ('submitted', 'working')}")
        events = streaming.resubscribe(types.TaskIdParams(id=waiting.id))
        print(f"subscribe={type((await anext(events))[0]).__name__}")
        print(
            f"get={(await blocking.get_task(types.TaskQueryParams(id=waiting.id, history_length=1))).id == waiting.id}"
        )
        async with webhook() as (url, delivered):
            push = types.PushNotificationConfig(id="c", url=url, token="word")
            config = types.TaskPushNotificationConfig(task_id=waiting.id, push_notification_config=push)
            made = (await blocking.set_task_callback(config)).push_notification_config
            asked = types.GetTaskPushNotificationConfigParams(id=waiting.id, push_notification_config_id="c")
            kept = (await blocking.get_task_callback(asked)).push_notification_config
            print(f"push={made.id} {made.token} {kept.url == url}")
            print(f"cancel={(await blocking.cancel_task(types.TaskIdParams(id=waiting.id))).status.state.value}")
            print(f"rest={await kinds_of(events)}")
            token, body = await delivered
            print(f"delivered={token} {body['status']['state']} {body['id'] == waiting.id}")
        extended = await streaming.get_card()
        print(f"extended={extended.name}")
        print(f"again={await failure_of(blocking.cancel_task(types.TaskIdParams(id=waiting.id)))}")
        print(f"unknown={await failure_of(blocking.get_task(types.TaskQueryParams(id='none')))}")
        wrong = types.TaskQueryParams(id=task.id, history_length=-1)
        print(f"wrong={await failure_of(blocking.get_task(wrong))}")
        stranger = ClientFactory(ClientConfig(httpx_client=other, supported_transports=[BINDING])).create(card)
        print(f"stranger={await failure_of(stranger.get_task(types.TaskQueryParams(id=task.id)))}")


asyncio.run(main())
