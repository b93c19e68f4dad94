"""The codec's decoder: frames of sixteen codes to samples, causal, with carried state.

No frame is decoded twice. Codes become vectors; a causal convolution and a windowed transformer
work at 12.5 steps a second; upsampling and convolution blocks lead to 24 kHz.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.model.codec_layers import CausalConv, ConvNeXt, DecoderBlock, SnakeBeta
from realtime_tts.model.codec_layers import TransposedConv as Upsample
from realtime_tts.model.codec_state import CodecState, StateLayout
from realtime_tts.model.codec_transformer import CodecTransformer
from realtime_tts.model.config import CodecConfig
from realtime_tts.model.linear import Linear
from realtime_tts.model.weights import Weights

_FRAMES_AT_ONCE = 16  # bounds the memory of a long decode


class CodecDecoder:
    """The codec's decoder in plain torch, with tensors from `weights` (`decoder.`); in float32."""

    def __init__(self, config: CodecConfig, weights: Weights, device: torch.device) -> None:
        self.config, self.device = config, device
        self._layout = layout = StateLayout()
        dim, latent, width = config.codebook_dim, config.latent_dim, config.decoder_dim
        affine = weights.affine
        self._codebooks = codebook_tables(config, weights)
        self._offsets = torch.arange(config.codebooks, device=device) * config.codebook_size
        self._pre_conv = CausalConv(
            *affine("decoder.pre_conv.conv", latent, dim, 3), layout, steps=1
        )
        self._transformer = CodecTransformer(config, weights, layout, device)
        self._upsample = [
            _upsample(weights, f"decoder.upsample.{index}", latent, ratio, layout)
            for index, ratio in enumerate(config.upsampling_ratios)
        ]
        steps = prod(config.upsampling_ratios)  # per frame
        self._conv = CausalConv(
            *affine("decoder.decoder.0.conv", width, latent, 7), layout, steps=steps
        )
        self._blocks = []
        for index, rate in enumerate(config.upsample_rates):
            name = f"decoder.decoder.{index + 1}.block"
            self._blocks.append(
                DecoderBlock(weights, name, (width, width // 2), rate, steps, layout)
            )
            width, steps = width // 2, steps * rate
        last = len(config.upsample_rates) + 1
        self._snake = SnakeBeta(weights, f"decoder.decoder.{last}", width, steps)
        self._last = CausalConv(
            *affine(f"decoder.decoder.{last + 1}.conv", 1, width, 7), layout, steps=steps
        )

    @property
    def products(self) -> tuple[Linear, ...]:
        """The matrix products of the codec's transformer."""
        return self._transformer.products

    def new_state(self, slots: int) -> CodecState:
        """Return the state of `slots` streams before their first frame."""
        return CodecState(slots, self._layout.size, self.device)

    def new_slot_state(self, slots: int) -> CodecState:
        """Return a state with one more slot, number `slots`, for the rows that pad a batch."""
        return self.new_state(slots + 1)

    @torch.inference_mode()
    def decode(self, codes: Tensor, slots: Sequence[int] | Tensor, state: CodecState) -> Tensor:
        """Decode the next frames of some streams: codes [B, T, 16] -> samples [B, T * 1920] in [-1,
        1].

        `slots` [B], each at most once, on the host or the device; T >= 1 is the same for all rows.
        The state advances by T frames. Samples do not depend on the pieces in which frames are
        decoded.
        """
        if isinstance(slots, Tensor):
            rows = slots
        else:
            rows = torch.tensor(slots, dtype=torch.long, device=self.device)
        memory, start = state.memory.index_select(0, rows), state.frames[rows]
        assert codes.shape[1] > 0, "no frames to decode"
        pieces = []
        for piece in codes.to(self.device).split(_FRAMES_AT_ONCE, 1):
            pieces.append(self._decode(piece, memory, start))
            start = start + piece.shape[1]
        state.memory.index_copy_(0, rows, memory)
        state.frames.index_copy_(0, rows, start)
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, 1)

    @torch.inference_mode()
    def attend(self, codes: Tensor, slots: Tensor, state: CodecState) -> None:
        """Advance the state by codes [B, T, 16] like `decode`, but without the convolutions, which
        are most of the work, and their state: they only need the last `convolved_frames` frames."""
        memory, start = state.memory.index_select(0, slots), state.frames[slots]
        self._attended(codes, memory, start)
        state.memory.index_copy_(0, slots, memory)
        state.frames.index_copy_(0, slots, start + codes.shape[1])

    def _attended(self, codes: Tensor, memory: Tensor, start: Tensor) -> Tensor:
        """Return the transformer's output for codes [B, T, 16]: [B, T, latent]."""
        rows, frames, books = codes.shape
        entries = (codes + self._offsets).view(-1, books)
        x = F.embedding_bag(entries, self._codebooks, mode="sum").view(
            rows, frames, self.config.codebook_dim
        )
        return self._transformer(self._pre_conv(x, memory), memory, start)

    def _decode(self, codes: Tensor, memory: Tensor, start: Tensor) -> Tensor:
        x = self._attended(codes, memory, start)
        for up, mix in self._upsample:
            x = mix(up(x, memory), memory)
        x = self._conv(x, memory)
        for block in self._blocks:
            x = block(x, memory)
        return self._last(x, memory, self._snake).view(len(x), -1).clamp_(-1, 1)


def _upsample(
    weights: Weights, name: str, channels: int, ratio: int, layout: StateLayout
) -> tuple[Upsample, ConvNeXt]:
    up = Upsample(
        weights.take(f"{name}.0.conv.weight", channels, channels, ratio),
        weights.take(f"{name}.0.conv.bias", channels),
        ratio,
        layout,
    )
    return up, ConvNeXt(weights, f"{name}.1", channels, layout)


def codebook_tables(config: CodecConfig, weights: Weights) -> Tensor:
    """Return one table [codebooks * entries, codebook_dim] of all codebooks, after the quantizers'
    output projections.

    An entry is stored as a sum and a count; a frame's vector is the sum of its sixteen entries.
    """
    dim, entries = config.codebook_dim, config.codebook_size
    tables = []
    for half, count in (("rvq_first", 1), ("rvq_rest", config.codebooks - 1)):
        name = f"decoder.quantizer.{half}"
        weights.take(f"{name}.input_proj.weight", dim // 2, dim, 1)  # for encoding only
        projection = weights.take(f"{name}.output_proj.weight", dim, dim // 2, 1).squeeze(2)
        for index in range(count):
            book = f"{name}.vq.layers.{index}._codebook"
            total = weights.take(f"{book}.embedding_sum", entries, dim // 2)
            usage = weights.take(f"{book}.cluster_usage", entries).clamp(min=1e-5)
            tables.append((total / usage.unsqueeze(1)) @ projection.t())
    return torch.cat(tables)
