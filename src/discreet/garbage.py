"""Sets how often Python looks for garbage. Apps may set thresholds of their own, at their import too."""

import gc
from typing import Final

STARTING: Final = 100_000
"""Container objects made before the youngest are looked through, while the program and the apps are imported. What is made then
stays, and to look through it takes a tenth of the time to the first answer. Apps that make more are still collected."""

SERVING: Final = 10_000
"""The same from then on. Python's 700 makes decoding a large request cost twice as much (measured: 8 MB of nested objects,
291 ms against 166 ms)."""

RELAYING: Final = (SERVING, 5, 1)
"""All three thresholds of a program whose sessions come and go, and that decodes nothing large: a full collection for each
120,000 objects made, not for each million. What anyio keeps of a cancelled task refers to itself, and nothing else frees it once
it is old (measured, 3,000 sessions: 56 MiB against 76 MiB)."""


def begin_start() -> None:
    """Before most of the program is imported. A second call does nothing."""
    gc.set_threshold(STARTING, *gc.get_threshold()[1:])


def end_start() -> None:
    """What is loaded by now stays: no collection needs to look through it again."""
    gc.freeze()
    threshold, *older = gc.get_threshold()
    if threshold == STARTING:
        gc.set_threshold(SERVING, *older)


def begin_relaying() -> None:
    """From now on sessions come and go. Call it behind `begin_start`."""
    gc.set_threshold(*RELAYING)
