"""From the daemon's settings to those of the gateway."""

from __future__ import annotations

from ..daemon.apps import AppError
from ..daemon.settings import Settings
from .call_runner import CallSettings
from .origins import LOOPBACK_NAMES, Origins, host_name_of, is_host_name, is_origin


def call_settings(settings: Settings, *, own_server: bool = False) -> CallSettings:
    """`own_server` where the server is that of this package, whose ways are known."""
    return CallSettings(
        plain_receive=own_server,
        url=settings.http_url or "",
        max_body=settings.max_message_bytes,
        body_timeout=settings.frame_timeout,
        keep_alive=settings.http_keep_alive,
        max_in_flight=settings.http_max_requests,
    )


def origins_of(settings: Settings, *, local: bool, host: str = "") -> Origins:
    """`host` is the address that is listened on, empty where it is not known. Raises `AppError` for names that fit nothing."""
    for origin in settings.http_origins or ():
        if origin != "*" and not is_origin(origin):
            raise AppError(f"--http-origin {origin}: an origin is http:// or https:// and a host, without a path")
    for given in settings.http_hosts or ():
        if not is_host_name(given):
            raise AppError(f"--http-host {given}: a name or an address, without scheme, port and path")
    hosts: list[str] | None = None
    if settings.http_hosts is not None:
        hosts = [host.strip("[]") for host in settings.http_hosts]
    elif local:
        hosts = [*LOOPBACK_NAMES, *([host] if host else [])]
    if hosts is not None and settings.http_url and (name := host_name_of(settings.http_url)):
        hosts.append(name)
    return Origins(hosts, settings.http_origins or ())
