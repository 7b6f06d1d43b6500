"""The page itself: one document, the same for everybody, without a fact of the daemon. What it shows, its script asks for."""

from __future__ import annotations

import json
from typing import Final

import msgspec

from ....errors.codes import RESERVED_CODES
from ....pages.inline import DOM, PALETTE, policy, script_of, text_of

_HERE: Final = __package__ or ""
_SCRIPTS: Final = tuple(
    (_HERE, name) for name in ("requests.js", "form.js", "operations.js", "tasks.js", "agent.js", "page.js")
)


class Document(msgspec.Struct, frozen=True):
    """The page, and the policy (CSP) that it must be sent with."""

    body: bytes
    policy: str


def document() -> Document:
    """Connects to its own origin only, and stands in no frame."""
    css = text_of(PALETTE, (_HERE, "page.css"))
    codes = f"const PROTOCOL_CODES = {json.dumps(sorted(RESERVED_CODES))};\n"
    script = script_of(codes, text_of(DOM, *_SCRIPTS))
    html = text_of((_HERE, "page.html")).replace("CSS", css).replace("SCRIPT", script)
    return Document(html.encode("ascii"), policy(css, script, "connect-src 'self'", "frame-ancestors 'none'"))
