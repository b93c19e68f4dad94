"""`realtime-tts keys`: what it prints, and what it refuses."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from realtime_tts.access.key import KeyLimits
from realtime_tts.access.key_file import KeyFile
from realtime_tts.cli import main


def test_a_key_is_printed_once_and_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "keys.json"
    words = ["--turns", "3", "--chars-per-day", "1000", "--voice", "a-*", "--register", "a-*"]
    assert main(["keys", "create", "acme", "--keys", str(path), "--expires", "2h", *words]) == 0
    said = capsys.readouterr()
    secret = said.out.strip()
    assert said.out == secret + "\n", "so that a script can take it"
    (key,) = KeyFile(path).read().values()
    assert key.is_of(secret.encode())
    assert key.limits == KeyLimits(turns=3, chars_per_day=1_000)
    assert key.expires == pytest.approx(time.time() + 7_200, abs=60)
    assert (key.voices, key.register) == (("a-*",), ("a-*",))
    assert main(["keys", "list", "--keys", str(path)]) == 0
    listed = capsys.readouterr().out
    assert key.id in listed and "acme" in listed
    assert secret.split("_", 2)[2] not in listed + said.err
    assert main(["keys", "rotate", key.id, "--keys", str(path)]) == 0
    rotated = capsys.readouterr().out.strip()
    assert KeyFile(path).read()[key.id].is_of(rotated.encode())
    assert main(["keys", "revoke", "acme", "--keys", str(path)]) == 0
    assert KeyFile(path).read() == {}


def test_the_list_breaks_no_word_in_a_terminal_of_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = "--sessions 20 --turns 30 --turns-per-minute 400 --chars-per-minute 50000"
    words += " --chars-per-day 6000000 --voice acme-* --voice news-reader-* --register acme-*"
    words += " --share 2.5 --expires 2999-01-31 --admin"
    name = "the kiosk in the station"
    assert main(["keys", "create", name, *words.split(), "--keys", str(tmp_path / "k")]) == 0
    capsys.readouterr()
    assert main(["keys", "list", "--keys", str(tmp_path / "k")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert f"{name} (admin)" in lines[1]
    for detail in (
        "expires: 2999-01-31 00:00",
        "sessions: 20",
        "turns: 30",
        "turns_per_minute: 400",
        "chars_per_minute: 50000",
        "chars_per_day: 6000000",
        "voices: acme-*, news-reader-*",
        "register: acme-*",
        "share: 2.5",
    ):
        assert any(line.rstrip().endswith(f" {detail}") for line in lines), detail


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["create", "acme"], "already"),
        (["create", ""], "1 to 64 characters"),
        (["create", "caf\udce9"], "that can be printed"),  # an argument that is not UTF-8
        (["create", "b", "--turns", "0"], "--turns must be at least 1"),
        (["create", "b", "--expires", "soon"], "2027-01-31"),
        (["create", "b", "--expires", "9999-12-31T23:00-12:00"], "2027-01-31"),
        (["create", "b", "--expires", "2020-01-31"], "is over"),
        (["create", "b", "--expires", "0d"], "is over"),
        (["create", "b", "--origin", "example.com"], "--origin looks like https://example.com"),
        (["create", "b", "--origin", "*"], "Leave it out for every page"),
        (["create", "b", "--share", "0"], "--share must be positive"),
        (["create", "b", "--share", "inf"], "--share must be positive"),
        (["revoke", "nobody"], "no key 'nobody'"),
        (["rotate", "nobody"], "no key 'nobody'"),
    ],
)
def test_what_cannot_be_is_said_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    path = tmp_path / "keys.json"
    assert main(["keys", "create", "acme", "--keys", str(path)]) == 0
    before = path.read_bytes()
    assert main(["keys", *words, "--keys", str(path)]) == 2
    assert told in capsys.readouterr().err
    assert path.read_bytes() == before


def test_flags_of_keys_need_keys(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["serve", "--engine", "fake", "--port", "0", "--limits-store", "redis://127.0.0.1"]
    assert main(words) == 2
    assert "give --keys FILE, too" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("127.0.0.1:6379", "such as redis://HOST:6379"),
        ("redis", "such as redis://HOST:6379"),
        ("redis://127.0.0.1:port", "such as redis://HOST:6379"),
        ("valkey://127.0.0.1", "valkey:// needs a client that is not installed"),
    ],
)
def test_a_wrong_address_of_the_store_is_told_from_a_missing_client(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    told: str,
) -> None:
    monkeypatch.setitem(sys.modules, "valkey", None)  # not installed
    words = ["serve", "--engine", "fake", "--port", "0", "--keys", str(tmp_path / "keys.json")]
    assert main([*words, "--limits-store", address]) == 2
    assert told in capsys.readouterr().err
