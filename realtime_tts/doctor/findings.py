"""Checks of a machine before a server runs on it, with a finding for each."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from realtime_tts.bench.machine import describe_machine, hardware
from realtime_tts.config import ServerConfig
from realtime_tts.errors import ConfigError
from realtime_tts.extras import DISTRIBUTION, install
from realtime_tts.server.listening import bind

_GIB = 2**30
_LEAST_FILES = 1_024  # 512 sessions by default, as many sockets without one, and the engine's
_LEAST_FOR_VOICES, _LEAST_FOR_MODELS = 1.0, 10.0


class Verdict(StrEnum):
    """The judgement of a finding. A server cannot speak, or not in time, with a FAILED one."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `advice`: what to do about it; empty where nothing is wrong.

    `quoted`: more for the terminal alone, since it may repeat what the user has typed.
    """

    subject: str
    verdict: Verdict
    text: str
    advice: str = ""
    quoted: str = ""

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        quoted = f"\n{self.quoted}" if self.quoted else ""
        return f"{self.verdict:<8} {self.subject:<9} {self.text}{advice}{quoted}"


def machine_findings(host: str, port: int) -> Iterator[Finding]:
    """Yield everything that can be known without starting a server on `host` and `port`."""
    yield _machine()
    versions = _versions()
    yield versions
    if versions.verdict == Verdict.FAILED:
        return  # what follows needs the server's packages
    yield from _devices()
    yield _memory()
    yield files()
    yield from _disks()
    yield _port(host, port)


def _machine() -> Finding:
    known = describe_machine()
    return Finding("machine", Verdict.OK, f"{hardware(known)}, {known['system']}")


def server_packages(find: Callable[[str], str] = version) -> dict[str, str]:
    """Return the version of each package that the extra `server` asks for; empty if it is missing.

    Without the package's own metadata, as in a checkout that is not installed, there are none.
    """
    try:
        wanted = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return {}
    found = {}
    for requirement in sorted(wanted):
        name, _, condition = requirement.partition(";")
        if "extra" in condition and "'server'" not in condition.replace('"', "'"):
            continue
        name = "".join(char if char.isalnum() or char in "-_." else " " for char in name).split()[0]
        try:
            found[name] = find(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def _versions() -> Finding:
    known = describe_machine()
    commit = f" ({known['commit']})" if known["commit"] else ""
    text = f"realtime-tts {known['realtime_tts']}{commit}, Python {known['python']}"
    missing = [name for name, found in server_packages().items() if not found]
    if missing:
        advice = f"install them with: {install('server')}"
        return Finding("versions", Verdict.FAILED, f"{text}; missing: {', '.join(missing)}", advice)
    return Finding("versions", Verdict.OK, f"{text}, torch {known['torch'] or 'not installed'}")


def _devices() -> Iterator[Finding]:
    from realtime_tts.engine.devices import choose, look_up

    machine = look_up()
    choice = choose(machine)
    text = f"{', '.join(choice.devices)}; torch is built for {machine.torch}"
    yield Finding("device", Verdict.OK, text)
    for reason in choice.reasons:
        yield Finding("device", Verdict.WARNING, reason)
    if choice.devices[0] != "cpu":
        yield compiler()


def compiler() -> Finding:
    """Check for what Triton compiles the glue to each kernel with (triton/runtime/build.py): a C
    compiler, and the headers of Python."""
    found = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    folder = sysconfig.get_path("include", "posix_prefix")
    missing = [
        *([] if found else ["no C compiler (gcc, clang or $CC)"]),
        *([] if Path(folder, "Python.h").exists() else [f"no Python.h in {folder}"]),
    ]
    if not missing:
        return Finding("compiler", Verdict.OK, f"{found}, with the headers of Python")
    advice = "for the kernels, install both, as in: apt-get install gcc libc6-dev python3-dev"
    return Finding("compiler", Verdict.FAILED, " and ".join(missing), advice)


def _memory() -> Finding:
    from realtime_tts.demo_voice import FOLDER
    from realtime_tts.memory_limits import check_memory_limits

    try:
        check_memory_limits([FOLDER])
    except ConfigError as error:
        return Finding("memory", Verdict.FAILED, str(error))
    return Finding("memory", Verdict.OK, "no limit on this process is too low for the demo voice")


def files() -> Finding:
    """Check how many files a server may open: every socket is one, and it raises its own limit only
    as far as it may."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return Finding("files", Verdict.OK, "no limit on open files")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or most >= _LEAST_FILES:
        return Finding("files", Verdict.OK, "as many open files as a server's sessions need")
    advice = f"allow {_LEAST_FILES} at least (ulimit -Hn, LimitNOFILE= of systemd)"
    return Finding("files", Verdict.WARNING, f"{most} open files at most, one a session", advice)


def _disks() -> Iterator[Finding]:
    from realtime_tts.voices.registry import default_folder

    yield disk("voices", default_folder(), _LEAST_FOR_VOICES)
    yield disk("models", models_folder(), _LEAST_FOR_MODELS)


def models_folder() -> Path:
    """Return the folder in which huggingface-hub, which may be missing, keeps what it downloads."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = os.environ.get("HF_HOME") or Path(cache, "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home, "hub"))


def disk(what: str, folder: Path, least: float) -> Finding:
    """Check whether `folder`, or the nearest one above it that exists, can be written and has
    space.

    `least`: GiB that should be free.
    """
    there = next(one for one in (folder, *folder.parents) if os.path.exists(one))
    free = shutil.disk_usage(there).free / _GIB
    text = f"{free:.1f} GiB free for {what} in {folder}"
    if not os.access(there, os.W_OK):
        return Finding("disk", Verdict.WARNING, text, f"this user cannot write to {there}")
    if free < least:
        return Finding("disk", Verdict.WARNING, text, f"make room: {least:g} GiB at least")
    return Finding("disk", Verdict.OK, text)


def _port(host: str, port: int) -> Finding:
    try:
        for listener in bind(ServerConfig(host=host, port=port)):  # as a server does it
            listener.close()
    except (ConfigError, OverflowError) as error:
        why = "a port is between 0 and 65535" if isinstance(error, OverflowError) else error
        return Finding("port", Verdict.WARNING, f"{why}", "end what listens there, or --port")
    return Finding("port", Verdict.OK, f"{host} port {port} is free")
