"""Split residual vector quantizer with moving-average codebooks, in the official names.

The first codebook is trained to tell the phones (a distilled semantic code, as in Défossez et al.
2024, Moshi, section 3.3.2); the other fifteen tell the sound, coarse to fine.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_voice.settings import CODEBOOK_SIZE, CODEBOOKS

_DECAY = 0.99
_DEAD = 0.05
"""An entry used less than this share of its fair one is replaced."""


class Quantized(NamedTuple):
    """codes [B, T, 16]; vectors [B, D, T], the sums the decoder reads; first [B, D, T], the
    first codebook's share; loss, for the encoder to stay close to the entries."""

    codes: Tensor
    vectors: Tensor
    first: Tensor
    loss: Tensor


class _Codebook(nn.Module):
    """Entries as sums and counts; nearest by Euclidean distance."""

    embedding_sum: Tensor
    cluster_usage: Tensor

    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("embedding_sum", torch.randn(CODEBOOK_SIZE, dim))
        self.register_buffer("cluster_usage", torch.ones(CODEBOOK_SIZE))
        self.started = False

    def entries(self) -> Tensor:
        return self.embedding_sum / self.cluster_usage.clamp(min=1e-5)[:, None]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [N, D] -> codes [N], entries [N, D]; learns while training."""
        if self.training and not self.started:
            self._restart(torch.ones_like(self.cluster_usage, dtype=torch.bool), x)
            self.started = True
        table = self.entries()
        codes = (table.square().sum(1) - 2 * x @ table.t()).argmin(1)
        if self.training:
            self._learn(x, codes)
        return codes, table[codes]

    @torch.no_grad()
    def _learn(self, x: Tensor, codes: Tensor) -> None:
        counts = torch.zeros_like(self.cluster_usage).index_add_(0, codes, torch.ones_like(x[:, 0]))
        sums = torch.zeros_like(self.embedding_sum).index_add_(0, codes, x)
        self.cluster_usage.lerp_(counts, 1 - _DECAY)
        self.embedding_sum.lerp_(sums, 1 - _DECAY)
        self._restart(self.cluster_usage < _DEAD * len(x) / CODEBOOK_SIZE, x)

    @torch.no_grad()
    def _restart(self, which: Tensor, x: Tensor) -> None:
        """Give the entries of mask `which` values seen in x; no branch on the device's data."""
        fair = len(x) / CODEBOOK_SIZE
        seen = x[torch.randint(len(x), (CODEBOOK_SIZE,), device=x.device)]
        self.embedding_sum.copy_(torch.where(which[:, None], seen * fair, self.embedding_sum))
        self.cluster_usage.copy_(torch.where(which, fair, self.cluster_usage))


def start_codebooks(module: nn.Module) -> None:
    """Tell the codebooks of a restored module that they have their entries."""
    for part in module.modules():
        if isinstance(part, _Codebook):
            part.started = True


class _Layer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self._codebook = _Codebook(dim)


class _Stack(nn.Module):
    def __init__(self, layers: int, dim: int):
        super().__init__()
        self.layers = nn.ModuleList(_Layer(dim) for _ in range(layers))

    def books(self) -> list[_Codebook]:
        return [layer._codebook for layer in self.layers]  # type: ignore[misc]


class _Residual(nn.Module):
    """Codebooks in turn on what the ones before left."""

    def __init__(self, books: int, dim: int):
        super().__init__()
        inner = dim // 2
        self.input_proj = nn.Conv1d(dim, inner, 1, bias=False)
        self.output_proj = nn.Conv1d(inner, dim, 1, bias=False)
        self.vq = _Stack(books, inner)

    def forward(self, x: Tensor, used: Tensor, plain: bool) -> tuple[Tensor, Tensor, Tensor]:
        """x [B, D, T], used [B] (codebooks that count) -> codes [B, T, n], vectors, loss."""
        projected = self.input_proj(x).transpose(1, 2)
        rest, total = projected, torch.zeros_like(projected)
        codes = []
        for index, book in enumerate(self.vq.books()):
            code, entry = book(rest.detach().flatten(0, 1))
            entry = entry.view_as(rest)
            counts = (index < used)[:, None, None]
            total = total + torch.where(counts, entry, 0.0)
            rest = rest - entry
            codes.append(code.view(rest.shape[:2]))
        loss = F.mse_loss(projected, total.detach())
        heard = projected if plain else projected + (total - projected).detach()
        return torch.stack(codes, 2), self.output_proj(heard.transpose(1, 2)), loss


class Quantizer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.rvq_first = _Residual(1, dim)
        self.rvq_rest = _Residual(CODEBOOKS - 1, dim)

    def forward(self, said: Tensor, sound: Tensor, *, plain: bool = False) -> Quantized:
        """Both [B, D, T]. `plain`: codebooks learn, but the decoder reads what is not quantized.

        While training, a third of the rows use only some of the codebooks, so that the first
        ones say most.
        """
        rows = said.shape[0]
        every = torch.full((rows,), CODEBOOKS, device=said.device)
        if self.training:
            fewer = torch.randint(2, CODEBOOKS + 1, (rows,), device=said.device)
            every = torch.where(torch.rand(rows, device=said.device) < 0.33, fewer, every)
        code, first, loss = self.rvq_first(said, every, plain)
        codes, rest, more = self.rvq_rest(sound, every - 1, plain)
        return Quantized(torch.cat((code, codes), 2), first + rest, first, loss + more)

    def decode(self, codes: Tensor) -> Tensor:
        """codes [B, T, 16] -> vectors [B, D, T]."""
        halves = ((self.rvq_first, codes[..., :1]), (self.rvq_rest, codes[..., 1:]))
        total = codes.new_zeros((), dtype=torch.float32)
        for half, part in halves:
            tables = [book.entries() for book in half.vq.books()]
            entries = torch.stack([table[part[..., i]] for i, table in enumerate(tables)]).sum(0)
            total = total + half.output_proj(entries.transpose(1, 2))
        return total
