"""Member: a server of a fleet, by its addresses."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path

from realtime_tts.errors import ConfigError

_FORM = re.compile(r"(?P<host>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>\d+)(/(?P<agent>\d+))?")


@dataclass(frozen=True, slots=True)
class Member:
    """A server, by its addresses. `agent_port`: where it answers HAProxy's agent check."""

    host: str
    port: int
    agent_port: int

    @property
    def authority(self) -> str:
        """Where it serves HTTP: HOST:PORT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def addresses(self) -> list[str]:
        """Return the host's numeric addresses, which are all that HAProxy's runtime API takes.

        Raises OSError if the name cannot be resolved.
        """
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        return [str(one[4][0]) for one in found]


def parse_member(text: str) -> Member:
    """Return the member of `HOST:PORT/AGENT_PORT`, or `HOST:PORT`, whose agent is at the next port.

    Raises ConfigError.
    """
    found = _FORM.fullmatch(text.strip())
    if found is not None:
        port = int(found["port"])
        agent = port + 1 if found["agent"] is None else int(found["agent"])
        if 1 <= port <= 65_535 and 1 <= agent <= 65_535:
            return Member(found["host"].strip("[]"), port, agent)
    raise ConfigError(
        f"a member of the fleet is HOST:PORT/AGENT_PORT, such as 10.0.0.5:8000/8001; got {text!r}"
    )


def read_members(file: Path) -> tuple[Member, ...]:
    """Return the members in a file, one on each line. Empty lines, and what follows a `#`, are
    ignored.

    Raises ConfigError, also if the file cannot be read.
    """
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the fleet's members cannot be read from {file}: {error}") from None
    stripped = (line.partition("#")[0].strip() for line in lines)
    return tuple(parse_member(line) for line in stripped if line)
