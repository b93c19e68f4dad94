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


def prompt_positions(prompt_tokens: int, text_tokens: int) -> int:
    """Positions of the KV cache that a prompt takes at most: with the end of the text, and the one
    that frame 0 is made from. Frame k takes k more."""
    return prompt_tokens + text_tokens + 2


class Prefill(NamedTuple):
    """First pass over the prompt of an utterance; makes frame 0 and takes `slot`.

    `text_tokens` go into this pass: all of them in FULL_TEXT, one in STREAMING. `layout` is never
    AUTO. `spoken` frames were made elsewhere: they go into this pass, too, with their text, and the
    next one is made.
    """

    id: str
    slot: int
    prompt_tokens: int
    text_tokens: int
    layout: Layout
    spoken: int = 0

    @property
    def positions(self) -> int:
        """Positions of the KV cache that the pass takes at most."""
        return prompt_positions(self.prompt_tokens, self.text_tokens) + self.spoken


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


class SwapOut(NamedTuple):
    """Keep the keys and values in `slot` in host memory; its pages belong to others now."""

    id: str
    slot: int


class Reservation(NamedTuple):
    """`pages` join the block table of `slot`, from its entry number `first` on."""

    id: str
    slot: int
    first: int
    pages: tuple[int, ...]


class SwapIn(NamedTuple):
    """Copy keys and values back from host memory, into the pages this plan reserves for `slot`."""

    id: str
    slot: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One engine step: first the memory (swap out, reserve, swap in), then all prefills, then all
    decodes, then all codec runs.

    Every row that prefills or decodes has pages for the frame it makes, unless the engine's memory
    has no limit: then nothing is ever reserved or swapped.
    """

    prefills: tuple[Prefill, ...] = ()
    decodes: tuple[Decode, ...] = ()
    codec: tuple[CodecRun, ...] = ()
    swap_outs: tuple[SwapOut, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    swap_ins: tuple[SwapIn, ...] = ()

    @property
    def rows(self) -> int:
        """Utterances that make a frame in this step."""
        return len(self.prefills) + len(self.decodes)

    @property
    def ids(self) -> frozenset[str]:
        """Every utterance named in this plan."""
        return frozenset(self.slots)

    @property
    def slots(self) -> dict[str, int]:
        """The slot of every utterance named in this plan."""
        owned = {p.id: p.slot for p in self.prefills}
        owned.update((d.id, d.slot) for d in self.decodes)
        owned.update((c.id, c.slot) for c in self.codec)
        owned.update((out.id, out.slot) for out in self.swap_outs)
        owned.update((r.id, r.slot) for r in self.reservations)
        return owned

    @property
    def swaps(self) -> int:
        """Rows whose keys and values are copied to host memory or back."""
        return len(self.swap_outs) + len(self.swap_ins)

    @property
    def resumes(self) -> bool:
        """Whether it goes on with an utterance that another engine began."""
        return any(prefill.spoken for prefill in self.prefills)

    @property
    def codec_frames(self) -> int:
        """Frames that go through the codec in this step."""
        return sum([c.frames for c in self.codec])


@dataclass(frozen=True, slots=True)
class StepResult:
    """What an engine step did.

    `seconds`: how long it took. `frames`: utterances that made a frame. `samples`: how many
    samples there are for the listener, by utterance; `decoded`: how many left the codec, if those
    are not the same. `ended`: utterances that are over, whatever the reason (end of speech, a
    guard, a failure); all their pending frames went through the codec.
    """

    seconds: float
    frames: frozenset[str] = frozenset()
    samples: Mapping[str, int] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    decoded: Mapping[str, int] | None = None
