"""Resumption: what was spoken of a turn on another socket, as its client brings it.

The server of that socket may be gone, and this one knows nothing of it: everything comes from the
client, which got it beside the sound (`TurnProgress`), and is checked before the engine gets it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from realtime_tts.audio.speed import Speed
from realtime_tts.audio.time_scale import Place
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.engine.link import Spoken
from realtime_tts.engine.made_codes import packed, unpacked
from realtime_tts.protocol.effects import TurnStats
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.protocol.resuming import Resume
from realtime_tts.protocol.settings import SessionSettings, SpeedFactor
from realtime_tts.server.state_signer import StateSigner
from realtime_tts.version import __version__

Count = Annotated[int, Meta(ge=0, le=2**53)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
_MOST_AHEAD = 60 * SAMPLE_RATE
"""Samples of a turn that may come beyond those of its codes: a pause, and an encoder's delay."""
_NOT_THE_TEXTS = (
    "seed",
    "lead_ms",
    "audio",
    "word_times",
    "resume",
    "pacing",
    "layout",
    "traceparent",
)
"""Settings that may differ: the others decide what the same text and codes mean."""


class PartBefore(msgspec.Struct, array_like=True, frozen=True):
    """An utterance that was spoken: `samples` of its speech, and where a commit closed it, in
    characters that were released (`TextPipeline.released`); None where the text itself ended it."""

    samples: Count
    cut: Count | None


class Part(msgspec.Struct, array_like=True, frozen=True):
    """The utterance on the air, as part of the text. `begins`: samples of the turn before its
    `pause`. `skipped`: earlier utterances not listed in `before`. `turn` identifies the turn."""

    made_by: str
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    begins: Count
    pause: Annotated[float, Meta(ge=0, le=60)]
    skipped: Count
    before: list[PartBefore]
    turn: Annotated[str, Meta(max_length=64)]

    @property
    def speech_begins(self) -> int:
        """Samples of the turn before its speech."""
        return self.begins + round(self.pause * SAMPLE_RATE)


class Position(msgspec.Struct, array_like=True, frozen=True):
    """How far the part was when its last codes came: `samples` of its speech, the last `silent` of
    which are inaudible. `held` and `held_before`: see `Utterances`. `released`, `holds` and `cut`
    describe the text: see `TextPipeline`. `place`: how far the speech was played at a `speed` other
    than 1, see `time_scale.Place`. `chars` of text had come, with this `digest`: see `PaidText`."""

    samples: Count
    silent: Count
    held: Seconds
    held_before: Seconds
    layout: str  # empty until the engine has begun with the part
    released: Count
    holds: list[Count]
    cut: Count | None
    tells: bool  # whether each frame's codes come with the token that it speaks
    ttfa_ms: Seconds | None = None
    underruns: Count = 0
    held_inside_word: Count = 0
    moves: Count = 0
    speed: SpeedFactor = 1.0
    place: tuple[Count, Count] | None = None
    chars: Count = 0
    digest: bytes = b""

    @property
    def at(self) -> Place | None:
        return None if self.place is None else Place(*self.place)

    @property
    def played(self) -> int:
        """Samples of its speech as they are played; `place` tells if the speed is not 1."""
        return self.samples if self.place is None else self.place[0]

    @property
    def stats(self) -> TurnStats:
        """The numbers of the turn, except its samples."""
        return TurnStats(
            ttfa_ms=self.ttfa_ms,
            underruns=self.underruns,
            held_inside_word=self.held_inside_word,
            moves=self.moves,
        )


class Resumption:
    """A turn to continue: `samples` of it came, and the codes that came made `made` of them.
    Without a `part` it continues after `text_chars` of its text instead, because of `problem`."""

    def __init__(self, resume: Resume, made_by: str, info: EngineInfo, signer: StateSigner) -> None:
        self.samples, self.text_chars = resume.samples, resume.text_chars
        self.words_chars = resume.words_chars
        self.codes, self.tokens = resume.codes, b""
        self.problem: str | None = None
        """Why the turn cannot continue at the sample; None if it can."""
        self.part: Part | None = None
        self.position: Position | None = None
        if resume.too_much:
            self.problem = "more speech was brought in this session than can have been heard"
            return
        state = signer.verify(resume.part or b"", resume.state or b"", resume.codes)
        if state is None:
            self.problem = "expected `part`, `state` and codes of a server with the same key"
            return
        try:
            part = msgspec.msgpack.decode(resume.part or b"", type=Part)
            position = msgspec.msgpack.decode(state, type=Position)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.problem = "expected `part` and `state` as this version of the server gives them"
            return
        frame = 2 * info.codes_per_frame + (2 if position.tells else 0)
        if len(self.codes) % frame:
            found = len(self.codes)
            self.problem = f"expected codes of whole frames ({frame} bytes), found {found}"
            return
        if position.tells:
            self.codes, self.tokens = apart(self.codes, frame)
        self.problem = _problem(self, part, position, made_by, info)
        if self.problem is None:
            self.part, self.position = part, position

    @property
    def turn(self) -> str:
        """Identifies the turn that continues; empty if that is not known."""
        return "" if self.part is None else self.part.turn

    @property
    def paid(self) -> tuple[int, bytes]:
        """Characters of the turn's text that were paid for, and their digest."""
        return (0, b"") if self.position is None else (self.position.chars, self.position.digest)

    @property
    def made(self) -> int:
        """Samples of the turn that the codes made; all samples, if the codes are not used."""
        if self.part is None or self.position is None:
            return self.samples
        if not self.codes:
            return self.part.begins
        return self.part.speech_begins + self.position.played

    @property
    def speech_begins(self) -> int:
        """Samples of the turn before the speech so far of the utterance on the air."""
        return self.part.speech_begins if self.part is not None and self.codes else self.made

    @property
    def speed(self) -> float:
        """The speed at which the utterance is played."""
        return 1.0 if self.position is None else self.position.speed

    @property
    def place(self) -> Place | None:
        """How far the utterance was played, if that is not all that its codes made."""
        return None if self.position is None or not self.codes else self.position.at

    @property
    def pause(self) -> float:
        """Seconds of silence still to play before the utterance."""
        return 0.0 if self.part is None or self.codes else self.part.pause

    @property
    def layout(self) -> str:
        """The layout in use; empty if none is yet."""
        return "" if self.position is None else self.position.layout

    def in_layout(self, spec: UtteranceSpec) -> UtteranceSpec:
        """Return the spec with the layout in use."""
        return msgspec.structs.replace(spec, layout=self.layout or spec.layout)

    @property
    def held_before(self) -> float:
        """Seconds that earlier utterances were held."""
        return 0.0 if self.position is None else self.position.held_before

    @property
    def stats(self) -> TurnStats:
        """The numbers of the turn so far."""
        before = TurnStats() if self.position is None else self.position.stats
        return before._replace(samples=self.samples)

    def seeded(self, spec: UtteranceSpec) -> UtteranceSpec:
        """Return the spec with the turn's seed."""
        seed = spec.seed if self.part is None else self.part.seed
        return msgspec.structs.replace(spec, seed=seed)

    @property
    def spoken(self) -> Spoken | None:
        """What the engine needs of the utterance; None if no codes are used."""
        if self.position is None or not self.codes:
            return None
        position = self.position
        return Spoken(self.codes, position.samples, 0, position.silent, position.held, self.tokens)


def _problem(
    brought: Resumption, part: Part, position: Position, made_by: str, info: EngineInfo
) -> str | None:
    """Return why the resumption cannot be used here; None if it can."""
    if part.made_by != made_by:
        return "another checkpoint, version of the server, or settings have spoken so far"
    codes = unpacked(brought.codes, info.codes_per_frame)
    if len(codes) > info.max_frames:
        return f"expected codes of at most {info.max_frames} frames, found {len(codes)}"
    if codes.size and not 0 <= codes.min() <= codes.max() < info.codebook_size:
        return f"expected codes from 0 to {info.codebook_size - 1}"
    if position.samples > len(codes) * info.samples_per_frame:
        return f"{len(codes)} frames of codes are no {position.samples} samples"
    if position.layout not in ("", "streaming", "full_text"):
        return "expected a `state` with a layout"
    place, speed = position.at, Speed(position.speed)
    if speed.changes == (place is None) or not (place is None or place.is_of(speed)):
        return f"expected a `state` with a place in sound at the speed {speed:g}"
    if place is not None and not 0 <= place.next - position.samples <= _MOST_AHEAD:
        return f"{position.samples} samples do not lead to sample {place.next}"
    made = part.speech_begins + position.played if len(codes) else part.begins
    if not 0 <= brought.samples - made <= _MOST_AHEAD:
        return f"expected `samples` from {made} to {made + _MOST_AHEAD}, found {brought.samples}"
    return None


def together(codes: bytes, tokens: bytes) -> bytes:
    """Join codes of frames with the token that each speaks; without tokens, return the codes."""
    if not tokens:
        return codes
    groups = len(codes) // len(tokens)
    return packed(np.hstack([unpacked(codes, groups), unpacked(tokens, 1)]))


def apart(brought: bytes, frame: int) -> tuple[bytes, bytes]:
    """Split what `together` joined into codes and tokens, `frame` bytes for each frame."""
    frames = unpacked(brought, frame // 2)
    return packed(frames[:, :-1]), packed(frames[:, -1:])


def made_by(settings: SessionSettings, info: EngineInfo) -> str:
    """Return a digest of what gives codes and text their meaning: checkpoint, server, settings."""
    given = {name: getattr(settings, name) for name in settings.__struct_fields__}
    kept = {name: value for name, value in given.items() if name not in _NOT_THE_TEXTS}
    parts = (__version__, info.model, info.fingerprint, msgspec.to_builtins(kept))
    return sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()[:12]
