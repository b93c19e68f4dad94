"""Rows of positions on the device, made from coded speech.

Rows are laid out exactly as the engine feeds the talker (realtime_tts/model/prompt.py), half of
the utterances in each of the two layouts, with the language named or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tools.demo_voice import settings as ids
from tools.demo_voice.codes import CodedShard
from tools.demo_voice.layers import knows_bounds
from tools.demo_voice.speech import VOICE_NAMES
from tools.demo_voice.voice_model import Rows

_NAMED, _UNNAMED = 9, 8
"""Positions before the text, with the language named or not."""
_SHORTEST = 32
"""Positions; over a batch, utterances have several times as many on average."""
Row = list[tuple[int, int, int, int]]
"""Entries of a row: which, full-text layout or not, language named or not, positions."""


class Batch(NamedTuple):
    rows: Rows
    target: Tensor
    """[B, L]: first code, or end of speech, which a position predicts; -1 for none."""
    others: Tensor
    """[B, L, 15]: the other codes of that frame."""
    phones: Tensor
    """[B, L, 4]: phones of that frame; -1 where there is none or nobody knows."""
    pitch: Tensor
    """[B, L, 4]: Hz, 0 where there is no pitch; -1 for no frame, or where nobody knows."""
    heard: Tensor
    """[B, L]: the word of that frame; -1 for none."""
    seen: Tensor
    """[B, L]: the word of the text token at a position; -1 for none."""

    def tensors(self) -> list[Tensor]:
        return [part for part in (*self.rows, *self[1:]) if part is not None]

    def spoken(self) -> Tensor:
        """[B, L]: whether a position predicts a frame."""
        return (self.target >= 0) & (self.target != ids.EOS)

    def frame_codes(self, at: Tensor) -> Tensor:
        """Codes [K, 16] of the frames that flat positions [K] predict."""
        return torch.cat((self.target[..., None], self.others), -1).view(-1, ids.CODEBOOKS)[at]

    def first_rows(self, count: int) -> Batch:
        *parts, bounds = self.rows
        if bounds is not None:
            bounds = bounds.clamp(max=count * self.target.shape[1])
        rows = Rows._make((*(part[:count] for part in parts), bounds))
        return Batch._make((rows, *(part[:count] for part in self[1:])))


class VoicePool:
    """Coded utterances on the device, with room for `frames` frames."""

    def __init__(self, template: Sequence[int], device: torch.device, *, frames: int) -> None:
        """`template`: the token ids every prompt begins with."""
        self._device, self._bounded = device, knows_bounds(device)

        def room(size: int, *rest: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(size, *rest, dtype=dtype, device=device)

        self.codes = room(frames, ids.CODEBOOKS, dtype=torch.uint8)
        self.phones = room(frames, ids.PHONE_LABELS, dtype=torch.uint8)
        self.pitch = room(frames, ids.PHONE_LABELS, dtype=torch.float16)
        self.words = room(frames, dtype=torch.int16)
        self.tokens = room(frames // 2, dtype=torch.int16)
        self.token_words = room(frames // 2, dtype=torch.int16)
        self.entries = room(frames // 8, 5, dtype=torch.long)
        """Of every entry: first frame, first token, voice, frames, tokens."""
        self.lengths = np.zeros((0, 2), np.int64)
        """Of every entry: frames, tokens."""
        self.heads = _heads(template, device)
        self._frames = self._tokens = 0

    def add(self, shard: CodedShard) -> bool:
        """Keep a shard if there is room. One thread may add while another makes batches."""
        frames, tokens, held = len(shard.codes), len(shard.tokens), len(self.lengths)
        for kept, part, begin in (
            (self.codes, shard.codes, self._frames),
            (self.phones, shard.phones, self._frames),
            (self.pitch, shard.pitch, self._frames),
            (self.words, shard.words, self._frames),
            (self.tokens, shard.tokens, self._tokens),
            (self.token_words, shard.token_words, self._tokens),
            (self.entries, shard.entries + [self._frames, self._tokens, 0, 0, 0], held),
        ):
            if begin + len(part) > len(kept):
                return False
            kept[begin : begin + len(part)] = torch.from_numpy(part).to(self._device)
        self._frames += frames
        self._tokens += tokens
        self.lengths = np.concatenate((self.lengths, shard.entries[:, 3:].astype(np.int64)))
        return True

    def pack(self, entries: np.ndarray, layouts: np.ndarray, length: int) -> list[Row]:
        """Entries [N] to rows of at most `length` positions, in order (next fit). `layouts` [N, 2]
        of 0 and 1: whether each has the full-text layout, and its language named."""
        full, named = layouts.T
        frames, tokens = self.lengths[entries].T
        need = _UNNAMED + named * (_NAMED - _UNNAMED) + full * (tokens + 1) + 1 + frames
        rows: list[Row] = [[]]
        room = length
        for planned in np.stack((entries, full, named, need), 1).tolist():
            size = planned[3]
            if size > length:
                continue
            if size > room:
                rows.append([])
                room = length
            rows[-1].append(tuple(planned))
            room -= size
        return rows

    def plan(self, rows: Sequence[Row]) -> Tensor:
        """[U, 5] on the host: what `pack` planned, and the row."""
        flat = [(*planned, row) for row, entries in enumerate(rows) for planned in entries]
        return torch.tensor(flat, dtype=torch.long)

    def batch(self, plan: Tensor, count: int, length: int) -> Batch:
        """`count` rows of `length` positions from a plan; no loop on the device."""
        sizes = plan[:, 3]
        ends = sizes.cumsum(0)
        rows = torch.arange(count)
        used = torch.zeros(count, dtype=torch.long).index_add_(0, plan[:, 4], sizes)
        # Where utterances and the unused ends of rows begin, counted over all rows.
        begins = plan[:, 4] * length + ends - sizes - (used.cumsum(0) - used)[plan[:, 4]]
        device, bounds = self._device, None
        if self._bounded:
            bounds = _bounds(torch.cat((begins, rows * length + used)), count, length)
            bounds = bounds.to(device, non_blocking=True)
        return _lay_out(
            self,
            plan.to(device, non_blocking=True),
            begins.to(device, non_blocking=True),
            bounds,
            int(ends[-1]),
            (count, length),
        )


def random_layouts(count: int, chance: np.random.Generator) -> np.ndarray:
    """[count, 2], as `VoicePool.pack` takes them: half of each kind."""
    return chance.integers(0, 2, (count, 2))


def _bounds(begins: Tensor, count: int, length: int) -> Tensor:
    """Begins of utterances, sorted, and behind them utterances of no length: batches of one size
    have as many bounds, whatever is in them."""
    begins = begins.unique()
    most = count * (length // _SHORTEST)
    assert len(begins) <= most, f"{len(begins)} utterances in a batch, {most} at most"
    bounds = torch.full((most + 1,), count * length, dtype=torch.int32)
    bounds[: len(begins)] = begins
    return bounds


def _heads(template: Sequence[int], device: torch.device) -> Tensor:
    """[2 (named), voices, 9, 2]: text and control ids of the positions before the text."""
    heads = torch.full((2, len(VOICE_NAMES), _NAMED, 2), -1, dtype=torch.long)
    for voice, name in enumerate(VOICE_NAMES):
        thinking = (
            [ids.NOTHINK, ids.THINK_BOS, ids.THINK_EOS],
            [ids.THINK, ids.THINK_BOS, ids.ENGLISH, ids.THINK_EOS],
        )
        for named, control in enumerate(thinking):
            codec = [-1, -1, -1, *control, ids.SPEAKERS[name], ids.PAD]
            text = [*template, *[ids.TTS_PAD] * (len(control) + 1), ids.TTS_BOS]
            heads[named, voice, : len(text), 0] = torch.tensor(text)
            heads[named, voice, : len(codec), 1] = torch.tensor(codec)
    return heads.to(device)


def _lay_out(
    pool: VoicePool,
    plan: Tensor,
    begins: Tensor,
    bounds: Tensor | None,
    total: int,
    shape: tuple[int, int],
) -> Batch:
    entry, full, named, size, _ = plan.unbind(1)
    first_frame, first_token, voice, frames, tokens = pool.entries[entry].unbind(1)
    numbers = torch.arange(len(plan), device=plan.device)
    of = torch.repeat_interleave(numbers, size, output_size=total)
    inside = torch.arange(total, device=plan.device) - (size.cumsum(0) - size)[of]
    place = begins[of] + inside

    head = torch.where(named == 1, _NAMED, _UNNAMED)[of]
    step = inside - head  # of the text and frames
    frame = step - torch.where(full == 1, tokens + 1, 0)[of]  # which a position predicts
    in_frames = frame >= 0
    has_token = (step >= 0) & (step < tokens[of])
    token = (first_token[of] + step).clamp(0, len(pool.tokens) - 1)
    prompt = pool.heads[named[of], voice[of], inside.clamp(max=_NAMED - 1)]
    written = torch.where(step == tokens[of], ids.TTS_EOS, ids.TTS_PAD)
    written = torch.where(has_token, pool.tokens[token].long(), written)
    control = torch.where(in_frames, -1, ids.PAD)
    control = torch.where(frame == 0, ids.BOS, control)
    before = (first_frame[of] + frame - 1).clamp(0, len(pool.codes) - 1)
    at = (first_frame[of] + frame).clamp(0, len(pool.codes) - 1)
    now, known = pool.codes[at].long(), pool.phones[at].long()
    # The end of speech is learnt where the last frame is.
    last = (first_frame[of] + torch.minimum(frame, frames[of] - 1)).clamp(0, len(pool.codes) - 1)
    learnt = in_frames & (pool.phones[last, 0] != ids.UNLEARNT)
    spoken = learnt & (frame < frames[of])

    def spread(values: Tensor, fill: int) -> Tensor:
        whole = values.new_full((shape[0] * shape[1], *values.shape[1:]), fill)
        whole[place] = values
        return whole.view(*shape, *values.shape[1:])

    def where_spoken(labels: Tensor) -> Tensor:
        mask = spoken.view(-1, *[1] * (labels.ndim - 1))
        kind = labels.float() if labels.is_floating_point() else labels.long()
        return spread(torch.where(mask, kind, -1), -1)

    return Batch(
        Rows(
            text=spread(torch.where(step < 0, prompt[:, 0], written), -1),
            control=spread(torch.where(step < 0, prompt[:, 1], control), -1),
            codes=spread(torch.where((frame >= 1)[:, None], pool.codes[before].long(), -1), -1),
            positions=spread(inside, 0),
            utterances=spread(of, -1),
            bounds=bounds,
        ),
        target=spread(torch.where(spoken, now[:, 0], torch.where(learnt, ids.EOS, -1)), -1),
        others=spread(now[:, 1:], 0),
        phones=where_spoken(known.masked_fill(known == ids.UNKNOWN, -1)),
        pitch=where_spoken(pool.pitch[at]),
        heard=where_spoken(pool.words[at]),
        seen=spread(torch.where(has_token, pool.token_words[token].long(), -1), -1),
    )


def corrupted(
    rows: Rows, *, neighbour: float | Tensor, tail: float | Tensor, single: float | Tensor
) -> Rows:
    """Inputs as the model may hear itself: frames that are their neighbours (a slip in time),
    frames whose later codes are random, and single random codes, with these probabilities."""
    codes, device = rows.codes, rows.codes.device
    has = codes[..., :1] >= 0
    random = torch.randint(ids.CODEBOOK_SIZE, codes.shape, device=device)
    late = torch.arange(ids.CODEBOOKS, device=device) >= torch.randint(
        1, ids.CODEBOOKS, has.shape, device=device
    )
    chance = torch.rand(2, *has.shape, device=device)
    later, earlier = (F.pad(codes, (0, 0, 0, 1))[:, 1:], F.pad(codes, (0, 0, 1, 0))[:, :-1])
    other = torch.where(chance[0] < neighbour / 2, later, earlier)
    noisy = torch.where((chance[0] < neighbour) & (other[..., :1] >= 0), other, codes)
    noisy = torch.where((chance[1] < tail) & late, random, noisy)
    noisy = torch.where(torch.rand(codes.shape, device=device) < single, random, noisy)
    return rows._replace(codes=torch.where(has, noisy, codes))
