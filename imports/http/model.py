"""Describes how an operation of an OpenAPI document is called by HTTP: its media types, and its failures beside its errors.

Calls nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from ...errors.exceptions import FailureError
from ...errors.failures import Failure, Internal, InvalidParams, Overloaded, TimedOut, Unavailable
from ...framing.http import retry_after_seconds
from ...schemas.phrases import json_kind
from ..model import Imported, ImportedError, ImportedOperation

if TYPE_CHECKING:
    from ...client.outbound.connection import Response

Location: TypeAlias = Literal["path", "query", "querystring", "header", "cookie"]
"""`querystring` is the whole query (OpenAPI 3.2)."""

Style: TypeAlias = Literal[
    "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject", "cookie"
]

BodyForm: TypeAlias = Literal["json", "form", "multipart", "text", "binary"]
"""`text` is a string of the input as it is, `binary` one in base64."""

BODY: Final = "body"
"""The member of the input that is the body of the request."""

ReplyForm: TypeAlias = Literal["json", "text", "binary", "events", "event-data", "lines", "nothing"]
"""`events`: each event of an SSE stream as an object with `event`, `data`, `id`, `retry`; `event-data`: its data alone, as JSON
where it is JSON. `lines`: JSON lines, JSON sequences, NDJSON."""


class Serialization(Struct, frozen=True):
    """How one value is written: by a style, or, with a `content_type`, as that."""

    style: Style = "form"
    explode: bool = False
    allow_reserved: bool = False
    content_type: str = ""


class Param(Struct, frozen=True):
    """One param: `name` is that of the input's member, `wire_name` that in the request."""

    name: str
    wire_name: str
    location: Location
    serialization: Serialization
    required: bool = False


class Body(Struct, frozen=True):
    """The request's body, which is the input's member `body`. `parts` say how the members of a form are written, where the
    document does. `required` is whether a request has one."""

    content_type: str
    form: BodyForm
    parts: Mapping[str, Serialization] = {}
    required: bool = False


class Reply(Struct, frozen=True):
    """A response that the document declares. `status` is `200`, `2XX` or `default`; `forms` by media type (`*/*` and
    `text/*` are possible). `code` is that of the error it stands for, empty for a success. `asked` are the media types that come
    only if a caller asks for them."""

    status: str
    forms: Mapping[str, ReplyForm] = {}
    code: str = ""
    asked: tuple[str, ...] = ()


class SecurityScheme(Struct, frozen=True):
    """`bearer`, `basic` and `api-key` are sent; `other` can't be. Where the key of an `api-key` stands: `location` and `name`."""

    kind: Literal["bearer", "basic", "api-key", "other"]
    location: Literal["header", "query", "cookie"] = "header"
    name: str = "Authorization"


class HttpOperation(ImportedOperation, frozen=True, kw_only=True):
    """`server` is the base URL of the document for this operation, its variables filled in; it may be relative or empty.

    `method` is as it is sent. `bodies` are those of other media types than that of `body`; the input's member `content_type`
    names the one that is sent. The member `accept` names the media type that is asked for. `security` are alternatives, each the
    names of the schemes that it needs together; empty for none.
    """

    method: str
    path: str
    server: str = ""
    params: tuple[Param, ...] = ()
    body: Body | None = None
    bodies: Mapping[str, Body] = {}
    content_type: str = ""
    accept: str = ""
    replies: tuple[Reply, ...] = ()
    security: tuple[tuple[str, ...], ...] = ()


class Route(Struct, frozen=True):
    """A server and alternatives of security that operations have, `first` among them."""

    server: str
    security: tuple[tuple[str, ...], ...]
    first: str


class HttpImport(Imported, frozen=True, kw_only=True):
    """The operations of an OpenAPI document. `routes` are derived from them: a caller checks them at the start, without the
    operations."""

    operations: tuple[HttpOperation, ...] = ()
    security_schemes: Mapping[str, SecurityScheme] = {}
    routes: tuple[Route, ...] = ()

    def __post_init__(self) -> None:
        if self.operations:
            routes = {(each.server, each.security): each.name for each in reversed(self.operations)}
            made = tuple(Route(*route, first) for route, first in routes.items())
            force_setattr(self, "routes", made[::-1])


JSON: Final = "application/json"
OCTETS: Final = "application/octet-stream"
STREAMS: Final[frozenset[ReplyForm]] = frozenset({"events", "event-data", "lines"})

_LINES: Final = frozenset(
    f"application/{name}"
    for name in "jsonl x-jsonlines jsonlines x-ndjson ndjson json-seq geo+json-seq stream+json".split()
)
_TEXTS: Final = frozenset(
    f"application/{name}"
    for name in "xml yaml x-yaml javascript graphql toml sql csv rtf pem-certificate-chain".split()
)


def plain(media_type: str) -> str:
    """Return the media type without params, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Whether values of this type are JSON (RFC 6838, section 4.2.8, for `+json`)."""
    name = plain(media_type)
    return name in (JSON, "text/json", "*/json") or (name.endswith("+json") and name != "application/stream+json")


def is_any(media_type: str) -> bool:
    """Whether this may be JSON, or anything else."""
    return plain(media_type) in ("*/*", "*", "application/*")


def is_text(media_type: str) -> bool:
    """Whether values of this type are texts."""
    name = plain(media_type)
    return name.startswith("text/") or name in _TEXTS or name.endswith(("+xml", "+yaml"))


def body_form(media_type: str) -> BodyForm:
    """Return how a body of this type is written."""
    if is_json(media_type) or is_any(media_type):
        return "json"
    match plain(media_type):
        case "application/x-www-form-urlencoded":
            return "form"
        case "multipart/form-data":
            return "multipart"
        case name:
            return "text" if is_text(name) or name in _LINES else "binary"


def sent_as(media_type: str) -> str:
    """Return the media type that a body of this one is sent as: a range is none."""
    if "*" not in media_type:
        return media_type.strip()
    form = body_form(media_type)
    return JSON if form == "json" else "text/plain" if form == "text" else OCTETS


_BODY_ORDER: Final[tuple[BodyForm, ...]] = ("json", "form", "multipart", "text", "binary")


def body_rank(media_type: str) -> tuple[int, bool, bool]:
    """Return the rank of a body's type. The lowest is taken: JSON itself, other JSON, what may be JSON, forms, text, bytes."""
    return _BODY_ORDER.index(body_form(media_type)), is_any(media_type), plain(media_type) != JSON


def reply_form(media_type: str) -> ReplyForm:
    """Return how a reply of this type is read. For an SSE stream, `events`."""
    name = plain(media_type)
    if name == "text/event-stream":
        return "events"
    if name in _LINES:
        return "lines"
    if is_json(media_type) or is_any(media_type):
        return "json"
    return "text" if is_text(media_type) else "binary"


def reply_rank(media_type: str, *, is_error: bool) -> int:
    """Return the rank of a reply's type, as `body_rank`. No error is a stream."""
    form = reply_form(media_type)
    if form == "json":
        return 1 if is_any(media_type) else 0
    return 2 if form in STREAMS and not is_error else 3


FaultReason: TypeAlias = Literal[
    "address", "connect", "connect-timeout", "connections", "content-type", "credential", "encoding", "json", "lost", "protocol",
    "redirect", "status", "timeout", "tls", "too-large", "unresolved",
]  # fmt: skip
"""`encoding`: a compression or a charset that can't be read. `timeout`: a stream did not begin in time. The others say it."""

_UNREACHABLE: Final = Unavailable(upstream=True)

_FAILURES: Final[Mapping[FaultReason, Failure]] = {
    "connect": _UNREACHABLE,
    "connect-timeout": _UNREACHABLE,
    "connections": Overloaded(),
    "lost": _UNREACHABLE,
    "timeout": TimedOut(),
    "unresolved": _UNREACHABLE,
}
"""All others are INTERNAL: the same call would fail again."""


UNDECLARED: Final = ImportedError(
    code="HTTP_UNDECLARED",
    http_status=HTTPStatus.BAD_GATEWAY,
    message="The server answers with a status that its document does not declare.",
    description="`status` is that of the response. `body` is its JSON, or its text; it is left out if it is neither, or large.",
    schema={
        "type": "object",
        "properties": {"status": {"type": "integer"}, "body": True},
        "required": ["status"],
    },
)
"""The error of each operation whose import shows the bodies of undeclared errors."""


class UpstreamFault(Exception):
    """The upstream, or the import's configuration, is at fault. `status` is that of the response, if there is one, and
    `retry_after_ms` how long that asks to wait.
    """

    def __init__(self, reason: FaultReason, status: int | None = None, *, retry_after_ms: int | None = None) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.status: Final = status
        self.retry_after_ms: Final = retry_after_ms


MAX_RETRY_AFTER_SECONDS: Final = 1_000_000_000


def retry_after_ms(response: Response) -> int | None:
    """How long a response asks to wait (RFC 9110, section 10.2.3), in milliseconds; None where it does not."""
    seconds = retry_after_seconds(response.value(b"retry-after"))
    return None if seconds is None else round(min(seconds, MAX_RETRY_AFTER_SECONDS) * 1000)


def failure_of(fault: UpstreamFault, *, repeatable: bool) -> Failure:
    """Say what the caller gets. A connection that was lost may have carried the request: only a `repeatable` one is made again.
    A status that the document does not declare has a code of its own, `HTTP_404`, or is one of the protocol's.
    """
    if fault.reason == "status":
        match fault.status:
            case HTTPStatus.TOO_MANY_REQUESTS:
                return Overloaded(fault.retry_after_ms)
            case HTTPStatus.SERVICE_UNAVAILABLE:
                return Unavailable(fault.retry_after_ms, upstream=True)
            case int(status) if status >= HTTPStatus.BAD_REQUEST:
                return Internal(code_of(status))
            case _:
                return Internal()
    if fault.reason == "lost" and not repeatable:
        return Internal()
    return _FAILURES.get(fault.reason, Internal())


def code_of(status: int | str) -> str:
    """The code of the error that a status is: `HTTP_404`, `HTTP_4XX`, `HTTP_DEFAULT`."""
    return f"HTTP_{status}".upper()


def invalid_input(param: str, expected: str, value: Any) -> FailureError:  # Any: a JSON value
    """The caller's value can't be sent."""
    return FailureError(InvalidParams(param, expected, json_kind(value)))
