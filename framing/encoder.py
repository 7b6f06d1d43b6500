"""Encodes frames. Never writes any header but `Content-Length`: Emacs looks for it within the first 100 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .events import Framing

_LINE_ENDS_TO_BLANKS: Final = bytes.maketrans(b"\r\n", b"  ")


def encode_frame(body: bytes, framing: Framing) -> bytes:
    """One whole frame around `body`, a JSON text in UTF-8.

    With newline framing the body must be one line. Bodies encoded by msgspec have no raw line ends, but a `msgspec.Raw`
    in them may. In JSON these can only be white space (RFC 8259, section 2), so they become blanks.
    """
    if framing == "content-length":
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    return _without_line_ends(body) + b"\n"


def encode_frame_parts(parts: Sequence[bytes], framing: Framing) -> list[bytes]:
    """Encode a frame around the parts of a body, as parts."""
    if framing == "content-length":
        return [b"Content-Length: %d\r\n\r\n" % sum(map(len, parts)), *parts]
    return [*map(_without_line_ends, parts), b"\n"]


def _without_line_ends(part: bytes) -> bytes:
    return part.translate(_LINE_ENDS_TO_BLANKS) if b"\n" in part or b"\r" in part else part
