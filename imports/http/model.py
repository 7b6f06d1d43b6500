"""How an operation of an OpenAPI document is called by HTTP. Structs only, and none of them calls anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from ..model import Imported, ImportedOperation

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
    """What an OpenAPI document offers. `routes` are those of the operations, which it makes itself: a caller checks them at the
    start, without the operations."""

    operations: tuple[HttpOperation, ...] = ()
    security_schemes: Mapping[str, SecurityScheme] = {}
    routes: tuple[Route, ...] = ()

    def __post_init__(self) -> None:
        if self.operations:
            routes = {(each.server, each.security): each.name for each in reversed(self.operations)}
            made = tuple(Route(*route, first) for route, first in routes.items())
            force_setattr(self, "routes", made[::-1])
