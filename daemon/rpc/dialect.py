"""Describes how the protocols of clients differ in single messages: names, numbers, and which messages are answered.

`Dialect` is the plain one; the others subclass it. Parts that take more than one message (handshakes, methods of a protocol's
own) are in `dialects/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from ...errors.decoders import decoder_for
from ...errors.failures import Failure
from ...errors.wire import encode_error_response
from . import envelope
from .envelope import CANCEL_REQUEST

if TYPE_CHECKING:
    from ..operations.request import Rendering, Request
    from .envelope import Message


class Ignored(msgspec.Struct, frozen=True):
    """A message that a dialect has taken, or drops: nothing runs and nothing is answered."""


IGNORED: Final = Ignored()


FAILURE_ENCODERS: Final[dict[str, Callable[[bytes, Failure, str], bytes]]] = {}
"""Encoders of failures for methods whose errors have a form of their own, from id, failure and name of the dialect.
The part that serves such methods adds them.
"""


class _Tokens(msgspec.Struct):
    """The places of a progress token in a request: MCP's `_meta`, or LSP's own member."""

    class Meta(msgspec.Struct, rename="camel"):
        progress_token: str | int | None = None

    meta: Meta | None = msgspec.field(name="_meta", default=None)
    work_done_token: str | int | None = msgspec.field(name="workDoneToken", default=None)


class _Progress(msgspec.Struct):
    token: str | int
    value: object


class Events:
    """Encodes the events of one subscription, as `stream/event` (section 5 of docs/protocol.md)."""

    def __init__(self, call_id: bytes) -> None:
        self.call_id: Final = call_id

    def encode(self, number: int, value: bytes) -> bytes | None:
        """Encode one event, the `number`th from 1; None to send none. `value` is a JSON text.

        Raises `FailureError(Overloaded)` if it can't be kept.
        """
        return envelope.encode_event(self.call_id, number, value)

    def result(self, completed: bytes) -> bytes:
        """Return the result at the end of the subscription; `completed` is the plain one. Both are JSON texts."""
        return completed


class Dialect:
    """The dialect `plain`: JSON-RPC 2.0 with the names of LSP for cancellation and progress."""

    name: ClassVar[str] = "plain"

    cancellations: ClassVar[Mapping[str, str]] = {CANCEL_REQUEST: "id"}
    """The notifications that cancel a request, and which member of their params is its id."""

    unanswered: ClassVar[tuple[type[Failure], ...]] = ()
    """Failures of requests that are not answered."""

    progress_method: ClassVar[str] = "$/progress"
    """The notification that tells how far a request is."""

    log_method: ClassVar[str] = ""
    update_method: ClassVar[str] = ""
    """The methods of the messages that `encode_log` and `encode_updates` make."""

    named: ClassVar[bool] = True
    """Whether operations are called by their names, and not only through methods of the dialect."""

    mends_surrogates: ClassVar[bool] = False
    """Whether the escape of an unpaired surrogate is read as U+FFFD: programs in JavaScript write such texts."""

    method_attribute: ClassVar[str | None] = None
    """The attribute of spans that has a request's method, beside `rpc.method`."""

    busy: bool = False
    """Whether what was read last takes long, so that nothing more should be read before it is done."""

    asks: bool = True
    """Whether the client answers requests of ours."""

    gives_up_requests: ClassVar[bool] = False
    """Whether requests of ours are refused as soon as the input has ended. Otherwise they wait until the drain window closes,
    like whatever else runs."""

    @property
    def batches(self) -> bool:
        """Whether a message may be an array of messages. Each of them is then answered by itself."""
        return False

    def receive(self, call: Request) -> Failure | Ignored | None:
        """Look at a call before all other code, in the order of arrival. Returns None to let it pass."""

    def note_cancel(self, call: Request, params: msgspec.Raw | None) -> None:
        """A client is about to cancel this call, by a notification with these params."""

    def read_again(self, body: bytes) -> Message | None:
        """Read a message from a body that is, strictly speaking, no JSON; None to refuse it."""
        return envelope.decode_mended(body) if self.mends_surrogates else None

    def encode_failure(self, call_id: bytes, failure: Failure, method: str = "") -> bytes:
        """Encode a failure as the response to the request of this id (a JSON text). `method` is empty if it is not known."""
        return FAILURE_ENCODERS.get(method, encode_error_response)(call_id, failure, self.name)

    def events_of(self, call: Request) -> Events:
        """Return the encoder of events for this call of a subscription."""
        return Events(call.id or envelope.NULL_ID)

    def encode_progress(self, token: str | int, value: object) -> bytes | None:
        """Encode the message that tells how far a request is; None to send none."""
        return envelope.encode_notification(self.progress_method, _Progress(token, value))

    def encode_log(self, rendering: Rendering | None, level: str, data: object) -> bytes | None:
        """Encode a log message for the client, of a call with this rendering; None to send none."""
        return None

    def subscriptions(self) -> Iterable[str]:
        """Return the URIs of the resources of whose changes the client wants to hear."""
        return ()

    def encode_updates(self, uri: str) -> Sequence[bytes]:
        """Encode the messages that tell of a change of a resource."""
        return ()

    def close(self) -> None:
        """Give back all that is held for the client, which has gone."""

    def drain(self) -> None:
        """End calls that only wait, since the daemon is about to end."""

    def hand_over(self) -> None:
        """End calls that only wait, unanswered, since another program is about to go on with the session."""

    def open_calls(self) -> Iterable[Request]:
        """Return the calls that the previous program left unanswered at its `hand_over`. They are taken as if they came now."""
        return ()

    def encode_cancel(self, request_id: int) -> bytes:
        """Encode the message that cancels a request of the daemon."""
        return envelope.encode_notification(CANCEL_REQUEST, {"id": request_id})

    def trace_meta(self, request: Request) -> Mapping[str, object] | None:
        """Return the trace in a request's own params, beside its `serviceParams`; None in dialects without such a place."""
        return None

    def with_trace(self, params: object, headers: Mapping[str, str]) -> tuple[object, Mapping[str, str]]:
        """Return the params and the `serviceParams` of a request of the daemon, with the span that it is made for."""
        return params, headers

    def progress_token(self, params: msgspec.Raw | None) -> str | int | None:
        """Return the token with which the caller asks for progress; None if it does not ask."""
        if params is None:
            return None
        try:
            tokens = decoder_for(_Tokens)(params)
        except msgspec.DecodeError:  # positional params, or a member of another meaning
            return None
        from_meta = None if tokens.meta is None else tokens.meta.progress_token
        return tokens.work_done_token if from_meta is None else from_meta


PLAIN: Final = Dialect()
