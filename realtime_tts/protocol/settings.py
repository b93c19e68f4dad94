"""What a session can set, what a server allows, and how the two meet.

`SessionSettings` is the one definition of a session's options, and always complete. What changes
them is derived from it: `SessionStart` (messages.py, by changes.py) and the query (query.py).
Whether the loaded checkpoint can do what is asked is checked elsewhere.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.audio.speed import FASTEST, SLOWEST
from realtime_tts.errors import RequestError
from realtime_tts.sampling import Sampling

Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
LeadMs = Annotated[
    int,
    Meta(
        ge=200,
        le=3_600_000,
        description="a whole number from 200 to the server's `max_lead_ms` (`limits` in `ready`)",
    ),
]
SpeedFactor = Annotated[float, Meta(ge=SLOWEST, le=FASTEST)]
Traceparent = Annotated[
    str,
    Meta(
        pattern=r"\A(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}\Z",
        description="a W3C traceparent: 00-, a trace id of 32 hexadecimal digits, a parent id of "
        "16, and two digits of flags",
    ),
]


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The effective settings of a session; a turn keeps those with which it began.

    `seed` None draws another seed for every turn. `voice` and `language` None leave the choice to
    the checkpoint; `model` None means the checkpoint of the voice. `lead_ms` is how far ahead of
    the listener audio may be sent. `text_normalization` auto leaves numbers and abbreviations to
    the checkpoint if it reads them well. `lexicon`: words, and what to say for them; `lexicons`:
    stored ones, used after it, each as `name`, for its newest version, or `name@version`.
    `trim_silence` leaves out the silence that speech begins with. `loudness` brings every voice and
    turn to -16 LUFS. With `word_times` the client gets the times of words, with `resume` what lets
    another session continue the turn. `speed` 1.2 says in five seconds what takes six, at the same
    pitch. `traceparent`: the caller's span, the parent of turns where the server traces them.
    """

    model: Name | None = None
    voice: Name | None = None
    language: Name | None = None
    instructions: str | None = None
    seed: Seed | None = None
    sampling: Sampling = Sampling()
    text_filter: Literal["on", "off"] = "on"
    text_normalization: Literal["auto", "on", "off"] = "auto"
    lexicon: dict[str, str] = {}
    lexicons: list[Name] = []
    layout: Literal["auto", "streaming", "full_text"] = "auto"
    trim_silence: Literal["on", "off"] = "on"
    loudness: Literal["on", "off"] = "off"
    pacing: Literal["auto", "token", "clause", "sentence"] = "auto"
    word_times: Literal["on", "off"] = "off"
    resume: Literal["on", "off"] = "off"
    speed: SpeedFactor = 1.0
    lead_ms: LeadMs = 3_000
    traceparent: Traceparent | None = None
    audio: AudioFormat = AudioFormat()


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Every limit of a session, echoed in `ready`. Characters are Unicode code points."""

    max_message_bytes: int = 65_536
    max_text_chars: int = 16_384
    """Characters in one `text` message."""
    max_turn_chars: int = 100_000
    """Characters in all `text` messages of a turn."""
    max_instructions_chars: int = 2_000
    max_lexicon_entries: int = 500
    max_lexicon_chars: int = 128
    """Characters in one word of the lexicon, or in what replaces it."""
    max_lexicons: int = 8
    """Stored lexicons that a session may name."""
    max_queued_turns: int = 8
    """Turns that may wait behind the one on the air."""
    messages_per_second: int = 200
    message_burst: int = 1_000
    """Messages that may come at once before the rate applies."""
    max_bad_messages: int = 10
    bad_message_window_ms: int = 60_000
    max_lead_ms: int = 30_000
    max_turn_audio_ms: int = 163_840
    """Speech of one turn; beyond it the turn ends with reason `max_length`."""
    turn_idle_ms: int = 60_000
    """After this time without text, the text of a turn is ended."""
    write_stall_ms: int = 5_000
    """A client that reads nothing for this time is dropped."""

    def check(self, settings: SessionSettings) -> None:
        """Raise RequestError for settings beyond these limits."""
        if settings.lead_ms > self.max_lead_ms:
            raise RequestError(
                f"`lead_ms` must be at most {self.max_lead_ms}, found {settings.lead_ms}",
                "lead_ms",
            )
        chars = len(settings.instructions or "")
        if chars > self.max_instructions_chars:
            raise RequestError(
                f"`instructions` must have at most {self.max_instructions_chars} characters, "
                f"found {chars}"
            )
        self._check_lexicon(settings.lexicon)
        if len(settings.lexicons) > self.max_lexicons:
            raise RequestError(
                f"`lexicons` must name at most {self.max_lexicons}, found {len(settings.lexicons)}"
            )

    def _check_lexicon(self, lexicon: dict[str, str]) -> None:
        if len(lexicon) > self.max_lexicon_entries:
            raise RequestError(
                f"`lexicon` must have at most {self.max_lexicon_entries} words, "
                f"found {len(lexicon)}"
            )
        for word, said in lexicon.items():
            for text, what, spaces in ((word, "word", False), (said, "respelling", True)):
                if not 0 < len(text) <= self.max_lexicon_chars:
                    raise RequestError(
                        f"`lexicon`: a {what} must have 1 to {self.max_lexicon_chars} characters, "
                        f"found {len(text)}"
                    )
                if not text.isprintable() or (" " in text and not spaces) or not text.strip():
                    rule = "printable characters" + ("" if spaces else " without spaces")
                    raise RequestError(f"`lexicon`: a {what} must be {rule}, found {ascii(text)}")

    @property
    def max_frame_bytes(self) -> int:
        """The message size from which the transport should read no further and close with 1009."""
        return 16 * self.max_message_bytes
