"""Talker and code predictor as trained, their modules under the official names.

Training reads whole rows at once: a row holds several utterances, each of which sees only itself.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_voice.codec_model import rope
from tools.demo_voice.layers import Layer, Sight
from tools.demo_voice.phonetics import PHONES
from tools.demo_voice.settings import (
    CODEBOOK_SIZE,
    CODEBOOKS,
    PHONE_LABELS,
    TALKER_USED,
    TALKER_VOCAB,
    TEXT_VOCAB,
    TEXT_WIDTH,
    StackSize,
)

POINTER_LAYER = 3
POINTER_HEADS = 2
"""Heads of this layer are taught to look at the word being spoken."""


class _TextProjection(nn.Module):
    def __init__(self, wide: int, hidden: int):
        super().__init__()
        self.linear_fc1, self.linear_fc2 = (nn.Linear(wide, wide), nn.Linear(wide, hidden))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear_fc2(F.silu(self.linear_fc1(x)))
        return y


class _TalkerStack(nn.Module):
    def __init__(self, size: StackSize, dropout: float):
        super().__init__()
        self.text_embedding = nn.Embedding(TEXT_VOCAB, TEXT_WIDTH)
        self.codec_embedding = nn.Embedding(TALKER_VOCAB, size.hidden_size)
        self.layers = nn.ModuleList(Layer(size, dropout) for _ in range(size.num_hidden_layers))
        self.norm = nn.RMSNorm(size.hidden_size, size.rms_norm_eps)


class _PredictorStack(nn.Module):
    def __init__(self, size: StackSize, width: int, dropout: float):
        super().__init__()
        self.codec_embedding = nn.ModuleList(
            nn.Embedding(CODEBOOK_SIZE, width) for _ in range(CODEBOOKS - 1)
        )
        self.layers = nn.ModuleList(Layer(size, dropout) for _ in range(size.num_hidden_layers))
        self.norm = nn.RMSNorm(size.hidden_size, size.rms_norm_eps)

    def tables(self) -> list[Tensor]:
        """The embeddings [256, width] of codes 2 to 16."""
        return [cast(nn.Embedding, table).weight for table in self.codec_embedding]


class CodePredictor(nn.Module):
    def __init__(self, size: StackSize, width: int, dropout: float):
        super().__init__()
        self.size = size
        self.small_to_mtp_projection = nn.Linear(width, size.hidden_size)
        self.model = _PredictorStack(size, width, dropout)
        self.lm_head = nn.ModuleList(
            nn.Linear(size.hidden_size, CODEBOOK_SIZE, bias=False) for _ in range(CODEBOOKS - 1)
        )

    def forward(self, hidden: Tensor, first: Tensor, codes: Tensor) -> Tensor:
        """Talker outputs [K, H], embeddings of the first codes [K, H] and true other codes
        [K, 15] -> logits [K, 15, 256]."""
        table = torch.cat(self.model.tables())
        offsets = torch.arange(CODEBOOKS - 2, device=codes.device) * CODEBOOK_SIZE
        others = F.embedding(codes[:, :-1] + offsets, table)
        x = torch.cat((hidden[:, None], first[:, None], others.to(hidden.dtype)), 1)
        x = self.small_to_mtp_projection(x)
        steps = torch.arange(CODEBOOKS, device=codes.device)
        cos, sin = rope(steps[:, None], self.size.head_dim, self.size.rope_theta)
        for layer in self.model.layers:
            x, _, _ = layer(x, cos, sin, Sight())
        x = self.model.norm(x)[:, 1:]
        heads = torch.stack([cast(nn.Linear, head).weight for head in self.lm_head])
        return torch.einsum("kjh,jvh->kjv", x, heads.to(x.dtype))


class Rows(NamedTuple):
    """Inputs of a batch of rows [B, L]; -1 means none of its kind at a position."""

    text: Tensor
    """Text token ids."""
    control: Tensor
    """Codec control ids."""
    codes: Tensor
    """[B, L, 16], the frame heard before; -1 where there is none."""
    positions: Tensor
    """Counted from each utterance's start."""
    utterances: Tensor
    """A number by utterance; positions of different ones do not see each other."""
    bounds: Tensor | None
    """Where utterances begin, counted over all rows, and the end of all: [U + 1] int32. The last
    utterances may have no length."""


class Voice(nn.Module):
    """Everything that is trained after the codec. The heads at the end are not exported."""

    starts: Tensor
    """Of the codebooks' entries among all codec embeddings [16]."""

    def __init__(self, talker: StackSize, predictor: StackSize, dropout: float):
        super().__init__()
        self.size = talker
        hidden = talker.hidden_size
        self.model = _TalkerStack(talker, dropout)
        self.text_projection = _TextProjection(TEXT_WIDTH, hidden)
        self.codec_head = nn.Linear(hidden, TALKER_VOCAB, bias=False)
        self.code_predictor = CodePredictor(predictor, hidden, dropout)
        self.phone_head = nn.Linear(hidden, PHONE_LABELS * len(PHONES))
        self.pitch_head = nn.Linear(hidden, PHONE_LABELS * 2)
        starts = [0, *(TALKER_USED + CODEBOOK_SIZE * j for j in range(CODEBOOKS - 1))]
        self.register_buffer("starts", torch.tensor(starts), persistent=False)
        self.apply(_initialise)
        with torch.no_grad():
            self.model.codec_embedding.weight[TALKER_USED:] = 0
            self.codec_head.weight[TALKER_USED:] = 0

    def embed(self, rows: Rows) -> Tensor:
        """The talker's inputs [B, L, H]."""
        texts = self.text_projection(self.model.text_embedding.weight)
        texts = torch.cat((texts, texts.new_zeros(1, texts.shape[1])))
        written = torch.where(rows.text >= 0, rows.text, TEXT_VOCAB)
        return F.embedding(written, texts) + self._codec_inputs(rows)

    def _codec_inputs(self, rows: Rows) -> Tensor:
        """Sums of codec embeddings, as one product with a multi-hot matrix: much faster to
        differentiate than seventeen look-ups."""
        books = self.code_predictor.model.tables()
        table = torch.cat((self.model.codec_embedding.weight[:TALKER_USED], *books))
        table = torch.cat((table, table.new_zeros(1, table.shape[1])))
        none = len(table) - 1
        heard = torch.where(rows.codes >= 0, rows.codes + self.starts, none)
        control = torch.where(rows.control >= 0, rows.control, none)
        chosen = torch.cat((heard, control[..., None]), -1).flatten(0, 1)
        hot = torch.zeros(len(chosen), len(table), dtype=_precision(table), device=table.device)
        hot.scatter_(1, chosen, 1)
        return (hot @ table.to(hot.dtype)).view(*rows.text.shape, -1)

    def first_logits(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., TALKER_USED]; the other ids never occur."""
        return F.linear(hidden, self.codec_head.weight[:TALKER_USED])

    def forward(self, rows: Rows) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Outputs [B, L, H], and queries and keys [B, L, heads, D] of the pointer layer."""
        x = self.embed(rows)
        sight = Sight(bounds=rows.bounds) if rows.bounds is not None else Sight(_bias(rows, x))
        cos, sin = rope(rows.positions[..., None], self.size.head_dim, self.size.rope_theta)
        pointer = (x, x)
        for index, layer in enumerate(self.model.layers):
            x, q, k = layer(x, cos, sin, sight)
            if index == POINTER_LAYER:
                pointer = (q[:, :, :POINTER_HEADS], k[:, :, :POINTER_HEADS])
        return self.model.norm(x), pointer


def _bias(rows: Rows, like: Tensor) -> Tensor:
    allowed = _visible(rows)[:, None]
    bias = torch.zeros(allowed.shape, dtype=_precision(like), device=like.device)
    return bias.masked_fill_(~allowed, -1e4)


def _visible(rows: Rows) -> Tensor:
    """[B, L, L]: earlier positions of the same utterance."""
    return (rows.utterances[:, :, None] == rows.utterances[:, None]).tril()


def pointer_loss(pointer: tuple[Tensor, Tensor], rows: Rows, heard: Tensor, seen: Tensor) -> Tensor:
    """How little of the pointer heads' attention is on the tokens of the word being spoken.

    heard [B, L]: the word of the frame which a position predicts, -1 for none; seen [B, L]: the
    word of the text token a position holds, -1 for none (words counted within an utterance).
    """
    q, k = pointer
    scores = torch.einsum("bqhd,bkhd->bhqk", q.float(), k.float()) / q.shape[-1] ** 0.5
    allowed = _visible(rows)
    target = allowed & (heard[:, :, None] == seen[:, None]) & (heard >= 0)[:, :, None]
    found = target.any(-1)
    low = torch.finfo(scores.dtype).min
    every = scores.masked_fill(~allowed[:, None], low).logsumexp(-1)
    there = scores.masked_fill(~target[:, None], low).logsumexp(-1)
    misses = (every - there).masked_fill(~found[:, None], 0)
    return misses.sum() / (found.sum().clamp(min=1) * q.shape[2])


def _precision(x: Tensor) -> torch.dtype:
    return torch.bfloat16 if x.device.type == "cuda" else torch.float32


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
