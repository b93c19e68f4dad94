"""The codec's convolutions as matrix products, channels-last, with state by slot.

There are two forms. *Wide* layers write the left matrix (one kernel) and multiply with cuBLAS:
their weights are large, and their steps few. *Direct* layers, with few channels and many steps,
would move seven times their input that way, so a kernel multiplies them straight from the
activations: one in CUDA C++ where the GPU and the number of rows suit it, else Triton's, or cuBLAS
after all. Wide layers pass on raw activations and activate what they read; direct ones take
activated input and write what the next layer needs, raw, activated or both.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.codec_past import Snake
from realtime_tts.kernels.codec_rows import depthwise_norm
from realtime_tts.kernels.cuda_codec import CodecPrograms, Product
from realtime_tts.kernels.snake_conv import conv, residual_unit
from realtime_tts.kernels.snake_unfold import unfold
from realtime_tts.model.codec_gemm_state import AlignedLayout, Rows
from realtime_tts.model.codec_state import Region
from realtime_tts.model.weights import Weights

_TAPS = 7
LONGEST_PAST = (_TAPS - 1) * 9
"""Steps that the last unit of a block remembers; direct layers need at least as many new ones."""
_DIRECT_OUTPUTS = 288
"""The most outputs for which Triton's convolution is faster than cuBLAS with its left matrix."""
_FUSED = 128
"""The most channels for which a residual unit is one kernel: a tile of all fits registers."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What all layers are built from: weights, the layout of the state, and kernels."""

    weights: Weights
    layout: AlignedLayout
    dtype: torch.dtype
    programs: CodecPrograms | None
    """Kernels that are faster than Triton's, where there are any."""

    def take(self, name: str, *shape: int) -> Tensor:
        """Take a tensor of this shape in `dtype`, contiguous."""
        return self.weights.take(name, *shape).to(self.dtype).contiguous()

    def affine(self, name: str, *shape: int) -> tuple[Tensor, Tensor]:
        """Take the weight, of this shape, and the bias [shape[0]] of a layer, in `dtype`."""
        return self.take(f"{name}.weight", *shape), self.take(f"{name}.bias", shape[0])

    def take_float(self, name: str, *shape: int) -> Tensor:
        """Take a tensor of this shape in float32."""
        return self.weights.take(name, *shape).float()

    def snake(self, name: str, channels: int) -> Snake:
        """Take the SnakeBeta parameters of a layer, both float32 [channels]."""
        rate = self.take_float(f"{name}.alpha", channels).exp()
        gain = 1 / (self.take_float(f"{name}.beta", channels).exp() + 1e-9)
        return Snake(rate, gain)

    def conv(self, name: str, outputs: int, inputs: int, taps: int) -> tuple[Tensor, Tensor]:
        """Take a convolution: [out, in, taps] -> [out, taps * in], in the order of `unfold`'s rows;
        its bias in float32 [out]."""
        weight = self.take(f"{name}.weight", outputs, inputs, taps)
        matrix = weight.permute(0, 2, 1).reshape(outputs, taps * inputs)
        return matrix, self.take_float(f"{name}.bias", outputs)

    def transposed(
        self, name: str, inputs: int, outputs: int, taps: int, stride: int
    ) -> tuple[Tensor, Tensor]:
        """Take a transposed convolution: [in, out, blocks * stride] -> [stride * out, blocks * in],
        the block of the oldest input first; its bias in float32, repeated to [stride * out]. See
        `codec_layers.TransposedConv`."""
        weight = self.take(f"{name}.weight", inputs, outputs, taps)
        blocks = weight.view(inputs, outputs, taps // stride, stride).flip(2)
        matrix = blocks.permute(3, 1, 2, 0).reshape(stride * outputs, -1)
        return matrix, self.take_float(f"{name}.bias", outputs).repeat(stride)


class GemmConv:
    """A causal convolution in wide form: x [B, L, in] -> [B, L, out]."""

    def __init__(self, parts: Parts, name: str, outputs: int, inputs: int, taps: int) -> None:
        self._count, self._outputs = taps, outputs
        self._weight, bias = parts.conv(name, outputs, inputs, taps)
        self._bias = bias.to(parts.dtype)
        self._past = parts.layout.add(taps - 1, inputs)

    def __call__(self, x: Tensor, rows: Rows) -> Tensor:
        matrix = unfold(x, rows.past(self._past), count=self._count)
        return F.linear(matrix, self._weight, self._bias).view(x.shape[0], -1, self._outputs)


class GemmConvNeXt:
    """Upsampling by `ratio`, then x + gamma * mlp(norm(depthwise k7(x)))."""

    def __init__(self, parts: Parts, name: str, channels: int, ratio: int) -> None:
        wide = 4 * channels
        self._channels = channels
        self._repeat, bias = parts.transposed(f"{name}.0.conv", channels, channels, ratio, ratio)
        self._repeat_bias = bias.to(parts.dtype)
        name = f"{name}.1"
        taps, self._bias = parts.affine(f"{name}.dwconv.conv", channels, 1, _TAPS)
        self._taps = taps.squeeze(1).t().contiguous()
        self._norm = parts.affine(f"{name}.norm", channels)
        self._up = parts.affine(f"{name}.pwconv1", wide, channels)
        self._down = parts.affine(f"{name}.pwconv2", channels, wide)
        self._gamma = parts.take(f"{name}.gamma", channels)
        self._past = parts.layout.add(_TAPS - 1, channels)

    def __call__(self, x: Tensor, rows: Rows) -> Tensor:
        """Apply to x [B, L, C] -> [B, L * ratio, C]."""
        x = F.linear(x, self._repeat, self._repeat_bias).view(x.shape[0], -1, self._channels)
        y = depthwise_norm(x, self._taps, self._bias, self._norm, 1e-6, rows.past(self._past))
        y = F.linear(F.gelu(F.linear(y, *self._up)), *self._down)
        return torch.addcmul(x, y, self._gamma)


class WideUnit:
    """A residual unit x + k1(snake(k7(snake(x)))) of raw x [B, L, C], which is changed in place."""

    def __init__(self, parts: Parts, name: str, channels: int, dilation: int) -> None:
        self._dilation = dilation
        self._first = parts.snake(f"{name}.act1", channels)
        self._wide, bias = parts.conv(f"{name}.conv1.conv", channels, channels, _TAPS)
        self._wide_bias = bias.to(parts.dtype)
        self._second = parts.snake(f"{name}.act2", channels)
        self._point, self._point_bias = parts.conv(f"{name}.conv2.conv", channels, channels, 1)
        self._past = parts.layout.add((_TAPS - 1) * dilation, channels)

    def __call__(self, x: Tensor, rows: Rows) -> Tensor:
        # The last bias goes to x while it is read anyway; the last product then adds itself to x.
        matrix = unfold(
            x,
            rows.past(self._past),
            count=_TAPS,
            dilation=self._dilation,
            snake=self._first,
            add=self._point_bias,
        )
        hidden = F.linear(matrix, self._wide, self._wide_bias).view(x.shape)
        x.flatten(0, 1).addmm_(unfold(hidden, None, snake=self._second), self._point.t())
        return x


class WideBlock:
    """A block in wide form: SnakeBeta, transposed convolution by `rate`, three residual units
    (dilation 1, 3, 9): raw x [B, L, in] -> raw [B, L * rate, out]."""

    def __init__(
        self, parts: Parts, name: str, channels: tuple[int, int], rate: int, snake: Snake
    ) -> None:
        inputs, self._outputs = channels
        self._snake = snake
        self._up, bias = parts.transposed(f"{name}.1.conv", inputs, self._outputs, 2 * rate, rate)
        self._bias = bias.to(parts.dtype)
        self._past = parts.layout.add(1, inputs)
        self._units = [WideUnit(parts, f"{name}.{2 + i}", self._outputs, 3**i) for i in range(3)]

    def __call__(self, x: Tensor, rows: Rows) -> Tensor:
        matrix = unfold(x, rows.past(self._past), count=2, snake=self._snake)
        x = F.linear(matrix, self._up, self._bias).view(x.shape[0], -1, self._outputs)
        for unit in self._units:
            x = unit(x, rows)
        return x


class DirectConv:
    """A causal convolution of activated x [B, L, in] with weight [count * in, out]. `snake`
    activates its results."""

    def __init__(
        self, parts: Parts, product: Product, count: int, dilation: int, past: Region | None
    ) -> None:
        weight, self._bias, self._snake = product
        self._weight = weight.contiguous()
        self._count, self._dilation, self._past = count, dilation, past
        self._wide = count > 1 and weight.shape[1] > _DIRECT_OUTPUTS
        self._wide_bias = self._bias.to(parts.dtype)

    def __call__(
        self, x: Tensor, rows: Rows, *, residual: Tensor | None = None, raw: bool = True
    ) -> tuple[Tensor | None, Tensor]:
        """Return y = product + bias + residual [B, L, out], if `raw` (else None), and snake(y)."""
        past = None if self._past is None else rows.past(self._past)
        if self._wide:
            assert residual is None
            matrix = unfold(x, past, count=self._count, dilation=self._dilation)
            wide = torch.addmm(self._wide_bias, matrix, self._weight).view(*x.shape[:2], -1)
            return (wide if raw else None), unfold(wide, None, snake=self._snake).view(wide.shape)
        y, activated = conv(
            x,
            self._weight,
            self._bias,
            past,
            count=self._count,
            dilation=self._dilation,
            residual=residual,
            snake=self._snake,
            raw=raw,
        )
        assert activated is not None
        return y, activated


class DirectUnit:
    """A residual unit of raw x and activated x, both [B, L, C]."""

    def __init__(self, parts: Parts, name: str, dilation: int, after: Snake) -> None:
        """`after` activates the unit's output."""
        channels = len(after.rate)
        wide, wide_bias = parts.conv(f"{name}.conv1.conv", channels, channels, _TAPS)
        point, point_bias = parts.conv(f"{name}.conv2.conv", channels, channels, 1)
        self._dilation, self._fused = dilation, channels <= _FUSED
        self._wide = wide.t().contiguous(), wide_bias, parts.snake(f"{name}.act2", channels)
        self._point = point.t().contiguous(), point_bias, after
        self._past = parts.layout.add((_TAPS - 1) * dilation, channels)
        self._wide_conv = DirectConv(parts, self._wide, _TAPS, dilation, self._past)
        self._point_conv = DirectConv(parts, self._point, 1, 1, None)
        programs = parts.programs
        self._unit = programs and programs.unit(self._wide, _TAPS, dilation, self._point)
        self._conv = programs and programs.conv(self._wide, _TAPS, dilation)

    def __call__(
        self, x: Tensor, active: Tensor, rows: Rows, *, raw: bool
    ) -> tuple[Tensor | None, Tensor]:
        """Return the output [B, L, C], if `raw` (else None), and the output activated."""
        past = rows.past(self._past)
        if self._unit and self._unit.takes(active):
            return self._unit(active, past, x, raw=raw)
        if self._fused:
            return residual_unit(
                x,
                active,
                self._wide[:2],
                self._wide[2],
                self._point[:2],
                past,
                dilation=self._dilation,
                after=self._point[2],
                raw=raw,
            )
        if self._conv and self._conv.takes(active):
            hidden = self._conv(active, past)
        else:
            _, hidden = self._wide_conv(active, rows, raw=False)
        return self._point_conv(hidden, rows, residual=x, raw=raw)


class DirectBlock:
    """A block in direct form: activated x [B, L, in] -> [B, L * rate, out], activated by `after`,
    the SnakeBeta of the layer that follows."""

    def __init__(
        self, parts: Parts, name: str, channels: tuple[int, int], rate: int, after: Snake
    ) -> None:
        inputs, self._outputs = channels
        weight, bias = parts.transposed(f"{name}.1.conv", inputs, self._outputs, 2 * rate, rate)
        self._past = parts.layout.add(1, inputs)
        snakes = [parts.snake(f"{name}.{2 + i}.act1", self._outputs) for i in range(3)]
        self._units = [
            DirectUnit(parts, f"{name}.{2 + i}", 3**i, following)
            for i, following in enumerate((*snakes[1:], after))
        ]
        repeated = Snake(snakes[0].rate.repeat(rate), snakes[0].gain.repeat(rate))
        up = weight.t().contiguous(), bias, repeated
        self._up_conv = DirectConv(parts, up, 2, 1, self._past)
        self._up = parts.programs and parts.programs.unit(up, 2, 1)

    def __call__(self, active: Tensor, rows: Rows) -> Tensor:
        shape = active.shape[0], -1, self._outputs
        if self._up and self._up.takes(active):
            raw, active = self._up(active, rows.past(self._past))
        else:
            raw, active = self._up_conv(active, rows)
        assert raw is not None
        x: Tensor | None = raw.view(shape)
        active = active.view(shape)
        for unit in self._units:
            assert x is not None
            x, active = unit(x, active, rows, raw=unit is not self._units[-1])
        return active
