"""Gets documents: from files and by HTTP, bounded in bytes, time and redirects. The one module of the reader with IO."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any, Final, final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

from msgspec import Struct

from .parsing import DocumentError, quoted

MAX_BYTES: Final = 64 << 20
"""How large a document may be, together with all that it refers to."""

MAX_DOCUMENTS: Final = 2000
_TIMEOUT_SECONDS: Final = 30.0
_REDIRECTS: Final = 5
_HTTP: Final = ("http://", "https://")
_ACCEPT: Final = "application/vnd.oai.openapi+json, application/json, application/yaml, */*;q=0.5"


@final
class Fetch:
    """Gets the documents that the one at `origin` refers to. Raises `DocumentError` for those that it may not or can't get.

    Only what stands in the folder of a file, or has the same origin as a URL, unless `outside` says that anything may be.
    """

    def __init__(self, origin: str, *, outside: bool = False, left: int = MAX_BYTES) -> None:
        self._origin = origin
        self._outside = outside
        self._left = left
        self._documents = MAX_DOCUMENTS

    def __call__(self, uri: str) -> bytes:
        uri = urldefrag(uri).url
        self._check(uri)
        if self._documents <= 0:
            raise DocumentError(f"refers to more than {MAX_DOCUMENTS} documents")
        self._documents -= 1
        is_url = uri.startswith(_HTTP)
        text = _download(uri, self._left, outside=self._outside)[0] if is_url else _read_file(_path_of(uri), self._left)
        self._left -= len(text)
        return text

    def _check(self, uri: str) -> None:
        if self._outside:
            return
        if uri.startswith(_HTTP):
            if _host_of(uri) != _host_of(self._origin):
                raise DocumentError(f"{quoted(uri)} is of another origin than the document")
        elif self._origin.startswith(_HTTP):
            raise DocumentError(f"{quoted(uri)} is no URL of the document's origin")
        elif not _resolved(_path_of(uri)).is_relative_to(_resolved(_path_of(self._origin)).parent):
            raise DocumentError(f"{quoted(uri)} leads out of the folder of the document")


class Loaded(Struct, frozen=True):
    """A document as it was found. `origin` is its own address, against which its references are resolved."""

    text: bytes
    origin: str
    fetch: Fetch


def load_document(source: str | os.PathLike[str], *, outside: bool = False) -> Loaded:
    """Gets a document from a path or an http(s) URL. `outside` allows what it refers to to stand anywhere.

    Raises `DocumentError` with one line. Blocks.
    """
    given = os.fspath(source)
    if given.startswith(_HTTP):
        text, origin = _download(given, MAX_BYTES, outside=True)
    elif "://" in given:
        raise DocumentError(f"{quoted(given)}: a document is a file, or an http(s) URL")
    else:
        text = _read(Path(given), MAX_BYTES)
        origin = _resolved(Path(given)).as_uri()
    return Loaded(text, origin, Fetch(origin, outside=outside, left=MAX_BYTES - len(text)))


def _read_file(path: Path, limit: int) -> bytes:
    """The same of a file, and of nothing else: a FIFO would wait for its writer."""
    if path.exists() and not path.is_file():
        raise DocumentError(f"{quoted(path)}: is no file")
    return _read(path, limit)


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
        return Path(url2pathname(parts.path))
    if parts.scheme or parts.netloc:
        raise DocumentError(f"{quoted(uri)} is neither a file nor an http(s) URL")
    return Path(unquote(uri))


def _host_of(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise DocumentError(f"{quoted(url)} is no URL") from exc
    return parts.scheme, (parts.hostname or "").lower(), port or {"http": 80, "https": 443}.get(parts.scheme)


def _download(url: str, limit: int, *, outside: bool) -> tuple[bytes, str]:
    """As `_fetch`, within the time that is given: a server may send its head byte by byte."""
    found: list[tuple[bytes, str] | BaseException] = []

    def work() -> None:
        try:
            found.append(_fetch(url, limit, outside=outside))
        except BaseException as exc:  # noqa: BLE001 - for the thread that waits
            found.append(exc)

    thread = Thread(target=work, name="import-document", daemon=True)
    thread.start()
    thread.join(_TIMEOUT_SECONDS + 1)
    if not found:
        raise DocumentError(f"{quoted(url.partition('?')[0])}: takes longer than {_TIMEOUT_SECONDS:.0f} s")
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def _fetch(url: str, limit: int, *, outside: bool) -> tuple[bytes, str]:
    """The text, and the address that it came from. Follows redirects to other origins only with `outside`, never from TLS."""
    try:
        import httpx  # late: an extra, and files need none
    except ImportError as exc:
        raise DocumentError("a URL needs the extra: pip install 'discreet[openapi]'") from exc
    shown = quoted(url.partition("?")[0])
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    try:
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "identity"}
        with httpx.Client(timeout=_TIMEOUT_SECONDS, headers=headers, trust_env=False) as client:
            for _ in range(_REDIRECTS + 1):
                with client.stream("GET", url) as response:
                    if not response.has_redirect_location:
                        return _body(response, limit, deadline, shown), url
                    target = urljoin(url, response.headers["Location"])
                if (_host_of(target) != _host_of(url) and not outside) or (
                    url[:6] == "https:" and target[:6] != "https:"
                ):
                    raise DocumentError(f"{shown}: redirects to another origin")
                if not target.startswith(_HTTP):
                    raise DocumentError(f"{shown}: redirects to what is no http(s) URL")
                url = target
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError) as exc:
        raise DocumentError(f"{shown}: {_WORDS.get(type(exc).__name__, 'can not be reached')}") from exc
    raise DocumentError(f"{shown}: redirects more than {_REDIRECTS} times")


def _body(response: Any, limit: int, deadline: float, shown: str) -> bytes:  # Any: httpx is an extra
    if response.status_code != 200:
        raise DocumentError(f"{shown}: answers with status {response.status_code}")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise DocumentError(f"{shown}: answers with a compressed body, which was not asked for")
    text = bytearray()
    for chunk in response.iter_raw():
        text += chunk
        if len(text) > limit:
            raise DocumentError(f"{shown}: larger than {_mebibytes(limit)}")
        if time.monotonic() > deadline:
            raise DocumentError(f"{shown}: takes longer than {_TIMEOUT_SECONDS:.0f} s")
    return bytes(text)


def _mebibytes(limit: int) -> str:
    return f"{MAX_BYTES >> 20} MiB" if limit == MAX_BYTES else f"the rest of {MAX_BYTES >> 20} MiB"


_WORDS: Final[Mapping[str, str]] = {
    "ConnectError": "can not be reached",
    "ConnectTimeout": "can not be reached in time",
    "ReadTimeout": "does not answer in time",
    "DecodingError": "answers with a body that can't be decoded",
    "RemoteProtocolError": "answers with something that is no HTTP",
    "UnsupportedProtocol": "no http(s) URL",
    "InvalidURL": "no valid URL",
    "ValueError": "no valid URL",
}
