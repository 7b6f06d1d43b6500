"""A whole session with the client of a2a-sdk 1.x: URL, binding, token, the public key that has signed the card, and a private one
to sign it with. It finds the interface and its credentials in the card.
"""

import asyncio
import sys
from typing import Any
from uuid import uuid4

import grpc
import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.auth.credentials import CredentialService
from a2a.client.auth.interceptor import AuthInterceptor
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import A2AError
from a2a.utils.signing import create_agent_card_signer, create_signature_verifier
from google.protobuf.json_format import MessageToJson
from session_a2a_webhook import webhook

URL, BINDING, TOKEN, TRUSTED, OWN = sys.argv[1:]


class Credentials(CredentialService):
    async def get_credentials(self, security_scheme_name: str, context: Any) -> str:
        return TOKEN


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


async def first(events: Any) -> Any:
    """The task of an answer that is no stream."""
    (event,) = [each async for each in events]
    return event.task


def check_signature(card: Any) -> None:
    """Verify the signature of the card, and sign it anew."""
    create_signature_verifier(lambda kid, jku: TRUSTED, ["ES256"])(card)
    print(f"signed={len(card.signatures) > 0}")
    own = a2a.AgentCard()
    own.CopyFrom(card)
    del own.signatures[:]
    create_agent_card_signer(OWN, {"kid": "own", "alg": "RS256", "jku": None, "typ": "JOSE"})(own)
    print(f"signed by it={MessageToJson(own, indent=None)}")


async def main() -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
        check_signature(card)
        auth = AuthInterceptor(Credentials())

        def config(**options: Any) -> ClientConfig:
            return ClientConfig(
                httpx_client=http,
                grpc_channel_factory=grpc.aio.insecure_channel,
                supported_protocol_bindings=[BINDING],
                **options,
            )

        def client(**options: Any) -> Any:
            return ClientFactory(config(**options)).create(card, interceptors=[auth])

        streaming, blocking = client(), client(streaming=False)
        print(f"interface={card.supported_interfaces[0].protocol_version}")
        task = await first(blocking.send_message(message("end")))
        print(f"send={a2a.TaskState.Name(task.status.state)}")
        print(f"file={task.history[0].parts[1].raw.hex()}")
        print(f"stream={await kinds_of(streaming.send_message(message('say end')))}")
        waiting = await first(blocking.send_message(message("wait", return_immediately=True)))
        print(f"started={waiting.status.state in (a2a.TASK_STATE_SUBMITTED, a2a.TASK_STATE_WORKING)}")
        events = streaming.subscribe(a2a.SubscribeToTaskRequest(id=waiting.id))
        print(f"subscribe={(await anext(events)).WhichOneof('payload')}")
        print(f"get={(await blocking.get_task(a2a.GetTaskRequest(id=waiting.id, history_length=1))).id == waiting.id}")
        async with webhook() as (url, delivered):
            push = a2a.TaskPushNotificationConfig(task_id=waiting.id, id="c", url=url, token="word")
            made = await blocking.create_task_push_notification_config(push)
            asked = a2a.GetTaskPushNotificationConfigRequest(task_id=waiting.id, id="c")
            kept = await blocking.get_task_push_notification_config(asked)
            listing = a2a.ListTaskPushNotificationConfigsRequest(task_id=waiting.id)
            listed = await blocking.list_task_push_notification_configs(listing)
            print(f"push={made.id} {made.token} {kept.url == url} {len(listed.configs)}")
            canceled = await blocking.cancel_task(a2a.CancelTaskRequest(id=waiting.id))
            print(f"cancel={a2a.TaskState.Name(canceled.status.state)}")
            print(f"rest={await kinds_of(events)}")
            token, body = await delivered
            told = body["statusUpdate"]["status"]["state"]
            print(f"delivered={token} {told} {body['statusUpdate']['taskId'] == waiting.id}")
        gone = a2a.DeleteTaskPushNotificationConfigRequest(task_id=waiting.id, id="c")
        await blocking.delete_task_push_notification_config(gone)
        left = await blocking.list_task_push_notification_configs(listing)
        print(f"deleted={len(left.configs)}")
        page = await blocking.list_tasks(a2a.ListTasksRequest(page_size=2, include_artifacts=True))
        more = await blocking.list_tasks(a2a.ListTasksRequest(page_size=2, page_token=page.next_page_token))
        print(f"list={len(page.tasks)} {len(more.tasks)} {page.total_size}")
        extended = await streaming.get_extended_agent_card(a2a.GetExtendedAgentCardRequest())
        print(f"extended={extended.name}")
        print(f"again={await failure_of(blocking.cancel_task(a2a.CancelTaskRequest(id=waiting.id)))}")
        print(f"unknown={await failure_of(blocking.get_task(a2a.GetTaskRequest(id='none')))}")
        print(f"wrong={await failure_of(blocking.list_tasks(a2a.ListTasksRequest(page_size=101)))}")
        ended = streaming.subscribe(a2a.SubscribeToTaskRequest(id=task.id))
        print(f"ended={await failure_of(anext(ended))}")
        stranger = ClientFactory(config()).create(card)
        print(f"stranger={await failure_of(stranger.get_task(a2a.GetTaskRequest(id=task.id)))}")


asyncio.run(main())
