"""A file to send with a bug report: figures and versions, never a text or a key.

Nothing is searched for secrets: only what is known to hold none is taken. Of a setting or a line of
the log that is a number, a truth value or one of a few known words; of the environment, names.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

from realtime_tts.bench.machine import describe_machine
from realtime_tts.configuration.options import PREFIX
from realtime_tts.configuration.toml import toml_value
from realtime_tts.doctor.findings import Finding

if TYPE_CHECKING:
    from realtime_tts.configuration.settings import Settings

_EVENT = re.compile(r"[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*")
_LEVELS = ("debug", "info", "warning", "error", "critical")
_TIME = re.compile(r"[\d:.TZ+-]+")


def write_bundle(
    file: Path,
    findings: Sequence[Finding],
    settings: Settings | None,
    log: Path | None,
) -> None:
    """Write the ZIP file. `settings`: those of `serve`; `log`: its lines, JSON. Raises OSError."""
    findings = [replace(one, quoted="") for one in findings]
    report = {"machine": describe_machine(), "findings": [asdict(one) for one in findings]}
    packages = sorted({f"{one.name}=={one.version}" for one in distributions()}, key=str.lower)
    members = {
        "report.txt": [str(one) for one in findings],
        "report.json": [json.dumps(report, indent=2)],
        "packages.txt": packages,
        "environment.txt": sorted(name for name in os.environ if name.startswith(PREFIX)),
    }
    if settings is not None:
        members["settings.txt"] = list(setting_lines(settings))
    if log is not None:
        with log.open(encoding="utf-8", errors="replace") as lines:
            members["log.jsonl"] = [json.dumps(one) for one in map(log_line, lines) if one]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, lines_of_it in members.items():
            bundle.writestr(name, "".join(f"{line}\n" for line in lines_of_it))
    try:
        file.write_bytes(packed.getvalue())
    except OSError as error:
        error.filename = file  # that of a full disk names none
        if file.is_file():
            file.unlink()
        raise


def setting_lines(settings: Settings) -> Iterator[str]:
    """Yield each option that is given, with its value where that cannot be a secret."""
    for option in settings.options:
        if settings.is_given(option):
            value = settings.given[option.dest].value
            plain = isinstance(value, bool | int | float) or value in option.choices
            yield f"{option.place} = {toml_value(value) if plain else '(given, not shown)'}"


def log_line(line: str) -> dict[str, object]:
    """Return what may be shown of a line of the log; nothing of one that is not a JSON object."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(said, dict):
        return {}
    kept: dict[str, object]
    kept = {name: it for name, it in said.items() if isinstance(it, bool | int | float)}
    for name, form in (("time", _TIME), ("event", _EVENT)):
        if isinstance(said.get(name), str) and form.fullmatch(said[name]):
            kept[name] = said[name]
    if said.get("level") in _LEVELS:
        kept["level"] = said["level"]
    return kept
