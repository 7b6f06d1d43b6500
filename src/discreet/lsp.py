"""Exports the structures of LSP 3.18 (`lsp.Hover`), its errors, the editor, what servers do after edits, and the typed client.
Loads each module when one of its names is used.

`discreet.dialects.structs` says how the structures behave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dialects.lsp.generated.names import HOMES as _HOMES
from .lazy import exports

_OURS = {
    "Editor": "dialects.lsp.editor",
    "Progress": "dialects.lsp.editor",
    "ContentModified": "dialects.lsp.session",
    "ServerCancelled": "dialects.lsp.session",
    "TextDocument": "daemon.documents",
    "after_edits": "dialects.lsp.after_edits",
    "diagnostics": "dialects.lsp.after_edits",
    "cached_per_version": "dialects.lsp.versions",
    "WorkspaceIndex": "dialects.lsp.index",
    **dict.fromkeys(("BlockingServer", "Handlers", "Server", "connect", "connect_blocking"), "dialects.lsp.client"),
}

if TYPE_CHECKING:
    from .daemon.documents import TextDocument as TextDocument  # noqa: PLC0414 - exported
    from .dialects.lsp.after_edits import after_edits as after_edits  # noqa: PLC0414 - exported
    from .dialects.lsp.after_edits import diagnostics as diagnostics  # noqa: PLC0414 - exported
    from .dialects.lsp.client import BlockingServer as BlockingServer  # noqa: PLC0414 - exported
    from .dialects.lsp.client import Handlers as Handlers  # noqa: PLC0414 - exported
    from .dialects.lsp.client import Server as Server  # noqa: PLC0414 - exported
    from .dialects.lsp.client import connect as connect  # noqa: PLC0414 - exported
    from .dialects.lsp.client import connect_blocking as connect_blocking  # noqa: PLC0414 - exported
    from .dialects.lsp.editor import Editor as Editor  # noqa: PLC0414 - exported
    from .dialects.lsp.editor import Progress as Progress  # noqa: PLC0414 - exported
    from .dialects.lsp.generated.every_name import *  # noqa: F403
    from .dialects.lsp.index import WorkspaceIndex as WorkspaceIndex  # noqa: PLC0414 - exported
    from .dialects.lsp.session import ContentModified as ContentModified  # noqa: PLC0414 - exported
    from .dialects.lsp.session import ServerCancelled as ServerCancelled  # noqa: PLC0414 - exported
    from .dialects.lsp.versions import cached_per_version as cached_per_version  # noqa: PLC0414 - exported
else:  # a checker that saw this would take any name for one of LSP's
    __getattr__ = exports(__name__, _OURS | {name: f"dialects.lsp.generated.{home}" for name, home in _HOMES.items()})


def __dir__() -> list[str]:
    return sorted({*_HOMES, *_OURS})
