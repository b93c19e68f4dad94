"""What one engine step should do, and what it did: the scheduler's words to and from the engine.

Ids and counts only. Which tokens, which tensors and which sockets belong to an id is the
caller's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Layout(StrEnum):
    """How text reaches the talker.

    STREAMING feeds one text token per frame, FULL_TEXT puts the whole text into the prefill.
    AUTO becomes FULL_TEXT when the text is complete at the moment of the prefill.
    """

    AUTO = "auto"
    STREAMING = "streaming"
    FULL_TEXT = "full_text"


class Prefill(NamedTuple):
    """First pass over the prompt of an utterance; makes frame 0 and takes `slot`.

    `text_tokens` go into this pass: all of them in FULL_TEXT, one in STREAMING. `layout` is never
    AUTO.
    """

    id: str
    slot: int
    prompt_tokens: int
    text_tokens: int
    layout: Layout


class Decode(NamedTuple):
    """Make frame number `frame` (1 or more) of the utterance in `slot`."""

    id: str
    slot: int
    frame: int


class CodecRun(NamedTuple):
    """After the prefills and decodes of this step, turn the oldest `frames` frames into samples.

    If the row's speech ended in this step, all its pending frames are turned instead.
    """

    id: str
    slot: int
    frames: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One engine step: all prefills, then all decodes, then all codec runs."""

    prefills: tuple[Prefill, ...] = ()
    decodes: tuple[Decode, ...] = ()
    codec: tuple[CodecRun, ...] = ()

    @property
    def rows(self) -> int:
        """Utterances that make a frame in this step."""
        return len(self.prefills) + len(self.decodes)

    @property
    def ids(self) -> frozenset[str]:
        """Every utterance named in this plan."""
        named = {p.id for p in self.prefills}
        named.update(d.id for d in self.decodes)
        named.update(c.id for c in self.codec)
        return frozenset(named)

    @property
    def slots(self) -> dict[str, int]:
        """The slot of every utterance named in this plan."""
        owned = {p.id: p.slot for p in self.prefills}
        owned.update((d.id, d.slot) for d in self.decodes)
        owned.update((c.id, c.slot) for c in self.codec)
        return owned

    @property
    def codec_frames(self) -> int:
        """Frames that go through the codec in this step."""
        return sum([c.frames for c in self.codec])


@dataclass(frozen=True, slots=True)
class StepResult:
    """What an engine step did.

    `seconds`: how long it took. `frames`: utterances that made a frame. `samples`: how many
    samples left the codec, by utterance. `ended`: utterances that are over, whatever the reason
    (end of speech, a guard, a failure); all their pending frames went through the codec.
    """

    seconds: float
    frames: frozenset[str] = frozenset()
    samples: Mapping[str, int] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()

    def left_out(self, plan: StepPlan) -> frozenset[str]:
        """Who was to make a frame, made none and did not end: the engine had no room for it."""
        if len(self.frames) == plan.rows:
            return frozenset()
        planned = [work.id for work in plan.prefills] + [work.id for work in plan.decodes]
        return frozenset(planned) - self.frames - self.ended
