"""TLS of the server's sockets: certificates from files, checked before anything is loaded."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

from realtime_tts.config import ServerConfig, TlsConfig
from realtime_tts.errors import ConfigError

_HANDSHAKE_STEPS = 10


class Certificate:
    """A server's certificate, which can be replaced for later connections.

    `context` is used as long as the server runs. `expires`: when the present one does, in seconds
    since 1970. Raises ConfigError as `server_context` does.
    """

    def __init__(self, config: TlsConfig) -> None:
        self._current, self.expires = _loaded(config)
        self.context = self._current
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: object) -> None:
        # OpenSSL asks for every handshake, whether or not the client names a host. A new context
        # takes the place of the old one in one step: certificate and key always match.
        connection.context = self._current

    def prepare(self, config: ServerConfig) -> Callable[[], None]:
        """Prepare the files as they are now. See `Reloadable`."""
        assert config.tls is not None, "a server that speaks TLS goes on to"
        loaded = _loaded(config.tls)

        def take_over() -> None:
            self._current, self.expires = loaded

        return take_over


def server_context(config: TlsConfig) -> ssl.SSLContext:
    """Return the context to serve with: TLS 1.2 or later, no client certificates.

    Raises ConfigError for files that cannot be read, are no certificate or key, do not belong
    together, or hold a certificate that every client would refuse today.
    """
    return _loaded(config)[0]


def _loaded(config: TlsConfig) -> tuple[ssl.SSLContext, float]:
    """Return `server_context`, and when its certificate expires."""
    certificate, key = Path(config.certificate), Path(config.key or config.certificate)
    for what, path in (("certificate", certificate), ("private key", key)):
        _check_readable(what, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # They come while a client writes its first request. One that reads in another thread, as the
    # sync client of websockets does, then loses that request now and then (seen with Python 3.11).
    context.num_tickets = 0
    _load(context, certificate, key)
    return context, _check_acceptable(context, certificate)


def _check_readable(what: str, path: Path) -> None:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the TLS {what} {path}: {error.strerror}") from error
    key = what == "private key"
    marker = "PRIVATE KEY-----" if key else "-----BEGIN CERTIFICATE-----"
    if marker.encode() not in data:
        shown = f"-----BEGIN … {marker}" if key else marker
        raise ConfigError(f"there is no {what} in {path}; expected a PEM file with a line {shown}")


class _Encrypted(Exception):
    """OpenSSL asks for a password, on the terminal if nothing else answers."""


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    def no_password() -> str:
        raise _Encrypted

    try:
        context.load_cert_chain(certificate, key, no_password)
    except _Encrypted:
        raise ConfigError(
            f"the TLS key {key} is encrypted; decrypt it with `openssl pkey -in {key} -out …`"
        ) from None
    except ssl.SSLError as error:
        if "MISMATCH" in (error.reason or ""):
            message = f"the TLS key {key} does not belong to the certificate {certificate}"
            raise ConfigError(f"{message}; of a chain, the server's own comes first") from error
        reason = error.reason or str(error)
        raise ConfigError(f"cannot use the TLS files {certificate}, {key}: {reason}") from error


def _check_acceptable(context: ssl.SSLContext, certificate: Path) -> float:
    """Shake hands with ourselves, like a client that trusts this very certificate. Return when it
    expires, in seconds since 1970.

    The standard library reads no certificate except a peer's. Names are not compared: which one
    clients use is not known here.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server),
        context.wrap_bio(to_server, to_client, server_side=True),
    )
    try:
        for _ in range(_HANDSHAKE_STEPS):
            done = [_stepped(end) for end in ends]  # both, whether or not the first is done
            if all(done):
                found = ends[0].getpeercert()
                assert found is not None, "it was verified"
                return float(ssl.cert_time_to_seconds(str(found["notAfter"])))
    except ssl.SSLCertVerificationError as error:
        message = f"clients would refuse the TLS certificate {certificate}: {error.verify_message}"
        raise ConfigError(message) from error
    except ssl.SSLError as error:
        message = f"the TLS certificate {certificate} cannot be served: {error.reason or error}"
        raise ConfigError(message) from error
    raise AssertionError("a TLS handshake takes fewer steps")


def _stepped(end: ssl.SSLObject) -> bool:
    """Do a step of the handshake; return whether this end is done."""
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
