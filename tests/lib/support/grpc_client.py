"""A daemon that serves gRPC in the event loop of a test, and a client that knows no more than the description of the service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import grpc
import grpc.aio

from discreet.daemon.apps import hosted_objects
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.hosting import build_host, opened_store
from discreet.daemon.settings import Settings
from discreet.framing.transports.memory import memory_pair
from discreet.gateway.grpc.listener import GrpcListener
from discreet.gateway.grpc.messages import METHODS, SERVICE

from .waits import DEADLINE_SECONDS

V1: Final = (("a2a-version", "1.0"),)


class GrpcClient:
    """`address` is where the daemon of `host` listens, `daemon` it itself."""

    def __init__(self, host: Host, daemon: Daemon, listener: GrpcListener) -> None:
        self.host = host
        self.daemon = daemon
        self.listener = listener
        self.address = listener.address
        self.port = int(self.address.rpartition(":")[2])
        self.channel: Any = None

    def open(self, credentials: Any = None, **options: int) -> Any:
        """A channel of its own."""
        options["use_local_subchannel_pool"] = 1  # else channels share a connection
        pairs = [(f"grpc.{name}", value) for name, value in options.items()]
        if credentials is None:
            return grpc.aio.insecure_channel(self.address, options=pairs)
        return grpc.aio.secure_channel(f"localhost:{self.port}", credentials, options=pairs)

    def begin(self, name: str, *, channel: Any = None, headers: Iterable[tuple[str, str]] = V1, **members: Any) -> Any:
        """A call that runs: awaited, or read where it streams."""
        method = METHODS[f"/{SERVICE}/{name}"]
        channel = channel or self.channel
        kind = channel.unary_stream if method.response.DESCRIPTOR.name == "StreamResponse" else channel.unary_unary
        options = {name: members.pop(name) for name in ("timeout", "compression") if name in members}
        stub = kind(
            f"/{SERVICE}/{name}",
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        return stub(method.request(**members), metadata=tuple(headers), **{"timeout": DEADLINE_SECONDS, **options})

    async def call(self, name: str, **given: Any) -> Any:
        return await self.begin(name, **given)

    async def send(self, text: str, **given: Any) -> Any:
        return await self.call("SendMessage", **said(text), **given)

    async def failure(self, name: str, **given: Any) -> grpc.aio.AioRpcError:
        """Why a call fails."""
        call = self.begin(name, **given)
        try:
            await (call.read() if hasattr(call, "read") else call)
        except grpc.aio.AioRpcError as exc:
            return exc
        raise AssertionError("it has not failed")


def said(text: str, **configuration: Any) -> dict[str, Any]:
    """The members of a request to send this."""
    message = {"message_id": text, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": message, "configuration": configuration}


@asynccontextmanager
async def grpc_daemon(*hosted: Any, provider: Any = None, **settings: Any) -> AsyncGenerator[GrpcClient]:
    """Serve until the block ends."""
    chosen = Settings(**{"grpc": "127.0.0.1:0", "drain_timeout": 0.2, **settings})
    host = build_host(chosen, hosted_objects(hosted), provider)
    listener = GrpcListener(host, chosen, None)
    daemon = Daemon(host, memory_pair()[0], listener=listener)
    client = GrpcClient(host, daemon, listener)
    with opened_store(host):
        async with anyio.create_task_group() as tasks:
            daemon.begin()
            tasks.start_soon(daemon.run)
            with anyio.fail_after(DEADLINE_SECONDS):
                await listener.started.wait()
            try:
                async with client.open() as client.channel:
                    yield client
            finally:
                daemon.ask_to_end("shutdown")
