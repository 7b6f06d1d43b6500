"""An OpenAPI document that discreet has written, as an import: its operations under their own names, kinds and error codes."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...daemon import plugins
from ...daemon.schemas.documents import Snapshot
from ...errors.decoders import decoder_for
from .contracts import import_of
from .model import DaemonImport


class _Info(Struct, frozen=True):
    title: str = ""
    version: str = ""


class _Server(Struct, frozen=True):
    url: str = ""


class _About(Struct, frozen=True):
    info: _Info = _Info()
    servers: tuple[_Server, ...] = ()


def read_own_document(text: bytes) -> DaemonImport | None:
    """What the document offers; None where it is one of another program, or none at all."""
    reader = plugins.load("reader", "openapi")
    if not reader.is_openapi(text):
        return None
    try:
        snapshot: Snapshot = reader.read_openapi(text)
        about = decoder_for(_About)(text)
    except (ValueError, msgspec.DecodeError):
        return None
    found = import_of(snapshot.operations.values())
    url = about.servers[0].url if about.servers else ""
    return replace(found, title=about.info.title, version=about.info.version, url=url)
