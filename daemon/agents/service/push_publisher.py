"""Hands committed events to the push notifier, as each receiver's dialect writes them. Never raises and never waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, final

from ...dispatch.execution import attempt_now
from ...logs import log
from ..model.states import TERMINAL
from ..model.types import Event, StatusChanged
from ..stores.interface import PushTarget
from ..tasks.live_task import LiveTask

if TYPE_CHECKING:
    from ..push.notifier import PushNotifier

WriteBody: TypeAlias = Callable[[LiveTask, Event, str], bytes | None]
"""Makes the body of a notification of a task's event in a dialect; None where the event is not pushed."""


@final
class PushPublisher:
    """One per daemon. Without a `notifier` it does nothing."""

    def __init__(self, notifier: PushNotifier | None, write_body: WriteBody) -> None:
        self._notifier = notifier
        self._write_body = write_body

    def publish(self, live: LiveTask, events: Sequence[Event]) -> None:
        """Queue a notification of every event for every push config of the task."""
        if self._notifier is not None:
            for event in events:
                for target in live.push_targets:
                    self._offer(self._notifier, target, live, event)

    def _offer(self, notifier: PushNotifier, target: PushTarget, live: LiveTask, event: Event) -> None:
        bodies: list[bytes | None] = []
        if attempt_now(lambda: bodies.append(self._write_body(live, event, target.dialect))) is not None:
            log.warning("push.failed", task=live.id, config=target.config.id, reason="unwritable")
        elif bodies[0] is not None:
            last = isinstance(event, StatusChanged) and event.status.state in TERMINAL
            notifier.offer(target, bodies[0], last=last)
