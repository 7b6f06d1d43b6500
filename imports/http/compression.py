"""Undoes the compression of a body piece by piece, so that no piece grows beyond its limit. Never reads, never waits."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, Protocol, final

from .faults import UpstreamFault

ACCEPTED: Final = "gzip"
"""What is asked for."""

PIECE_BYTES: Final = 65_536
"""The largest piece that comes out at once."""

_GZIP_BITS: Final = 16 + zlib.MAX_WBITS


class Decoder(Protocol):
    """Of the body of one response."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What is decoded with these bytes. Raises `UpstreamFault`."""
        ...

    def end(self) -> None:
        """The body is over. Raises `UpstreamFault` where something is missing."""
        ...


def decoder_of(content_encoding: str) -> Decoder:
    """For the value of a header `Content-Encoding`. Raises `UpstreamFault` for one that nobody asked for."""
    match content_encoding.strip().lower():
        case "" | "identity":
            return Identity()
        case "gzip" | "x-gzip":
            return Gzip()
        case _:
            raise UpstreamFault("encoding")


@final
class Identity:
    """Nothing is to be done."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def end(self) -> None:
        pass


@final
class Gzip:
    """RFC 1952: members, one after the other. An empty body is one without members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_BITS)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._begun = self._begun or bool(data)
        while data or not self._member.eof:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_BITS)
            try:
                piece = self._member.decompress(data, PIECE_BYTES)
            except zlib.error:
                raise UpstreamFault("encoding") from None
            data = self._member.unconsumed_tail or self._member.unused_data
            if piece:
                yield piece
            if not data and len(piece) < PIECE_BYTES:
                return

    def end(self) -> None:
        if self._begun and not self._member.eof:
            raise UpstreamFault("encoding")
