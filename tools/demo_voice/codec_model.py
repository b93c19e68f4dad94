"""The codec as trained: an encoder of our own (never shipped), the official quantizer and decoder.

The decoder's modules carry the official names, so that its state dict is the checkpoint's.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_voice.quantizer import Quantized, Quantizer
from tools.demo_voice.settings import CodecSize
from tools.demo_voice.spectra import MelSpectrogram


class CausalConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, taps: int, dilation: int = 1, groups: int = 1):
        super().__init__()
        self.past = (taps - 1) * dilation
        self.conv = nn.Conv1d(inputs, outputs, taps, dilation=dilation, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (self.past, 0)))


class CausalTransposedConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, taps: int, stride: int):
        super().__init__()
        self.extra = taps - stride
        self.conv = nn.ConvTranspose1d(inputs, outputs, taps, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        return y[..., : y.shape[-1] - self.extra] if self.extra else y


class SnakeBeta(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(channels))
        self.beta = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        rate, gain = self.alpha.exp()[:, None], 1 / (self.beta.exp()[:, None] + 1e-9)
        return x + gain * torch.sin(x * rate).square()


class ConvNeXt(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.dwconv = CausalConv(channels, channels, 7, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.pwconv1 = nn.Linear(channels, 4 * channels)
        self.pwconv2 = nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(torch.full((channels,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.dwconv(x).transpose(1, 2))
        y = self.gamma * self.pwconv2(F.gelu(self.pwconv1(y)))
        return x + y.transpose(1, 2)


class ResidualUnit(nn.Module):
    def __init__(self, channels: int, dilation: int):
        super().__init__()
        self.act1, self.conv1 = (SnakeBeta(channels), CausalConv(channels, channels, 7, dilation))
        self.act2, self.conv2 = SnakeBeta(channels), CausalConv(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(self.act2(self.conv1(self.act1(x))))


class DecoderBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, rate: int):
        super().__init__()
        self.block = nn.Sequential(
            SnakeBeta(inputs),
            CausalTransposedConv(inputs, outputs, 2 * rate, rate),
            *(ResidualUnit(outputs, 3**i) for i in range(3)),
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.block(x)
        return y


class _Scale(nn.Module):
    def __init__(self, width: int, initial: float):
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), initial))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x


class _Attention(nn.Module):
    def __init__(self, size: CodecSize):
        super().__init__()
        width = size.num_attention_heads * size.head_dim
        self.heads, self.head_dim = size.num_attention_heads, size.head_dim
        self.q_proj = nn.Linear(size.hidden_size, width, bias=False)
        self.k_proj = nn.Linear(size.hidden_size, width, bias=False)
        self.v_proj = nn.Linear(size.hidden_size, width, bias=False)
        self.o_proj = nn.Linear(width, size.hidden_size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        split = (*x.shape[:2], self.heads, self.head_dim)
        q, k, v = (
            f(x).view(split).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        attended: Tensor = self.o_proj(y.transpose(1, 2).flatten(2))
        return attended


class SwiGLU(nn.Module):
    def __init__(self, hidden: int, wide: int):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, wide, bias=False)
        self.up_proj = nn.Linear(hidden, wide, bias=False)
        self.down_proj = nn.Linear(wide, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return y


class _Layer(nn.Module):
    def __init__(self, size: CodecSize):
        super().__init__()
        hidden, epsilon = size.hidden_size, size.rms_norm_eps
        self.input_layernorm = nn.RMSNorm(hidden, epsilon)
        self.self_attn = _Attention(size)
        self.self_attn_layer_scale = _Scale(hidden, size.layer_scale)
        self.post_attention_layernorm = nn.RMSNorm(hidden, epsilon)
        self.mlp = SwiGLU(hidden, size.intermediate_size)
        self.mlp_layer_scale = _Scale(hidden, size.layer_scale)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        y = self.self_attn(self.input_layernorm(x), cos, sin, mask)
        x = x + self.self_attn_layer_scale(y)
        return x + self.mlp_layer_scale(self.mlp(self.post_attention_layernorm(x)))


class _Transformer(nn.Module):
    def __init__(self, size: CodecSize):
        super().__init__()
        self.size = size
        self.input_proj = nn.Linear(size.latent_dim, size.hidden_size)
        self.layers = nn.ModuleList(_Layer(size) for _ in range(size.num_hidden_layers))
        self.norm = nn.RMSNorm(size.hidden_size, size.rms_norm_eps)
        self.output_proj = nn.Linear(size.hidden_size, size.latent_dim)

    def forward(self, x: Tensor) -> Tensor:
        """[B, latent, T] -> same; each frame sees the last `sliding_window`, itself included."""
        steps = torch.arange(x.shape[-1], device=x.device)
        age = steps[:, None] - steps
        mask = (age >= 0) & (age < self.size.sliding_window)
        cos, sin = rope(steps, self.size.head_dim, self.size.rope_theta)
        x = self.input_proj(x.transpose(1, 2))
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        y: Tensor = self.output_proj(self.norm(x)).transpose(1, 2)
        return y


class Decoder(nn.Module):
    """Sums of codebook entries [B, codebook_dim, T] -> samples [B, T * 1920] at 24 kHz."""

    def __init__(self, size: CodecSize):
        super().__init__()
        latent, width = size.latent_dim, size.decoder_dim
        self.pre_conv = CausalConv(size.codebook_dim, latent, 3)
        self.pre_transformer = _Transformer(size)
        self.upsample = nn.ModuleList(
            nn.ModuleList((CausalTransposedConv(latent, latent, ratio, ratio), ConvNeXt(latent)))
            for ratio in size.upsampling_ratios
        )
        parts: list[nn.Module] = [CausalConv(latent, width, 7)]
        for rate in size.upsample_rates:
            parts.append(DecoderBlock(width, width // 2, rate))
            width //= 2
        self.decoder = nn.ModuleList((*parts, SnakeBeta(width), CausalConv(width, 1, 7)))

    def forward(self, x: Tensor) -> Tensor:
        x = self.pre_transformer(self.pre_conv(x))
        for stage in self.upsample:
            for part in stage:  # type: ignore[attr-defined]
                x = part(x)
        for part in self.decoder:
            x = part(x)
        return x[:, 0]


class _EncoderBlock(nn.Module):
    """ConvNeXt with taps on both sides."""

    def __init__(self, channels: int, taps: int):
        super().__init__()
        self.mix = nn.Conv1d(channels, channels, taps, padding=taps // 2, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.up, self.down = (nn.Linear(channels, 3 * channels), nn.Linear(3 * channels, channels))
        nn.init.zeros_(self.down.weight)

    def forward(self, x: Tensor) -> Tensor:
        y = self.down(F.gelu(self.up(self.norm(self.mix(x).transpose(1, 2)))))
        return x + y.transpose(1, 2)


class Encoder(nn.Module):
    """Samples at 24 kHz [B, T * 1920] -> two vectors a frame, [B, codebook_dim, T] each: what is
    said, for the first codebook, and how it sounds, for the others.

    Sees about two frames to either side: codes that depend on little are easier to predict. The
    second is normalised: left free, its variance shrinks to what few codebooks can say.
    """

    def __init__(self, size: CodecSize):
        super().__init__()
        width = size.encoder_width
        self.mel = MelSpectrogram(24_000, 1024, 240, 100)
        layers: list[nn.Module] = [nn.Conv1d(100, width, 5, padding=2), _EncoderBlock(width, 7)]
        for taps in (5, 5, 3):
            layers += [_EncoderBlock(width, taps), nn.Conv1d(width, width, 4, 2, padding=1)]
        self.layers = nn.Sequential(*layers, _EncoderBlock(width, 1))
        self.said = nn.Conv1d(width, size.codebook_dim, 1)
        self.sound = nn.Conv1d(width, size.codebook_dim, 1)

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        mel = self.mel(samples)[..., : samples.shape[-1] // 240]
        x = self.layers((mel + 5) / 4)
        sound = self.sound(x).float()
        sound = F.layer_norm(sound.transpose(1, 2), sound.shape[1:2]).transpose(1, 2)
        return self.said(x).float(), sound


class Codec(nn.Module):
    def __init__(self, size: CodecSize):
        super().__init__()
        self.encoder = Encoder(size)
        self.quantizer = Quantizer(size.codebook_dim)
        self.decoder = Decoder(size)

    @torch.no_grad()
    def encode(self, samples: Tensor) -> Tensor:
        """[B, T * 1920] at 24 kHz in [-1, 1] -> codes [B, T, 16]."""
        quantized: Quantized = self.quantizer(*self.encoder(samples))
        return quantized.codes


def rope(positions: Tensor, width: int, theta: float) -> tuple[Tensor, Tensor]:
    """cos and sin [..., width] of positions [...] (Su et al. 2021)."""
    powers = torch.arange(0, width, 2, device=positions.device) / width
    angles = positions[..., None] * torch.exp(-math.log(theta) * powers)
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [..., T, width] by its positions."""
    low, high = x.chunk(2, -1)
    return (x * cos + torch.cat((-high, low), -1) * sin).to(x.dtype)
