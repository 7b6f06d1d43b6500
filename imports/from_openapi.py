"""Makes a service of an OpenAPI document: reads the document or the cache, and joins its operations with the code that calls
them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urljoin

from msgspec import UNSET

from ..daemon.operations.service import Service
from ..daemon.operations.spec import Timeout
from .archive import Cached, ImportArchive, keep, key_of, pack, read_cached
from .arguments import Selection, check_arguments, check_expose, tell_left_out
from .http.model import UNDECLARED, HttpImport, HttpOperation
from .model import ImportFailed
from .openapi.parsing import DocumentError, quoted
from .service import ImportOptions, Validate, imported_service
from .targets import SCHEMES, require, target_of

if TYPE_CHECKING:
    from .daemon.contracts import DaemonImport

Document: TypeAlias = str | os.PathLike[str] | bytes | Mapping[str, Any]

DAY: Final = 86_400.0

_SCHEME: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+://")


def from_openapi(  # noqa: PLR0913 - what can be said of an import
    document: Document,
    *,
    namespace: str,
    base_url: str = "",
    credentials: str | Mapping[str, str] = "",
    tags: Collection[str] = (),
    paths: Collection[str] = (),
    methods: Collection[str] = (),
    operation_ids: Collection[str] = (),
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    rename: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    expose: bool | Sequence[str] = False,
    scopes: Sequence[str] = (),
    validate: Validate = "on",
    timeout: Timeout = UNSET,
    allow_private: bool = False,
    outside: bool = False,
    error_bodies: bool = False,
    max_age: float = DAY,
) -> Service:
    """Return a service with the operations of an OpenAPI document (3.0, 3.1 or 3.2), called by HTTP.

    `document` is a path, a URL, the text as bytes, or its content as a dict. The operations are called `namespace/name`. They
    go to `base_url`, or else to the document's servers, with these `variables`. `credentials` names the one credential of the
    app that is sent, or maps the document's security schemes to credentials.

    An operation is imported if it matches an entry of each filter that is given, and none of `exclude`. The filters are
    `tags`, `methods`, and patterns of `paths`, `operation_ids` and names (`include`). `rename` maps operationIds or names to
    new names. `expose` has patterns of the operations that callers may call, or True for all; the others can only be called by
    operations of this daemon. A caller needs all of `scopes`.

    Params and results are checked against the document. With `validate="on"` a value that does not fit is an error, with `log`
    a line in the log, with `off` it is not checked. `timeout` is in seconds, as that of an operation. Private addresses are
    refused unless `allow_private`, and references to other documents unless `outside`. With `error_bodies` each operation
    declares the error `HTTP_UNDECLARED` for errors that the document does not declare; its details are the status and the body
    without secrets. A document from a URL is used again for `max_age` seconds.

    A document that discreet has written gives back the operations that it was written from, with their names, kinds and error
    codes. The daemon that serves them checks their params itself.

    Blocks while the document is read. Raises `DeclarationError`, in one line, for a wrong document or argument.
    """
    check_arguments(dict(locals()))
    _check_document(document)
    select = Selection(tags, paths, methods, operation_ids, include, exclude)
    try:
        found, origin = _found(document, select, dict(rename or {}), dict(variables or {}), outside, max_age)
        url = origin if origin.startswith(SCHEMES) else ""
        if not isinstance(found, bytes):
            from .daemon.calls import MountIdentity  # late: only documents of discreet need these
            from .from_daemon import KIND, daemon_service

            base_url = base_url or (urljoin(url, found.url) if url else found.url)
            if not base_url.startswith(SCHEMES):
                raise ImportFailed("the document names no server; give base_url")
            credential = credentials if isinstance(credentials, str) else next(iter(credentials.values()), "")
            return daemon_service(
                found,
                target_of(KIND, base_url, allow_private=allow_private),
                MountIdentity(credential),
                ImportOptions(expose=expose, validate=validate, timeout=timeout, scopes=scopes),
                namespace=namespace,
                selection=select,
                rename=rename,
            )
        require("from_openapi", "openapi", "h11", "jsonschema_rs")
        from .http.upstream import HttpUpstream  # late: only imports need it

        packed = ImportArchive(found, HttpImport, HttpOperation)
        head = packed.head
        assert isinstance(head, HttpImport)
        names = [entry.name for entry in packed.entries]
        if not names:
            why = f": {_check_command(document)} says why" if head.left_out else ""
            raise ImportFailed(f"{_shown(document)}: no operation of it can be imported{why}")
        check_expose(expose, names, rename)
        upstream = HttpUpstream(
            head,
            name=namespace,
            base_url=base_url,
            document_url=url,
            credentials=credentials,
            allow_private=allow_private,
            error_bodies=error_bodies,
        )
    except (DocumentError, ValueError) as exc:
        raise ImportFailed(f"{_shown(document)}: {_reason(document, str(exc))}") from None
    tell_left_out(namespace, head.left_out, len(names), _check_command(document))
    options = ImportOptions(
        expose=expose,
        validate=validate,
        timeout=timeout,
        scopes=scopes,
        credentials=sorted(upstream.credentials),
        errors=(UNDECLARED,) if error_bodies else (),
    )
    return imported_service(namespace, packed, upstream, options)


def _check_document(document: object) -> None:
    if not isinstance(document, str | bytes | os.PathLike | Mapping):
        raise ImportFailed(f"document must be a path, a URL, bytes or a dict, not {type(document).__name__}")
    if document == "":
        raise ImportFailed("document is empty; expected a path, a URL, bytes or a dict")
    if isinstance(document, str) and not document.startswith(SCHEMES) and _SCHEME.match(document):
        raise ImportFailed(f"{_source(document)}: a document is a file, or an http(s) URL")


def _found(
    document: Document,
    select: Selection,
    rename: Mapping[str, str],
    variables: Mapping[str, str],
    outside: bool,
    max_age: float,
) -> tuple[bytes | DaemonImport, str]:
    """The import as bytes, or what a document of discreet offers; and the address that the document came from, if it did."""
    key = b""
    if not isinstance(document, bytes | Mapping):
        source = os.fspath(document)
        is_url = source.startswith(SCHEMES)
        where = source if is_url else os.path.abspath(source)
        key = key_of(where, select, rename, variables, outside)
        cached = read_cached(key)
        if cached is not None:
            current = 0 <= time() - cached.made < max_age if is_url else _is_current(cached, where, outside=outside)
            if current:
                return cached.data, where
    from .daemon.contracts import read_own_document  # late: what the cache has is not read
    from .openapi.loading import load_document
    from .openapi.reader import read_openapi

    loaded = load_document(document, outside=outside)
    own = read_own_document(loaded.text)
    if own is not None and own.operations:
        return own, loaded.origin
    imported = read_openapi(
        loaded.text, origin=loaded.origin, select=select, rename=rename, variables=variables, fetch=loaded.fetch
    )
    data = pack(imported)
    if loaded.fetch is not None:
        keep(key, data, loaded.fetch.digests)
    return data, loaded.origin


def _is_current(cached: Cached, path: str, *, outside: bool) -> bool:
    """Whether a file, and all that was read for it, is the same today."""
    from pathlib import Path  # late, as above

    from .openapi.loading import Fetch

    try:
        fetch = Fetch(Path(path).resolve().as_uri(), outside=outside)
        for uri in cached.digests:
            fetch(uri)
    except (DocumentError, OSError, RuntimeError, ValueError):
        return False
    return fetch.digests == cached.digests


def _source(document: Document) -> str:
    """The document for a command line. A query may hold secrets."""
    if isinstance(document, bytes | Mapping):
        return "FILE"
    source = os.fspath(document)
    return source.partition("?")[0] if "://" in source else source


def _check_command(document: Document) -> str:
    """Return the command that says why operations are left out. A file below the working directory is named as seen from there:
    logs show no other folders.
    """
    source = _source(document)
    with suppress(OSError):  # the working directory may be gone
        source = source.removeprefix(os.path.join(os.getcwd(), ""))
    return f"discreet import check {source}"


def _shown(document: Document) -> str:
    return "the OpenAPI document" if isinstance(document, bytes | Mapping) else _source(document)


def _reason(document: Document, message: str) -> str:
    """Describe the fault without the name of the document itself, which stands before it."""
    source = _source(document)
    for name in (source, os.path.normpath(source)):
        message = message.removeprefix(f"{quoted(name)}: ")
    return message
