"""`realtime-tts ingress`, as far as it starts nothing; tests/fleet has the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from realtime_tts.cli import main


def test_print_shows_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ingress", "--member", "a.example:80/81", "--member", "b.example:80", "--print"]
    assert main([*words, "--bind", "*:9000", "--weight", "25", "--slots", "2"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "bind *:9000" in lines
    assert any(line.startswith("default-server weight 25 check") for line in lines)
    assert [line for line in lines if line.startswith("server s") and "agent-port" in line] == [
        "server s1 a.example:80 agent-port 81",
        "server s2 b.example:80 agent-port 81",
    ]
    assert not any(line.startswith("use_backend by_voice if named") for line in lines)


def test_print_shows_what_dns_and_voices_add(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ingress", "--dns", "tts.example", "--dns-ports", "9000/9001", "--print"]
    assert main([*words, "--voice-locality", "Vivian,Ryan"]) == 0
    out = capsys.readouterr().out
    assert "server-template s 1-64 tts.example:9000 resolvers dns" in out
    assert "agent-port 9001" in out
    assert "acl speaker var(txn.voice) -m str vivian ryan" in out


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--member", "nonsense"], "HOST:PORT/AGENT_PORT"),
        (["--members-file", "none-such"], "cannot be read"),
        (["--dns", "tts.example", "--dns-ports", "9000"], "PORT/AGENT_PORT"),
        (["--member", "10.0.0.5:8000", "--dns-ports", "9000/9001"], "--dns-ports is for --dns"),
        (["--dns", "tts.example", "--targets-bind", "*:8002"], "--dns names the servers"),
        (["--member", "a:1", "--weight", "1000"], "between 1 and 256"),
        (["--member", "a:1", "--tls-key", "key.pem"], "give --tls-cert, too"),
        (
            ["--member", "a:1", "--tls-cert", "a.pem", "--tls-key", "b.pem"],
            "one beside it with the same name",
        ),
    ],
)
def test_what_cannot_work_is_told(
    flags: list[str], told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["ingress", *flags, "--print"]) != 0
    assert told in capsys.readouterr().err
