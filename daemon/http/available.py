"""Whether HTTP can be served: its libraries are an extra. Imports none of them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..apps import AppError

if TYPE_CHECKING:
    from .server import HttpListener

NEEDED = ("starlette", "uvicorn")


def load_listener() -> type[HttpListener]:
    """Raises `AppError` where the extra is not installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise AppError(f"--http needs {' and '.join(missing)}: pip install 'discreet[http]'")
    from .server import HttpListener  # late: it loads them

    return HttpListener
