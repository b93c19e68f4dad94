"""`realtime-tts serve`: settings to configs, then the server."""

from __future__ import annotations

import argparse
import contextlib
import resource
import secrets
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

from realtime_tts import demo_voice
from realtime_tts.cli.progress import LoadingProgress
from realtime_tts.cli.reachable import EVERYWHERE, addresses_for_others, url_authority
from realtime_tts.cli.serve_arguments import add_arguments
from realtime_tts.cli.serve_engine import (
    chosen_lines,
    device_choice,
    engine_configs,
    front_count,
    log_reasons,
    log_start,
)
from realtime_tts.cli.serve_limits import address_config, limits_config, socket_config
from realtime_tts.cli.serve_settings import RunningSettings, Sources, log_warnings
from realtime_tts.cli.session_arguments import server_flags
from realtime_tts.errors import ConfigError
from realtime_tts.loopback import is_loopback
from realtime_tts.memory_limits import check_memory_limits
from realtime_tts.signals import clean_up_at_signals

if TYPE_CHECKING:
    from realtime_tts.config import AccessConfig, ServerConfig, TlsConfig
    from realtime_tts.configuration.settings import Settings
    from realtime_tts.engine.devices import Choice
    from realtime_tts.engine.link import EngineLink
    from realtime_tts.engine.settings import EngineConfig

__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C. Returns the exit status."""
    sources = Sources(arguments.words[arguments.words.index("serve") + 1 :])
    settings = sources.read()
    arguments = settings.namespace()
    check_memory_limits(checkpoint_folders(arguments))  # before anything large is imported
    console = Console(stderr=True)
    choice = device_choice(arguments)
    engines = engine_configs(arguments, choice)
    fronts = front_count(arguments.fronts, engines)
    with contextlib.ExitStack() as stack:
        clean_up_at_signals(stack.close)
        tls = tls_config(arguments, stack)
        progress = stack.enter_context(LoadingProgress(console))

        def build(arguments: argparse.Namespace) -> ServerConfig:
            files = tls if arguments.tls_self_signed else tls_files(arguments)
            return server_config(arguments, terminal=console.is_terminal, tls=files)

        config = build(arguments)
        _start_log(config, settings, choice, engines, progress.log, watched=console.is_terminal)
        allow_open_files()

        def greet(port: int, link: EngineLink) -> None:
            progress.close()
            # Without a terminal, standard error is the log: JSON lines and nothing else.
            where = console if console.is_terminal else Console()
            welcome(where, config, engines, port, self_signed=arguments.tls_self_signed)
            _show_choices(where, config, engines, link)

        source = RunningSettings(sources, settings, build)
        return _serve(config, engines, fronts, progress, greet, source, stack.close)


def _serve(
    config: ServerConfig,
    engines: Sequence[EngineConfig],
    fronts: int,
    progress: LoadingProgress,
    greet: Callable[[int, EngineLink], None],
    source: RunningSettings,
    clean_up: Callable[[], None],
) -> int:
    """Run one front in this process, or a supervisor with a process for each front. `greet` gets
    the port once turns can be taken. `clean_up` is called where nothing after this can be."""
    from realtime_tts.metrics import Metrics

    metrics = Metrics()
    if fronts > 1:
        from realtime_tts.fronts.supervisor import supervise

        return supervise(
            config, engines, fronts, metrics, progress.update, on_ready=greet, source=source
        )
    from realtime_tts.engine.links import make_links
    from realtime_tts.engine.load import tokenizer_loaders, voice_library
    from realtime_tts.server.run import serve

    links: list[EngineLink] = []
    stage = ""

    def update(what: str, done: int, total: int) -> None:
        nonlocal stage
        stage = f": {what}, {done} of {total}"
        progress.update(what, done, total)

    def link() -> EngineLink:
        links.append(make_links(engines, metrics, update))
        return links[0]

    return serve(
        config,
        link,
        tokenizer_loaders(engines),
        metrics,
        make_voices=partial(voice_library, engines),
        on_ready=lambda port: greet(port, links[0]),
        on_stuck=clean_up,
        source=source,
        loading=lambda: stage,
    )


def _start_log(
    config: ServerConfig,
    settings: Settings,
    choice: Choice,
    engines: Sequence[EngineConfig],
    stream: TextIO,
    *,
    watched: bool,
) -> None:
    """Set the log up, and log what is known before anything is loaded."""
    from realtime_tts.logs import configure_logging

    configure_logging(
        config.log_format, config.log_level, access_log=config.access_log, stream=stream
    )
    log_warnings(settings)
    log_reasons(choice)
    if not watched:  # there are no progress bars
        log_start(engines)


def _show_choices(
    console: Console, config: ServerConfig, engines: Sequence[EngineConfig], link: EngineLink
) -> None:
    """Print what was chosen for this machine, and how many conversations that is."""
    info = link.info
    sessions = config.limits.sessions_for(info.slots)
    capacity = link.status().capacity
    for line in chosen_lines(info, capacity, engines[0].scheduler, sessions):
        console.print(f"  {line}", highlight=False, soft_wrap=True)


def checkpoint_folders(arguments: argparse.Namespace) -> list[Path]:
    """Return the folders of the checkpoints, whether they exist or not."""
    if arguments.engine == "fake":
        return []
    models: list[str] = arguments.model or [demo_voice.NAME]
    return [demo_voice.FOLDER if name == demo_voice.NAME else Path(name) for name in models]


def allow_open_files() -> None:
    """Raise the soft limit on open files to the hard one: a session is a file, and shells allow
    1,024, which the sessions of a large GPU exceed."""
    with contextlib.suppress(OSError, ValueError):  # macOS has another limit, too
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def server_config(
    arguments: argparse.Namespace, *, terminal: bool, tls: TlsConfig | None = None
) -> ServerConfig:
    """Return the front's settings. Raises ConfigError."""
    from realtime_tts.config import ServerConfig

    return ServerConfig(
        host=arguments.host,
        port=arguments.port,
        api_keys=tuple(arguments.api_key or ()),
        allowed_origins=tuple(arguments.allow_origin or ()),
        lead_seconds=arguments.lead_seconds,
        drain_seconds=arguments.drain_seconds,
        failover_seconds=arguments.failover_seconds,
        turn_reserve=arguments.turn_reserve,
        agent_port=arguments.agent_port,
        marking=arguments.marking,
        tracing=arguments.tracing,
        log_format=arguments.log_format or ("text" if terminal else "json"),
        log_level=arguments.log_level,
        tls=tls,
        limits=limits_config(arguments),
        socket=socket_config(arguments),
        addresses=address_config(arguments),
        access=access_config(arguments),
    )


def access_config(arguments: argparse.Namespace) -> AccessConfig | None:
    """Return the settings for customers' keys. Raises ConfigError if flags contradict."""
    from realtime_tts.config import AccessConfig

    keys, usage, store = arguments.keys, arguments.usage_database, arguments.limits_store
    if keys is None and (usage or store):
        raise ConfigError("--usage-database and --limits-store are for keys: give --keys FILE, too")
    return None if keys is None else AccessConfig(keys, usage, store)


def tls_files(arguments: argparse.Namespace) -> TlsConfig | None:
    """Return the certificate that the flags name, if they name one. Raises ConfigError."""
    from realtime_tts.config import TlsConfig

    certificate, key = arguments.tls_cert, arguments.tls_key
    if arguments.tls_self_signed and (certificate or key):
        raise ConfigError("--tls-self-signed makes its own certificate; leave out the others'")
    if key and not certificate:
        raise ConfigError("--tls-key is the key of a certificate: give --tls-cert, too")
    return TlsConfig(certificate, key) if certificate else None


def tls_config(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> TlsConfig | None:
    """Return the certificate that the flags ask for. One that is made here is deleted with the
    stack. Raises ConfigError."""
    files = tls_files(arguments)
    if not arguments.tls_self_signed:
        return files
    from realtime_tts.private_folder import keep, remove_private
    from realtime_tts.server.self_signed import write_self_signed

    everywhere = arguments.host in EVERYWHERE
    hosts = addresses_for_others(arguments.host) if everywhere else [arguments.host]
    # Named here, so that a signal in the middle of making it leaves nothing.
    folder = Path(tempfile.gettempdir(), f"realtime-tts-tls-{secrets.token_hex(8)}")
    stack.callback(remove_private, folder)
    folder.mkdir(mode=0o700)
    keep(folder)
    return write_self_signed(folder, *hosts)


def welcome(
    console: Console,
    config: ServerConfig,
    engines: Sequence[EngineConfig],
    port: int,
    *,
    self_signed: bool = False,
) -> None:
    """Print where the server is, for other machines too, if they reach it, and three ways to talk
    to it, with KEY for one of its keys.

    `self_signed`: clients need a flag to trust the certificate of `config`.
    """
    host = EVERYWHERE.get(config.host, config.host)
    authority = url_authority(host, port)
    http, ws = ("https", "wss") if config.tls else ("http", "ws")
    certificate = config.tls.certificate if config.tls and self_signed else None
    keyed = bool(config.api_keys)
    flags = server_flags(f"{ws}://{authority}", keyed=keyed, tls_ca=certificate)
    trust = "" if certificate is None else f"--cacert {shlex.quote(certificate)} "
    trust += "-H 'X-API-Key: KEY' " if keyed else ""
    names = ", ".join(engine.name for engine in engines)
    lines = (
        f"realtime-tts speaks with {names} on {http}://{authority}",
        *_for_others(config, http, port),
        f'  realtime-tts say{flags} "Hello there."',
        f"  echo 'Text that is still arriving' | realtime-tts say{flags} -",
        f"  curl {trust}{http}://{authority}/v1/voices        "
        f"# the WebSocket is {ws}://{authority}/v1/tts",
    )
    for number, line in enumerate(lines):  # addresses in brackets are no markup
        style = "bold" if number == 0 else None
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def _for_others(config: ServerConfig, http: str, port: int) -> Iterator[str]:
    """Yield lines for users of other machines; none if only this one reaches the server."""
    if is_loopback(config.host):
        return
    if config.host in EVERYWHERE:
        for address in addresses_for_others(config.host):
            yield f"  from other machines: {http}://{url_authority(address, port)}"
    if config.tls is None:
        yield (
            "  over plain http browsers allow no microphone, and others can read along: "
            "--tls-self-signed turns on https"
        )
