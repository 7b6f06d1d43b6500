"""One request on its way through the daemon: what came, what it will run, and how far it has got."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, final

from ..rpc.inflight import id_key

if TYPE_CHECKING:
    import threading

    import anyio

    from ...errors.failures import Failure
    from ..connection.streams import Sink, Stream
    from ..operations.spec import OperationSpec
    from ..rpc.envelope import Call
    from .execution import Outcome


class Part(Protocol):
    """What ends with a request: a call to another operation, or what its thread waits for."""

    def end(self, failure: Failure) -> None: ...


@final
class Request:
    """A call and its operation. One object per request that can't be answered at once.

    `parent` made the call and waits for it, where it is one between operations that ends with its caller. `sink` takes the
    events of a subscription that nobody on the wire has asked for.

    `ended_by` is why the answer was given before the handler had one (cancelled, timed out, unavailable): the
    handler's own outcome is then dropped. It is set on the loop and read in worker threads.
    """

    __slots__ = (
        "answered",
        "call",
        "children",
        "deadline",
        "ended_by",
        "key",
        "lane",
        "on_done",
        "parent",
        "scope",
        "sink",
        "spec",
        "stopped",
        "stream",
    )

    def __init__(self, call: Call, spec: OperationSpec) -> None:
        self.call = call
        self.spec = spec
        self.key = b"" if call.id is None else id_key(call.id)
        self.answered = call.id is None
        self.ended_by: Failure | None = None
        self.deadline: float | None = None
        self.lane: object = None
        self.scope: anyio.CancelScope | None = None
        self.stopped: threading.Event | None = None
        self.stream: Stream | None = None
        self.sink: Sink | None = None
        self.children: list[Part] | None = None
        self.parent: Request | None = None
        self.on_done: Callable[[Outcome], None] | None = None

    @property
    def takes_a_place(self) -> bool:
        """Whether it counts among those that run at the same time.

        Subscriptions don't, nor what only waits, or a handful of watchers would stop all calls. Calls between operations
        don't either: who waits for them has a place already, and would wait for ever for a second one.
        """
        return self.on_done is None and self.spec.mode != "stream" and not self.spec.only_waits

    def waits_for(self, lane: object) -> bool:
        """Whether this call was made, directly or not, by one that holds the lane and waits for it."""
        caller = self.parent
        while caller is not None and caller.lane != lane:
            caller = caller.parent
        return caller is not None

    def adopt(self, child: Part) -> None:
        """From now on the child ends when this request is ended, at once if it has been."""
        if self.children is None:
            self.children = []
        self.children.append(child)
        if self.ended_by is not None:
            child.end(self.ended_by)

    def release(self, child: Part) -> None:
        """The child has ended by itself."""
        if self.children is not None:
            self.children.remove(child)

    def stop_event(self) -> threading.Event:
        """An event that is set when the request is ended. For the worker thread that runs it."""
        if self.stopped is None:
            import threading  # late: only handlers that wait in threads need it

            self.stopped = threading.Event()
            if self.ended_by is not None:  # ended between the two lines above
                self.stopped.set()
        return self.stopped

    @property
    def size(self) -> int:
        """Bytes that are held while the request waits."""
        return self.call.size

    def end(self, failure: Failure) -> None:
        """Tell whatever runs it to stop. Only the first reason counts."""
        if self.ended_by is None:
            self.ended_by = failure
            if self.on_done is not None:
                self.on_done(failure)  # whoever waits for it need not wait for a thread that does not look
            if self.scope is not None:
                self.scope.cancel()
            for child in [*self.children] if self.children else ():
                child.end(failure)
            if self.stopped is not None:
                self.stopped.set()
