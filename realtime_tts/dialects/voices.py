"""Voices by the names that requests give."""

from __future__ import annotations

from collections.abc import Sequence


def own_voice(voices: Sequence[str], *names: str) -> str | None:
    """The first of these names, in any case, that is one of the `voices` there are."""
    own = {voice.lower(): voice for voice in voices}
    return next((own[name.lower()] for name in names if name.lower() in own), None)


def no_voice(name: str, voices: Sequence[str]) -> str:
    """The beginning of a message: there is none of this name, but these."""
    there_are = ", ".join(voices) or "none by name"
    return f"there is no voice {name[:40]!r}; this server has {there_are}"
