"""Runs functions of a document after it was opened and edited, and makes its diagnostics of what they return.

Loads with the first declaration. A run never sees a version that the client has replaced, as far as its result is used: the next
edit cancels it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar, final, get_args, get_origin, get_type_hints
from uuid import uuid4

import msgspec

from ...daemon.declarations import AfterEdits
from ...daemon.documents import DocumentEvent, TextDocument
from ...daemon.logs import log
from ...daemon.operations.context import Context
from ...daemon.operations.request import Request
from ...daemon.operations.service import DeclarationError, Service
from ...errors.decoders import decoder_for
from ...errors.failures import Cancelled, Internal, Unavailable
from ...lazy import anyio
from .capabilities import has_capability
from .editor import Editor
from .generated.base import Diagnostic
from .generated.diagnostics import (
    DocumentDiagnosticParams,
    RelatedFullDocumentDiagnosticReport,
    RelatedUnchangedDocumentDiagnosticReport,
)
from .versions import cached_per_version

if TYPE_CHECKING:
    from ...daemon.connection.session import ClientConnection
    from ...daemon.documents import Documents
    from ...daemon.operations.request import Outcome, Sending
    from ...daemon.operations.spec import OperationSpec

Function = TypeVar("Function", bound=Callable[..., Any])

DELAY_SECONDS: Final = 0.3
"""How long an author pauses between two edits, about: shorter pauses start no work."""

EDITS: Final = ("open", "change")
"""After which events functions run, unless they say otherwise."""

_EVENTS: Final = frozenset({"open", "change", "save"})

RUNS_AT_ONCE: Final = 4
"""Runs for one client at the same time. Those of other documents wait: threads are left to requests."""


# What authors declare.


def after_edits(
    service: Service,
    /,
    *,
    delay: float = DELAY_SECONDS,
    on: Collection[DocumentEvent] = EDITS,
    timeout: float | None = None,
) -> Callable[[Function], Function]:
    """Declare a function that runs `delay` seconds after the last edit of a document, and after it was opened.

    `on` names other events: `open`, `change` and `save`. With `("open", "save")` a run goes on while the user edits.

    It takes the document, or the context and the document: `def check(ctx: Context, document: lsp.TextDocument) -> None`. A
    plain `def` runs in a worker thread, an `async def` on the event loop. The next edit and the document's end cancel a run, and
    a document has at most one run of a function at a time: a thread that does not look at `ctx.cancelled` is waited for.
    Failures are log lines. `timeout` is in seconds; without one there is no deadline. Nothing runs after `shutdown`.

    The decorator returns the function unchanged. It raises `DeclarationError` for another signature or a negative delay.
    """

    def register(function: Function) -> Function:
        _declare(service, function, AfterEdits(delay, on), timeout, "after_edits")
        return function

    return register


def diagnostics(
    service: Service,
    /,
    *,
    delay: float = DELAY_SECONDS,
    on: Collection[DocumentEvent] = EDITS,
    inter_file: bool = False,
    timeout: float | None = None,
) -> Callable[[Function], Function]:
    """Declare the function that returns the diagnostics of a document: a list of `lsp.Diagnostic`.

    It takes what functions under `after_edits` take, and runs in the same way. Clients that pull diagnostics are answered by
    it (`textDocument/diagnostic`); an unchanged version is not checked again. For others it runs as `after_edits` says, and its
    result is published for the version that it saw. Diagnostics of a document are
    cleared when it is closed.

    `inter_file` says that diagnostics depend on other documents: then an edit has all open documents checked again. For other
    reasons, such as changed settings, there is `await lsp.Editor(ctx).refresh("diagnostics")`.

    A server has one such function. The decorator returns it unchanged, and raises `DeclarationError`.
    """

    def register(function: Function) -> Function:
        name = _declare(service, function, AfterEdits(delay, on, True, inter_file), timeout, "diagnostics")
        _declare_pull(service, name, inter_file)
        return function

    return register


def _declare(
    service: Service, function: Callable[..., Any], offer: AfterEdits, timeout: float | None, what: str
) -> str:
    """Declare an internal operation of a URI that calls a function of its document, and return its name."""
    if not isinstance(service, Service):
        raise DeclarationError(f"write @lsp.{what}(words) with the service, not @lsp.{what}")
    own = getattr(function, "__name__", type(function).__name__)
    if isinstance(offer.delay, bool) or not (isinstance(offer.delay, int | float) and 0 <= offer.delay < math.inf):
        raise DeclarationError(f"{own}: delay must be a number of seconds, 0 or more")
    if isinstance(offer.on, str) or not _EVENTS.issuperset(offer.on):
        raise DeclarationError(f'{own}: on must hold "open", "change" or "save": on=("open", "save")')
    takes_context, publishes = _takes_context(function, own), offer.publishes
    returns = _returned(function, own) if publishes else None

    def arguments(ctx: Context, uri: str) -> tuple[Any, ...]:
        document = ctx.documents.get(uri)
        return () if document is None else (ctx, document) if takes_context else (document,)

    if inspect.iscoroutinefunction(function):

        async def run_async(ctx: Context, uri: str) -> Any:
            given = arguments(ctx, uri)
            found = await function(*given) if given else []
            return found if publishes else None

        run: Callable[..., Any] = run_async
    else:

        def run_in_thread(ctx: Context, uri: str) -> Any:
            given = arguments(ctx, uri)
            found = function(*given) if given else []
            return found if publishes else None

        run = run_in_thread
    run.__annotations__["return"] = returns
    name = f"{service.namespace}/${what}.{own}".lstrip("/")
    described = f"Run {own} after edits."
    service.mutation(name, visibility="internal", keyed="uri", timeout=timeout, description=described)(run)
    service.operations[-1] = msgspec.structs.replace(service.operations[-1], offer=offer)
    service.late.announce()
    return name


def _takes_context(function: Callable[..., Any], own: str) -> bool:
    try:
        params = len(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        params = 0
    if params not in (1, 2):
        raise DeclarationError(f"{own}: it takes the document, or ctx and the document: `def {own}(ctx, document)`")
    return params == 2


def _returned(function: Callable[..., Any], own: str) -> Any:  # Any: an annotation
    try:
        returns = get_type_hints(function).get("return", list[Diagnostic])
    except Exception:  # noqa: BLE001 - the boundary: annotations are the app's code, and names of type checkers alone
        return list[Diagnostic]
    if get_origin(returns) not in (list, Sequence) or get_args(returns) != (Diagnostic,):
        raise DeclarationError(f"{own}: diagnostics are a list: annotate it `-> list[lsp.Diagnostic]`")
    return returns


_next_number: Final = count(1).__next__
_SESSION: Final = uuid4().hex[:8]
"""Marks the ids of this process: after a reload the client has those of another."""


@cached_per_version
def _number_of(document: TextDocument) -> int:
    return _next_number()


def _result_id(documents: Documents, document: TextDocument, inter_file: bool) -> str:
    changed = documents.changes if inter_file else f"{_number_of(document)}.{documents.refreshes}"
    return f"{_SESSION}.{changed}"


def _declare_pull(service: Service, name: str, inter_file: bool) -> None:
    async def pull(
        ctx: Context, params: DocumentDiagnosticParams, /
    ) -> RelatedFullDocumentDiagnosticReport | RelatedUnchangedDocumentDiagnosticReport:
        documents, uri = ctx.documents, params.text_document.uri
        document = documents.get(uri)
        if document is None:
            return RelatedFullDocumentDiagnosticReport(items=[])
        result_id = _result_id(documents, document, inter_file)
        if params.previous_result_id == result_id:
            return RelatedUnchangedDocumentDiagnosticReport(result_id=result_id)
        found = await ctx.call(name, {"uri": uri}, type=list[Diagnostic])
        newest = documents.get(uri)  # it may have changed before the function saw it
        seen = newest is document and _result_id(documents, document, inter_file) == result_id
        return RelatedFullDocumentDiagnosticReport(result_id=result_id if seen else None, items=found)

    options = {"interFileDependencies": inter_file, "workspaceDiagnostics": False}
    service.query("textDocument/diagnostic", options=options, description="The diagnostics of a document.")(pull)
    uses = service.operations[-1].uses | {name}
    service.operations[-1] = msgspec.structs.replace(service.operations[-1], uses=uses)
    service.late.announce()


# Who runs it, for one client.


async def sleep(seconds: float) -> None:
    """Wait. With `monotonic` the clock of this module."""
    await anyio.sleep(seconds)


async def run_internal(connection: ClientConnection, spec: OperationSpec, params: Mapping[str, object]) -> Outcome:
    """Run an internal operation for a client, and return its outcome."""
    body = msgspec.json.encode(params)
    return await connection.host.inner_calls.run(
        spec, body, spec.input.decode(body), metadata={}, sink=None, context_backend=connection.context_backend
    )


class _Work:
    """One function of one document. `edited` is the time of the last edit, on the clock of `monotonic`, `edits` their number."""

    __slots__ = ("edited", "edits", "scope")

    def __init__(self) -> None:
        self.edited = monotonic()
        self.edits = 1
        self.scope: anyio.CancelScope | None = None
        """Of what the task waits for. The next edit cancels it."""

    def edit(self) -> None:
        self.edited = monotonic()
        self.edits += 1
        if self.scope is not None:
            self.scope.cancel()


@final
class EditWatcher:
    """Runs the functions of the services for the documents of one client. `is_open()` is false once the client has said
    `shutdown`.
    """

    def __init__(
        self,
        connection: ClientConnection,
        documents: Documents,
        specs: Sequence[OperationSpec],
        is_open: Callable[[], bool],
    ) -> None:
        self.specs = specs
        self._connection = connection
        self._documents = documents
        self._is_open = is_open
        self._work: dict[tuple[str, str], _Work] = {}
        self._slots: anyio.Semaphore | None = None
        self._closed = False
        documents.watchers.append(self._note)

    def close(self) -> None:
        """Cancel what runs or waits, and start nothing any more."""
        self._closed = True
        self._documents.watchers.remove(self._note)
        for work in self._work.values():
            if work.scope is not None:
                work.scope.cancel()
        self._work.clear()

    def _note(self, event: DocumentEvent, uri: str) -> None:
        pulls = has_capability(self._connection.client.capabilities, "textDocument.diagnostic")
        for spec in self.specs:
            offer = spec.offer
            assert isinstance(offer, AfterEdits)
            if offer.publishes and pulls:
                continue
            if event == "close" and offer.publishes:
                self._publish(spec, uri, None, [])  # also where the program before a reload has published some
            if event in offer.on or event == "close":
                self._plan(spec, uri)
            if offer.publishes and (
                event == "refresh" or (offer.inter_file and (event in offer.on or event == "close"))
            ):
                for other in self._documents:
                    if other != uri:
                        self._plan(spec, other)

    def _plan(self, spec: OperationSpec, uri: str) -> None:
        """Run this function for the document as it is now, after its delay; only cancel it for one that was closed."""
        work = self._work.get((spec.name, uri))
        if work is not None:
            work.edit()
        elif uri in self._documents:
            self._work[spec.name, uri] = work = _Work()
            self._connection.host.spawn(lambda: self._go(spec, uri, work))

    async def _go(self, spec: OperationSpec, uri: str, work: _Work) -> None:
        offer, done = spec.offer, 0
        assert isinstance(offer, AfterEdits)
        while not self._closed and done != work.edits and uri in self._documents and self._is_open():
            with anyio.CancelScope() as work.scope:
                if (left := work.edited + offer.delay - monotonic()) > 0:
                    await sleep(left)
                else:
                    done = work.edits
                    await self._run(spec, uri)
            work.scope = None
        if self._work.get((spec.name, uri)) is work:
            del self._work[spec.name, uri]

    async def _run(self, spec: OperationSpec, uri: str) -> None:
        assert isinstance(spec.offer, AfterEdits)
        if self._slots is None:
            self._slots = anyio.Semaphore(RUNS_AT_ONCE)
        async with self._slots:
            document = self._documents.get(uri)
            outcome = await run_internal(self._connection, spec, {"uri": uri})
        if not isinstance(outcome, bytes):
            # These are told of where they happen, or are no failures.
            told_of = isinstance(outcome, Internal | Cancelled | Unavailable)
            if not told_of:
                log.warning("after_edits.failed", method=spec.name, failure=type(outcome).__name__)
        elif spec.offer.publishes and document is not None:
            newest = self._documents.get(uri)
            if newest is document or (newest is not None and "change" not in spec.offer.on):
                await self._publish(spec, uri, document.version, decoder_for(list[Diagnostic])(outcome))

    def _publish(self, spec: OperationSpec, uri: str, version: int | None, found: Sequence[Diagnostic]) -> Sending:
        backend = self._connection.context_backend
        context = Context(Request(spec.name, None, None, {}, spec=spec, context_backend=backend))
        return Editor(context).publish_diagnostics(uri, found, version=version)
