"""Converts `file:` URIs to paths of this system, and clients' paths to URIs. Reads no file.

RFC 8089; editors on Windows write `file:///c%3A/a`.

A module of its own, since it loads `urllib.parse`, which no start needs.
"""

from __future__ import annotations

import os
from urllib.parse import quote, unquote, urlsplit


def path_of_uri(uri: str, *, windows: bool = os.name == "nt") -> str:
    """The path that a URI names. Raises `ValueError` for one of another scheme."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        raise ValueError(f"{uri} names no file: ctx.documents.read takes open documents and file: URIs")
    path = unquote(parts.path)
    if "\0" in path:
        raise ValueError("a path has no NUL")
    if not windows:
        return path
    drive = path[1:3]
    if len(drive) == 2 and drive[0].isalpha() and drive[1] == ":":
        path = path[1:]
    share = f"//{parts.netloc}" if parts.netloc not in ("", "localhost") else ""
    return (share + path).replace("/", "\\")


def uri_of_path(path: str) -> str:
    """The URI of an absolute path of either kind of system: the client's may be another than ours."""
    slashes = path.replace("\\", "/")
    return "file://" + quote(slashes if slashes.startswith("/") else f"/{slashes}")
