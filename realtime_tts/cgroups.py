"""What a container, or a unit of systemd, may use: the limits of this process's control group.

Linux has two versions of control groups, and a group may use no more than those above it. In a
container the files of its own group are at the root, whatever path /proc names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_ROOT = Path("/sys/fs/cgroup")
_GROUPS = Path("/proc/self/cgroup")
_UNLIMITED = 2**60
"""Version 1 says so of memory without a limit: a number near 2**63."""


def cpu_limit() -> float | None:
    """Return how many cores' time this process may use, such as 0.5; None: no limit."""
    limits = []
    for folder in _folders("cpu"):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal():  # else "max" or -1: no limit
            limits.append(int(quota) / int(period))
    return min(limits, default=None)


def memory_limit() -> int | None:
    """Return how many bytes of memory this process may use; None: no limit."""
    texts = (
        _read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes")
        for folder in _folders("memory")
    )
    limits = [int(text) for text in texts if text.isdecimal() and int(text) < _UNLIMITED]
    return min(limits, default=None)


def _folders(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's groups and of all above, for version 1 and 2."""
    for line in _read(_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = _ROOT / controller if controllers else _ROOT
        group = PurePosixPath(path)
        for above in (group, *group.parents):
            yield root / above.relative_to("/")


def _read(file: Path) -> str:
    """Return the file's text, "" if it cannot be read: no group of that name here, or no Linux."""
    try:
        return file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
