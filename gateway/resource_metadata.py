"""Tells clients where to get a token: the metadata of a protected resource (RFC 9728), and its address in each refusal.

There are none unless the identity provider names an issuer, which those of `--jwt-…` and `--auth-introspect` do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

import msgspec

from ..daemon.logs import log
from .answers import Answer, plain_text

if TYPE_CHECKING:
    from ..daemon.host import Host
    from .asgi import Send
    from .calls import CallRunner
    from .requests import GatewayRequest

WELL_KNOWN: Final = ".well-known/oauth-protected-resource"


class _Metadata(msgspec.Struct, frozen=True, omit_defaults=True):
    resource: str
    authorization_servers: tuple[str, ...]
    resource_name: str
    bearer_methods_supported: tuple[str, ...] = msgspec.field(default_factory=lambda: ("header",))
    scopes_supported: tuple[str, ...] = ()


@final
class ResourceMetadata:
    """Serves the metadata of the resource at `path` of the gateway, which is empty for the gateway itself."""

    def __init__(self, host: Host, calls: CallRunner, path: str) -> None:
        provider = host.access.provider
        self._issuer: Final[str | None] = getattr(provider, "issuer", None)
        self._audience: Final[str] = getattr(provider, "audience", "")
        self._only_bearer: Final = provider is not None and [each.lower() for each in provider.schemes] == ["bearer"]
        self._calls = calls
        self._name = host.server.name
        self._path = path
        rules = [spec.access for spec in host.catalogue.operations if spec.visibility == "external"]
        self._scopes = tuple(sorted(frozenset[str]().union(*(rule.all_of | rule.any_of for rule in rules))))

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        """Answer with the document, at each of its places: the root, the one beside the resource, and the one that section 3.1
        of the RFC derives from the public address.
        """
        url = self._url(request)
        places = (WELL_KNOWN, f"{WELL_KNOWN}/{self._path}", f"{WELL_KNOWN}{urlsplit(url).path}{self._path}")
        if self._issuer is None or path not in {each.rstrip("/") for each in places}:
            return plain_text(404, "there is no such document")
        if request.method not in ("GET", "HEAD"):
            return Answer(405, media_type="", headers={"allow": "GET, HEAD"})
        own = (url + self._path).rstrip("/")
        resource = self._audience if self._is_audience(own) else own
        found = _Metadata(resource, (self._issuer,), self._name, scopes_supported=self._scopes)
        return Answer(200, msgspec.json.encode(found))

    def _is_audience(self, own: str) -> bool:
        """Whether tokens are made for the address of the resource, or of what it stands below."""
        audience = self._audience.rstrip("/")
        return bool(urlsplit(audience).netloc) and f"{own}/".startswith(f"{audience}/")

    def warn_of_audience(self, url: str) -> None:
        """Log that clients which take the address of the resource as audience get tokens that are refused here. `url` is the
        public one of the gateway (MCP 2025-11-25, basic/authorization, section Resource Parameter Implementation)."""
        own = f"{url.rstrip('/')}/{self._path}"
        if self._issuer is not None and not self._is_audience(own):
            hint = f"MCP clients ask for tokens for {own}: make that --jwt-audience, or --http-url its address"
            log.warning("mcp.audience_differs", audience=self._audience, hint=hint)

    def add_to(self, answer: Answer, request: GatewayRequest) -> None:
        """Add the document's address to the challenge of a refusal (section 5.1)."""
        challenge = answer.headers.get("www-authenticate")
        if challenge is not None and self._issuer is not None and self._only_bearer:
            place = f"{self._url(request)}{WELL_KNOWN}/{self._path}".rstrip("/")
            answer.headers["www-authenticate"] = f'{challenge}, resource_metadata="{place}"'

    def _url(self, request: GatewayRequest) -> str:
        return self._calls.url(request).rstrip("/") + "/"
