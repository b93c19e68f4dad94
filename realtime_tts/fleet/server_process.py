"""`realtime-tts serve` as a child process: started, watched through its HTTP routes, drained.

It is the whole server, as an operator would start it, with its own listener: nothing is between its
sockets and the guards on them.

Between the server and the process that asks for it is a supervisor, whose standard input is a pipe
that is never written to. When that is closed, on purpose or because the process died, the
supervisor sends the server one SIGTERM, so that its turns go on to their end. The kernel's own
signal at a parent's death will not do: a parent with threads, such as Ray's, may cause it more than
once, and a second SIGTERM ends turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import random
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence

import msgspec

from realtime_tts.errors import RealtimeTTSError
from realtime_tts.fleet.members import Member
from realtime_tts.fleet.parents_end import signal_at_parents_end
from realtime_tts.server.load import Load

_KEYS = "REALTIME_TTS_API_KEYS", "REALTIME_TTS_API_KEY"
_POLL_SECONDS = 0.1
_TIMEOUT_SECONDS = 5.0


class ServerFailed(RealtimeTTSError):
    """The server has ended, does not answer, or must be replaced by its own account."""


class ServerSilent(ServerFailed):
    """The server does not answer, perhaps not yet."""


class ServerProcess:
    """One server at `member`, on one event loop. Made by `start`."""

    def __init__(self, process: asyncio.subprocess.Process, member: Member) -> None:
        self._process = process
        self.member = member

    @classmethod
    async def start(
        cls, host: str, ports: tuple[int, int], flags: Sequence[str], last: Sequence[str] = ()
    ) -> ServerProcess:
        """Start a server on two free ports of this range, on this address. `flags`: of `serve`;
        `last` wins over them. Its output goes where the output of this process goes. Raises
        ServerFailed without free ports."""
        port, agent_port = free_ports(host, ports, 2)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "realtime_tts.fleet.server_process", "serve"),
            *flags,
            *("--host", host, "--port", str(port), "--agent-port", str(agent_port)),
            *last,
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for the process that runs the fleet
        )
        return cls(process, Member(host, port, agent_port))

    @property
    def pid(self) -> int:
        """The process id of the server's supervisor, and the number of their process group."""
        return self._process.pid

    async def until_ready(self) -> None:
        """Wait until the server takes turns. Raises ServerFailed if it ends before, or does not
        take the key."""
        while True:
            with contextlib.suppress(ServerSilent):
                if (await self.load()).ready:
                    return
            self._check_runs()
            await asyncio.sleep(_POLL_SECONDS)

    async def load(self) -> Load:
        """Return the load that the server reports. Raises ServerFailed if it does not answer."""
        status, body = await asyncio.to_thread(self._get, "/v1/load")
        if status != 200:
            refused = ServerFailed if status in (401, 403) else ServerSilent
            raise refused(
                f"the server answers {status} to /v1/load; is its key in {_KEYS[0]} here, too?"
            )
        return msgspec.json.decode(body, type=Load)

    async def check(self) -> None:
        """Raise ServerFailed if the server has ended, does not answer, or asks for a restart."""
        self._check_runs()
        status, body = await asyncio.to_thread(self._get, "/livez")
        if status != 200:
            raise ServerFailed(f"the server is not well: {body.decode(errors='replace')[:200]}")

    async def drain(self) -> None:
        """Let the server end, within its own `--drain-seconds`, and wait for that. Idempotent."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    def kill(self) -> None:
        """Kill the server now. Idempotent."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _check_runs(self) -> None:
        if self._process.returncode is not None:
            raise ServerFailed(
                f"the server at {self.member.host}:{self.member.port} has ended with status "
                f"{self._process.returncode}; its log is in the output of this process"
            )

    def _get(self, path: str) -> tuple[int, bytes]:
        key = next((found for name in _KEYS if (found := os.environ.get(name))), None)
        headers = {"authorization": f"Bearer {key.split(',')[0].strip()}"} if key else {}
        there = http.client.HTTPConnection(
            self.member.host, self.member.port, timeout=_TIMEOUT_SECONDS
        )
        try:
            there.request("GET", path, headers=headers)
            answer = there.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerSilent(f"the server does not answer: {error}") from error
        finally:
            there.close()


def free_ports(host: str, ports: tuple[int, int], count: int) -> list[int]:
    """Return `count` ports of this range, both ends included, on which nothing listens; several
    replicas of one machine look in a different order each. Raises ServerFailed if there are not
    enough."""
    found: list[int] = []
    for port in random.sample(range(ports[0], ports[1] + 1), ports[1] + 1 - ports[0]):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((host, port))
                found.append(port)
        if len(found) == count:
            return found
    raise ServerFailed(f"no {count} free ports between {ports[0]} and {ports[1]} on {host}")


def main() -> None:
    """Supervise the server: end with it, and with its status."""
    server = subprocess.Popen(
        [sys.executable, "-m", "realtime_tts", *sys.argv[1:]],
        stdin=subprocess.DEVNULL,
        preexec_fn=signal_at_parents_end(signal.SIGTERM),
    )
    asked = False
    while server.poll() is None:
        if asked:
            server.wait()
        elif select.select([sys.stdin], [], [], _POLL_SECONDS)[0]:
            asked = True
            server.terminate()
    raise SystemExit(server.returncode)


if __name__ == "__main__":
    main()
