"""Layers of the codec's decoder: causal, with explicit memory.

Activations are channels-last, [B, steps, channels]: a pointwise convolution is a matrix product, a
transposed one is a causal convolution whose outputs are several steps wide, and oneDNN's
convolutions are fastest that way. `memory` is the gathered state [B, size] of the rows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.model.codec_state import Region, StateLayout
from realtime_tts.model.linear import Linear, packing_available
from realtime_tts.model.weights import Weights

_INNER = 128  # channels below which elementwise work is done on several steps at once


class SnakeBeta:
    """x + sin²(x·e^alpha) / (e^beta + 1e-9), per channel (BigVGAN, Lee et al. 2023).

    `steps` divides the number of steps of every input: with few channels, several steps are treated
    as one, which keeps the innermost loop long.
    """

    def __init__(self, weights: Weights, name: str, channels: int, steps: int) -> None:
        rate = weights.take(f"{name}.alpha", channels).exp()
        gain = 1 / (weights.take(f"{name}.beta", channels).exp() + 1e-9)
        self._group = 1
        while channels * self._group < _INNER and steps % (2 * self._group) == 0:
            self._group *= 2
        self._width = channels * self._group
        self._rate, self._gain = rate.repeat(self._group), gain.repeat(self._group)

    def into(self, x: Tensor, out: Tensor) -> None:
        """Apply to x [B, L, C], contiguous, writing to out [B, L, C], contiguous in each row."""
        shape = (x.shape[0], -1, self._width)
        x = x.view(shape)
        wave = (x * self._rate).sin_().square_()
        torch.addcmul(x, wave, self._gain, out=out.view(shape))

    def __call__(self, x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        self.into(x, out)
        return out


class CausalConv:
    """A convolution over its input and the past: weight [out, in, taps], bias [out].

    `steps` is the number of steps of one frame. oneDNN packs weights for a size of input; for
    another one it may repack them in every call, which costs more than the convolution.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor, layout: StateLayout, *, steps: int, dilation: int = 1
    ) -> None:
        self._bias, self._dilation = bias, dilation
        self._inputs, taps = weight.shape[1], weight.shape[2]
        self._past = layout.add((taps - 1) * dilation, self._inputs)
        self._packed = packing_available() and weight.device.type == "cpu"
        size = [1, self._inputs, 1, self._past.rows + steps]
        plain = weight.unsqueeze(2)  # as a two-dimensional convolution of height 1
        self._weight = (
            torch.ops.mkldnn._reorder_convolution_weight(
                plain, [0, 0], [1, 1], [1, dilation], 1, size
            )
            if self._packed
            else plain.to(memory_format=torch.channels_last)
        )

    def __call__(self, x: Tensor, memory: Tensor, before: SnakeBeta | None = None) -> Tensor:
        """Convolve x [B, L, in] -> [B, L, out]; `before` is applied to the input first."""
        return self._convolve(with_past(x, self._past, memory, before))

    def _convolve(self, padded: Tensor) -> Tensor:
        image = padded.transpose(1, 2).unsqueeze(2)  # [B, in, 1, past + L], channels last
        if self._packed:
            y = torch.ops.mkldnn._convolution_pointwise(
                image,
                self._weight,
                self._bias,
                [0, 0],
                [1, 1],
                [1, self._dilation],
                1,
                "none",
                [],
                "",
            )
        else:
            y = F.conv2d(image, self._weight, self._bias, dilation=(1, self._dilation))
        return y.squeeze(2).transpose(1, 2).contiguous()


def with_past(x: Tensor, past: Region, memory: Tensor, before: SnakeBeta | None = None) -> Tensor:
    """Return past steps, then x: [B, L, C] -> [B, past + L, C]. The memory advances by L steps."""
    rows, steps, channels = x.shape
    padded = x.new_empty(rows, past.rows + steps, channels)
    kept = past.of(memory)
    padded[:, : past.rows] = kept
    if before is None:
        padded[:, past.rows :] = x
    else:
        before.into(x, padded[:, past.rows :])
    kept.copy_(padded[:, steps:])
    return padded


class TransposedConv:
    """An upsampling convolution: weight [in, out, taps], bias [out], stride s, taps s or 2 s.

    Nothing is trimmed on the left and taps - s on the right, so output block t depends on inputs
    t and, with 2 s taps, t - 1.
    """

    def __init__(self, weight: Tensor, bias: Tensor, stride: int, layout: StateLayout) -> None:
        inputs, outputs, taps = weight.shape
        assert taps in (stride, 2 * stride)
        # [in, out, blocks, s] -> [s * out, blocks * in]; the block of input t - 1 comes first.
        blocks = weight.view(inputs, outputs, taps // stride, stride).flip(2)
        matrix = blocks.permute(3, 1, 2, 0).reshape(stride * outputs, -1)
        self._outputs = outputs
        self._product = Linear(matrix, bias.repeat(stride), exact_rows=False)
        self._past = layout.add(taps // stride - 1, inputs)

    def __call__(self, x: Tensor, memory: Tensor, before: SnakeBeta | None = None) -> Tensor:
        """Upsample x [B, L, in] -> [B, L * s, out]; `before` is applied to the input first."""
        rows, steps, _ = x.shape
        if self._past.rows:
            padded = with_past(x, self._past, memory, before)
            x = torch.cat((padded[:, :-1], padded[:, 1:]), 2)
        elif before is not None:
            x = before(x)
        return self._product(x).view(rows, -1, self._outputs)


class ResidualUnit:
    """A residual unit x + k1(snake(k7(snake(x)))) of x [B, L, C], the k7 dilated."""

    def __init__(
        self,
        weights: Weights,
        name: str,
        channels: int,
        dilation: int,
        steps: int,
        layout: StateLayout,
    ) -> None:
        self._first = SnakeBeta(weights, f"{name}.act1", channels, steps)
        self._wide = CausalConv(
            *weights.affine(f"{name}.conv1.conv", channels, channels, 7),
            layout,
            steps=steps,
            dilation=dilation,
        )
        self._second = SnakeBeta(weights, f"{name}.act2", channels, steps)
        weight, bias = weights.affine(f"{name}.conv2.conv", channels, channels, 1)
        self._point = Linear(weight.squeeze(2), bias, exact_rows=False)

    def __call__(self, x: Tensor, memory: Tensor) -> Tensor:
        y = self._wide(x, memory, self._first)
        return self._point(self._second(y)).add_(x)


class ConvNeXt:
    """A ConvNeXt block x + gamma * mlp(norm(depthwise k7(x))) of x [B, L, C]."""

    def __init__(self, weights: Weights, name: str, channels: int, layout: StateLayout) -> None:
        taps, self._bias = weights.affine(f"{name}.dwconv.conv", channels, 1, 7)
        self._taps = taps.squeeze(1).t().contiguous()
        self._past = layout.add(6, channels)
        self._norm = weights.affine(f"{name}.norm", channels)
        up = weights.affine(f"{name}.pwconv1", 4 * channels, channels)
        down = weights.affine(f"{name}.pwconv2", channels, 4 * channels)
        self._up, self._down = Linear(*up, exact_rows=False), Linear(*down, exact_rows=False)
        self._gamma = weights.take(f"{name}.gamma", channels)

    def __call__(self, x: Tensor, memory: Tensor) -> Tensor:
        rows, steps, channels = x.shape
        padded = with_past(x, self._past, memory)
        windows = padded.as_strided(  # [B, L, 7, C], overlapping
            (rows, steps, 7, channels), (padded.stride(0), channels, channels, 1)
        )
        y = (windows * self._taps).sum(2).add_(self._bias)
        y = F.layer_norm(y, (channels,), *self._norm, 1e-6)
        return torch.addcmul(x, self._down(F.gelu(self._up(y))), self._gamma)


class DecoderBlock:
    """SnakeBeta, transposed convolution by `rate`, three residual units (dilation 1, 3, 9): x [B,
    L, in] -> [B, L * rate, out]."""

    def __init__(
        self,
        weights: Weights,
        name: str,
        channels: tuple[int, int],
        rate: int,
        steps: int,
        layout: StateLayout,
    ) -> None:
        """`channels`: in and out. `steps`: per frame at the input."""
        inputs, outputs = channels
        self._snake = SnakeBeta(weights, f"{name}.0", inputs, steps)
        self._up = TransposedConv(
            weights.take(f"{name}.1.conv.weight", inputs, outputs, 2 * rate),
            weights.take(f"{name}.1.conv.bias", outputs),
            rate,
            layout,
        )
        self._units = [
            ResidualUnit(weights, f"{name}.{2 + i}", outputs, 3**i, steps * rate, layout)
            for i in range(3)
        ]

    def __call__(self, x: Tensor, memory: Tensor) -> Tensor:
        x = self._up(x, memory, self._snake)
        for unit in self._units:
            x = unit(x, memory)
        return x
