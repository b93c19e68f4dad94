"""The speech tokenizer's encoder: from a recording to frames of sixteen codes.

The encoder half of Mimi (Kyutai; `transformers.MimiModel`), as the official package runs it:
convolutions to 25 steps a second, a causal transformer, one more step to 12.5, a split residual
quantizer of which the first sixteen codebooks are used.

It is implemented here because the codes of one file have to be equal everywhere: transformers 4.57,
which the official package pins, lets attention see the whole recording; version 5 cuts it to the
250 steps (10 s) that its config names, renames the tensors, and so gives other codes.
"""

from __future__ import annotations

from math import ceil, prod

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.model.encoder_config import SpeechEncoderConfig
from realtime_tts.model.weights import Weights

_LEAST_USAGE = 1e-5
_BLOCK = 250
"""Steps (10 s) that go through the convolutions at once: a minute in one piece took 1.7 GB."""


class SpeechEncoder:
    """The encoder, with tensors from `weights` (names under `encoder.`); always float32."""

    def __init__(self, config: SpeechEncoderConfig, weights: Weights) -> None:
        self.config = config
        self._convolutions = _convolutions(config, weights)
        self._transformer = [
            _Layer(config, weights, f"encoder.encoder_transformer.layers.{index}")
            for index in range(config.layers)
        ]
        self._downsample = _Conv(
            weights,
            "encoder.downsample",
            (config.hidden, config.hidden),
            4,
            stride=2,
            bias=False,
            edge="replicate",
        )
        name = "encoder.quantizer"
        first, rest = 1, config.quantizers - 1
        self._first = _Quantizer(
            config, weights, f"{name}.semantic_residual_vector_quantizer", first, first
        )
        self._rest = _Quantizer(
            config,
            weights,
            f"{name}.acoustic_residual_vector_quantizer",
            rest,
            config.codebooks - 1,
        )

    @torch.inference_mode()
    def encode(self, samples: Tensor) -> Tensor:
        """Return the codes [ceil(n / 1920), 16] int64 of samples [n] at 24 kHz, n > 0."""
        x = self._convolve(samples).transpose(1, 2)
        cos, sin = _rotation(self.config, x.shape[1], x.device)
        for layer in self._transformer:
            x = layer(x, cos, sin)
        x = self._downsample(x.transpose(1, 2))[0].t()
        frames = ceil(len(samples) / self.config.samples_per_frame)
        return torch.cat((self._first(x), self._rest(x)), 1)[:frames]

    def _convolve(self, samples: Tensor) -> Tensor:
        """Convolve samples [n] -> [1, hidden, ceil(n / 960)], in blocks that start with as much of
        the block before as they depend on."""
        size, context = prod(self.config.strides), self._context
        blocks = []
        for start in range(0, len(samples), _BLOCK * size):
            begin = max(0, start - context * size)
            x = samples[None, None, begin : start + _BLOCK * size]
            for step in self._convolutions:
                x = step(x)
            blocks.append(x[:, :, (start - begin) // size :])
        return torch.cat(blocks, 2)

    @property
    def _context(self) -> int:
        """The number of earlier steps that a step's convolutions depend on."""
        reach, rate = 0, 1
        for step in self._convolutions:
            reach += step.reach * rate
            rate *= step.stride
        return ceil(reach / rate)


class _Conv:
    """A causal convolution [B, in, T] -> [B, out, ceil(T / stride)], after an ELU if `elu`.

    The end is filled up to a whole stride, so that no sample is left out. `reach`: number of
    earlier inputs that an output depends on.
    """

    def __init__(
        self,
        weights: Weights,
        name: str,
        channels: tuple[int, int],
        kernel: int,
        *,
        stride: int = 1,
        dilation: int = 1,
        bias: bool = True,
        edge: str = "constant",
        elu: bool = False,
    ) -> None:
        inputs, outputs = channels
        self._weight = weights.take(f"{name}.conv.weight", outputs, inputs, kernel)
        self._bias = weights.take(f"{name}.conv.bias", outputs) if bias else None
        self.stride, self.reach = stride, (kernel - 1) * dilation
        self._dilation, self._edge, self._elu = dilation, edge, elu

    def __call__(self, x: Tensor) -> Tensor:
        x = F.elu(x) if self._elu else x
        edges = (self.reach + 1 - self.stride, -x.shape[2] % self.stride)
        x = F.pad(x, edges, mode=self._edge)
        return F.conv1d(x, self._weight, self._bias, self.stride, dilation=self._dilation)


class _Residual:
    """ELU, dilated convolution to fewer channels, ELU, and back; added to the input [B, C, T]."""

    def __init__(
        self, config: SpeechEncoderConfig, weights: Weights, name: str, channels: int, dilation: int
    ) -> None:
        narrow, kernel = channels // config.compress, config.residual_kernel
        self._in = _Conv(weights, f"{name}.block.1", (channels, narrow), kernel, dilation=dilation)
        self._out = _Conv(weights, f"{name}.block.3", (narrow, channels), 1)
        self.stride, self.reach = 1, self._in.reach

    def __call__(self, x: Tensor) -> Tensor:
        return x + self._out(F.elu(self._in(F.elu(x))))


def _convolutions(config: SpeechEncoderConfig, weights: Weights) -> list[_Conv | _Residual]:
    """Return the steps from samples [B, 1, n] to [B, hidden, steps]. Stored numbers count ELUs."""
    name, channels = "encoder.encoder.layers", config.filters
    steps: list[_Conv | _Residual] = [_Conv(weights, f"{name}.0", (1, channels), config.kernel)]
    number = 1
    for stride in config.strides:
        for index in range(config.residual_layers):
            dilation = config.dilation_growth**index
            steps.append(_Residual(config, weights, f"{name}.{number}", channels, dilation))
            number += 1
        wider = (channels, 2 * channels)
        between = f"{name}.{number + 1}"
        steps.append(_Conv(weights, between, wider, 2 * stride, stride=stride, elu=True))
        channels, number = 2 * channels, number + 2
    last, ends = f"{name}.{number + 1}", (channels, config.hidden)
    return [*steps, _Conv(weights, last, ends, config.last_kernel, elu=True)]


def _rotation(
    config: SpeechEncoderConfig, length: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return cosines and sines [length, head_dim] of rotary positions, halves not interleaved."""
    half = torch.arange(0, config.head_dim, 2, device=device).float() / config.head_dim
    turns = torch.arange(length, device=device).float()[:, None] / config.rope_theta**half
    turns = torch.cat((turns, turns), 1)
    return turns.cos(), turns.sin()


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class _Layer:
    """Pre-norm causal attention over the whole past, and an MLP, both scaled per channel."""

    def __init__(self, config: SpeechEncoderConfig, weights: Weights, name: str) -> None:
        self._config, hidden = config, config.hidden
        inner, wide = config.heads * config.head_dim, config.intermediate
        take = weights.take
        self._qkv = torch.cat(
            [take(f"{name}.self_attn.{part}_proj.weight", inner, hidden) for part in "qkv"]
        )
        self._output = take(f"{name}.self_attn.o_proj.weight", hidden, inner)
        self._up = take(f"{name}.mlp.fc1.weight", wide, hidden)
        self._down = take(f"{name}.mlp.fc2.weight", hidden, wide)
        self._norms = [
            weights.affine(f"{name}.{norm}", hidden)
            for norm in ("input_layernorm", "post_attention_layernorm")
        ]
        self._scales = [
            take(f"{name}.{scale}.scale", hidden)
            for scale in ("self_attn_layer_scale", "mlp_layer_scale")
        ]

    def __call__(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Apply to x [B, T, hidden] -> same; cos and sin [T, head_dim]."""
        x = x + self._scales[0] * self._attend(self._norm(x, 0), cos, sin)
        y = F.gelu(F.linear(self._norm(x, 1), self._up))
        return x + self._scales[1] * F.linear(y, self._down)

    def _norm(self, x: Tensor, which: int) -> Tensor:
        weight, bias = self._norms[which]
        return F.layer_norm(x, weight.shape, weight, bias, self._config.norm_eps)

    def _attend(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        rows, length, _ = x.shape
        shape = (rows, length, 3, self._config.heads, self._config.head_dim)
        query, key, value = F.linear(x, self._qkv).view(shape).permute(2, 0, 3, 1, 4).unbind(0)
        query, key = _rotated(query, cos, sin), _rotated(key, cos, sin)
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return F.linear(y.transpose(1, 2).reshape(rows, length, -1), self._output)


class _Quantizer:
    """Vectors [n, hidden] to codes [n, used]: each codebook encodes what those before left."""

    def __init__(
        self, config: SpeechEncoderConfig, weights: Weights, name: str, stored: int, used: int
    ) -> None:
        size, dim = config.codebook_size, config.codebook_dim
        self._project = weights.take(f"{name}.input_proj.weight", dim, config.hidden, 1).squeeze(2)
        weights.take(f"{name}.output_proj.weight", config.hidden, dim, 1)  # for decoding only
        books = []
        for index in range(stored):
            book = f"{name}.layers.{index}.codebook"
            total = weights.take(f"{book}.embed_sum", size, dim)
            usage = weights.take(f"{book}.cluster_usage", size).clamp(min=_LEAST_USAGE)
            weights.take(f"{book}.initialized", 1)  # a flag of its training
            books.append(total / usage[:, None])
        self._books = books[:used]

    def __call__(self, x: Tensor) -> Tensor:
        rest, codes = F.linear(x, self._project), []
        for book in self._books:
            nearest = torch.cdist(rest[None], book[None])[0].argmin(1)
            rest = rest - book[nearest]
            codes.append(nearest)
        return torch.stack(codes, 1)
