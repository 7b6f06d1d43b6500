"""Hands committed events to the push notifier, as each receiver's version writes them. Never raises and never waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...a2a.states import TERMINAL
from ...a2a.types import StatusChanged, TaskEvent
from ...daemon.dispatch.execution import Raised, attempt_now
from ...daemon.logs import log
from ..stores.interface import PushTarget
from ..tasks.live_task import LiveTask

if TYPE_CHECKING:
    from .notifier import PushNotifier

WriteBody: TypeAlias = Callable[[LiveTask, TaskEvent, str], bytes | None]
"""Makes the body of a notification of a task's event in a version; None where the event is not pushed."""


@final
class PushPublisher:
    """One per daemon that sends push notifications."""

    def __init__(self, notifier: PushNotifier, write_body: WriteBody) -> None:
        self.notifier: Final = notifier
        self._write_body = write_body

    def publish(self, live: LiveTask, events: Sequence[TaskEvent]) -> None:
        """Queue a notification of every event for every push config of the task."""
        for event in events:
            for target in live.push_targets:
                self._offer(target, live, event)

    def _offer(self, target: PushTarget, live: LiveTask, event: TaskEvent) -> None:
        body = attempt_now(lambda: self._write_body(live, event, target.protocol_version))
        if isinstance(body, Raised):
            log.warning("push.failed", task=live.id, config=target.config.id, reason="unwritable")
        elif body is not None:
            is_final = isinstance(event, StatusChanged) and event.status.state in TERMINAL
            self.notifier.enqueue(target, body, final=is_final)
