"""Messages as a client puts them on the wire, with `Content-Length` framing."""

from __future__ import annotations

import json
from typing import Any

from discreet.framing.encoder import encode_frame


def frame(message: dict[str, Any] | bytes) -> bytes:
    """A message as one frame; bytes are its body, whatever they are."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return encode_frame(body, "content-length")


def request(call_id: Any, method: str, params: Any = None) -> bytes:
    message = {"jsonrpc": "2.0", "id": call_id, "method": method}
    return frame(message if params is None else {**message, "params": params})
