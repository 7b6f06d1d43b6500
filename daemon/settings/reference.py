"""What an app is called: an attribute of an installed module, or of a file. Reads text, imports nothing."""

import os
import sys
from typing import TypeAlias, final

from msgspec import Struct

EXPECTED = "pkg.module:name or ./file.py:name"

_SEPARATORS = ("/", "\\") if sys.platform == "win32" else ("/",)


@final
class ModuleReference(Struct, frozen=True):
    """`pkg.module:attribute`: a module that is installed, or stands in `app-dir`."""

    module: str
    attribute: str


@final
class FileReference(Struct, frozen=True):
    """`./shop.py:attribute`: a file. It has at least one separator of folders, so that no name is taken for it."""

    path: str
    attribute: str


Reference: TypeAlias = ModuleReference | FileReference


def read_reference(text: object) -> Reference | None:
    """What a text refers to; None where it is no reference."""
    if not isinstance(text, str):
        return None
    target, colon, attribute = text.rpartition(":")  # a path may have a colon of its own, as in C:\\shop.py:shop
    if not colon or not _is_dotted_name(attribute) or "\0" in target:
        return None
    if any(separator in target for separator in _SEPARATORS):
        is_file = target.endswith(".py") and os.path.basename(target) != ".py"
        return FileReference(target, attribute) if is_file else None
    return ModuleReference(target, attribute) if _is_dotted_name(target) else None


def absolute_reference(text: str, directory: str) -> str:
    """The same with an absolute path, where it has one."""
    match read_reference(text):
        case FileReference(path, attribute):
            return f"{os.path.normpath(os.path.join(directory, path))}:{attribute}"
        case _:
            return text


def without_folder(text: str) -> str:
    """The same without the folder of a file: for those who must not learn where it is."""
    match read_reference(text):
        case FileReference(path, attribute):
            return f"./{os.path.basename(path)}:{attribute}"
        case _:
            return text


def _is_dotted_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))
