"""Which version of A2A a request is of (A2A 1.0, section 3.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...a2a.versions.version import covers_version
from ...errors.failures import A2AVersion

if TYPE_CHECKING:
    from ..requests import GatewayRequest

DEFAULT_VERSION: Final = "0.3"
"""The version of a request that names none (A2A 1.0, section 3.6.2)."""


def asked_version(request: GatewayRequest) -> str | None:
    """The version of A2A that a request names, in its headers or its query."""
    version = request.headers.get("a2a-version") or request.query_params.get("A2A-Version") or ""
    return version.strip() or None


def version_to_answer(request: GatewayRequest) -> A2AVersion:
    """The version in which a request is answered whose method does not tell it."""
    return "1.0" if covers_version("1.0", asked_version(request) or DEFAULT_VERSION) else "0.3"
