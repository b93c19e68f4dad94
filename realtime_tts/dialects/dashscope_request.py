"""What a client of DashScope's Qwen-TTS-Realtime asks for, read and checked; voices, as ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from realtime_tts.audio.formats import AudioFormat, parse_format
from realtime_tts.dialects.catalogue import chosen_voice, our_format
from realtime_tts.dialects.fields import read_fields
from realtime_tts.errors import RequestError
from realtime_tts.protocol.settings import Seed

_FEMALE = ("ava", "serena", "vivian")
_MALE = ("ray", "ryan", "dylan")
VOICES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "Bella", "Bellona", "Bunny", "Chelsie", "Cherry", "Ebona", "Elias", "Jada", "Jennifer",
            "Katerina", "Kiki", "Maia", "Mia", "Momo", "Nini", "Ono Anna", "Seren", "Serena",
            "Sohee", "Sonrisa", "Stella", "Sunny", "Vivian",
        ),
        _FEMALE,
    ),
    **dict.fromkeys(
        (
            "Aiden", "Alek", "Andre", "Arthur", "Bodega", "Dolce", "Dylan", "Eldric Sage",
            "Emilien", "Eric", "Ethan", "Kai", "Lenn", "Li", "Marcus", "Mochi", "Moon", "Neil",
            "Nofish", "Peter", "Pip", "Radio Gol", "Rocky", "Roy", "Ryan", "Vincent",
        ),
        _MALE,
    ),
}  # fmt: skip
"""DashScope's system voices, and which of ours may speak for each: the first that there is."""

_FORMS = {
    "response_format": '"pcm", "wav", "mp3" or "opus"',
    "sample_rate": "a whole number of Hz",
    "bit_rate": "a whole number of kbit/s",
    "language_type": 'a string, such as "Auto" or "English"',
}


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """The `session` of a `session.update`, complete. Other keys are ignored."""

    mode: Literal["server_commit", "commit"] = "server_commit"
    voice: str | None = None
    response_format: str = "pcm"
    sample_rate: int | None = None
    bit_rate: int | None = None
    language_type: str = "Auto"
    instructions: str = ""
    speech_rate: float = 1.0
    pitch_rate: float = 1.0
    volume: float = 50
    seed: Seed | None = None

    @property
    def hertz(self) -> int:
        """The sample rate, that of the format's name if nothing else was said."""
        named = parse_format(self.response_format).sample_rate
        return named if self.sample_rate is None else self.sample_rate

    @property
    def audio(self) -> AudioFormat:
        """The format, as ours. Raises RequestError if this server cannot make it."""
        compressed = self.response_format in ("mp3", "opus")  # to the others it means nothing
        bit_rate = self.bit_rate * 1000 if compressed and self.bit_rate is not None else None
        return our_format(self.response_format, self.sample_rate, bit_rate=bit_rate)


def parse_wishes(fields: dict[str, Any]) -> Wishes:
    """All that a session's updates have asked for so far. Raises RequestError that names a key."""
    wishes = read_fields(fields, Wishes, _FORMS, within="session")
    for name, usual in (("pitch_rate", 1), ("volume", 50)):
        value = getattr(wishes, name)
        if value != usual:
            raise RequestError(
                f"`session.{name}` must be {usual}, or left out: this server speaks as the voice "
                f"does, and cannot change that to {value:g}"
            )
    return wishes


def our_voice(name: str | None, voices: Sequence[str]) -> str | None:
    """The voice of this server that is meant; None leaves the choice to the checkpoint.

    Its own names come first, in any case, then DashScope's. Raises RequestError for any other.
    """
    if name is None:
        return None
    theirs = {_plain(voice): ours for voice, ours in VOICES.items()}
    also = theirs.get(_plain(name), ())
    hint = ", and speaks with them for DashScope's system voices, such as Cherry and Ethan"
    return chosen_voice(name, voices, _plain(name), *also, foreign=bool(also), hint=hint)


def _plain(name: str) -> str:
    return name.lower().replace(" ", "_")
