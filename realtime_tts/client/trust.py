"""Trust, both ways: the certificates that the client accepts, and the API key that it shows."""

from __future__ import annotations

import os
import ssl
from typing import Any
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    build_opener,
)

from realtime_tts.client.address import is_local
from realtime_tts.errors import CertificateRefused, ConfigError


def trust_for(url: str, tls_ca: str | None) -> ssl.SSLContext | None:
    """Return the TLS settings for `url`, or None where it is not encrypted.

    `tls_ca`: a PEM file of the certificates to trust; None: what the machine trusts, which the
    environment's SSL_CERT_FILE names if it is set. Raises ConfigError.
    """
    if urlsplit(url).scheme not in ("wss", "https"):
        if tls_ca is not None:
            raise ConfigError(f"tls_ca is for wss:// and https:// addresses, got {url}")
        return None
    if not isinstance(tls_ca, str | os.PathLike | None):
        raise ConfigError(f"tls_ca is the path of a PEM file, found {tls_ca!r}")
    try:
        return ssl.create_default_context(cafile=tls_ca)
    except ssl.SSLError as error:
        raise ConfigError(f"there is no certificate in {tls_ca}; expected a PEM file") from error
    except OSError as error:
        raise ConfigError(f"cannot read the certificates in {tls_ca}: {error.strerror}") from error


def refused_certificate(url: str, error: object) -> CertificateRefused | None:
    """Return the error for a handshake that failed at the certificate; None for any other."""
    if not isinstance(error, ssl.SSLCertVerificationError):
        return None
    return CertificateRefused(
        f"the certificate of {url} is not trusted: {error.verify_message}; if it is the server's "
        "own, name its file (tls_ca=, --tls-ca, or the environment's SSL_CERT_FILE)"
    )


class _NoRedirects(HTTPRedirectHandler):
    """Makes a redirect an error: the key is for the server that the user has named."""

    def http_error_302(self, *answer: Any, **named: Any) -> None:
        """Leave the answer to what makes errors of answers."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def http_opener(url: str, trust: ssl.SSLContext | None) -> OpenerDirector:
    """Make the opener with which urllib opens `url`. It follows no redirect."""
    # The system's proxy settings often forget to except the machine itself.
    proxy = [ProxyHandler({})] if is_local(url) else []
    return build_opener(*proxy, HTTPSHandler(context=trust), _NoRedirects)


def key_header(api_key: str | None) -> dict[str, str]:
    """Return the header with the key, if there is one. Raises ConfigError for an impossible key."""
    if not isinstance(api_key, str | None):
        raise ConfigError(f"an API key is a string, found {type(api_key).__name__}")
    if not api_key:
        return {}
    if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        # A key read from a file has the end of its line. The key itself stays out of the message:
        # messages end up in logs.
        where = ", at its beginning or end" if api_key != api_key.strip() else ""
        raise ConfigError(
            f"an API key has printable ASCII characters only, and no spaces; this one of "
            f"{len(api_key)} characters has others{where}"
        )
    return {"Authorization": f"Bearer {api_key}"}
