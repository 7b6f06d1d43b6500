"""What waits for a push target: how much at most, and what goes first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from discreet.daemon.agents.model.types import PushConfig
from discreet.daemon.agents.push.queue import MAX_BYTES, MAX_NOTIFICATIONS, DeliveryQueue, Notification
from discreet.daemon.agents.stores.interface import PushTarget


def line() -> DeliveryQueue:
    return DeliveryQueue(PushTarget(PushConfig("https://hooks.example/", "c", "t"), "1.0"))


def taken(waiting: DeliveryQueue) -> list[bytes]:
    found = []
    while (notification := waiting.take()) is not None:
        found.append(notification.body)
    return found


def test_beyond_1024_notifications_the_oldest_go() -> None:
    full = line()
    for number in range(MAX_NOTIFICATIONS + 3):
        full.put(Notification(b"%d" % number, final=False))
    assert full.dropped == 3
    assert taken(full) == [b"%d" % number for number in range(3, MAX_NOTIFICATIONS + 3)]


def test_beyond_16_mib_the_oldest_go() -> None:
    full = line()
    third = MAX_BYTES // 3
    for letter in (b"a", b"b", b"c", b"d"):
        full.put(Notification(letter * third, final=False))
    assert full.dropped == 1
    assert [body[:1] for body in taken(full)] == [b"b", b"c", b"d"]


def test_the_last_of_a_task_is_never_the_one_that_goes() -> None:
    full = line()
    for number in range(MAX_NOTIFICATIONS):
        full.put(Notification(b"%d" % number, final=False))
    full.put(Notification(b"x" * (MAX_BYTES + 1), final=True))
    assert full.dropped == MAX_NOTIFICATIONS
    assert [len(body) for body in taken(full)] == [MAX_BYTES + 1]


def test_what_is_too_large_by_itself_goes_itself() -> None:
    full = line()
    full.put(Notification(b"x" * (MAX_BYTES + 1), final=False))
    assert (len(full), full.dropped) == (0, 1)


@given(st.lists(st.none() | st.integers(0, MAX_BYTES // 2), max_size=60))
def test_whatever_comes_and_goes_the_order_and_the_bound_hold(steps: list[int | None]) -> None:
    waiting, sizes, total = line(), [], 0
    for size in steps:
        if size is None:
            found = waiting.take()
            assert (found is None) == (not sizes)
            assert found is None or len(found.body) == sizes.pop(0)
            continue
        waiting.put(Notification(bytes(size), final=False))
        sizes.append(size)
        while sum(sizes) > MAX_BYTES:
            sizes.pop(0)
            total += 1
    assert waiting.dropped == total
    assert waiting.clear() == len(sizes)
    assert waiting.take() is None
