"""Checks whether the server is one for a store, and keeps the version of the stored data. Writes nothing but the version."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, TypeAlias

import redis

from ....daemon.logs import log
from ..failures import unknown_version
from ..interface import StoreError
from .scripts import COMMON, Script
from .session import Session

VERSION: Final = "1"

_CREATE: Final = Script(
    COMMON
    + """
if call('HSETNX', KEYS[1], 'version', ARGV[1]) == 1 then
  call('HSET', KEYS[1], 'wake', server_ms())
end
"""
)
"""The entries of the wake-up stream are numbered from the time on, not from 1: a daemon that followed a store that the server
has forgotten notices that this is another."""

_TRIAL: Final = Script(
    COMMON
    + """
local K = P .. 'trial'
call('DEL', K)
call('SET', K, '', 'PX', 1000)
call('PEXPIRE', K, 1000)
call('EXPIRE', K, 1)
call('EXISTS', K)
call('GET', K)
call('TIME')
call('UNLINK', K)
call('HSETNX', K, 'a', 1)
call('HSET', K, 'a', 1)
call('HINCRBY', K, 'a', 1)
call('HGET', K, 'a')
call('HMGET', K, 'a')
call('HDEL', K, 'a')
call('ZADD', K, 0, 'a')
call('ZCARD', K)
call('ZSCORE', K, 'a')
call('ZRANGE', K, 0, -1)
call('ZREVRANGEBYSCORE', K, '+inf', '-inf')
call('ZRANGEBYLEX', K, '-', '+')
call('ZRANGEBYSCORE', K, '-inf', '+inf')
call('ZLEXCOUNT', K, '-', '+')
call('ZREM', K, 'a')
call('SADD', K, 'a')
call('SREM', K, 'a')
call('SMEMBERS', K)
call('XADD', K, 'MAXLEN', '~', 1, '1-0', 'a', 'a')
call('XRANGE', K, '-', '+')
call('XTRIM', K, 'MINID', '2-0')
call('DEL', K)
"""
)
"""Every command that a script runs. One that is refused later, in the midst of a transaction, would leave half of it."""


Settings: TypeAlias = dict[str, str]


def open_store(session: Session) -> bool:
    """Create the store, unless there is one. Whether it was created. Raises `StoreError` for one of another version and for
    what is none, and `redis.RedisError`."""
    is_new = not has_store(session)
    if is_new:
        if _has_other_keys(session) and not has_store(session):
            raise StoreError(f"{session.label} holds keys that begin with {session.key('')} and are no store")
        _CREATE.run(session, VERSION)
    _TRIAL.run(session)
    for command in (("XREAD", "COUNT", 1, "STREAMS", session.key("wake"), "0"), ("HGETALL", session.key("counts"))):
        session.call(*command)
    return is_new


def has_store(session: Session) -> bool:
    """Whether there is a store. Raises `StoreError` for one of another version and for what is none, and `redis.RedisError`."""
    try:
        version = session.call("HGET", session.key("store"), "version")
    except redis.ResponseError as exc:
        if "WRONGTYPE" in str(exc):
            raise StoreError(f"{session.label} is not a store of this version of discreet") from None
        raise
    if version is None or version == VERSION.encode():
        return version is not None
    raise unknown_version(session.label, version.decode(errors="replace"), VERSION)


def _has_other_keys(session: Session) -> bool:
    cursor: bytes | int = 0
    while True:
        cursor, keys = session.call("SCAN", cursor, "MATCH", f"{session.key('')}*", "COUNT", 1000)
        if keys:
            return True
        if int(cursor) == 0:
            return False


def check_settings(session: Session) -> Settings:
    """The server's settings. Raises `StoreError` where it may delete keys to make room, and `redis.RedisError`."""
    settings = _settings(session)
    if settings.get("maxmemory-policy", "noeviction") != "noeviction":
        raise StoreError(f"{session.label} may delete tasks when its memory is full: set maxmemory-policy noeviction")
    return settings


def log_volatility(settings: Settings, label: str) -> None:
    """Log what a server with these settings may lose."""
    match settings.get("appendonly"), settings.get("appendfsync"):
        case "yes", "always":
            pass
        case "yes", "everysec" | None:
            log.info("store.volatile", server=label, loses="one second", because="appendfsync everysec")
        case "yes", other:
            log.warning("store.volatile", server=label, loses="some seconds", because=f"appendfsync {other}")
        case None, _:
            log.warning("store.volatile", server=label, loses="unknown", because="its settings can't be read")
        case _:
            log.warning("store.volatile", server=label, loses="everything", because="appendonly no")


def _settings(session: Session) -> Settings:
    """Return the settings of the server that matter, as far as it tells them: some hosts forbid CONFIG, but not INFO."""
    found: dict[str, str] = {}
    with suppress(redis.ResponseError):
        for name in ("appendonly", "appendfsync", "maxmemory-policy"):
            reply = session.call("CONFIG", "GET", name)
            found |= {_text(key): _text(value) for key, value in zip(reply[::2], reply[1::2], strict=True)}
        return found
    with suppress(redis.ResponseError):
        lines = [line.partition(":") for part in ("persistence", "memory") for line in _info(session, part)]
        info = {name: value for name, _, value in lines}
        if "aof_enabled" in info:
            found["appendonly"] = "yes" if info["aof_enabled"] == "1" else "no"
        if "maxmemory_policy" in info:
            found["maxmemory-policy"] = info["maxmemory_policy"]
    return found


def _info(session: Session, part: str) -> list[str]:
    return _text(session.call("INFO", part)).split("\r\n")


def _text(value: Any) -> str:  # Any: as `Session.call`
    return bytes(value).decode("utf-8", "replace")
