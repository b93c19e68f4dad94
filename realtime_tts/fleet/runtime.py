"""HAProxy's runtime API: changes of a running HAProxy, over its socket.

(HAProxy's management guide, "Unix Socket commands".)
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from realtime_tts.errors import RealtimeTTSError
from realtime_tts.fleet.haproxy import BACKENDS
from realtime_tts.fleet.members import Member

_TIMEOUT_SECONDS = 2.0
_AGENT_SECONDS = 0.6
"""Seconds within which every agent check has ended (`agent-inter` in haproxy.cfg)."""


class RuntimeRefused(RealtimeTTSError):
    """HAProxy has not carried out a command."""


class RuntimeApi:
    """One HAProxy's API. All methods raise OSError or TimeoutError if it does not answer."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def ask(self, command: str) -> str:
        """Return HAProxy's answer to a command."""
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            reader, writer = await asyncio.open_unix_connection(self._socket)
            try:
                writer.write(command.encode() + b"\n")
                return (await reader.read()).decode().strip()
            finally:
                writer.close()

    async def join(self, slot: int, member: Member) -> None:
        """Let sessions go to this member, whose host is a numeric address, from now on.

        Raises RuntimeRefused.
        """
        await self._command(f"enable agent servers/s{slot}")
        for backend in BACKENDS:
            server = f"{backend}/s{slot}"
            await self._command(f"set server {server} addr {member.host} port {member.port}")
        await self._command(f"set server servers/s{slot} agent-port {member.agent_port}")
        await self._command(f"set server servers/s{slot} agent up")
        await self._command(f"set server servers/s{slot} weight 100%")
        for backend in BACKENDS:
            await self._command(f"set server {backend}/s{slot} state ready")

    async def leave(self, slot: int) -> None:
        """Let no new session go there; those that are open go on. Raises RuntimeRefused.

        Done twice: an agent check that was under way may have said `ready`, which takes a server
        out of maintenance.
        """
        await self._command(f"disable agent servers/s{slot}")
        for pause in (0.0, _AGENT_SECONDS):
            await asyncio.sleep(pause)
            for backend in BACKENDS:
                await self._command(f"set server {backend}/s{slot} state maint")

    async def replace_certificate(self, file: str, pem: str) -> None:
        """Use `pem` in place of what was in this file, for connections from now on.

        Raises RuntimeRefused.
        """
        lines = "\n".join(line for line in pem.splitlines() if line)  # an empty one is the end
        await self._command(f"set ssl cert {file} <<\n{lines}\n", "Transaction")
        await self._command(f"commit ssl cert {file}", "Success")

    async def _command(self, command: str, done: str = "chang") -> None:
        """Give a command, whose answer is empty or has `done` in it: "IP changed from …", "no need
        to change"."""
        answer = await self.ask(command)
        if answer and done not in answer:
            raise RuntimeRefused(f"HAProxy answered {answer!r} to {command.partition('<<')[0]!r}")
