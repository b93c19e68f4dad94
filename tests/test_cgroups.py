"""The limits of a container, in both versions of control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from realtime_tts import cgroups
from realtime_tts.cores import usable_cores
from realtime_tts.errors import ConfigError
from realtime_tts.memory_limits import check_memory_limits

NO_LIMIT = "9223372036854771712"
V2 = "0::/a/b\n"
V1 = "12:memory:/a/b\n4:cpu,cpuacct:/a/b\n3:cpuset:/\n0::/a\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    return tmp_path


def write(root: Path, groups: str, files: dict[str, str]) -> None:
    (root / "groups").write_text(groups)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("groups", "files", "limit", "cores"),
    [
        (V2, {"a/b/cpu.max": "200000 100000"}, 2.0, 2),
        (V2, {"a/b/cpu.max": "max 100000", "a/cpu.max": "350000 100000"}, 3.5, 3),
        (V2, {"cpu.max": "50000 100000"}, 0.5, 1),
        (V2, {"a/b/cpu.max": "max 100000"}, None, 16),
        (V2, {"a/b/cpu.max": "6400000 100000"}, 64.0, 16),
        (V1, {"cpu/a/b/cpu.cfs_quota_us": "400000", "cpu/a/b/cpu.cfs_period_us": "100000"}, 4.0, 4),
        (V1, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None, 16),
        (V1, {"a/cpu.max": "max 100000"}, None, 16),
        ("", {}, None, 16),
    ],
)
def test_a_container_has_the_cores_that_its_limit_gives_it(
    root: Path, groups: str, files: dict[str, str], limit: float | None, cores: int
) -> None:
    write(root, groups, files)
    assert cgroups.cpu_limit() == limit
    assert usable_cores() == cores


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        (V2, {"a/b/memory.max": "max", "a/memory.max": "1000", "memory.max": "2000"}, 1000),
        (V1, {"memory/a/b/memory.limit_in_bytes": "500"}, 500),
        (V1, {"memory/memory.limit_in_bytes": "700"}, 700),  # a container that sees only its own
        (V1, {"memory/a/b/memory.limit_in_bytes": NO_LIMIT}, None),
        ("", {}, None),
    ],
)
def test_a_container_has_the_memory_that_its_limit_gives_it(
    root: Path, groups: str, files: dict[str, str], limit: int | None
) -> None:
    write(root, groups, files)
    assert cgroups.memory_limit() == limit


def test_a_container_with_too_little_memory_is_told_before_the_kernel_kills_it(
    root: Path,
) -> None:
    write(root, V2, {"a/b/memory.max": f"{256 * 2**20}"})
    check_memory_limits([])  # tones need less
    with pytest.raises(ConfigError, match=r"330 MiB of memory .* may have 256 MiB: raise the cont"):
        check_memory_limits([root])
