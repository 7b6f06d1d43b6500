"""TLS at the server around the gateway: from end to end, and files that can't be used."""

from __future__ import annotations

import socket
import ssl
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("httptools")

from discreet.daemon.apps import AppError
from discreet.gateway.server.protocol import IDLE_SECONDS
from discreet.gateway.server.tls import load_certificate
from support.http_process import http_daemon, message
from support.issuer import rsa_key
from support.waits import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and unix sockets")

ALONE = ("--http", "127.0.0.1:0", "--isolated", "--no-stdio")


def test_tls_from_end_to_end(tmp_path: Path) -> None:
    certificate, key = certify(tmp_path)
    flags = ("--http-cert", str(certificate), "--http-key", str(key))
    with http_daemon(tmp_path, *ALONE, *flags) as daemon:
        assert daemon.listening().url.startswith("https://")
        trust = ssl.create_default_context(cafile=certificate)
        plain = socket.create_connection(("127.0.0.1", daemon.port), 60)
        with trust.wrap_socket(plain, server_hostname="localhost") as sock:
            sock.sendall(message("over TLS"))
            with sock.makefile("rb") as file:
                assert b" 200 " in file.readline()
        with daemon.connected() as client:  # no TLS
            client.send(message())
            assert b"200" not in client.rest()
        assert daemon.end() == 0


def test_connections_count_and_are_timed_before_their_handshake_is_through(tmp_path: Path) -> None:
    certificate, key = certify(tmp_path)
    tls = ("--http-cert", str(certificate), "--http-key", str(key))
    flags = (*tls, "--http-max-connections", "5", "--frame-timeout", "1")
    with http_daemon(tmp_path, *ALONE, *flags) as daemon:
        port = daemon.listening().port
        socks = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(20)]
        assert [ended(sock) for sock in socks[5:]] == [b""] * 15
        daemon.wait_for("http.too_many_connections")
        assert [ended(sock) for sock in socks[:5]] == [b""] * 5  # they have said nothing for a second
        trust = ssl.create_default_context(cafile=certificate)
        for _ in range(6):  # those that have ended don't count
            plain = socket.create_connection(("127.0.0.1", port), 60)
            with trust.wrap_socket(plain, server_hostname="localhost") as sock:
                sock.sendall(message("over TLS"))
                assert b" 200 " in sock.recv(1000)
        assert daemon.end() == 0


def test_a_client_that_takes_nothing_of_its_answer_is_cut_with_tls_too(tmp_path: Path) -> None:
    certificate, key = certify(tmp_path)
    flags = ("--http-cert", str(certificate), "--http-key", str(key), "--frame-timeout", "0.6", "--log-level", "info")
    with http_daemon(tmp_path, *ALONE, *flags) as daemon, socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        plain.connect(("127.0.0.1", daemon.listening().port))
        trust = ssl.create_default_context(cafile=certificate)
        with trust.wrap_socket(plain, server_hostname="localhost") as sock:
            sock.sendall(message("big 8000000"))
            began = time.monotonic()
            wait_until(lambda: "http.client_too_slow" in daemon.log)
            assert time.monotonic() - began < IDLE_SECONDS  # after which any connection is closed
        large = socket.create_connection(("127.0.0.1", daemon.port), 60)
        with trust.wrap_socket(large, server_hostname="localhost") as sock, sock.makefile("rb") as file:
            sock.sendall(message("big 8000000").replace(b"content-type", b"connection: close\r\ncontent-type"))
            assert len(file.read()) > 8_000_000
        assert daemon.end() == 0


def ended(sock: socket.socket) -> bytes:
    """What comes until the connection ends."""
    with sock:
        try:
            return sock.recv(100)
        except ConnectionError:
            return b""


@pytest.mark.parametrize(
    ("cert", "key", "wrong"),
    [
        ("cert.pem", "nowhere.pem", "--http-key nowhere.pem: No such file"),
        ("cert.pem", "cert.pem", "--http-key cert.pem: there is no private key"),
        ("cert.pem", None, "--http-cert cert.pem: there is no private key in PEM form; --http-key"),
        ("cert.pem", "other.pem", "--http-key other.pem: the key is not that of the certificate"),
        ("cert.pem", "locked.pem", "--http-key locked.pem: the key has a passphrase"),
        ("key.pem", "key.pem", "--http-cert key.pem: there is no certificate"),
        (".", "key.pem", "--http-cert .: Is a directory"),
    ],
)
def test_of_two_files_for_tls_the_wrong_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cert: str, key: str | None, wrong: str
) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    certify(tmp_path)
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    other = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "other.pem").write_bytes(other.private_bytes(pem, form, serialization.NoEncryption()))
    locked = rsa_key().private_bytes(pem, form, serialization.BestAvailableEncryption(b"x"))
    (tmp_path / "locked.pem").write_bytes(locked)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AppError) as caught:
        load_certificate(cert, key)
    assert wrong in str(caught.value)
    load_certificate("cert.pem", "key.pem")


def certify(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost, and its key."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(rsa_key().public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(rsa_key(), hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(
        rsa_key().private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "cert.pem", folder / "key.pem"
