"""The settings of imported operations, and of the agent's tasks: rows of the table of settings.

The annotations are evaluated by it, so it must not use `from __future__ import annotations`.
"""

from typing import Annotated, Literal, TypeAlias

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

Store: TypeAlias = Annotated[
    str,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="store",
        help="where the agent keeps its tasks: memory; sqlite:PATH, postgresql://... or redis://... to outlive it",
    ),
]
Role: TypeAlias = Annotated[
    Literal["both", "front", "worker"],
    OptionInfo(
        group=SERVICES,
        found_file="no",
        help="of daemons on one store: a front takes calls and leaves the work to workers; both does both",
    ),
]
MaxRuns: TypeAlias = Annotated[
    int,
    OptionInfo(
        group=SERVICES,
        found_file="lower",
        minimum=1,
        maximum=1024,
        help="how many tasks may be worked on here when more are taken from the store's queue",
    ),
]
MaxEndedTasks: TypeAlias = Annotated[
    int,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        minimum=0,
        maximum=10**12,
        help="how many tasks that have ended the store keeps; the oldest are deleted first",
    ),
]
EndedTaskSeconds: TypeAlias = Annotated[
    float | None,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        unit="seconds",
        minimum=1,
        maximum=100 * 365 * 86_400.0,
        none_word="none",
        help="how long it keeps them; 0 or none means for ever",
    ),
]
