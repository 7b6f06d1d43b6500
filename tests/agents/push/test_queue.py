"""The queue of a push target: its limits, and which notifications are dropped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from discreet.a2a.types import PushConfig
from discreet.agents.notifier import MAX_BYTES, MAX_NOTIFICATIONS, DeliveryQueue, Notification
from discreet.agents.stores.interface import PushTarget


def a_queue() -> DeliveryQueue:
    return DeliveryQueue(PushTarget(PushConfig("https://hooks.example/", "c", "t"), "1.0"))


def bodies(queue: DeliveryQueue) -> list[bytes]:
    found = []
    while (notification := queue.take()) is not None:
        found.append(notification.body)
    return found


def test_the_final_notification_of_a_task_is_never_dropped() -> None:
    full = a_queue()
    for number in range(MAX_NOTIFICATIONS):
        full.put(Notification(b"%d" % number, final=False))
    full.put(Notification(b"x" * (MAX_BYTES + 1), final=True))
    assert full.dropped == MAX_NOTIFICATIONS
    assert [len(body) for body in bodies(full)] == [MAX_BYTES + 1]


def test_a_notification_above_the_limit_is_dropped_itself() -> None:
    full = a_queue()
    full.put(Notification(b"x" * (MAX_BYTES + 1), final=False))
    assert (len(full), full.dropped) == (0, 1)


@given(st.lists(st.none() | st.integers(0, MAX_BYTES // 2), max_size=60))
def test_the_order_and_the_limit_hold_for_any_sequence_of_steps(steps: list[int | None]) -> None:
    queue, sizes, total = a_queue(), [], 0
    for size in steps:
        if size is None:
            found = queue.take()
            assert (found is None) == (not sizes)
            assert found is None or len(found.body) == sizes.pop(0)
            continue
        queue.put(Notification(bytes(size), final=False))
        sizes.append(size)
        while sum(sizes) > MAX_BYTES:
            sizes.pop(0)
            total += 1
    assert queue.dropped == total
    assert queue.clear() == len(sizes)
    assert queue.take() is None


def test_every_byte_that_is_held_is_counted_until_it_is_released() -> None:
    counted: list[int] = []
    queue = DeliveryQueue(a_queue().target, counted.append)
    for size in (5, 7, 11):
        queue.put(Notification(bytes(size), final=False))
    assert sum(counted) == 23
    queue.take()
    assert sum(counted) == 23  # under way
    queue.take()
    assert sum(counted) == 18
    queue.release()
    assert sum(counted) == 11
    queue.drop()
    queue.put(Notification(bytes(3), final=True))
    queue.clear()
    assert sum(counted) == 0
