"""Loads the files for TLS, and says which of them is wrong and why. Serves nothing."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING, Final, NoReturn

from ...daemon.apps import AppError

if TYPE_CHECKING:
    from ...daemon.settings import Settings

_OTHER_KEYS: Final = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})
"""OpenSSL's reasons for a key that belongs to another certificate; the last one where it is of another algorithm."""


def context_of(settings: Settings) -> ssl.SSLContext | None:
    """A server's context, where the settings ask for TLS. Raises `AppError`."""
    if settings.http_cert is not None:
        return load_certificate(settings.http_cert, settings.http_key)
    if settings.http_key is not None:
        raise AppError("--http-key needs --http-cert beside it")
    return None


def load_certificate(cert: str, key: str | None) -> ssl.SSLContext:
    """A server's context. Raises `AppError`, in one line that names the file. Never asks for a passphrase."""
    _check_readable("--http-cert", cert)
    if key is not None:
        _check_readable("--http-key", key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cert)
    except (OSError, ValueError):
        raise AppError(f"--http-cert {cert}: there is no certificate in PEM form") from None
    flag = f"--http-cert {cert}" if key is None else f"--http-key {key}"

    def refuse() -> NoReturn:
        raise AppError(f"{flag}: the key has a passphrase; give one without")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, refuse)
    except (OSError, ValueError) as exc:  # of ssl: its errors are both
        if getattr(exc, "reason", "") in _OTHER_KEYS:
            raise AppError(f"{flag}: the key is not that of the certificate") from None
        hint = "; --http-key names its file" if key is None else ""
        raise AppError(f"{flag}: there is no private key in PEM form{hint}") from None
    return context


def _check_readable(flag: str, path: str) -> None:
    try:
        with open(path, "rb") as file:
            file.read(1)
    except OSError as exc:
        raise AppError(f"{flag} {path}: {os.strerror(exc.errno or 0)}") from None
