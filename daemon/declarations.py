"""Declares what an operation is besides a call: a resource, a prompt, a command or work after edits; and what it asks its client
before it runs.

Runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import msgspec

Completer: TypeAlias = Callable[[str], Sequence[str]]
"""From the beginning of a value to the values that begin so. It runs on the event loop and must not block."""

_VARIABLE: Final = r"(?a)\{(\+?)([A-Za-z_]\w*)\}"
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*:"


class Resource(msgspec.Struct, frozen=True):
    """A resource with this URI, or with those of a template (RFC 6570: `{name}`, and `{+name}`, which takes slashes too).

    `complete` has functions that complete values of the template's variables, by their names.
    """

    dialect: ClassVar[str] = "mcp"

    uri: str
    mime_type: str = ""
    title: str = ""
    complete: Mapping[str, Completer] = {}

    @property
    def is_template(self) -> bool:
        return "{" in self.uri


class Prompt(msgspec.Struct, frozen=True):
    """A prompt. `complete` has functions that complete values of its arguments, by their names."""

    dialect: ClassVar[str] = "mcp"

    title: str = ""
    complete: Mapping[str, Completer] = {}


class Command(msgspec.Struct, frozen=True):
    """A command that editors run by its name."""

    dialect: ClassVar[str] = "lsp"


class AfterEdits(msgspec.Struct, frozen=True):
    """A function of a document that runs after events of these names (`DocumentEvent`), `delay` seconds after the last one.

    With `publishes` its result are the document's diagnostics. With `inter_file` these depend on other documents, too.
    """

    dialect: ClassVar[str] = "lsp"

    delay: float
    on: Collection[str]
    publishes: bool = False
    inter_file: bool = False


class WorkspaceFiles(msgspec.Struct, frozen=True):
    """An index of the files of the client's workspace that match a glob pattern of LSP."""

    dialect: ClassVar[str] = "lsp"

    pattern: str


Offer: TypeAlias = Resource | Prompt | Command | AfterEdits | WorkspaceFiles
"""As what the clients of one `dialect` get an operation."""


TOOL_ERROR: Final = "MCP_TOOL_ERROR"
"""The code of an error that a tool of another server of MCP reports. Its details are `ToolContent`."""


PAGE_SCHEME: Final = "ui://"
"""Begins the URIs of pages of MCP Apps."""

LONGEST_TOOL_NAME: Final = 64
"""Characters of a tool's name: the models of OpenAI and Google take no longer ones."""

SERVER_ERROR: Final = "MCP_ERROR"
"""The code of an error of JSON-RPC that another server of MCP answers with."""

OF_SERVERS: Final = frozenset({TOOL_ERROR, SERVER_ERROR})

DECLARED_ERRORS: Final = "discreet/errors"
"""The member of a tool's `_meta` that lists the errors which its operation declares, as `ToolErrorFacts`."""


CONTENT: Final = "discreet/content"
"""The member of `_meta` of a structured result that has the content which a tool of another server gave beside it."""


class ToolErrorFacts(msgspec.Struct, rename="camel", omit_defaults=True):
    """The facts of an error that a tool declares, for which MCP has no place: the code, `retryable`, and details of this schema.
    They are the structured content of a call that fails so."""

    code: str
    message: str = ""
    retryable: bool = False
    http_status: int = 500
    details: Mapping[str, Any] | None = None


class ToolContent(msgspec.Struct, rename="camel", omit_defaults=True):
    """The content of a tool's result or error, as JSON texts."""

    content: msgspec.Raw = msgspec.Raw(b"[]")
    structured_content: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ExternalTool(msgspec.Struct, frozen=True):
    """A tool of another MCP server. With `whole` its results are `ToolContent`, else structured content alone. `ui` is what MCP
    Apps says of it, with the server's own URI."""

    annotations: Mapping[str, bool | str] = {}
    whole: bool = False
    ui: Mapping[str, Any] = {}  # Any: JSON


class Watched(Protocol):
    """The resources of a server whose updates are to be told, by the server's own URIs."""

    def watch(self, uri: str, tell: Callable[[str], object], /) -> None:
        """From now on `tell(uri)` is called after each update, until `leave`."""
        ...

    def leave(self, uri: str, /) -> None: ...

    async def refusal(self, uri: str, /) -> bytes | None:
        """Wait for the server's answer where it is connected, and return its error as JSON; None where it has not refused."""
        ...


class ExternalNames(msgspec.Struct, frozen=True, eq=False):
    """The names of another server's resources here. It is imported under a namespace.

    Its URIs have the namespace behind their scheme, so that those of several servers differ: `shop://stock` of a server that
    is imported as `pets` is `shop://pets/stock`, and `urn:a` is `urn:pets/a`. A slash in the namespace becomes `~`, which no
    other namespace has.
    """

    namespace: str

    @property
    def prefix(self) -> str:
        return self.namespace.replace("/", "~")

    def uri(self, own: str) -> str:
        """Return the URI, or the template, by which clients here know one of the server's."""
        scheme, rest = _scheme_and_rest(own)
        return f"{scheme}{self.prefix}/{rest}"


class ExternalServer(ExternalNames, frozen=True, eq=False):
    """Another server of MCP, whose operations are imported under a namespace. `resources`, `templates` and `prompts` are the
    entries of its lists, as JSON texts, the prompts by their names. With `has_apps` it has pages of MCP Apps.
    """

    watched: Watched
    resources: Sequence[bytes] = ()
    templates: Sequence[bytes] = ()
    prompts: Mapping[str, bytes] = {}
    has_apps: bool = False


def external_uri(uri: str) -> tuple[str, str] | None:
    """Return the prefix of a server in a URI that clients sent, and the server's own URI; None where there is none."""
    scheme, rest = _scheme_and_rest(uri)
    prefix, slash, own = rest.partition("/")
    return (prefix, scheme + own) if slash else None


def _scheme_and_rest(uri: str) -> tuple[str, str]:
    scheme = re.match(rf"(?:{_SCHEME}(?://)?)?", uri)
    end = 0 if scheme is None else scheme.end()
    return uri[:end], uri[end:]


class Foreign(msgspec.Struct, frozen=True):
    """The `options` of an operation that another server of MCP offers. `method` is that of MCP which it calls, `target` the name
    or the template that it calls it with. `tool()` is None where it is no tool there."""

    tool: Callable[[], ExternalTool | None]
    method: str
    target: str
    server: ExternalServer


def foreign_server(options: object) -> ExternalServer:
    """Return the server behind an operation with these options, which are those of one that was imported."""
    assert isinstance(options, Foreign)
    return options.server


def foreign_tool(options: object) -> ExternalTool | None:
    """Return the tool of another server behind an operation with these options; None for other operations."""
    return options.tool() if isinstance(options, Foreign) else None


Question: TypeAlias = str | Callable[..., Any]
"""A question: a text, or a function that makes it of the handler's other params, which it takes by their names. It may be
a coroutine function, and take `ctx`. It may be called several times for one call, and must not block the event loop. Where
it returns None nothing is asked, and the param's default stands."""


class Ask(msgspec.Struct, frozen=True):
    """Marks a param that the user is asked for before the handler runs: `Annotated[bool, Ask("Sure?")]`.

    Clients of MCP show a form; a struct has one field for each of its members. Models neither see such a param nor set it. If
    the client can't ask, the param has its default; without a default the call is refused. Clients of other dialects send it
    like any other param. All of this holds for `AskUrl`, `Sample` and `Roots`, too.
    """

    text: Question


class AskUrl(msgspec.Struct, frozen=True):
    """Marks a param for the user's consent to open a page: `Annotated[bool, AskUrl("https://login.example", "Sign in.")]`.

    Clients of MCP show the text and the address, and open it in a browser, so that a secret passes neither the client nor the
    model. The param is true where the user agreed. It does not say whether they came to the end of the page: the server that
    has the page knows. `url` begins with `https://`, on the same machine also with `http://`.
    """

    url: Question
    text: str


class Sample(msgspec.Struct, frozen=True):
    """Marks a param that the client's model writes: `Annotated[str, Sample("Write a greeting.")]`.

    The param is the text, or the whole `mcp.CreateMessageResult`. A function may return a list of `mcp.SamplingMessage`
    instead of a text.
    """

    text: Question
    max_tokens: int = 1024
    system_prompt: str = ""


class Roots(msgspec.Struct, frozen=True):
    """Marks a param for the folders that the client works in: `Annotated[list[mcp.Root], Roots()]`."""


Asked: TypeAlias = Ask | AskUrl | Sample | Roots


def asks_of(params: Any) -> dict[str, Asked]:  # Any: the type of the params
    """The params that the client is asked for, by name."""
    hints = getattr(params, "__annotations__", {})
    found = {
        name: [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Asked)]
        for name, hint in hints.items()
    }
    return {name: marks[0] for name, marks in found.items() if marks}


def check_offer(offer: Resource | Prompt, names: Collection[str]) -> None:
    """Raise `TypeError` or `ValueError` if a handler with params of these names can't offer this."""
    if not isinstance(offer.complete, Mapping) or not all(map(callable, offer.complete.values())):
        raise TypeError('complete must map names of params to functions, such as {"city": cities_that_begin_with}')
    if unknown := offer.complete.keys() - set(names):
        raise ValueError(f"complete names no param of the handler: {', '.join(sorted(unknown))}")
    for text in (offer.title, offer.mime_type if isinstance(offer, Resource) else ""):
        if not isinstance(text, str):
            raise TypeError(f"title and mime_type must be strings, not {type(text).__name__}")
    if isinstance(offer, Prompt):
        return
    if not re.match(_SCHEME, offer.uri):
        raise ValueError(f"a resource needs a URI with a scheme, such as notes://today, not {offer.uri!r}")
    rest = re.sub(_VARIABLE, "", offer.uri)
    if "{" in rest or "}" in rest:
        raise ValueError(f"the template {offer.uri!r} may hold only {{name}} and {{+name}}")
    if offer.uri.count("{+") > 1 or "}{" in offer.uri:
        raise ValueError(f"the template {offer.uri!r} needs text between its variables, and may hold one {{+name}}")
    variables = [match[2] for match in re.finditer(_VARIABLE, offer.uri)]
    if sorted(variables) != sorted(names):
        raise ValueError(
            f"the variables of {offer.uri!r} ({', '.join(variables) or 'none'}) must be the handler's params"
            f" ({', '.join(names) or 'none'})"
        )


def variables_of(template: str, uri: str) -> dict[str, str] | None:
    """The values of a template's variables in a URI; None where it does not fit. Never slow, whatever the URI."""
    from urllib.parse import unquote  # late: only who has templates needs it

    pattern, end = "", 0
    for match in re.finditer(_VARIABLE, template):
        pattern += re.escape(template[end : match.start()])
        following = template[match.end() : match.end() + 1]
        stops = re.escape("/?#" + following.replace("{", ""))
        pattern += f"(?P<{match[2]}>{'.+' if match[1] else f'[^{stops}]+'})"
        end = match.end()
    found = re.fullmatch(pattern + re.escape(template[end:]), uri)
    return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}
