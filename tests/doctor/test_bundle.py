"""The bundle for a bug report: texts, keys and names are planted, and must not be in it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from realtime_tts.cli import main
from realtime_tts.doctor.bundle import log_line, write_bundle
from realtime_tts.doctor.findings import Finding, Verdict

SECRETS = (
    "sk-planted-in-the-environment-0001",
    "sk-planted-in-the-file-0002",
    "https://planted.example",
    "A planted sentence that somebody had spoken.",
    "planted-turn-id",
    "planted reason",
)


def members(bundle: Path) -> dict[str, str]:
    with zipfile.ZipFile(bundle) as found:
        return {name: found.read(name).decode() for name in found.namelist()}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "server.log"
    lines = [
        {"time": "2026-11-01T10:00:00.000Z", "level": "info", "logger": SECRETS[3]}
        | {"event": "turn.done", "turn": SECRETS[4], "reason": SECRETS[5], "ttfa_ms": 71.5},
        {"event": SECRETS[3], "level": SECRETS[4], "time": SECRETS[5], "exception": SECRETS[3]},
        {"event": "engine.lost", "nested": {"text": SECRETS[3]}, "list": [SECRETS[1]], "ok": True},
    ]
    file.write_text("\n".join([*map(json.dumps, lines), SECRETS[3], json.dumps(SECRETS[3]), "{"]))
    return file


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "realtime-tts.toml"
    file.write_text(
        f'[server]\nport = 9000\n[access]\napi-key = ["{SECRETS[1]}"]\n'
        f'allow-origin = ["{SECRETS[2]}"]\n[engine]\nslots = 3\n'
    )
    file.chmod(0o600)
    return file


def test_nothing_that_was_planted_is_in_the_bundle(
    tmp_path: Path, log: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REALTIME_TTS_API_KEY", SECRETS[0])
    bundle = tmp_path / "support.zip"
    words = ["doctor", "--no-speech", "--port", "0", "--bundle", str(bundle)]
    assert main([*words, "--log", str(log), "--config", str(config)]) == 0
    found = members(bundle)
    assert not [secret for secret in SECRETS if any(secret in text for text in found.values())]
    assert "planted" not in "".join(found.values())
    # … and what helps is.
    assert "REALTIME_TTS_API_KEY" in found["environment.txt"].split()
    assert "server.port = 9000" in found["settings.txt"]
    assert "engine.slots = 3" in found["settings.txt"]
    assert "access.api-key = (given, not shown)" in found["settings.txt"]
    assert '"ttfa_ms": 71.5' in found["log.jsonl"] and '"turn.done"' in found["log.jsonl"]
    assert "msgspec==" in found["packages.txt"]
    assert json.loads(found["report.json"])["findings"]


def test_what_a_server_said_before_it_ended_stays_on_the_terminal(tmp_path: Path) -> None:
    finding = Finding("start", Verdict.FAILED, "the server ended", quoted=SECRETS[1])
    assert SECRETS[1] in str(finding)
    write_bundle(tmp_path / "b.zip", [finding], None, None)
    found = members(tmp_path / "b.zip")
    assert "the server ended" in found["report.txt"]
    assert not any(SECRETS[1] in text for text in found.values())


def test_a_full_disk_is_told_with_the_file_and_keeps_no_half_of_it(tmp_path: Path) -> None:
    """As Linux limits it: a file may have 100 bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match="b.zip"):
            write_bundle(tmp_path / "b.zip", [], None, None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_of_a_line_of_the_log_known_words_and_numbers_are_kept() -> None:
    line = {"time": "2026-11-01T10:00:00.000Z", "level": "info", "event": "turn.done", "n": 1}
    assert log_line(json.dumps(line | {"text": "Hello.", "voice": "ava"})) == line
    assert log_line("Hello.") == log_line('["Hello."]') == log_line("[" * 100_000) == {}
