"""From an OpenAPI document to a service: reads it, or takes what the cache has of it, and joins it with what calls it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from time import time
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from ...version import __version__
from ..operations.options import check_name
from ..operations.service import Service
from ..operations.spec import Timeout
from .cache import digest_of, keep, read_cached
from .failures import ImportFailed
from .http.model import HttpImport, HttpOperation
from .openapi.documents.faults import DocumentError
from .openapi.documents.loading import Loaded, load_document
from .openapi.naming import Selection
from .openapi.reader import read_openapi
from .packed import Packed, pack
from .service import ImportOptions, Validate, imported_service

Document: TypeAlias = str | os.PathLike[str] | bytes | Mapping[str, Any]

DAY: Final = 86_400.0

_URLS: Final = ("http://", "https://")
_LIBRARIES: Final = ("httpx", "jsonschema_rs")


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
    max_age: float = DAY,
) -> Service:
    """A service with the operations of an OpenAPI document (3.0, 3.1 or 3.2), called by HTTP.

    `document` is a path, a URL, the text itself as bytes, or what it holds. The operations are called `namespace/name`. They go
    to `base_url`, else to the document's servers, with these `variables`. `credentials` names the one credential of the app that
    is sent, or one for each of the document's security schemes.

    Imported are those that each filter has an entry for: `tags`, patterns of `paths`, `operation_ids` and names (`include`), and
    `methods`; none of `exclude`. `rename` has new names by operationId or name. Those that `expose` has a pattern for can be
    called from outside, all of them for True; the others by operations of the daemon alone. A caller needs all of `scopes`.

    Answers are checked against the document: `validate` says whether one that does not fit is an internal error, a line in the
    log, or nothing. `timeout` is in seconds, as that of an operation. Private addresses are refused unless `allow_private`, and
    references to documents elsewhere unless `outside`. What was read of a URL is used again for `max_age` seconds.

    Raises `DeclarationError`: a wrong document or argument, in one line. Blocks while the document is read.
    """
    _require_libraries()
    from .http.upstream import HttpUpstream  # late: it loads httpx

    try:
        check_name(namespace)
        select = Selection(tags, paths, methods, operation_ids, include, exclude)
        packed, origin = _packed(document, select, dict(rename or {}), dict(variables or {}), outside, max_age)
        head = packed.head
        assert isinstance(head, HttpImport)
        upstream = HttpUpstream(
            head,
            name=namespace,
            base_url=base_url,
            document_url=origin if origin.startswith(_URLS) else "",
            credentials=credentials,
            allow_private=allow_private,
        )
    except (DocumentError, ValueError) as exc:
        raise ImportFailed(f"{_shown(document)}: {exc}") from None
    options = ImportOptions(
        expose=expose, validate=validate, timeout=timeout, scopes=scopes, credentials=sorted(upstream.credentials)
    )
    return imported_service(namespace, packed, upstream, options)


def _require_libraries() -> None:
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise ImportFailed(f"from_openapi needs {' and '.join(missing)}: pip install 'discreet[openapi]'")


class _Key(Struct, frozen=True, array_like=True):
    """What else than its documents decides what an import is."""

    version: str
    origin: str
    select: Selection
    rename: Mapping[str, str]
    variables: Mapping[str, str]
    outside: bool


def _packed(
    document: Document,
    select: Selection,
    rename: Mapping[str, str],
    variables: Mapping[str, str],
    outside: bool,
    max_age: float,
) -> tuple[Packed[HttpOperation], str]:
    """The import, and where it came from."""
    if isinstance(document, bytes | Mapping):
        imported = read_openapi(document, select=select, rename=rename, variables=variables)
        return _unpacked(pack(imported)), ""
    source = os.fspath(document)
    is_url = source.startswith(_URLS)
    where = source if is_url else os.path.abspath(source)
    key = msgspec.msgpack.encode(_Key(__version__, where, select, rename, variables, outside), enc_hook=list)
    cached = read_cached(key)
    if cached is not None and is_url and 0 <= time() - cached.made < max_age:
        return _unpacked(cached.data), source
    loaded = _load(source, outside=outside)
    if cached is not None and not is_url and _is_current(cached.digests, loaded):
        return _unpacked(cached.data), loaded.origin
    digests = {loaded.origin: digest_of(loaded.text)}
    imported = read_openapi(
        loaded.text,
        origin=loaded.origin,
        select=select,
        rename=rename,
        variables=variables,
        fetch=_recording(loaded.fetch, digests),
    )
    data = pack(imported)
    keep(key, data, digests, made=time())
    return _unpacked(data), loaded.origin


def _load(source: str, *, outside: bool) -> Loaded:
    return load_document(source, outside=outside)


def _unpacked(data: bytes) -> Packed[HttpOperation]:
    return Packed(data, HttpImport, HttpOperation)


def _is_current(digests: Mapping[str, bytes], loaded: Loaded) -> bool:
    """Whether all documents that were read are the same today."""
    if digests.get(loaded.origin) != digest_of(loaded.text):
        return False
    try:
        return all(digest == digest_of(loaded.fetch(uri)) for uri, digest in digests.items() if uri != loaded.origin)
    except DocumentError:
        return False


def _recording(fetch: Callable[[str], bytes], digests: dict[str, bytes]) -> Callable[[str], bytes]:
    """Fetches the same, and takes note of what it was."""

    def fetched(uri: str) -> bytes:
        text = fetch(uri)
        digests[uri] = digest_of(text)
        return text

    return fetched


def _shown(document: Document) -> str:
    if isinstance(document, bytes | Mapping):
        return "the OpenAPI document"
    return os.fspath(document)
