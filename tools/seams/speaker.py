"""Speaks texts in pieces with the model alone: many rows at a time, no scheduler, no server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realtime_tts.engine.guards import GuardConfig, Guards
from realtime_tts.model import PromptSpec, SpeechModel
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tools.seams.layout import Layout, Piece
from tools.seams.ways import Context, Way

SAMPLE_RATE = 24_000
_SILENCE = 10 ** (-50 / 20)
_FINAL = tuple(".,;:!?")


@dataclass(frozen=True, slots=True)
class Request:
    """A text to speak. `pieces`: concatenated, they are the text."""

    pieces: tuple[str, ...]
    voice: str
    seed: int
    way: Way


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """A spoken text. For each piece, `ends`: samples made at its end; `ended`: whether the model
    ended it itself; `positions`: length of its prefill; `tokens`: length of its text."""

    samples: NDArray[np.float32]
    ends: tuple[int, ...]
    ended: tuple[bool, ...]
    positions: tuple[int, ...]
    tokens: tuple[int, ...]


@dataclass(slots=True)
class _Row:
    number: int
    spec: PromptSpec
    seed: int
    way: Way
    waiting: list[list[int]]
    slot: int
    pieces: list[Piece] = field(default_factory=list)
    feed: Iterator[int] = iter(())
    guards: Guards | None = None
    positions: list[int] = field(default_factory=list)
    sound: list[NDArray[np.float32]] = field(default_factory=list)

    @property
    def speaking(self) -> bool:
        return bool(self.pieces) and not self.pieces[-1].over


class Speaker:
    """A checkpoint with `slots` rows of state. Use it from one thread."""

    def __init__(self, model: SpeechModel, tokenizer: Qwen2Tokenizer, slots: int = 24) -> None:
        self._model, self._encode = model, tokenizer.encode
        self._layout = Layout(model, model.prompt_builder(tokenizer.encode))
        self._slots = slots
        self._state = model.new_state(slots)
        self._embeddings = torch.zeros(slots, model.config.talker.transformer.hidden)

    @torch.inference_mode()
    def speak(self, requests: Sequence[Request]) -> list[Spoken]:
        """Speak all requests; return them in order. Rows do not influence each other."""
        spoken: dict[int, Spoken] = {}
        waiting = iter(enumerate(requests))
        rows: dict[int, _Row] = {}
        while True:
            for slot in range(self._slots):
                if slot not in rows and (new := next(waiting, None)) is not None:
                    rows[slot] = self._open(slot, *new)
            if not rows:
                return [spoken[number] for number in range(len(requests))]
            self._step(list(rows.values()))
            for row in list(rows.values()):
                if not row.speaking and not row.waiting:
                    spoken[row.number] = _spoken(row)
                    del rows[row.slot]

    @torch.inference_mode()
    def first_sound(self, request: Request) -> tuple[int, float]:
        """Return the positions of the last piece's prefill, and the seconds of CPU time from its
        text to its first 80 ms of sound, without other rows."""
        row = self._open(0, 0, request)
        while row.speaking or len(row.waiting) > 1:
            self._step([row])
        began = time.thread_time()
        hidden = self._begin(row)
        frame = self._model.frame(hidden[None], [0], self._state)
        self._model.codec.decode(frame.codes[:, None], [0], self._state.codec)
        return row.positions[-1], time.thread_time() - began

    def _open(self, slot: int, number: int, request: Request) -> _Row:
        self._state.codec.reset([slot])
        way = request.way
        spec = PromptSpec(speaker=request.voice, language="english")
        texts = request.pieces if way.cut else ("".join(request.pieces),)
        return _Row(number, spec, request.seed, way, self._ids(texts, way), slot)

    def _ids(self, texts: Sequence[str], way: Way) -> list[list[int]]:
        """Return each piece's ids, without its first space if its prefill has no earlier piece."""
        marked = [
            text if text.endswith(_FINAL) or last else text + way.mark
            for text, last in zip(texts, (*repeat(False, len(texts) - 1), True), strict=True)
        ]
        if way.context is Context.NONE:
            marked = [text.strip() for text in marked]
        return [self._encode(text) for text in marked]

    def _step(self, rows: Sequence[_Row]) -> None:
        """Make one frame of every row."""
        going = [row for row in rows if row.speaking]
        new = [row for row in rows if not row.speaking]
        hidden: list[Tensor] = []
        if going:
            slots = [row.slot for row in going]
            text = self._model.talker.text([next(row.feed) for row in going])
            inputs = self._embeddings[slots] + text
            hidden.append(self._model.talker.decode(inputs, slots, self._state.kv))
        hidden += [self._begin(row)[None] for row in new]
        order = [*going, *new]
        slots = [row.slot for row in order]
        frame = self._model.frame(torch.cat(hidden), slots, self._state)
        self._embeddings[slots] = frame.embedding
        for row, codes, ended in zip(order, frame.codes, frame.ended.tolist(), strict=True):
            self._keep(row, codes, ended)

    def _begin(self, row: _Row) -> Tensor:
        """Prefill a row's next piece; return the hidden state [H] for its first frame."""
        ids, way = row.waiting.pop(0), row.way
        earlier = row.pieces[-way.pieces :] if way.context is not Context.NONE else []
        opening = self._layout.opening(row.spec, ids, earlier, way)
        seed = row.seed + (len(row.pieces) if way.next_seed else 0)
        row.feed = iter(_endless(opening.text, self._layout.pad))
        row.pieces.append(Piece(ids))
        row.positions.append(len(opening.inputs))
        row.guards = Guards(GuardConfig(), SAMPLE_RATE)
        row.guards.text_tokens, row.guards.text_finished = len(ids), True
        self._state.kv.clear(row.slot)
        self._state.sampling.begin(row.slot, self._model.default_sampling, seed)
        if not way.codec_carried:
            self._state.codec.reset([row.slot])
        return self._model.talker.prefill(opening.inputs, row.slot, self._state.kv)

    def _keep(self, row: _Row, codes: Tensor, ended: bool) -> None:
        """Store a row's frame, or end its piece and decode it."""
        piece = row.pieces[-1]
        if not ended:
            piece.codes.append(codes)
            assert row.guards is not None
            if row.guards.frame(int(codes[0])) is None:
                return
        piece.over, piece.ended = True, ended
        stacked = torch.stack(piece.codes)[None]
        samples = self._model.codec.decode(stacked, [row.slot], self._state.codec)[0].numpy()
        audible = np.flatnonzero(np.abs(samples) > _SILENCE)
        per_frame = len(samples) // len(piece.codes)
        piece.heard = int(audible[-1]) // per_frame + 1 if len(audible) else 0
        row.sound.append(samples)


def _endless(ids: Sequence[int], pad: int) -> Iterator[int]:
    yield from ids
    yield from repeat(pad)


def _spoken(row: _Row) -> Spoken:
    return Spoken(
        np.concatenate(row.sound),
        tuple(np.cumsum([len(samples) for samples in row.sound]).tolist()),
        tuple(piece.ended for piece in row.pieces),
        tuple(row.positions),
        tuple(len(piece.ids) for piece in row.pieces),
    )
