"""Encodes frames. Never writes any header but `Content-Length`: Emacs looks for it within the first 100 bytes."""

from __future__ import annotations

from typing import Final, assert_never

from .events import Framing

_LINE_ENDS_TO_BLANKS: Final = bytes.maketrans(b"\r\n", b"  ")


def encode_frame(body: bytes, framing: Framing) -> bytes:
    """One whole frame around `body`, a JSON text in UTF-8.

    With newline framing the body must be one line. Bodies encoded by msgspec have no raw line ends, but a `msgspec.Raw`
    in them may. In JSON these can only be white space (RFC 8259, section 2), so they become blanks.
    """
    match framing:
        case "content-length":
            return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        case "newline":
            if b"\n" in body or b"\r" in body:
                body = body.translate(_LINE_ENDS_TO_BLANKS)
            return body + b"\n"
        case _:
            assert_never(framing)
