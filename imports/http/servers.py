"""Finds out where the requests of an operation go. Pure; what is wrong is a `ValueError` whose text is for the operator."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from ...client.outbound.ssrf import EXPECTED_PUBLIC_URL, Destination, parse_url


def server_of(server: str, *, base_url: str, document_url: str, allow_private: bool) -> Destination:
    """The server of an operation: `base_url` if there is one, else the document's, resolved against where the document came from.

    Its path has no slash at the end. Raises `ValueError`.
    """
    what, url = ("base_url", base_url) if base_url else ("the document's server", server)
    if not url and not document_url:
        raise ValueError("the document names no server; give base_url")
    if not urlsplit(url).scheme:
        if base_url or not document_url:
            raise ValueError(f"{what} {url!r} is relative; give base_url, an absolute http or https URL")
        url = urljoin(document_url, url or "/")
    if urlsplit(url).query:
        raise ValueError(f"{what} {_shown(url)!r} must have no query")
    found = parse_url(url, allow_private=allow_private)
    if found == EXPECTED_PUBLIC_URL:
        raise ValueError(
            f"{what} {_shown(url)!r} is a private address, which is refused; allow_private=True"
            " (--import-private, or allow_private = true in discreet.toml) allows it"
        )
    if isinstance(found, str):
        raise ValueError(f"{what} {_shown(url)!r} must be an {found}")
    return Destination(found.scheme, found.host, found.port, found.request_target.rstrip("/"))


def _shown(url: str) -> str:
    """The URL for people, without what may be a secret in it."""
    head, _, rest = url.partition("?")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return f"{head}://{authority.rpartition('@')[2]}{slash}{path}" if rest else head
