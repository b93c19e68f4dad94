"""The contents of one engine step, planned and done: what the scheduler and the engine exchange.

Plans hold ids and counts only. Which tokens, tensors and sockets belong to an id is known to the
caller.
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
    """Return the most positions of the KV cache that a prompt takes: with one for the end of the
    text, and one that frame 0 is made from. Frame k takes k more."""
    return prompt_tokens + text_tokens + 2


class Prefill(NamedTuple):
    """First pass over the prompt of an utterance; makes frame 0 and takes `slot`.

    `text_tokens` go into this pass: all of them in FULL_TEXT, one in STREAMING. `layout` is never
    AUTO. `spoken` frames were made by another engine, and the first `silent_start` frames are known
    without being made: they go into this pass with their text, and the frame after them is made.
    """

    id: str
    slot: int
    prompt_tokens: int
    text_tokens: int
    layout: Layout
    spoken: int = 0
    silent_start: int = 0

    @property
    def frames(self) -> int:
        """Number of frames that are not made, and go into the pass."""
        return self.spoken + self.silent_start

    @property
    def prompt(self) -> int:
        """The most positions of the KV cache that the prompt takes."""
        return prompt_positions(self.prompt_tokens, self.text_tokens)

    @property
    def positions(self) -> int:
        """The most positions of the KV cache that the pass takes."""
        return self.prompt + self.frames


class Decode(NamedTuple):
    """Make frame number `frame` (1 or more) of the utterance in `slot`."""

    id: str
    slot: int
    frame: int


class CodecRun(NamedTuple):
    """Decode the row's oldest `frames` frames into samples, after this step's prefills and decodes.

    If the row's speech ended in this step, all its pending frames are decoded instead.
    """

    id: str
    slot: int
    frames: int


class SwapOut(NamedTuple):
    """Copy the keys and values in `slot` to host memory; its pages are free for other rows."""

    id: str
    slot: int


class Reservation(NamedTuple):
    """Append `pages` to the block table of `slot`, from its entry number `first` on."""

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
        """Number of utterances that make a frame in this step."""
        return len(self.prefills) + len(self.decodes)

    @property
    def ids(self) -> frozenset[str]:
        """Ids of all utterances in this plan."""
        return frozenset(self.slots)

    @property
    def slots(self) -> dict[str, int]:
        """The slot of every utterance in this plan, by id."""
        owned = {p.id: p.slot for p in self.prefills}
        owned.update((d.id, d.slot) for d in self.decodes)
        owned.update((c.id, c.slot) for c in self.codec)
        owned.update((out.id, out.slot) for out in self.swap_outs)
        owned.update((r.id, r.slot) for r in self.reservations)
        return owned

    @property
    def swaps(self) -> int:
        """Number of rows whose keys and values are copied to host memory or back."""
        return len(self.swap_outs) + len(self.swap_ins)

    @property
    def resumes(self) -> bool:
        """Whether the step continues an utterance that another engine began."""
        return any(prefill.spoken for prefill in self.prefills)

    @property
    def codec_frames(self) -> int:
        """Number of frames that go through the codec in this step."""
        return sum([c.frames for c in self.codec])


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of an engine step.

    `seconds`: how long it took. `frames`: utterances that made a frame. `samples`: new samples for
    the listener, by utterance; `decoded`: samples that left the codec, if their number differs.
    `ended`: utterances that are over, whatever the reason (end of speech, a guard, a failure); all
    their pending frames went through the codec.
    """

    seconds: float
    frames: frozenset[str] = frozenset()
    samples: Mapping[str, int] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    decoded: Mapping[str, int] | None = None
