"""A server in a process of its own, for the duration of a block."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.error import HTTPError

from realtime_tts.client.trust import http_opener
from realtime_tts.errors import ConfigError, RealtimeTTSError

_POLL_SECONDS = 0.1
_READY_SECONDS = 300.0
_STOP_SECONDS = 10.0

Result = TypeVar("Result")


class ServerDidNotStart(RealtimeTTSError, code="server_did_not_start"):
    """Raised if the server's process ended, or was not ready in time, with its last output."""


def run_with_server(work: Coroutine[None, None, Result]) -> Result:
    """Carry out what uses `local_server`. SIGTERM ends it as Ctrl-C does: by KeyboardInterrupt."""
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextlib.asynccontextmanager
async def local_server(
    arguments: Sequence[str] = (),
    *,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> AsyncIterator[str]:
    """Run `realtime-tts serve` on a free port of this machine; yield its ws:// address.

    `arguments` go to `serve`. `environment`: by default this process's. `log`: a file for its
    output, which is else deleted. SIGTERM cancels the block's task, so that no server is left
    behind. Raises ServerDidNotStart, and ConfigError for flags of TLS.
    """
    if any(argument.startswith("--tls-") for argument in arguments):
        raise ConfigError("a server for this run alone speaks no TLS: leave --tls-… of `serve` out")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "realtime_tts", "serve"]
    command += ["--host", "127.0.0.1", "--port", str(port), *arguments]
    with tempfile.TemporaryDirectory(prefix="realtime-tts-") as folder:
        log = log or Path(folder) / "server.log"
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment,
                start_new_session=True,  # so that Ctrl-C stops this process, which stops the server
            )
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            await _until_ready(process, port, log)
            yield f"ws://127.0.0.1:{port}"
        finally:
            await _stop(process)
            loop.remove_signal_handler(signal.SIGTERM)


async def _until_ready(process: asyncio.subprocess.Process, port: int, log: Path) -> None:
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while await asyncio.to_thread(http_status, port, "/readyz") != 200:
                if process.returncode is not None:
                    raise ServerDidNotStart(f"the server ended while starting:\n{_tail(log)}")
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        message = f"the server was not ready within {_READY_SECONDS:g} s:\n{_tail(log)}"
        raise ServerDidNotStart(message) from None


def http_status(port: int, path: str) -> int | None:
    """Return the status of a GET on this machine; None if there is no answer."""
    url = f"http://127.0.0.1:{port}{path}"
    try:
        with http_opener(url, None).open(url, timeout=_STOP_SECONDS) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code
    except OSError:
        return None


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
