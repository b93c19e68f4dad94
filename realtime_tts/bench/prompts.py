"""Texts that the load generator asks the server to speak.

The built-in ones are fixed texts of the kinds a voice agent speaks, from two words to about fifteen
seconds, sorted by length, so that two runs can be compared. Written for this project.
"""

from __future__ import annotations

from pathlib import Path

from realtime_tts.errors import ConfigError


def read_prompts(path: Path) -> tuple[str, ...]:
    """Return the lines of a file that contain text. Raises ConfigError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the prompts: {error}") from error
    return tuple(line.strip() for line in lines if line.strip())


PROMPTS = read_prompts(Path(__file__).with_suffix(".txt"))
