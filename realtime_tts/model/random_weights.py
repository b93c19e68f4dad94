"""Untrained weights, and the dimensions of the released checkpoints to make them in.

Speed depends on dimensions and precision, not on values, so a server with random weights has the
speed of the real one, on machines that have no checkpoint. Its speech is noise.

`released/` contains the dimensions from the published config.json files of the 1.7B CustomVoice
checkpoint; `tests/model/test_random_weights.py` compares them with the published parameter counts.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from realtime_tts.checkpoint import Progress, ignore_progress
from realtime_tts.model.config import ModelConfig, TextIds
from realtime_tts.model.config_files import read_config
from realtime_tts.model.speech_model import SpeechModel, build_model
from realtime_tts.model.weights import Weights

_ONES = ("norm.weight", ".cluster_usage")
_ZEROS = (".bias", ".alpha", ".beta")
_TENTHS = (".gamma", "layer_scale.scale")
_UNITS = ("embedding.weight", ".embedding_sum")
_BRANCH = ".conv2.conv.weight"
"""The last product of a residual unit: scaled by a tenth, or twelve of them would be too loud."""


STORED = torch.bfloat16
"""The precision in which the released checkpoints are stored, except for the codec."""


class RandomWeights(Weights):
    """Makes every tensor that is asked for; equal seeds and names give equal tensors.

    `stored`: the precision a checkpoint would have stored. Values are drawn in it and then
    converted to `dtype`, as loading does, so that what depends on exactness (linear.py) takes the
    same path. On the `meta` device nothing is allocated; `sizes` still lists what was asked for.
    """

    def __init__(
        self, *, device: torch.device, dtype: torch.dtype, stored: torch.dtype, seed: int = 0
    ) -> None:
        super().__init__(Path("random"), device=device, dtype=dtype)
        self._stored, self._seed = stored, seed
        self.sizes: dict[str, int] = {}
        """Number of elements by tensor name."""

    def __enter__(self) -> RandomWeights:
        return self

    def take(self, name: str, *shape: int, keep_dtype: bool = False) -> Tensor:
        self.sizes[name] = prod(shape)
        tensor = torch.empty(shape, device=self.device, dtype=self._stored)
        if not tensor.is_meta:
            self._fill(name, tensor)
        return tensor if keep_dtype else tensor.to(self._dtype)

    def finish(self) -> None:
        """Do nothing: random weights lack no tensor."""

    def _fill(self, name: str, tensor: Tensor) -> None:
        """Fill a tensor: norms with 1, biases with 0, products so that they preserve scale."""
        if name.endswith(_ONES):
            tensor.fill_(1.0)
        elif name.endswith(_ZEROS):
            tensor.zero_()
        elif name.endswith(_TENTHS):
            tensor.fill_(0.1)
        else:
            tensor.normal_(0.0, _spread(name, tensor), generator=self._generator(name))

    def _generator(self, name: str) -> torch.Generator:
        """Return a generator for one tensor, so that the order of calls does not matter."""
        key = zlib.crc32(f"{self._seed}:{name}".encode())
        return torch.Generator(self.device).manual_seed(key)


def random_model(
    config: ModelConfig,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    frames: int,
    progress: Progress = ignore_progress,
) -> SpeechModel:
    """Return a model of these dimensions with random weights.

    `frames`: the exact number of frames of every utterance: end of speech cannot be drawn before,
    and there is no room after. Noise that ends at random would be no load to measure with.
    """
    place = torch.device(device)
    fixed = replace(config.generation, min_frames=frames, max_new_tokens=frames + 1)
    return build_model(
        replace(config, generation=fixed, random_weights=True),
        RandomWeights(device=place, dtype=dtype, stored=STORED),
        RandomWeights(device=place, dtype=torch.float32, stored=torch.float32),
        dtype,
        progress,
    )


def _spread(name: str, tensor: Tensor) -> float:
    """Return the standard deviation with which a tensor is drawn."""
    if name.endswith(_UNITS) or "codec_embedding" in name:
        return 1.0
    size = float(prod(tensor.shape[1:])) ** -0.5
    return 0.1 * size if name.endswith(_BRANCH) else size


_RELEASED = Path(__file__).parent / "released"
SIZES = {"1.7B": ("1b7", 2048, 6144), "0.6B": ("0b6", 1024, 3072)}
"""The size as the checkpoint names it, and its talker's widths, by its common name."""


def released_config(size: str, text: TextIds) -> ModelConfig:
    """Return the configuration of a released CustomVoice checkpoint, "1.7B" or "0.6B".

    `text`: the ids of the tokenizer that will be used; its vocabulary must not be larger than the
    released one.
    """
    config, (word, hidden, intermediate) = read_config(_RELEASED), SIZES[size]
    widths = replace(config.talker.transformer, hidden=hidden, intermediate=intermediate)
    return replace(config, size=word, talker=replace(config.talker, transformer=widths), text=text)
