"""Has httptools read on where a client offers another protocol beside its request, as those do that would rather speak HTTP/2.

A server may ignore the offer (RFC 9110, section 7.8). httptools instead takes what follows the head for the other protocol.
"""

from __future__ import annotations

from typing import Any, Final, final

import httptools

_OFFERS: Final = frozenset({b"upgrade", b"http2-settings", b"connection"})


@final
class IgnoringUpgrades:
    """The parser of one protocol of uvicorn. While `offered` is true, its callbacks tell of a request that they will tell of
    once more, without the offer."""

    def __init__(self, protocol: Any) -> None:  # a protocol of uvicorn
        self._protocol = protocol
        self._parser = _new(protocol)

    @property
    def offered(self) -> bool:
        return bool(self._parser.should_upgrade())

    def feed_data(self, data: bytes) -> None:
        """Raises `HttpParserError`."""
        while True:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as exc:
                if self._parser.get_method() == b"CONNECT":
                    raise httptools.HttpParserError from None
                data = self._head_again() + data[exc.args[0] :]
                self._parser = _new(self._protocol)

    def _head_again(self) -> bytes:
        """The head that was read, without the offer."""
        headers: list[tuple[bytes, bytes]] = self._protocol.headers
        tokens = [
            token.strip() for name, value in headers if name == b"connection" for token in value.lower().split(b",")
        ]
        lines = [b"%b %b HTTP/%b" % (self._parser.get_method(), self._protocol.url, self.get_http_version().encode())]
        lines += [b"%b: %b" % (name, value) for name, value in headers if name not in _OFFERS]
        lines += [b"connection: close"] if b"close" in tokens else []
        return b"\r\n".join((*lines, b"", b""))

    # -- what uvicorn asks for ---------------------------------------------------------------------------------

    def get_http_version(self) -> str:
        return str(self._parser.get_http_version())

    def get_method(self) -> bytes:
        return bytes(self._parser.get_method())

    def should_keep_alive(self) -> bool:
        return bool(self._parser.should_keep_alive())

    def should_upgrade(self) -> bool:
        return False


def _new(protocol: Any) -> Any:  # httptools has no types
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does: what follows is never answered
    return parser
