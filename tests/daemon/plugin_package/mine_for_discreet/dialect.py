"""A dialect of newline-framed messages with one method of its own, and with names of its own for progress and cancellation."""

from __future__ import annotations

from typing import ClassVar, Final

from discreet import Service
from discreet.daemon.connection.session import ClientConnection, DaemonControl
from discreet.daemon.host import Host
from discreet.daemon.operations.registry import Registry
from discreet.daemon.operations.service import DeclarationError
from discreet.daemon.rpc.dialect import Dialect

FRAMING: Final = "newline"
HAS_SHUTDOWN: Final = False
HAS_AGENT_METHODS: Final = True


class MineDialect(Dialect):
    name: ClassVar[str] = "mine"
    cancellations: ClassVar = {"mine/cancel": "id"}
    progress_method: ClassVar[str] = "mine/progress"


class MineSession:
    def __init__(self, saved: bytes) -> None:
        self.dialect: Final = MineDialect()
        self.documents: Final = None
        self._greetings = int(saved or b"0")

    def registry(self) -> Registry:
        service = Service("")

        @service.query(inline=True, name="mine/hello")
        def hello() -> str:
            """Greet the client."""
            self._greetings += 1
            return f"hello {self._greetings}"

        return Registry([service])

    def save(self) -> bytes:
        return b"%d" % self._greetings


def open_session(connection: ClientConnection, control: DaemonControl, saved: bytes) -> MineSession:
    check(connection.host)
    return MineSession(saved)


def check(host: Host) -> None:
    for spec in host.catalogue.operations:
        if spec.name.startswith("mine/"):
            raise DeclarationError(f"operation {spec.name}: the dialect mine has methods of this name")
