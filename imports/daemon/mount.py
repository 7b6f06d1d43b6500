"""The upstream of a daemon that is a command or a URL. Asks and starts nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Final, TypeAlias

from ..failures import ImportFailed
from ..service import Upstream
from .carried import NOBODY, MountIdentity
from .model import Command, Target, Url

_LIBRARIES: Final = ("h11", "httpcore")
"""What HTTP needs."""

StrPath: TypeAlias = "str | os.PathLike[str]"


def target_of(
    source: Sequence[StrPath] | str,
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    allow_private: bool = False,
) -> Target:
    """What `source` names: a command as a list of words, or a URL. Raises `ImportFailed`."""
    if isinstance(source, str):
        if not source.lower().startswith(("http://", "https://")):
            raise ImportFailed(
                f'{source}: a daemon is a list of words, such as ["discreet", "serve", "./app.py:files"], or a URL (http:)'
            )
        if cwd is not None or env:
            raise ImportFailed(f"{source.partition('?')[0]}: cwd and env are for a command")
        require_http()
        return Url(source, allow_private)
    given = list(source) if isinstance(source, Sequence) else []
    words = tuple(os.fspath(word) for word in given if isinstance(word, str | os.PathLike))
    if not words or len(words) < len(given) or not words[0]:
        raise ImportFailed("the command of a daemon is a list of words, and not empty")
    return Command(words, None if cwd is None else os.fspath(cwd), dict(env or {}))


def require_http() -> None:
    """Raises `ImportFailed` where the libraries are not installed that HTTP needs."""
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise ImportFailed(f"a daemon behind a URL needs {' and '.join(missing)}: pip install 'discreet[http]'")


def upstream_of(name: str, target: Target, identity: MountIdentity = NOBODY) -> Upstream:
    """What calls the daemon. `name` is that of the import in the log. Raises `ImportFailed` for an address that is refused."""
    if isinstance(target, Url):
        require_http()
        from .http_calls import UrlUpstream  # late: each loads what it needs

        try:
            return UrlUpstream(name, target, identity)
        except ValueError as exc:
            raise ImportFailed(f"{target.name}: {exc}") from None
    from .calls import PeerUpstream
    from .process import restarted

    return PeerUpstream(name, partial(restarted, target, name), identity)
