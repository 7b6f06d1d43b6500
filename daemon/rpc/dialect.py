"""What differs between the protocols that a client may speak, as far as one message goes: names, numbers, and who is answered.

`Dialect` is the plain one; the others subclass it. What takes more than one message (handshakes, methods of a protocol's
own) is in `dialects/`.
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
    """A message that a dialect has taken, or does not want: nothing runs and nothing is answered."""


IGNORED: Final = Ignored()


FAILURE_ENCODERS: Final[dict[str, Callable[[bytes, Failure, str], bytes]]] = {}
"""What writes the failures of methods whose errors have a form of their own, from id, failure and name of the dialect.
The part that serves such methods adds them.
"""


class _Tokens(msgspec.Struct):
    """Where a request may carry a progress token: MCP's `_meta`, or LSP's own member."""

    class Meta(msgspec.Struct, rename="camel"):
        progress_token: str | int | None = None

    meta: Meta | None = msgspec.field(name="_meta", default=None)
    work_done_token: str | int | None = msgspec.field(name="workDoneToken", default=None)


class _Progress(msgspec.Struct):
    token: str | int
    value: object


class Events:
    """How the events of one subscription are written: as `stream/event` (section 5 of docs/protocol.md)."""

    def __init__(self, call_id: bytes) -> None:
        self.call_id: Final = call_id

    def encode(self, number: int, value: bytes) -> bytes | None:
        """The message for one event, the `number`th from 1; None where none is sent. `value` is a JSON text.

        Raises `FailureError(Overloaded)` where it can't be kept.
        """
        return envelope.encode_event(self.call_id, number, value)

    def result(self, completed: bytes) -> bytes:
        """The result when the subscription has ended; `completed` is the plain one. Both are JSON texts."""
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
    """Those that `encode_log` and `encode_updates` make."""

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
        """Look at a call before anything else does, in the order of arrival: None lets it pass."""

    def note_cancel(self, call: Request, params: msgspec.Raw | None) -> None:
        """A client is about to cancel this call, by a notification with these params."""

    def read_again(self, body: bytes) -> Message | None:
        """The message that stands in a body which is no JSON, strictly speaking; None where that is to be refused."""
        return envelope.decode_mended(body) if self.mends_surrogates else None

    def encode_failure(self, call_id: bytes, failure: Failure, method: str = "") -> bytes:
        """The response that answers the request of this id (a JSON text) with a failure. `method` is empty where it is not
        known."""
        return FAILURE_ENCODERS.get(method, encode_error_response)(call_id, failure, self.name)

    def events_of(self, call: Request) -> Events:
        """How the events of this call of a subscription are written."""
        return Events(call.id or envelope.NULL_ID)

    def encode_progress(self, token: str | int, value: object) -> bytes | None:
        """The message that tells how far a request is; None where none is sent."""
        return envelope.encode_notification(self.progress_method, _Progress(token, value))

    def encode_log(self, rendering: Rendering | None, level: str, data: object) -> bytes | None:
        """The message that has the client log something, of a call with this rendering; None where none is sent."""
        return None

    def encode_updates(self, uri: str) -> Sequence[bytes]:
        """The messages that tell of a change of a resource."""
        return ()

    def close(self) -> None:
        """The client has gone: give back what is held for it."""

    def drain(self) -> None:
        """The daemon is about to end: what only waits may end now."""

    def hand_over(self) -> None:
        """Another program is about to go on with the session: what only waits may end now, unanswered."""

    def open_calls(self) -> Iterable[Request]:
        """Calls that the program before this one has left unanswered at its `hand_over`: to be taken as if they came now."""
        return ()

    def encode_cancel(self, request_id: int) -> bytes:
        """The message that cancels a request of ours."""
        return envelope.encode_notification(CANCEL_REQUEST, {"id": request_id})

    def trace_meta(self, request: Request) -> Mapping[str, object] | None:
        """What a request says of its trace beside its `serviceParams`; None where such a thing is not there."""
        return None

    def with_trace(self, params: object, headers: Mapping[str, str]) -> tuple[object, Mapping[str, str]]:
        """The params of a request of ours, and its `serviceParams`, which name the span that it is made for."""
        return params, headers

    def progress_token(self, params: msgspec.Raw | None) -> str | int | None:
        """The token with which the caller asks for progress; None where it does not."""
        if params is None:
            return None
        try:
            tokens = decoder_for(_Tokens)(params)
        except msgspec.DecodeError:  # positional params, or a member of another meaning
            return None
        from_meta = None if tokens.meta is None else tokens.meta.progress_token
        return tokens.work_done_token if from_meta is None else from_meta


PLAIN: Final = Dialect()
