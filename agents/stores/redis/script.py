"""Scripts that the server runs, each by its hash. Knows no store."""

from __future__ import annotations

from hashlib import sha1
from typing import Any, Final, final

import msgspec
from redis.exceptions import NoScriptError

from .connection import Session

pack: Final = msgspec.msgpack.Encoder().encode
"""What a script takes with `cmsgpack.unpack`: of strings, numbers, booleans, tuples, and what `packed_bytes` returns."""


def packed_bytes(value: bytes) -> msgspec.Raw:
    """Bytes as part of what `pack` packs. The server does not know MessagePack's bytes; its strings may hold any."""
    return msgspec.Raw(b"\xdb" + len(value).to_bytes(4, "big") + value)


@final
class Script:
    """`text` is Lua. The server keeps scripts until it restarts; it is sent again when it has none of this hash."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._hash: Final = sha1(text.encode(), usedforsecurity=False).hexdigest()

    def run(self, session: Session, key: str, *arguments: str | bytes | int) -> Any:  # Any: as `Session.call`
        """The script's reply. `key` is the one that it is given. Raises `redis.RedisError`."""
        try:
            return session.call("EVALSHA", self._hash, 1, key, *arguments)
        except NoScriptError:
            return session.call("EVAL", self._text, 1, key, *arguments)
