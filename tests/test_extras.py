"""Messages about a missing extra: what they say to type works in a checkout, and names an extra."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from realtime_tts.cli import failures
from realtime_tts.extras import DISTRIBUTION, install

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
SOURCES = [
    *sorted((ROOT / "realtime_tts").rglob("*.py")),
    *sorted((ROOT / "realtime_tts" / "server" / "page").glob("*.js")),
]


def test_an_extra_is_installed_from_a_checkout_or_from_an_index() -> None:
    assert install("tls") == (
        "pip install -e '.[tls]' in a checkout, or pip install 'realtime-tts-server[tls]'"
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
        if len(re.findall(r"install ['\"]?realtime-tts-server\[", text))
        > text.count("install -e '.[")
    ]
    assert alone == []


def test_no_command_takes_the_demo_voice_out_of_a_checkout_s_environment() -> None:
    """`make serve` installs the checkout itself. pip would put a copy in its place, which has no
    demo voice: that is a distribution of its own."""
    copies = [
        f"{path.relative_to(ROOT)}: {command}"
        for path in SOURCES + DOCUMENTS
        for command in re.findall(r"pip install ['\"]?\.[\['\"\s].*", path.read_text("utf-8"))
        if "realtime_tts/demo_voice" not in command
    ]
    assert copies == []
