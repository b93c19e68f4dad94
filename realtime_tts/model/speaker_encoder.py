"""The speaker encoder: from a recording to the embedding of its speaker.

ECAPA-TDNN (Desplanques et al. 2020, arXiv:2005.07143) as the official package has it, on the
log-mel spectrogram of `log_mel`. All convolutions keep the length, with reflected edges, so the
whole recording is needed at once.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from realtime_tts.model.config import SAMPLE_RATE
from realtime_tts.model.encoder_config import SpeakerEncoderConfig
from realtime_tts.model.weights import Weights

_LEAST_VARIANCE = 1e-12


class SpeakerEncoder:
    """ECAPA-TDNN, with tensors from `weights` (names under `speaker_encoder.`); always float32."""

    def __init__(self, config: SpeakerEncoderConfig, weights: Weights) -> None:
        self.config = config
        name, channels = "speaker_encoder", config.channels
        self._first = _Conv(
            weights,
            f"{name}.blocks.0.conv",
            (config.bands, channels[0]),
            config.kernels[0],
            config.dilations[0],
        )
        self._blocks = [
            _Block(config, weights, f"{name}.blocks.{index}", index)
            for index in range(1, len(channels) - 1)
        ]
        wide = channels[-1]
        joined = sum(channels[1:-1])
        self._aggregate = _Conv(
            weights, f"{name}.mfa.conv", (joined, wide), config.kernels[-1], config.dilations[-1]
        )
        self._pool = _StatisticsPooling(config, weights, f"{name}.asp")
        self._last = _Conv(weights, f"{name}.fc", (2 * wide, config.width))

    @property
    def least_samples(self) -> int:
        """The fewest samples that can be reflected at their edges."""
        reach = max(
            (kernel - 1) * dilation // 2 + 1
            for kernel, dilation in zip(self.config.kernels, self.config.dilations, strict=True)
        )
        return (reach + 1) * HOP

    @torch.inference_mode()
    def embed(self, samples: Tensor) -> Tensor:
        """Return the embedding [width] of samples [n] at 24 kHz, at least `least_samples`."""
        assert len(samples) >= self.least_samples, "too short to be embedded"
        x = self._first(log_mel(samples, self.config.bands)[None]).relu_()
        seen = []
        for block in self._blocks:
            x = block(x)
            seen.append(x)
        x = self._aggregate(torch.cat(seen, 1)).relu_()
        return self._last(self._pool(x))[0, :, 0]


class _Conv:
    """A convolution [B, in, T] -> [B, out, T] over reflected edges."""

    def __init__(
        self,
        weights: Weights,
        name: str,
        channels: tuple[int, int],
        kernel: int = 1,
        dilation: int = 1,
    ) -> None:
        inputs, outputs = channels
        self._weight, self._bias = weights.affine(name, outputs, inputs, kernel)
        reach = (kernel - 1) * dilation
        self._dilation, self._padding = dilation, (reach // 2, reach - reach // 2)

    def __call__(self, x: Tensor) -> Tensor:
        if any(self._padding):
            x = F.pad(x, self._padding, mode="reflect")
        return F.conv1d(x, self._weight, self._bias, dilation=self._dilation)


class _Block:
    """SE-Res2Net: groups of channels are mixed in turn, then gated by their mean; [B, C, T]."""

    def __init__(
        self, config: SpeakerEncoderConfig, weights: Weights, name: str, index: int
    ) -> None:
        inputs, outputs = config.channels[index - 1], config.channels[index]
        group, squeezed = outputs // config.scale, config.squeezed_channels
        self._scale = config.scale
        self._before = _Conv(weights, f"{name}.tdnn1.conv", (inputs, outputs))
        self._groups = [
            _Conv(
                weights,
                f"{name}.res2net_block.blocks.{step}.conv",
                (group, group),
                config.kernels[index],
                config.dilations[index],
            )
            for step in range(config.scale - 1)
        ]
        self._after = _Conv(weights, f"{name}.tdnn2.conv", (outputs, outputs))
        self._squeeze = _Conv(weights, f"{name}.se_block.conv1", (outputs, squeezed))
        self._excite = _Conv(weights, f"{name}.se_block.conv2", (squeezed, outputs))

    def __call__(self, x: Tensor) -> Tensor:
        y = self._after(self._mix(self._before(x).relu_())).relu_()
        gate = self._excite(self._squeeze(y.mean(2, keepdim=True)).relu_()).sigmoid_()
        return y * gate + x

    def _mix(self, x: Tensor) -> Tensor:
        parts = list(x.chunk(self._scale, 1))
        for index, conv in enumerate(self._groups, 1):
            heard = parts[index] if index == 1 else parts[index] + parts[index - 1]
            parts[index] = conv(heard).relu_()
        return torch.cat(parts, 1)


class _StatisticsPooling:
    """Mean and deviation over time [B, C, T] -> [B, 2 C, 1], each moment weighted by attention."""

    def __init__(self, config: SpeakerEncoderConfig, weights: Weights, name: str) -> None:
        wide, narrow = config.channels[-1], config.attention_channels
        self._look = _Conv(weights, f"{name}.tdnn.conv", (3 * wide, narrow))
        self._weigh = _Conv(weights, f"{name}.conv", (narrow, wide))

    def __call__(self, x: Tensor) -> Tensor:
        length = x.shape[2]
        even = torch.full_like(x[:, :1], 1 / length)
        around = [value.expand_as(x) for value in _statistics(x, even)]
        attention = self._weigh(self._look(torch.cat((x, *around), 1)).relu_().tanh_())
        return torch.cat(_statistics(x, attention.softmax(2)), 1)


def _statistics(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return weighted mean and standard deviation over time, each [B, C, 1]."""
    mean = (weight * x).sum(2, keepdim=True)
    variance = (weight * (x - mean).square()).sum(2, keepdim=True)
    return mean, variance.clamp(_LEAST_VARIANCE).sqrt()


WINDOW = 1024
HOP = 256
_PADDING = (WINDOW - HOP) // 2
_FLOOR = 1e-5
_TINY = 1e-9
"""Added to the squared magnitude, because its root has no slope at zero."""

# Slaney's mel scale: linear to 1 kHz, logarithmic above (Auditory Toolbox, 1998).
_HZ_PER_MEL = 200 / 3
_KNEE_HZ = 1000.0
_KNEE_MEL = _KNEE_HZ / _HZ_PER_MEL
_LOG_STEP = np.log(6.4) / 27


def log_mel(samples: Tensor, bands: int) -> Tensor:
    """Return the log-mel spectrogram of a recording, as the official package computes it.

    samples [n] at 24 kHz mono, n > 384 -> [bands, 1 + (n - 256) // 256] float32. Windows of 1024
    samples (periodic Hann) every 256, no centring but 384 reflected samples at both ends,
    magnitude, Slaney mel bands from 0 to 12 kHz, natural logarithm.
    """
    padded = F.pad(samples[None], (_PADDING, _PADDING), mode="reflect")[0]
    window = torch.hann_window(WINDOW, device=samples.device)
    spectrum = torch.stft(
        padded, WINDOW, HOP, WINDOW, window=window, center=False, return_complex=True
    )
    magnitude = torch.sqrt(torch.view_as_real(spectrum).pow(2).sum(-1) + _TINY)
    filters = torch.from_numpy(mel_filters(bands)).to(samples.device)
    return torch.log((filters @ magnitude).clamp(min=_FLOOR))


@cache
def mel_filters(bands: int) -> NDArray[np.float32]:
    """Return triangles [bands, 513] of equal area on Slaney's scale, from 0 Hz to 12 kHz."""
    bins = np.fft.rfftfreq(WINDOW, 1 / SAMPLE_RATE)
    edges = _hz(np.linspace(0, _mel(SAMPLE_RATE / 2), bands + 2))
    distance = edges[:, None] - bins[None]
    width = np.diff(edges)[:, None]
    rising, falling = -distance[:-2] / width[:-1], distance[2:] / width[1:]
    triangles = np.maximum(0, np.minimum(rising, falling))
    area = 2 / (edges[2:] - edges[:-2])
    filters: NDArray[np.float32] = (triangles * area[:, None]).astype(np.float32)
    return filters


def _mel(hz: float) -> float:
    assert hz >= _KNEE_HZ, "only asked for the upper end"
    return float(_KNEE_MEL + np.log(hz / _KNEE_HZ) / _LOG_STEP)


def _hz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    above = _KNEE_HZ * np.exp(_LOG_STEP * (mel - _KNEE_MEL))
    return np.where(mel < _KNEE_MEL, mel * _HZ_PER_MEL, above)
