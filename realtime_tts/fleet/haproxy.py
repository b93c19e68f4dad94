"""HAProxy's configuration for a fleet: the template `haproxy.cfg`, filled in.

Members never change by a reload: an old process would have to be ended some time, with the calls
that it still holds. There is a fixed number of slots, servers s1, s2, … of each backend, which get
an address by the runtime API (ingress.py), or by DNS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

from realtime_tts.errors import ConfigError
from realtime_tts.fleet.members import Member

BACKENDS = "servers", "by_voice"
_UNUSED = "127.0.0.1:9"
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_RETRY_MS = 2_000
_NO_SERVER = {
    "type": "error",
    "code": "not_ready",
    "message": "no server of the fleet takes sessions now",
    "fatal": True,
    "retryable": True,
    "retry_after_ms": _RETRY_MS,
}
_VOICE_RULES = """\
    # The voice is in the query, in ElevenLabs' path, or in the body of OpenAI's request.
    http-request set-var(txn.voice) url_param(voice),lower
    http-request set-var(txn.voice) path,field(4,/),lower if { path_beg /v1/text-to-speech/ }
    acl openai path /v1/audio/speech
    http-request set-var(txn.voice) req.body,json_query('$.voice'),lower if openai
    acl named var(txn.voice) -m len gt 0
    acl speaker var(txn.voice) -m str SPEAKERS
    use_backend by_voice if named !speaker"""


@dataclass(frozen=True, slots=True)
class IngressConfig:
    """What an ingress listens on, and how it picks a server.

    `bind`: as HAProxy has it, `*:8000` or `10.0.0.1:8000`. `certificate`: a PEM file with the
    certificate and its key; None: no TLS. `key`: a PEM file with the key, if that has a file of its
    own. `slots`: most members at once. `weight`: of every member;
    a server's effective weight is its free turns times this, in hundredths, at most 256, so a fleet
    of servers for more than 256 turns each needs less than 100. `dns`: a name whose addresses are
    the members, all at `dns_port` and `dns_agent_port`. `speakers`: with these, sessions of all
    other voices go where their voice is loaded; None: voices play no part.
    """

    bind: str = "*:8000"
    certificate: str | None = None
    key: str | None = None
    slots: int = 64
    weight: int = 100
    dns: str | None = None
    dns_port: int = 8000
    dns_agent_port: int = 8001
    speakers: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.weight <= 256:
            raise ConfigError(f"weight must be between 1 and 256, got {self.weight}")
        if not 1 <= self.slots <= 1_000:
            raise ConfigError(f"slots must be between 1 and 1000, got {self.slots}")
        if any(char.isspace() for char in self.bind + (self.certificate or "")):
            raise ConfigError(f"an address or a file without spaces, got {self.bind!r}")
        if self.key is not None and self.certificate is None:
            raise ConfigError("--tls-key is the key of a certificate: give --tls-cert, too")
        for name in (*(self.speakers or ()), *filter(None, (self.dns,))):
            if not _NAME.fullmatch(name):
                raise ConfigError(f"a name has letters, digits, `_`, `.` and `-`; got {name!r}")


def render(config: IngressConfig, members: Sequence[Member | None], socket: Path) -> str:
    """Return the configuration, with `members` in the slots of these positions.

    Raises ConfigError if there are more members than slots.
    """
    if len(members) > config.slots:
        raise ConfigError(f"{len(members)} members for {config.slots} slots; ask for more of them")
    found = resources.files("realtime_tts.fleet").joinpath("haproxy.cfg").read_text()
    tls = f" ssl crt {config.certificate} alpn http/1.1" if config.certificate else ""
    return Template(found).substitute(
        socket=socket,
        no_server=json.dumps(_NO_SERVER),
        bind=config.bind + tls,
        voice_rules=_voice_rules(config),
        weight=config.weight,
        servers=_servers(config, members, agent=True),
        voice_servers=_servers(config, members, agent=False),
    )


def _voice_rules(config: IngressConfig) -> str:
    if config.speakers is None:
        return "    # Voices play no part in where a session goes."
    names = " ".join(name.lower() for name in config.speakers)
    return _VOICE_RULES.replace("SPEAKERS", names or "-")


def _servers(config: IngressConfig, members: Sequence[Member | None], *, agent: bool) -> str:
    if config.dns is not None:
        port = f" agent-port {config.dns_agent_port}" if agent else ""
        return (
            f"    server-template s 1-{config.slots} {config.dns}:{config.dns_port}"
            f" resolvers dns init-addr none{port}"
        )
    unused = [None] * (config.slots - len(members))
    return "\n".join(
        _server(number, member, agent=agent)
        for number, member in enumerate([*members, *unused], start=1)
    )


def _server(number: int, member: Member | None, *, agent: bool) -> str:
    port = 9 if member is None else member.agent_port
    agent_port = f" agent-port {port}" if agent else ""
    if member is None:
        return f"    server s{number} {_UNUSED}{agent_port} disabled"
    return f"    server s{number} {member.authority}{agent_port}"
