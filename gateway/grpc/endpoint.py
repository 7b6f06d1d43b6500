"""Answers gRPC clients: makes a call of a method of A2A 1.0, has it run as those by HTTP are, and writes what comes of it as
messages and a status (A2A 1.0, section 10).

Reads nothing of a message before it is known that its caller may call. Knows no sockets.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import unquote, urlsplit

import grpc  # type: ignore[import-untyped]

from ...daemon.logs import log
from ...daemon.operations.registry import Registry
from ...errors.exceptions import FailureError
from ...errors.failures import Failure, Internal, InvalidParams, MethodNotFound, Overloaded, TimedOut, Unavailable
from ...lazy import anyio
from ..a2a.endpoint import DEFAULT_VERSION, asked_version
from ..answers import Answer
from ..answers import status_of as http_status_of
from ..calls import CallRunner, agent_of
from ..requests import GatewayRequest
from .messages import METHODS, SERVICE, GrpcMethod, status_of

if TYPE_CHECKING:
    from msgspec import Raw

    from ...daemon.host import Host
    from ..asgi import Scope
    from ..streams import MessageStream

READING_SHARE: Final = 2
"""The share of the memory that messages may take together while they are read: one half."""

IN_A_THREAD: Final = 16 * 1024
"""Bytes. What takes the loop longer than some milliseconds is turned into JSON and back in a thread."""

GIVEN_ONCE: Final = ("authorization", "a2a-version")
"""Metadata of which a second value would be another's: what stands before the daemon may look at the other one."""

NEVER: Final = float("inf")


@final
class _Writer:
    """Keeps the failure of one call, and passes on its results, which are JSON texts."""

    def __init__(self) -> None:
        self.failed: Failure | None = None
        self.fails_in_stream = False
        self.failure_event = self.completion_event = ""

    def result(self, result: bytes) -> Answer:
        return Answer(200, result)

    def failure(self, failure: Failure) -> Answer:
        self.failed = failure
        return Answer(http_status_of(failure))

    def event(self, value: bytes) -> bytes:
        return value

    def last_event(self, failure: Failure) -> bytes:
        return b""


@final
class GrpcEndpoint:
    """A `grpc.GenericRpcHandler` of all paths. `url` is where the clients reach the daemon."""

    def __init__(self, host: Host, calls: CallRunner, url: str) -> None:
        self._host = host
        self._calls = calls
        self._url = urlsplit(url)
        self._methods = Registry((), agent_of(host).lazy_operations)
        settings = host.settings
        self._seconds = settings.frame_timeout
        most = settings.max_memory // READING_SHARE // settings.max_message_bytes
        self._reading = anyio.CapacityLimiter(max(1, most))

    def service(self, details: Any) -> Any:  # Any: grpcio has no types of its own
        """Return what handles the calls of a path. All are taken as streams both ways, so that nothing is read too early."""
        return grpc.stream_stream_rpc_method_handler(partial(self._answer, details.method))

    async def _answer(self, path: str, _: object, context: Any) -> None:
        """Answer one call with its messages and one status. Cancelled when the client goes, or its deadline has passed."""
        request, writer, began = GatewayRequest(self._scope(path, context), _never_gone), _Writer(), monotonic()
        with self._calls.open():
            try:
                await self._respond(request, path, context, writer)
            except FailureError as exc:
                status = self._calls.refused(request, writer, exc.failure).status
                if not request.noted:
                    await self._calls.note_refused(request, status, monotonic() - began)
            except Exception as exc:  # noqa: BLE001 - the boundary, as that of the HTTP server
                if context.done():  # the client has gone while something was sent
                    return
                log.error("daemon.fault", exc=exc)  # grpcio would send its text
                writer.failed = Internal()
            if writer.failed is not None:
                told = status_of(writer.failed)
                context.set_trailing_metadata((("grpc-status-details-bin", told.details),))
                context.set_details(told.message)
                context.set_code(getattr(grpc.StatusCode, told.name))

    async def _respond(self, request: GatewayRequest, path: str, context: Any, writer: _Writer) -> None:
        """Run the call, and send what it has to tell but for its failure. Raises `FailureError` for what never becomes a call."""
        calls, method = self._calls, METHODS.get(path)
        given = [name for name, _ in context.invocation_metadata() or ()]
        for name in GIVEN_ONCE:
            if given.count(name) > 1:
                raise FailureError(InvalidParams(name, "one value", "several"))
        if method is None:
            raise FailureError(MethodNotFound(f"the methods of {SERVICE} are served"))
        call = calls.call(request, method.name)
        call.metadata["a2a-version"] = asked_version(request) or DEFAULT_VERSION
        spec = self._methods.find(method.name)
        assert spec is not None, "every method of the service is one of A2A 1.0"
        refusal = Unavailable() if calls.is_closed_to(request) else await calls.refusal(request, call, spec)
        if refusal is not None:
            raise FailureError(refusal)
        params = await self._params(method, context)
        call.spec, call.params, call.size = spec, params, len(params)
        take = partial(self._send_events, method, context, writer)
        answer = await calls.run(request, _sends_nothing, call, writer, take=take)
        if answer is not None and writer.failed is None:
            await self._send(method, context, answer.body)

    async def _params(self, method: GrpcMethod, context: Any) -> Raw:
        """The params in the message of a call. Raises `FailureError`: it does not come in time, or can't be read, or there is no
        memory for it."""
        with anyio.move_on_after(self._seconds):
            async with self._reading:  # how large it is shows when it is there
                body = await context.read()
                if not isinstance(body, bytes):
                    raise FailureError(InvalidParams("$", "one message", "none"))
                if not self._host.memory.fits(len(body)):
                    raise FailureError(Overloaded())
            params: Raw = await _in_thread_if_large(method.read, body)
            return params
        raise FailureError(TimedOut())

    async def _send_events(self, method: GrpcMethod, context: Any, writer: _Writer, stream: MessageStream) -> None:
        """Send events as they come. Waits while the client does not keep up: then their producer waits as well."""
        token = stream.begin_response()
        try:
            while (messages := await stream.take(token, NEVER)) is not None:
                for message in messages:
                    await self._send(method, context, message.text)
                stream.taken(messages)
                await anyio.lowlevel.checkpoint_if_cancelled()
        except FailureError as exc:  # of an event that can't be sent, which is the last one
            writer.failed = exc.failure
        finally:
            stream.end_response(token)

    async def _send(self, method: GrpcMethod, context: Any, result: bytes) -> None:
        """Send one message. It counts in the memory budget until it is on its way. A client that does not take it in time
        loses its call."""
        self._host.memory.add("replies", len(result))
        try:
            message = await _in_thread_if_large(method.write, result)
            with anyio.move_on_after(self._seconds) as scope:
                await context.write(message)
        finally:
            self._host.memory.add("replies", -len(result))
        if scope.cancelled_caught:
            log.info("grpc.client_too_slow", method=method.name)
            raise CancelledError  # as where the client has gone: no status would reach it

    def _scope(self, path: str, context: Any) -> Scope:
        """What HTTP would say of this call."""
        headers = [
            (name.encode(), value if isinstance(value, bytes) else value.encode("latin-1", "replace"))
            for name, value in context.invocation_metadata() or ()
        ]
        return {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [each for each in headers if each[0] != b"host"],
            "client": _client_of(context.peer()),
            "scheme": self._url.scheme,
            "server": (self._url.hostname, self._url.port),
        }


async def _in_thread_if_large(work: Callable[[bytes], Any], text: bytes) -> Any:
    return work(text) if len(text) < IN_A_THREAD else await anyio.to_thread.run_sync(work, text)


def _client_of(peer: str) -> tuple[str, int]:
    """The address of a client, without its port: of `ipv4:127.0.0.1:4711` or `ipv6:[::1]:4711`, whose brackets are escaped."""
    address = unquote(peer).partition(":")[2].rpartition(":")[0]
    return address.strip("[]"), 0


async def _never_gone() -> Any:
    """Nothing is received of a client that has gone: gRPC cancels the call."""
    await anyio.sleep_forever()


async def _sends_nothing(_: object) -> None: ...
