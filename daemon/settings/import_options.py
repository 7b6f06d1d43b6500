"""The settings of imported operations. Evaluated as those of `table`, so no `from __future__ import annotations` here."""

from typing import Annotated, TypeAlias

from .imports import ImportSettings
from .option import SERVICES, OptionInfo

Imports: TypeAlias = Annotated[
    tuple[ImportSettings, ...],
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="imports",
        key="import",
        help="operations of an OpenAPI document, as NAME=FILE or NAME=URL; may be repeated",
        default_text="none",
    ),
]
ImportPrivate: TypeAlias = Annotated[
    bool, OptionInfo(group=SERVICES, found_file="no", help="allow calls of imported operations to private addresses")
]
