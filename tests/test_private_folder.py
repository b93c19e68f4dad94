"""Temporary folders of a server are there for as long as it runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from realtime_tts.cli import command_parser
from realtime_tts.cli.serve import tls_config
from realtime_tts.private_folder import make_private, remove_private


def is_locked(folder: Path) -> bool:
    """Whether another process would be refused a lock, and so leaves the folder alone."""
    other = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(other)
    return False


def test_a_folder_is_locked_as_long_as_it_is_used(tmp_path: Path) -> None:
    folder = make_private(parent=str(tmp_path))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert is_locked(folder)
    remove_private(folder)
    remove_private(folder)
    assert not folder.exists()


def test_a_certificate_that_serve_makes_is_there_for_its_reloads() -> None:
    arguments = command_parser(["serve"]).parse_args(["serve", "--tls-self-signed"])
    with contextlib.ExitStack() as stack:
        config = tls_config(arguments, stack)
        assert config is not None
        folder = Path(config.certificate).parent
        assert is_locked(folder)
    assert not folder.exists()


def test_what_is_old_in_a_folder_that_is_used_is_not_cleaned_away(tmp_path: Path) -> None:
    cleaner = shutil.which("systemd-tmpfiles")
    if cleaner is None:
        pytest.skip("systemd-tmpfiles is missing")
    rules = tmp_path / "rules.conf"
    rules.write_text(f"q {tmp_path}/tmp 1777 - - 0\n")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "of-nobody").touch()
    folder = make_private(parent=str(tmp_path / "tmp"))
    (folder / "certificate.pem").touch()
    (folder / "used-tokens").mkdir()
    subprocess.run([cleaner, "--clean", rules], check=True)
    assert os.listdir(tmp_path / "tmp") == [folder.name]
    assert sorted(os.listdir(folder)) == ["certificate.pem", "used-tokens"]
    remove_private(folder)
