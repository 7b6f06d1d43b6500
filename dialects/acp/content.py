"""Content blocks to the parts of A2A, and back. Reads and fetches nothing."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import assert_never

import msgspec
from msgspec import UNSET

from ...a2a.types import JsonObject, Part
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from .generated.structs import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)


def parts_of(blocks: Iterable[ContentBlock]) -> tuple[Part, ...]:
    """The parts of a prompt. Text that the editor embeds stays text, with its URI in the part's metadata.

    Raises `FailureError(InvalidParams)` for data that is not base64, and for a prompt without blocks.
    """
    parts = tuple(_part(block, f"prompt[{index}]") for index, block in enumerate(blocks))
    if not parts:
        raise FailureError(InvalidParams("prompt", "at least one content block", "array"))
    return parts


def _part(block: ContentBlock, path: str) -> Part:
    match block:
        case TextContent():
            return Part(text=block.text)
        case ImageContent():
            raw = _bytes(block.data, f"{path}.data")
            return Part(raw=raw, media_type=block.mime_type, metadata=_about(block.uri))
        case AudioContent():
            return Part(raw=_bytes(block.data, f"{path}.data"), media_type=block.mime_type)
        case ResourceLink():
            return Part(url=block.uri, filename=block.name, metadata=_about(None, block.mime_type))
        case EmbeddedResource():
            return _resource_part(block, path)
        case _:
            assert_never(block)


def _resource_part(block: EmbeddedResource, path: str) -> Part:
    resource = block.resource
    if isinstance(resource, TextResourceContents):
        return Part(text=resource.text, metadata=_about(resource.uri, resource.mime_type))
    raw = _bytes(resource.blob, f"{path}.resource.blob")
    return Part(raw=raw, media_type=resource.mime_type, metadata=_about(resource.uri))


def _about(uri: str | None, mime_type: str | None = None) -> JsonObject | None:
    """What a part has no member for. The type of a resource is told here: agents declare which types of files they take,
    and every agent of ACP takes links and embedded text.
    """
    said = {"uri": uri, "mimeType": mime_type}
    return {key: value for key, value in said.items() if value is not None} or None


def _bytes(data: str, path: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise FailureError(InvalidParams(path, "base64", "string")) from None


def block_of(part: Part) -> ContentBlock:
    """The content block that shows a part. Data becomes its JSON text."""
    media_type = part.media_type or ""
    if part.text is not None:
        uri = (part.metadata or {}).get("uri")
        if isinstance(uri, str):
            return EmbeddedResource(resource=TextResourceContents(text=part.text, uri=uri, mime_type=part.media_type))
        return TextContent(text=part.text)
    if part.url is not None:
        return ResourceLink(uri=part.url, name=part.filename or part.url, mime_type=part.media_type)
    if part.data is not UNSET:
        return TextContent(text=msgspec.json.format(msgspec.json.encode(part.data)).decode())
    data = b64encode(part.raw or b"").decode("ascii")
    if media_type.startswith("image/"):
        return ImageContent(data=data, mime_type=media_type)
    if media_type.startswith("audio/"):
        return AudioContent(data=data, mime_type=media_type)
    uri = f"attachment:{part.filename or 'file'}"
    return EmbeddedResource(resource=BlobResourceContents(blob=data, uri=uri, mime_type=part.media_type))
