"""Warnings that callers can cause as often as they like: logged now and then, with how often they were not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, final

from .logger import log

INTERVAL_SECONDS: Final = 60.0
"""How often one of them is logged at most."""


@final
class RepeatedWarning:
    """One kind of event. The first is logged, and the first after each interval; `unlogged` says how many came between."""

    def __init__(self, event: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._event = event
        self._clock = clock
        self._silent_until = float("-inf")
        self._unlogged = 0

    def __call__(self, **fields: object) -> None:
        now = self._clock()
        if now < self._silent_until:
            self._unlogged += 1
            return
        self._silent_until = now + INTERVAL_SECONDS
        if self._unlogged:
            fields["unlogged"], self._unlogged = self._unlogged, 0
        log.warning(self._event, **fields)
