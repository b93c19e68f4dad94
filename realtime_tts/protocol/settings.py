"""What a session can set, what a server allows, and how the two meet.

`SessionSettings` is the whole truth about a session, always complete. `SessionStart` (in
messages.py) and the query string are partial: what they leave out stays as it was. Whether the
loaded checkpoint can do what is asked (voices, languages, instructions) is for others to check.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from realtime_tts.errors import RequestError

Temperature = Annotated[float, Meta(ge=0, le=2)]
TopK = Annotated[int, Meta(ge=0, le=1_000_000)]
TopP = Annotated[float, Meta(gt=0, le=1)]
RepetitionPenalty = Annotated[float, Meta(ge=0.5, le=2)]
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
LeadMs = Annotated[int, Meta(ge=200, le=3_600_000)]
SampleRate = Annotated[int, Meta(ge=1, le=1_000_000)]
BitRate = Annotated[int, Meta(ge=1, le=10_000_000)]
PacketMs = Annotated[int, Meta(ge=1, le=60_000)]
TextFilter = Literal["on", "off"]
TextNormalization = Literal["auto", "on", "off"]
Layout = Literal["auto", "streaming", "full_text"]
WordTimes = Literal["on", "off"]


class PredictorSampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the code predictor draws codes 2 to 16. top_k 0 and top_p 1 mean no limit."""

    temperature: Temperature = 0.9
    top_k: TopK = 50
    top_p: TopP = 1.0


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the talker draws the first code. temperature 0 is greedy."""

    temperature: Temperature = 0.9
    top_k: TopK = 50
    top_p: TopP = 1.0
    repetition_penalty: RepetitionPenalty = 1.05
    predictor: PredictorSampling = PredictorSampling()


class AudioSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The format of a session's audio, complete: as the audio layer has checked and filled it in.

    `bit_rate` None: the encoding has none. `packet_ms` None: packets of PACKET_BYTES for the
    engine's own format, which is the default; as the encoder makes them in a container.
    """

    encoding: Name = "pcm_s16le"
    sample_rate: SampleRate = 24_000
    container: Name = "raw"
    bit_rate: BitRate | None = None
    packet_ms: PacketMs | None = None


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The effective settings of a session; a turn keeps those it was begun with.

    `seed` None draws another seed for every turn. `voice` and `language` None leave the choice to
    the checkpoint; `model` None leaves that one to the voice. `lead_ms` is how far ahead of
    the listener audio may be sent. `text_normalization` auto leaves numbers and abbreviations to
    the checkpoint if it reads them well. `lexicon`: words, and what to say for them. With
    `word_times` the client is told when which word is spoken.
    """

    model: Name | None = None
    voice: Name | None = None
    language: Name | None = None
    instructions: str | None = None
    seed: Seed | None = None
    sampling: Sampling = Sampling()
    text_filter: TextFilter = "on"
    text_normalization: TextNormalization = "auto"
    lexicon: dict[str, str] = {}
    layout: Layout = "auto"
    word_times: WordTimes = "off"
    lead_ms: LeadMs = 3_000
    audio: AudioSettings = AudioSettings()


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Every limit of a session, echoed in `ready`. Characters are Unicode code points."""

    max_message_bytes: int = 65_536
    max_text_chars: int = 16_384
    """In one `text` message."""
    max_turn_chars: int = 100_000
    """In all `text` messages of a turn."""
    max_instructions_chars: int = 2_000
    max_lexicon_entries: int = 500
    max_lexicon_chars: int = 128
    """In one word of the lexicon, or in what is said for it."""
    max_queued_turns: int = 8
    """Turns that wait behind the one on the air."""
    messages_per_second: int = 200
    message_burst: int = 1_000
    """Messages that may come at once before the rate applies."""
    max_bad_messages: int = 10
    bad_message_window_ms: int = 60_000
    max_lead_ms: int = 30_000
    max_turn_audio_ms: int = 163_840
    """Speech of one turn; after that it ends with reason `max_length`."""
    turn_idle_ms: int = 60_000
    """Without text for so long, the input of a turn is ended."""
    write_stall_ms: int = 5_000
    """A client that reads nothing for so long is dropped."""

    def check(self, settings: SessionSettings) -> None:
        """Raise RequestError for settings beyond these limits."""
        if settings.lead_ms > self.max_lead_ms:
            raise RequestError(
                f"`lead_ms` must be at most {self.max_lead_ms}, found {settings.lead_ms}"
            )
        chars = len(settings.instructions or "")
        if chars > self.max_instructions_chars:
            raise RequestError(
                f"`instructions` must have at most {self.max_instructions_chars} characters, "
                f"found {chars}"
            )
        self._check_lexicon(settings.lexicon)

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
        """Where the transport should refuse to read a message at all and close with 1009."""
        return 16 * self.max_message_bytes
