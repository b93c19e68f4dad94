"""`realtime-tts ingress`: HAProxy in front of several servers."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from realtime_tts.background import repeat
from realtime_tts.errors import ConfigError
from realtime_tts.fleet.haproxy import IngressConfig, render
from realtime_tts.fleet.ingress import Ingress
from realtime_tts.fleet.members import Member, parse_member, read_members
from realtime_tts.fleet.targets import listing
from realtime_tts.logs import configure_logging, event
from realtime_tts.signals import at_signal, clean_up_at_signals, end_at_signals

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_DEFAULTS = IngressConfig()
_DNS_PORTS = f"{_DEFAULTS.dns_port}/{_DEFAULTS.dns_agent_port}"
_EXAMPLES = """\
examples:
  realtime-tts ingress --member 10.0.0.5:8000/8001 --member 10.0.0.6:8000/8001
  realtime-tts ingress --members-file members.txt          looked at every second
  realtime-tts ingress --dns tts.example.internal --print  only the configuration for HAProxy

each server runs with --agent-port, and with --trusted-proxy for the ingress's address
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    _add_members(parser)
    _add_haproxy(parser)
    parser.add_argument(
        "--targets-bind",
        metavar="ADDRESS:PORT",
        help="list the servers here for Prometheus (http_sd_configs); none of --dns, for which "
        "Prometheus has dns_sd_configs (default: nowhere)",
    )
    parser.add_argument(
        "--drain-seconds",
        type=float,
        default=30.0,
        help="at SIGTERM, let calls finish for so long (default: 30)",
    )
    parser.add_argument(
        "--print", action="store_true", help="print HAProxy's configuration, and start nothing"
    )


def _add_members(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the servers."""
    members = parser.add_mutually_exclusive_group(required=True)
    members.add_argument(
        "--member",
        action="append",
        metavar="HOST:PORT/AGENT_PORT",
        help="a server, and where it answers the agent check (default: the next port); repeatable",
    )
    members.add_argument(
        "--members-file",
        type=Path,
        metavar="FILE",
        help="the same, one a line; a change of the file takes effect within a second",
    )
    members.add_argument(
        "--dns",
        metavar="NAME",
        help="every address of this name is a server; HAProxy asks again as long as it runs",
    )
    parser.add_argument(
        "--dns-ports",
        metavar="PORT/AGENT_PORT",
        default=_DNS_PORTS,
        help="of those servers (default: %(default)s)",
    )


def _add_haproxy(parser: argparse.ArgumentParser) -> None:
    """Add the flags of HAProxy itself."""
    parser.add_argument(
        "--bind", default=_DEFAULTS.bind, help="where clients connect (default: %(default)s)"
    )
    parser.add_argument(
        "--tls-cert",
        metavar="FILE",
        help="PEM, with its key: https and wss; a change of the file takes effect within a second",
    )
    parser.add_argument(
        "--tls-key",
        metavar="FILE",
        help="PEM with the key, if that is not in the file of --tls-cert",
    )
    parser.add_argument(
        "--slots",
        type=int,
        default=_DEFAULTS.slots,
        help="most servers at once (default: %(default)s)",
    )
    parser.add_argument(
        "--weight",
        type=int,
        default=_DEFAULTS.weight,
        help="of each server; where servers speak more than 256 turns at once, 25600 divided by "
        "the most (default: %(default)s)",
    )
    parser.add_argument(
        "--voice-locality",
        metavar="SPEAKER,SPEAKER",
        nargs="?",
        const="",
        help="sessions with a registered voice go where it is loaded; these names are the "
        "checkpoint's own speakers, for which that does not matter",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run HAProxy until SIGTERM or SIGINT. Returns the exit status."""
    config = ingress_config(arguments)
    file: Path | None = arguments.members_file
    members = read_members(file) if file else tuple(map(parse_member, arguments.member or ()))
    if arguments.print:
        if config.key:
            raise ConfigError(
                "--print has no use for --tls-key: HAProxy takes the key from the file of "
                "--tls-cert, or from one beside it with the same name and .key after it"
            )
        print(render(config, members, Path("/run/haproxy/realtime-tts.sock")), end="")
        return 0
    configure_logging("json", "info", access_log=False)
    return asyncio.run(
        _serve(config, members, file, arguments.targets_bind, arguments.drain_seconds)
    )


def ingress_config(arguments: argparse.Namespace) -> IngressConfig:
    """Return the settings that the flags give. Raises ConfigError."""
    if arguments.dns is None and arguments.dns_ports != _DNS_PORTS:
        raise ConfigError("--dns-ports is for --dns; other servers are named with their ports")
    if arguments.dns is not None and arguments.targets_bind is not None:
        raise ConfigError("--targets-bind has no list where --dns names the servers")
    port, _, agent_port = arguments.dns_ports.partition("/")
    if not (port.isdecimal() and agent_port.isdecimal()):
        raise ConfigError(f"--dns-ports is PORT/AGENT_PORT, got {arguments.dns_ports!r}")
    names: str | None = arguments.voice_locality
    speakers = None if names is None else tuple(name for name in names.split(",") if name)
    return IngressConfig(
        bind=arguments.bind,
        certificate=arguments.tls_cert,
        key=arguments.tls_key,
        slots=arguments.slots,
        weight=arguments.weight,
        dns=arguments.dns,
        dns_port=int(port),
        dns_agent_port=int(agent_port),
        speakers=speakers,
    )


async def _serve(
    config: IngressConfig,
    members: tuple[Member, ...],
    file: Path | None,
    targets_bind: str | None,
    drain_seconds: float,
) -> int:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    ingress = Ingress(config, members)
    clean_up_at_signals(ingress.remove_files)
    try:
        async with listing(targets_bind, lambda: ingress.members):
            await ingress.start()  # until its end, a signal ends the process at once
            for number in (signal.SIGTERM, signal.SIGINT):
                at_signal(number, loop, ended.set)
            print(f"HAProxy takes clients at {config.bind}", flush=True)
            following = asyncio.create_task(_follow(ingress, members, file))
            await ended.wait()
            following.cancel()
    finally:
        end_at_signals()  # at a second one, now
        await ingress.stop(drain_seconds)
    return 0


async def _follow(ingress: Ingress, members: Sequence[Member], file: Path | None) -> None:
    """Name the members again and again, for those that could not join or whose address changes.
    Take over what is in the members' file, if there is one, and in the certificate's, when it
    changes, unless that cannot be."""
    reported: dict[Callable[[], Awaitable[None]], str] = {}

    async def follow_members() -> None:
        named = members if file is None else await asyncio.to_thread(read_members, file)
        await ingress.change(named)

    async def look() -> None:
        for follow in (follow_members, ingress.follow_certificate):
            why = ""
            try:
                await follow()
            except ConfigError as error:
                why = str(error)
            if why and why != reported.get(follow):
                event(log, logging.ERROR, "fleet.not_followed", why=why)
            elif not why and reported.get(follow):
                event(log, logging.INFO, "fleet.followed_again")
            reported[follow] = why

    await repeat("fleet.follow", _LOOK_SECONDS, look)
