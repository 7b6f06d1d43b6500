"""ACP as far as one message goes: how a request is cancelled, and in which order prompts and cancellations came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, final

import msgspec

from ...daemon.rpc import envelope
from ...daemon.rpc.dialect import Dialect
from ...errors.failures import InvalidParams
from ...errors.type_building import decoder_for
from ...errors.wire import error_object

if TYPE_CHECKING:
    from ...daemon.rpc.dialect import Ignored
    from ...daemon.rpc.envelope import Call
    from ...errors.failures import Failure
    from .sessions import Sessions

_CANCEL_REQUEST = "$/cancel_request"


class _Named(msgspec.Struct, rename="camel"):
    session_id: str


@final
class AcpDialect(Dialect):
    """One per connection. A cancellation holds for the prompts of its session that were read before it, begun or not."""

    name: ClassVar[str] = "acp"
    cancellations: ClassVar[Mapping[str, str]] = {_CANCEL_REQUEST: "requestId"}
    mends_surrogates: ClassVar[bool] = True
    trace_place: ClassVar[Literal["serviceParams", "_meta"] | None] = "_meta"

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def receive(self, call: Call) -> Failure | Ignored | None:
        if call.method == "session/prompt" and call.id is not None:
            self._sessions.note_prompt(_session_of(call), call.id)
        elif call.method == "session/cancel":
            self._sessions.cancel(_session_of(call))
        return None

    def encode_failure(self, call_id: bytes, failure: Failure, method: str = "") -> bytes:
        """Editors show their users the message alone: that of wrong params says what is wrong."""
        if isinstance(failure, InvalidParams) and not failure.unknown:
            error = error_object(failure, self.name)
            accepted = f" {', '.join(map(str, failure.accepted))}" if failure.accepted else ""
            message = f"{error.message}: {failure.param}: expected {failure.expected}{accepted}, not {failure.received}"
            told = msgspec.json.encode(msgspec.structs.replace(error, message=message))
            return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (call_id, told)
        return super().encode_failure(call_id, failure, method)

    def encode_cancel(self, request_id: int) -> bytes:
        return envelope.encode_notification(_CANCEL_REQUEST, {"requestId": request_id})


def _session_of(call: Call) -> str:
    try:
        return decoder_for(_Named)(call.params or b"").session_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""  # the method's own decoder tells what is wrong
