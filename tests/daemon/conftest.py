"""A daemon in memory, and the other end of its wire."""

from support.daemon_wire import logged as logged  # noqa: PLC0414 - fixtures
from support.daemon_wire import serving as serving  # noqa: PLC0414
from support.daemon_wire import wire_class as wire_class  # noqa: PLC0414
