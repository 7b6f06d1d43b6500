"""Gets documents: from files and by HTTP, bounded in bytes, time and redirects. The one module of the reader with IO."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import msgspec
from msgspec import Struct

from ...client.outbound.network import Destination, parse_url
from ..archive import digest_of
from ..targets import ask_in_thread
from .parsing import DocumentError, quoted

MAX_BYTES: Final = 64 << 20
"""How large a document may be, together with all that it refers to."""

MAX_DOCUMENTS: Final = 2000
_TIMEOUT_SECONDS: Final = 30.0
_REDIRECTS: Final = 5
_REDIRECTING: Final = frozenset({301, 302, 303, 307, 308})
_HTTP: Final = ("http://", "https://")
_ACCEPT: Final = "application/vnd.oai.openapi+json, application/json, application/yaml, */*;q=0.5"


@final
class Fetch:
    """Gets the documents that the one at `origin` refers to. Raises `DocumentError` for those that it may not or can't get.

    Only what stands in the folder of a file, or has the same origin as a URL, unless `outside` says that anything may be.
    `digests` are those of what was got, by address.
    """

    def __init__(self, origin: str, *, outside: bool = False, left: int = MAX_BYTES) -> None:
        self._origin = origin
        self._outside = outside
        self._left = left
        self._documents = MAX_DOCUMENTS
        self.digests: dict[str, bytes] = {}

    def __call__(self, uri: str) -> bytes:
        uri = urldefrag(uri).url
        self._check(uri)
        if self._documents <= 0:
            raise DocumentError(f"refers to more than {MAX_DOCUMENTS} documents")
        self._documents -= 1
        if uri.startswith(_HTTP):
            text, _ = _download(uri, self._left, outside=self._outside)
        else:
            path = _path_of(uri)
            if path.exists() and not path.is_file():  # a FIFO would wait for its writer
                raise DocumentError(f"{quoted(path)}: is no file")
            text = _read(path, self._left)
        self._left -= len(text)
        self.digests[uri] = digest_of(text)
        return text

    def _check(self, uri: str) -> None:
        if self._outside:
            return
        if uri.startswith(_HTTP):
            if _destination(uri).origin != _destination(self._origin).origin:
                raise DocumentError(f"{quoted(uri)} is of another origin than the document")
        elif self._origin.startswith(_HTTP):
            raise DocumentError(f"{quoted(uri)} is no URL of the document's origin")
        elif not _resolved(_path_of(uri)).is_relative_to(_resolved(_path_of(self._origin)).parent):
            raise DocumentError(f"{quoted(uri)} leads out of the folder of the document")


class Loaded(Struct, frozen=True):
    """A document as it was found. `origin` is its own address, against which its references are resolved; empty for none."""

    text: bytes
    origin: str = ""
    fetch: Fetch | None = None


def load_document(source: str | os.PathLike[str] | bytes | Mapping[str, Any], *, outside: bool = False) -> Loaded:
    """Return a document from a path or an http(s) URL, or the one that is given. `outside` allows what it refers to to stand
    anywhere.

    Raises `DocumentError` with one line. Blocks.
    """
    if isinstance(source, bytes):
        return Loaded(source)
    if isinstance(source, Mapping):
        try:
            return Loaded(msgspec.json.encode(source))
        except (TypeError, ValueError, RecursionError) as exc:
            raise DocumentError("the document holds something that is no JSON") from exc
    given = os.fspath(source)
    if given.startswith(_HTTP):
        text, origin = _download(given, MAX_BYTES, outside=True)
    elif "://" in given:
        raise DocumentError(f"{quoted(given)}: a document is a file, or an http(s) URL")
    else:
        text = _read(Path(given), MAX_BYTES)
        origin = _resolved(Path(given)).as_uri()
    fetch = Fetch(origin, outside=outside, left=MAX_BYTES - len(text))
    fetch.digests[origin] = digest_of(text)
    return Loaded(text, origin, fetch)


def _read(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size  # what is read into is reserved first; a pipe has no size
            text = file.read(min(limit, size) + 1 if size else limit + 1)
    except OSError as exc:
        raise DocumentError(f"{quoted(path)}: {os.strerror(exc.errno or 0)}") from exc
    except ValueError as exc:  # a NUL
        raise DocumentError(f"{quoted(path)}: no path of a file") from exc
    if len(text) > limit:
        raise DocumentError(f"{quoted(path)}: larger than {_mebibytes(limit)}")
    return text


def _resolved(path: Path) -> Path:
    """The path without links. Links in a circle stay, and can't be read."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as exc:
        raise DocumentError(f"{quoted(path)}: no path of a file") from exc


def _path_of(uri: str) -> Path:
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        if os.name == "nt":
            from urllib.request import url2pathname  # late: it takes longer to load than a document to compare

            return Path(url2pathname(parts.path))
        return Path(unquote(parts.path))
    if parts.scheme or parts.netloc:
        raise DocumentError(f"{quoted(uri)} is neither a file nor an http(s) URL")
    return Path(unquote(uri))


def _destination(url: str) -> Destination:
    found = parse_url(url, allow_private=True)
    if isinstance(found, str):
        raise DocumentError(f"{_shown(url)}: is no {found}")
    return found


def _download(url: str, limit: int, *, outside: bool) -> tuple[bytes, str]:
    """As `_fetch`, within the time that is given."""
    if find_spec("h11") is None:
        raise DocumentError("a URL needs the extra: pip install 'discreet[openapi]'")
    try:
        return ask_in_thread(partial(_fetch, url, limit, outside=outside), _TIMEOUT_SECONDS)
    except TimeoutError:
        raise DocumentError(f"{_shown(url)}: takes longer than {_TIMEOUT_SECONDS:.0f} s") from None


async def _fetch(url: str, limit: int, *, outside: bool) -> tuple[bytes, str]:
    """The text, and the address that it came from. Follows redirects to other origins only with `outside`, never from TLS."""
    from ...client.outbound.connection import OutboundError  # late: h11 is an extra, and files need none
    from ...client.outbound.pool import ConnectionPool

    shown = _shown(url)
    pool = ConnectionPool(allow_private=True)
    try:
        for _ in range(_REDIRECTS + 1):
            to = _destination(url)
            async with pool.connection(to) as connection:
                response = await connection.request("GET", to, {"accept": _ACCEPT})
                location = response.value(b"location")
                if response.status not in _REDIRECTING or not location:
                    if response.status != HTTPStatus.OK:
                        raise DocumentError(f"{shown}: answers with status {response.status}")
                    return await response.read_all(limit), url
            url = urljoin(url, location)
            if not url.startswith(_HTTP):
                raise DocumentError(f"{shown}: redirects to what is no http(s) URL")
            other = _destination(url)
            if (other.origin != to.origin and not outside) or (to.scheme, other.scheme) == ("https", "http"):
                raise DocumentError(f"{shown}: redirects to another origin")
    except OutboundError as exc:
        larger = f"larger than {_mebibytes(limit)}"
        raise DocumentError(f"{shown}: {larger if exc.reason == 'too-large' else exc.phrase}") from exc
    finally:
        await pool.aclose()
    raise DocumentError(f"{shown}: redirects more than {_REDIRECTS} times")


def _shown(url: str) -> str:
    """The URL for people. Its query may hold secrets."""
    return quoted(url.partition("?")[0])


def _mebibytes(limit: int) -> str:
    return f"{MAX_BYTES >> 20} MiB" if limit == MAX_BYTES else f"the rest of {MAX_BYTES >> 20} MiB"
