"""Messages about a missing extra: what they say to type works in a checkout, and names an extra."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from realtime_tts.cli import failures
from realtime_tts.extras import DISTRIBUTION, install

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SOURCES = [
    *sorted((ROOT / "realtime_tts").rglob("*.py")),
    *sorted((ROOT / "realtime_tts" / "server" / "page").glob("*.js")),
]


def test_an_extra_is_installed_from_a_checkout_or_from_an_index() -> None:
    assert install("tls") == (
        "pip install '.[tls]' in a checkout, or pip install 'realtime-tts-server[tls]'"
    )
    assert PROJECT["name"] == DISTRIBUTION


def test_every_extra_that_a_message_names_exists() -> None:
    named = set(failures._EXTRAS.values())
    for source in SOURCES:
        named |= set(re.findall(r"\binstall\(['\"]([\w-]+)['\"]\)", source.read_text("utf-8")))
    assert named >= {"codecs", "pipecat", "s3", "server", "tracing"}
    assert named <= PROJECT["optional-dependencies"].keys()


def test_no_message_tells_people_to_install_from_an_index_alone() -> None:
    alone = [
        source.name
        for source, text in ((source, source.read_text("utf-8")) for source in SOURCES)
        if len(re.findall(r"install ['\"]?realtime-tts-server\[", text)) > text.count("install '.[")
    ]
    assert alone == []
