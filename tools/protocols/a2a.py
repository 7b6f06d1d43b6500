"""Cuts the description of A2A's protobuf down to what `gateway/grpc` needs of it: names, types and numbers."""

from __future__ import annotations

from pathlib import Path

SOURCE = "a2a/a2a.binpb"
"""What protoc writes with `--include_imports --descriptor_set_out`, of a2a.proto and of google.rpc's status.proto and
error_details.proto."""

MODULE = Path("gateway/grpc/a2a.binpb")
"""Where the description stands in the tree."""

_KEPT = ("lf.a2a.v1", "google.rpc")
"""The packages that are kept. Those of `google.protobuf` come with its library, those of `google.api` only annotate."""


def generate(schemas: Path) -> bytes:
    """Return the serialized FileDescriptorSet, without comments and options, but for those that tell maps."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet  # late: only this protocol needs the library

    kept = FileDescriptorSet()
    for file in FileDescriptorSet.FromString((schemas / SOURCE).read_bytes()).file:
        if file.package not in _KEPT:
            continue
        imports = [each for each in file.dependency if not each.startswith("google/api/")]
        file.ClearField("dependency")
        file.dependency.extend(imports)
        file.ClearField("source_code_info")
        _drop_options(file)
        kept.file.append(file)
    kept.file.sort(key=lambda file: file.name)
    return kept.SerializeToString(deterministic=True)


def _drop_options(message: object) -> None:
    for field, value in message.ListFields():
        if field.name == "options" and not getattr(value, "map_entry", False):
            message.ClearField("options")
        elif field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                _drop_options(each)
