"""The configuration that HAProxy is given."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.errors import ConfigError
from realtime_tts.fleet.haproxy import IngressConfig, render
from realtime_tts.fleet.ingress import find_haproxy
from realtime_tts.fleet.members import Member
from realtime_tts.server.self_signed import write_self_signed

MEMBERS = Member("127.0.0.1", 8000, 8001), None, Member("::1", 8000, 9000)
CONFIG = IngressConfig(bind="127.0.0.1:18080", slots=4)


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        replace(CONFIG, bind="*:18080", weight=1),
        replace(CONFIG, speakers=()),
        replace(CONFIG, speakers=("Vivian", "Uncle_Fu")),
        replace(CONFIG, dns="tts.example.internal", speakers=("alto",)),
    ],
)
def test_haproxy_takes_it(config: IngressConfig, tmp_path: Path) -> None:
    members = () if config.dns else MEMBERS
    assert said_of(render(config, members, tmp_path / "socket"), tmp_path) == ""


def test_haproxy_takes_a_certificate(tmp_path: Path) -> None:
    made = write_self_signed(tmp_path)
    assert made.key is not None
    both = tmp_path / "both.pem"
    both.write_text(Path(made.certificate).read_text() + Path(made.key).read_text())
    config = replace(CONFIG, certificate=str(both))
    assert said_of(render(config, MEMBERS, tmp_path / "socket"), tmp_path) == ""


def said_of(configuration: str, folder: Path) -> str:
    """What HAProxy finds wrong, warnings included."""
    file = folder / "haproxy.cfg"
    file.write_text(configuration)
    done = subprocess.run(
        (find_haproxy(), "-c", "-q", "-f", str(file)), capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_members_are_at_their_slots(tmp_path: Path) -> None:
    lines = render(CONFIG, MEMBERS, tmp_path / "socket").splitlines()
    servers = [line.split() for line in lines if line.split()[:1] == ["server"]]
    assert servers == [
        ["server", "s1", "127.0.0.1:8000", "agent-port", "8001"],
        ["server", "s2", "127.0.0.1:9", "agent-port", "9", "disabled"],
        ["server", "s3", "[::1]:8000", "agent-port", "9000"],
        ["server", "s4", "127.0.0.1:9", "agent-port", "9", "disabled"],
        ["server", "s1", "127.0.0.1:8000"],
        ["server", "s2", "127.0.0.1:9", "disabled"],
        ["server", "s3", "[::1]:8000"],
        ["server", "s4", "127.0.0.1:9", "disabled"],
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": 0},
        {"weight": 257},
        {"slots": 0},
        {"bind": "*:80\n    user root"},
        {"speakers": ("a voice",)},
        {"dns": "a b"},
    ],
)
def test_a_setting_that_cannot_work_is_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        IngressConfig(**wrong)


def test_more_members_than_slots_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="3 members for 2 slots"):
        render(replace(CONFIG, slots=2), MEMBERS, tmp_path / "socket")
