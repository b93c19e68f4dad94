"""The ingress's certificate: it is renewed while clients are connected."""

from __future__ import annotations

import logging
import os
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.errors import ConfigError
from realtime_tts.fleet.haproxy import IngressConfig
from realtime_tts.server.self_signed import write_self_signed
from tests.fleet.running import (
    free_port,
    ingress_running,
)


def made(folder: Path) -> tuple[str, str]:
    """A new certificate: with its key, as HAProxy has it, and alone, as clients see it."""
    folder.mkdir()
    files = write_self_signed(folder)
    assert files.key is not None
    certificate = Path(files.certificate).read_text()
    return f"{certificate}\n\n{Path(files.key).read_text()}", certificate


async def test_a_certificate_that_is_renewed_is_shown_to_new_clients(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    (first, shown_first), (second, shown_second) = made(tmp_path / "1"), made(tmp_path / "2")
    file, port = tmp_path / "both.pem", free_port()
    file.write_text(first)

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", port))

    config = IngressConfig(bind=f"127.0.0.1:{port}", slots=1, certificate=str(file))
    async with ingress_running(config) as ingress:
        await ingress.follow_certificate()
        assert shown() == shown_first
        file.write_text(second[: len(second) // 2])  # as it is while somebody writes it
        with pytest.raises(ConfigError, match=str(file)):
            await ingress.follow_certificate()
        assert shown() == shown_first
        file.write_text(second)
        assert "certificate.renewed" not in caplog.text
        await ingress.follow_certificate()
        assert shown() == shown_second and "certificate.renewed" in caplog.text
        os.unlink(file)
        with pytest.raises(ConfigError, match=str(file)):
            await ingress.follow_certificate()
        assert shown() == shown_second


async def test_a_key_in_a_file_of_its_own_is_renewed_with_its_certificate(tmp_path: Path) -> None:
    """As in Kubernetes: one link that changes is both files."""
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        write_self_signed(tmp_path / name)
    now, port = tmp_path / "now", free_port()
    now.symlink_to("1")
    certificate, key = now / "certificate.pem", now / "key.pem"
    config = IngressConfig(
        bind=f"127.0.0.1:{port}", slots=1, certificate=str(certificate), key=str(key)
    )

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", port))

    async with ingress_running(config) as ingress:
        assert shown() == certificate.read_text()
        first = shown()
        now.unlink()
        now.symlink_to("2")
        await ingress.follow_certificate()
        assert shown() == certificate.read_text() != first
        now.unlink()
        with pytest.raises(ConfigError, match=str(certificate)):
            await ingress.follow_certificate()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"bind": "nonsense"}, "nonsense"),
        ({"certificate": "none.pem"}, "none.pem cannot be read: No such file"),
        ({"certificate": "certificate.pem"}, "certificate.pem"),  # without its key
        ({"certificate": "certificate.pem", "key": "none.pem"}, "none.pem cannot be read: No such"),
        ({"certificate": "certificate.pem", "key": "certificate.pem"}, "rivate [Kk]ey"),
    ],
)
async def test_what_haproxy_does_not_take_is_told(
    flags: dict[str, Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_self_signed(tmp_path)
    config = replace(IngressConfig(bind=f"127.0.0.1:{free_port()}", slots=1), **flags)
    with pytest.raises(ConfigError, match=told):
        async with ingress_running(config):
            pass
