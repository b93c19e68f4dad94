"""What `serve` says when it is ready: where it is, and three ways to talk to it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from realtime_tts.cli.serve_tls import EVERYWHERE

if TYPE_CHECKING:
    from realtime_tts.config import ServerConfig
    from realtime_tts.engine.settings import EngineConfig


def welcome(
    console: Console,
    config: ServerConfig,
    engines: Sequence[EngineConfig],
    port: int,
    *,
    self_signed: bool = False,
) -> None:
    """Print it. `self_signed`: clients have to be told to trust the certificate of `config`."""
    host = "127.0.0.1" if config.host in EVERYWHERE else config.host
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    http, ws = ("https", "wss") if config.tls else ("http", "ws")
    flags, trust = "", ""
    if config.tls or port != 8000 or host != "127.0.0.1":
        flags = f" --url {ws}://{authority}"
    if config.tls and self_signed:
        flags += f" --tls-ca {shlex.quote(config.tls.certificate)}"
        trust = f"--cacert {shlex.quote(config.tls.certificate)} "
    names = ", ".join(engine.name for engine in engines)
    lines = (
        f"[bold]realtime-tts[/bold] speaks with {names} on [bold]{http}://{authority}[/bold]",
        f'  realtime-tts say{flags} "Hello there."',
        f"  echo 'Text that is still arriving' | realtime-tts say{flags} --stdin",
        f"  curl {trust}{http}://{authority}/v1/voices        "
        f"# the WebSocket is {ws}://{authority}/v1/tts",
    )
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
