"""The codec's decoder for GPUs: matrix products, Triton kernels, and state updated in place.

It has the same weights and gives the same samples as `codec.py`, which is the form for CPUs. A call
reads nothing on the host and takes no shape from data, so it can be captured in a CUDA graph: one
for each number of rows and of frames.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from realtime_tts.kernels.codec_output import output_conv
from realtime_tts.kernels.codec_rows import advance, codebook_sum
from realtime_tts.kernels.cuda_codec import codec_programs
from realtime_tts.kernels.snake_unfold import unfold
from realtime_tts.model.codec import codebook_tables
from realtime_tts.model.codec_gemm_layers import (
    LONGEST_PAST,
    DirectBlock,
    GemmConv,
    GemmConvNeXt,
    Parts,
    WideBlock,
)
from realtime_tts.model.codec_gemm_state import MAX_FRAMES, AlignedLayout, GemmCodecState, Rows
from realtime_tts.model.codec_gemm_transformer import RingTransformer
from realtime_tts.model.config import CodecConfig
from realtime_tts.model.weights import Weights

DIRECT_CHANNELS = 384
# On an H200 in bfloat16, with the kernels of cuda_codec.py, a frame of the released codec takes:
#
#     direct up to    64 rows    256 rows
#     192             1.24 ms     3.57 ms
#     384             1.19 ms     3.40 ms
#
# Its arithmetic is 0.32 and 1.27 TFLOP, which takes 0.40 and 1.60 ms at best. Weights are 211 MB.


class GemmCodecDecoder:
    """The codec's decoder for GPUs, with tensors from `weights` (`decoder.`), in `dtype`.

    Blocks of up to `direct_channels` outputs take the direct form (codec_gemm_layers.py).
    """

    def __init__(
        self,
        config: CodecConfig,
        weights: Weights,
        device: torch.device,
        dtype: torch.dtype = torch.bfloat16,
        *,
        direct_channels: int = DIRECT_CHANNELS,
    ) -> None:
        self.config, self.device, self.dtype = config, device, dtype
        self._layout = AlignedLayout()
        table = codebook_tables(config, weights).to(dtype)
        parts = Parts(weights, self._layout, dtype, codec_programs(table))
        latent, width = config.latent_dim, config.decoder_dim
        self._table = table.view(config.codebooks, config.codebook_size, config.codebook_dim)
        self._pre_conv = GemmConv(parts, "decoder.pre_conv.conv", latent, config.codebook_dim, 3)
        self._transformer = RingTransformer(parts, config, device)
        self._upsample = [
            GemmConvNeXt(parts, f"decoder.upsample.{index}", latent, ratio)
            for index, ratio in enumerate(config.upsampling_ratios)
        ]
        self._conv = GemmConv(parts, "decoder.decoder.0.conv", width, latent, 7)
        self._build_blocks(parts, direct_channels)

    def _build_blocks(self, parts: Parts, direct_channels: int) -> None:
        config = self.config
        rates, count = config.upsample_rates, len(config.upsample_rates)
        widths = [config.decoder_dim >> index for index in range(count + 1)]
        # The activations of the input of each block, and of the last convolution.
        names = [f"decoder.decoder.{i + 1}.block.0" for i in range(count)]
        names.append(f"decoder.decoder.{count + 1}")
        snakes = [parts.snake(*pair) for pair in zip(names, widths, strict=True)]
        self._wide: list[WideBlock] = []
        self._direct: list[DirectBlock] = []
        steps = prod(config.upsampling_ratios)
        for index, rate in enumerate(rates):
            name, channels = (
                f"decoder.decoder.{index + 1}.block",
                (widths[index], widths[index + 1]),
            )
            steps *= rate
            if channels[1] <= direct_channels and steps >= LONGEST_PAST:
                self._direct.append(DirectBlock(parts, name, channels, rate, snakes[index + 1]))
            else:
                self._wide.append(WideBlock(parts, name, channels, rate, snakes[index]))
        self._handover = snakes[len(self._wide)]
        last, bias = parts.conv(f"decoder.decoder.{count + 2}.conv", 1, widths[-1], 7)
        self._last = last.view(7, widths[-1]), bias
        self._last_past = parts.layout.add(6, widths[-1])

    def new_slot_state(self, slots: int) -> GemmCodecState:
        """Return the state of `slots` streams; its scratch slot has the number `slots`."""
        return GemmCodecState(
            slots, self._layout.size, self._transformer.ring, self.device, self.dtype
        )

    @torch.inference_mode()
    def decode(self, codes: Tensor, slots: Tensor, state: GemmCodecState) -> Tensor:
        """Decode the next frames of some streams: codes [B, T, 16] int64 -> float32 samples [B, T *
        1920] in [-1, 1], all on the device.

        `slots` [B] int64, each at most once except the scratch slot, whose rows' samples mean
        nothing. 1 <= T <= 8, the same for all rows. The state advances by T frames. Samples do not
        depend on the pieces in which frames are decoded, except for rounding.
        """
        rows, frames, _ = codes.shape
        call = Rows(state, slots)
        x = self._attended(codes, call)
        for stage in self._upsample:
            x = stage(x, call)
        x = self._conv(x, call)
        for wide in self._wide:
            x = wide(x, call)
        x = unfold(x, None, snake=self._handover).view(x.shape)
        for direct in self._direct:
            x = direct(x, call)
        samples = output_conv(x, *self._last, call.past(self._last_past))
        advance(state.frames, state.side, slots, frames)
        return samples.view(rows, -1)

    @torch.inference_mode()
    def attend(self, codes: Tensor, slots: Tensor, state: GemmCodecState) -> None:
        """Advance the state by codes [B, T, 16] like `decode`, but without the convolutions."""
        self._attended(codes, Rows(state, slots))
        advance(state.frames, state.side, slots, codes.shape[1])

    def _attended(self, codes: Tensor, call: Rows) -> Tensor:
        """Return the transformer's output for codes [B, T, 16]: [B, T, latent]."""
        frames = codes.shape[1]
        assert 0 < frames <= MAX_FRAMES, f"{frames} frames in a call, expected 1 to {MAX_FRAMES}"
        x = codebook_sum(codes.contiguous(), self._table)
        return self._transformer(self._pre_conv(x, call), call)
