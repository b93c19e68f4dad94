"""`realtime-tts doctor`: whether this machine can speak, and what to send with a bug report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from realtime_tts.cli.failures import ExitStatus, check_writable
from realtime_tts.cli.session_arguments import quoted_flags
from realtime_tts.errors import ConfigError

if TYPE_CHECKING:
    from realtime_tts.configuration.settings import Settings
    from realtime_tts.doctor.findings import Finding

_EXAMPLES = """\
examples:
  realtime-tts doctor                                    the machine, and a spoken self-test
  realtime-tts doctor --start "--model Qwen/…"           the same with another checkpoint
  realtime-tts doctor --bundle support.zip --log server.log    what to send with a bug report

A line for each finding: ok, warning or failed. The status is 1 if anything failed. The bundle
holds versions, figures and the numbers of the log; no text, key, name or path of the settings.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("--host", default="127.0.0.1", help="where the server is to listen")
    parser.add_argument("--port", type=int, default=8000, help="… and its port")
    parser.add_argument(
        "--start", default="", metavar="FLAGS", help="flags of `serve` for the self-test, quoted"
    )
    parser.add_argument(
        "--no-speech", action="store_true", help="start no server: look at the machine only"
    )
    parser.add_argument("--bundle", type=Path, metavar="FILE", help="write a ZIP file to send")
    parser.add_argument("--config", metavar="FILE", help="settings of `serve`, for the bundle")
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="a log of JSON lines, for the bundle"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each finding. Returns the exit status."""
    from realtime_tts.doctor.bundle import write_bundle
    from realtime_tts.doctor.findings import Verdict, machine_findings

    check_writable(arguments.bundle)
    for flag, given in (("--config", arguments.config), ("--log", arguments.log)):
        if given is not None and arguments.bundle is None:
            raise ConfigError(f"{flag} is for the bundle: give --bundle FILE, too, or leave it out")
    if arguments.no_speech and arguments.start:
        raise ConfigError("--no-speech starts no server: leave --start out, or --no-speech")
    settings = _settings(arguments.config) if arguments.bundle else None
    findings = []
    for finding in machine_findings(arguments.host, arguments.port):
        print(finding, flush=True)
        findings.append(finding)
    if not arguments.no_speech and all(one.verdict != Verdict.FAILED for one in findings):
        findings += _speak(quoted_flags(arguments.start))
    if arguments.bundle:
        write_bundle(arguments.bundle, findings, settings, arguments.log)
        print(f"wrote {arguments.bundle}: look through it before you send it")
    failed = sum(one.verdict == Verdict.FAILED for one in findings)
    warned = sum(one.verdict == Verdict.WARNING for one in findings)
    print(f"{failed} failed, {warned} to look at, of {len(findings)}")
    return ExitStatus.FAILED if failed else ExitStatus.OK


def _speak(flags: list[str]) -> list[Finding]:
    from realtime_tts.bench.local_server import run_with_server
    from realtime_tts.doctor.self_test import spoken_findings

    print("starting a server to speak a sentence …", flush=True)
    findings = run_with_server(spoken_findings(flags))
    for finding in findings:
        print(finding)
    return findings


def _settings(file: str | None) -> Settings:
    """Return what `serve` would use, from the environment and this file. Raises Faults."""
    from realtime_tts.cli.serve_settings import Sources

    return Sources(["--config", file] if file else []).read()
