"""The page itself: one document, the same for everybody, without a fact of the daemon. What it shows, its script asks for."""

from __future__ import annotations

import json
from typing import Final

import msgspec

from ...errors.codes import RESERVED_CODES
from ...pages.inline import DOM, PALETTE, policy, script_of, styles_of, text_of

_HERE: Final = __package__ or ""
_SCRIPTS: Final = tuple(
    (_HERE, name) for name in ("requests.js", "form.js", "operations.js", "tasks.js", "agent.js", "page.js")
)


class Document(msgspec.Struct, frozen=True):
    """The page, and the policy (CSP) that it must be sent with."""

    body: bytes
    policy: str


def document(*, has_operations: bool) -> Document:
    """Connects to its own origin only, and stands in no frame. It asks for operations where there are any."""
    css = styles_of(text_of(PALETTE, (_HERE, "page.css")))
    told = {"PROTOCOL_CODES": sorted(RESERVED_CODES), "HAS_OPERATIONS": has_operations}
    constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in told.items())
    script = script_of(constants, text_of(DOM, *_SCRIPTS))
    html = text_of((_HERE, "page.html")).replace("CSS", css).replace("SCRIPT", script)
    return Document(html.encode("ascii"), policy(css, script, "connect-src 'self'", "frame-ancestors 'none'"))
