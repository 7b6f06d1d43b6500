"""What the log says of requests: one line per failure, at the level that the table gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors.codes import row_of
from ...errors.failures import Failure, InvalidParams, InvalidRequest
from ...framing.events import Fault, Framing
from ..logs import log
from .dialect import Dialect
from .envelope import Call, Reply

if TYPE_CHECKING:
    from ..tracing.span import Span

_OPENINGS: Final[tuple[tuple[bytes, str], ...]] = (
    (rb"\xef\xbb\xbf|\xff\xfe|\xfe\xff", "the input begins with a byte order mark: send UTF-8 without one"),
    (rb"[A-Z]+ \S+ HTTP/", "this is an HTTP request; what is read here is JSON-RPC on stdin"),
    (rb"(?i:content-[a-z]+:[^\r\n]*)\n", "header lines end in CR LF, and so does the empty line behind them"),
    (rb"(?i:content-[a-z]+):", "messages with headers need --framing content-length"),
    (
        rb'\s*\{[^\n]*"initialize"',
        "an initialize that is a line is that of MCP or ACP: --dialect mcp or acp; other lines need --framing newline",
    ),
    (rb"\s*[\[{]", "messages that are lines need --framing newline"),
)
"""What the input of a client begins with that framed not even its first message as is expected, and what to tell it."""


def note_failure(
    method: str | None,
    call_id: bytes | None,
    failure: Failure,
    shown: Failure | None,
    dialect: Dialect,
    *,
    diagnosed: bool = False,
    span: Span | None = None,
    task: str | None = None,
) -> None:
    """A call failed, or bytes were no call. `method` and `call_id` where they are known.

    `shown` is the failure that the client is told of in this dialect; None where it is told of none. What is `diagnosed` has a
    line in the log already, which says more. `span` is the record of the call, where one is kept. `task`
    is the agent's task that the call names.
    """
    row = row_of(failure)
    level = "debug" if diagnosed else row.log_level
    if not log.is_enabled_for(level):
        return
    fields: dict[str, object] = {"failure": row.protocol_code}
    if shown is not None and not isinstance(shown, dialect.unanswered):
        fields = {"code": row_of(shown).code_in(dialect.name), **fields}
    if method is not None:
        fields["method"] = method
    if call_id is not None and call_id != b"null":
        fields["id"] = call_id
    reason = getattr(failure, "reason", None)
    if reason is not None:
        fields["reason"] = reason
    if isinstance(failure, InvalidRequest) and failure.member is not None:
        fields["member"] = failure.member
    if isinstance(failure, InvalidParams):
        fields["param"] = failure.param
    task = getattr(failure, "task_id", None) or task
    if task is not None:
        fields["task"] = task
    if span is not None:
        fields.update(span.log_fields)
    log.record(level, "request.failed", fields)


def note_unanswered(call: Call) -> None:
    """A handler ended after its request was answered (cancelled, timed out); its outcome is dropped."""
    if log.is_enabled_for("debug"):
        log.debug("result.dropped", method=call.method, id=call.id)


def note_ignored(call: Call) -> None:
    """A notification that a server need not know."""
    log.debug("notification.ignored", method=call.method)


def note_overdue(call: Call, limit: float | None) -> None:
    """A handler in a worker thread runs on, although its caller has been told that its time is over."""
    log.warning("handler.overdue", method=call.method, id=call.id, seconds=limit)


def note_fault(fault: Fault, opening: bytes, framing: Framing | None) -> None:
    """Bytes were lost. The log says how many and where, never what they were. `opening` is what the input began with."""
    if log.is_enabled_for("warning"):
        code = row_of(fault.failure).code
        said = _hint(opening, framing) if fault.offset == 0 else ""
        hint = {"hint": said} if said else {}
        log.warning(
            "frame.dropped", code=code, reason=fault.failure.reason, size=fault.size, offset=fault.offset, **hint
        )


def _hint(opening: bytes, framing: Framing | None) -> str:
    import re  # late: only such clients need it

    for pattern, hint in _OPENINGS:
        if re.match(pattern, opening):
            return "" if hint.endswith(f"--framing {framing}") else hint
    return ""


def note_timeout(size: int) -> None:
    """A frame was not complete in time; `size` bytes of it had come."""
    log.warning("frame.timed_out", size=size)


def note_reply(reply: Reply) -> None:
    """A response to no request of ours."""
    if log.is_enabled_for("debug"):
        log.debug("response.unmatched", id=reply.id)


def note_dropped() -> None:
    """A notification with a broken envelope, or a malformed response. Neither has an answer."""
    log.warning("message.malformed")
