"""Where a client gets a token: the metadata of a protected resource (RFC 9728), from the settings of JSON Web Tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

import msgspec
from starlette.responses import Response

if TYPE_CHECKING:
    from ...daemon.host import Host

WELL_KNOWN: Final = ".well-known/oauth-protected-resource"


class _Metadata(msgspec.Struct, frozen=True, omit_defaults=True):
    resource: str
    authorization_servers: tuple[str, ...]
    resource_name: str
    bearer_methods_supported: tuple[str, ...] = msgspec.field(default_factory=lambda: ("header",))
    scopes_supported: tuple[str, ...] = ()


@final
class ResourceMetadata:
    """Those of the endpoint at `path`. There are none where no issuer is known."""

    def __init__(self, host: Host, path: str) -> None:
        self._issuer = host.settings.jwt_issuer
        self._audience = host.settings.jwt_audience or ""
        self._name = host.server[0]
        self._path = path
        rules = [spec.access for spec in host.catalogue.operations if spec.visibility == "external"]
        self._scopes = tuple(sorted(frozenset[str]().union(*(rule.all_of | rule.any_of for rule in rules))))

    def answer(self, path: str, method: str, url: str) -> Response:
        """The document, at either of its two places. `url` is the gateway's, with a slash at its end."""
        if self._issuer is None or path not in (WELL_KNOWN, f"{WELL_KNOWN}/{self._path}"):
            return Response("there is no such document", 404, media_type="text/plain")
        if method not in ("GET", "HEAD"):
            return Response(status_code=405, headers={"allow": "GET, HEAD"})
        found = _Metadata(self._resource(url), (self._issuer,), self._name, scopes_supported=self._scopes)
        return Response(msgspec.json.encode(found), media_type="application/json")

    def _resource(self, url: str) -> str:
        """The audience, where that is an address of the endpoint or of what it stands below: tokens must be made for it."""
        own, audience = url + self._path, self._audience.rstrip("/")
        return self._audience if urlsplit(audience).netloc and f"{own}/".startswith(f"{audience}/") else own

    def params(self, url: str) -> str:
        """What is added to a challenge in `WWW-Authenticate` (RFC 9728, section 5.1)."""
        return "" if self._issuer is None else f', resource_metadata="{url}{WELL_KNOWN}/{self._path}"'
