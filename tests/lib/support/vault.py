"""Operations that ask for scopes, a token for some, and the errors of who may not."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

from discreet import Context, Service
from discreet.daemon.operations.access import StaticTokens, parse_token

SECRET = "tok-8fJ2kQ-very-Secret"


NOT_FOUND = {"code": -32601, "message": "Method not found"}


LACKING = {"code": -32000, "message": "Insufficient permissions", "data": {"code": "FORBIDDEN", "retryable": False}}


UNKNOWN = {
    "code": -32000,
    "message": "Authentication required",
    "data": {
        "code": "FORBIDDEN",
        "retryable": False,
        "details": {"authSchemes": ["bearer"], "realm": "discreet"},
    },
}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def vault() -> Service:
    service = Service("vault")

    @service.query(inline=True)
    def open_(ctx: Context) -> str | None:
        """Free for all."""
        return ctx.identity.subject if ctx.identity else None

    @service.query(inline=True, scopes=["read", "list"])
    def both(ctx: Context, n: int = 0) -> str | None:
        """Needs both."""
        return ctx.identity.subject if ctx.identity else None

    @service.query(any_scope=["read", "admin"])
    async def either(n: int = 0) -> str:
        return "either"

    @service.query(scopes=["read"], any_scope=["list", "admin"])
    def mixed(n: int = 0) -> str:
        return "mixed"

    @service.mutation(scopes=["hidden"], visibility="internal")
    async def hidden() -> str:
        return "hidden"

    @service.subscription(scopes=["watch"])
    async def watch() -> AsyncIterator[str]:
        yield "seen"

    return service


ALL = ["vault/open_", "vault/both", "vault/either", "vault/mixed", "vault/watch"]


def tokens() -> StaticTokens:
    return StaticTokens(
        [
            parse_token(f"ada:{digest(SECRET)}:read+list"),
            parse_token(f"bob:{digest('other-token').upper()}"),
        ]
    )
