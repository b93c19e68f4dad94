"""A certificate for development: it names this machine, and only clients told to will trust it.

It is made with `cryptography` (extra `tls`): the standard library makes none, an `openssl` command
is not on every machine, and helpers such as `trustme` use it as well.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from realtime_tts.config import TlsConfig

DAYS = 30
_CLOCKS_DIFFER = timedelta(hours=1)


def write_self_signed(folder: Path, *hosts: str) -> TlsConfig:
    """Write `certificate.pem` and `key.pem` (readable only by its owner) into `folder`.

    The certificate holds for localhost, 127.0.0.1, ::1, the machine's name and `hosts`, for DAYS
    days. It is no authority: to trust it is to trust this server, and nothing that it signs.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    names = dict.fromkeys(("localhost", "127.0.0.1", "::1", socket.gethostname(), *hosts))
    certificate, secret = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(_certificate(key, names).public_bytes(serialization.Encoding.PEM))
    with os.fdopen(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
    return TlsConfig(str(certificate), str(secret))


def _certificate(key: ec.EllipticCurvePrivateKey, names: Iterable[str]) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "realtime-tts development")])
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    public = key.public_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(
            x509.SubjectAlternativeName([_name(name) for name in names if name.isascii()]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
    )
    return builder.sign(key, hashes.SHA256())


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
