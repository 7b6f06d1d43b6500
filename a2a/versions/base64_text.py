"""Base64 as ProtoJSON accepts it: of either alphabet, padded or not (RFC 4648 sections 4 and 5)."""

from __future__ import annotations

import binascii
from typing import Final

_STANDARD: Final = str.maketrans("-_", "+/")
_MAX_PADDING: Final = 2


def decode_base64(text: str) -> bytes:
    """The bytes. Raises `ValueError` for a character of neither alphabet and for an impossible length."""
    body = text.rstrip("=")
    if len(text) - len(body) > _MAX_PADDING:
        raise ValueError("too much padding")
    return binascii.a2b_base64(body.translate(_STANDARD) + "=" * (-len(body) % 4), strict_mode=True)


def encode_base64(data: bytes) -> str:
    """The text, in the standard alphabet and padded."""
    return binascii.b2a_base64(data, newline=False).decode()
