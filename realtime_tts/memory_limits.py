"""Limits that a shell, a supervisor or a container has set on this process's memory, and what a
server needs.

Without memory Python, numpy and torch fail each in its own way, with a traceback or none. So a
limit that is surely too low is refused before they are imported, and one that proves too low is
named in the error. Beyond a container's limit the kernel kills, and nothing can be said any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from realtime_tts.cgroups import memory_limit
from realtime_tts.errors import ConfigError, RealtimeTTSError

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit on memory. `front` and `engine`: MiB that a server on two cores took, with tones and
    with the demo voice, and a tenth more. More cores, slots and parameters take more."""

    name: str
    what: str
    advice: str
    front: int
    engine: int

    @property
    def mib(self) -> float | None:
        """MiB that this process may have; None: no limit."""
        try:
            import resource
        except ImportError:  # a system without such limits
            return None
        soft, _ = resource.getrlimit(getattr(resource, self.name))
        return None if soft == resource.RLIM_INFINITY else soft / _MIB


class _GroupLimit(_Limit):
    """The limit of a control group. `front` and `engine`: with so little the server was killed."""

    @property
    def mib(self) -> float | None:
        limit = memory_limit()
        return None if limit is None else limit / _MIB


_LIMITS = (
    _Limit("RLIMIT_DATA", "data", "`ulimit -d`, in systemd LimitDATA=", 180, 560),
    _Limit("RLIMIT_AS", "address space", "`ulimit -v`, in systemd LimitAS=", 420, 1_320),
)

_OF_GROUP = _GroupLimit(
    "the container's limit",
    "memory",
    "`docker run --memory`, in Kubernetes resources.limits.memory, in systemd MemoryMax=",
    45,
    330,
)


def check_memory_limits(models: Sequence[Path]) -> None:
    """Raise ConfigError if a limit is surely too low for a server with these checkpoint folders.

    Nothing large may be imported before. `models` is empty for an engine that loads none; folders
    that do not exist yet count as empty.
    """
    weights = max((_weights(folder) for folder in models), default=0) / _MIB
    for limit in (*_LIMITS, _OF_GROUP):
        # Weights are mapped wherever they end up, but are data only on a CPU.
        mapped = weights if limit.name == "RLIMIT_AS" else 0.0
        needed = limit.engine + mapped if models else limit.front
        if limit.mib is not None and limit.mib < needed:
            raise ConfigError(
                f"the server needs {needed:.0f} MiB of {limit.what} at least, and may have "
                f"{limit.mib:.0f} MiB: raise {limit.name} ({limit.advice})"
            )


@contextlib.contextmanager
def told_memory_limits() -> Iterator[None]:
    """Under a limit, raise any error as a ConfigError that names the limit: no error of a library
    says reliably that memory was short."""
    try:
        yield
    except RealtimeTTSError:
        raise
    except Exception as error:
        found = [limit for limit in _LIMITS if limit.mib is not None]
        if not found:
            raise
        has = ", ".join(f"{one.mib:.0f} MiB of {one.what}" for one in found)
        advice = "; ".join(f"{one.name} ({one.advice})" for one in found)
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ConfigError(
            f"the engine could not start with {has}, which is all that this process may have "
            f"({why}): raise {advice}. The demo voice needs {found[0].engine} MiB of "
            f"{found[0].what} at least, other checkpoints more"
        ) from error


def _weights(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("**/*.safetensors"))
