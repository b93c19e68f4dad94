"""A lighter model of a parity checkpoint's numbers, for tests of what goes on around a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from realtime_tts.checkpoint import ignore_progress
from realtime_tts.model import SpeechModel
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.config_files import read_config
from realtime_tts.model.speech_model import build_model
from realtime_tts.model.weights import FLOAT_TYPES, Weights

GROUPS, LAYERS, CHANNELS = 3, 2, 32
"""Codes of a frame, which are drawn one after the other; layers of the talker; channels of the
codec's decoder. The predictor and the codec's transformer have one layer each. A frame takes a
quarter of the time that it takes the whole checkpoint."""


def light_model(
    folder: Path, *, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> SpeechModel:
    """Of the checkpoint's first codebooks, layers and channels. It draws, remembers and sounds as
    the whole one does, and says something else."""
    place = torch.device(device)
    weights = Corners(folder, device=place, dtype=dtype)
    codec = Corners(folder / "speech_tokenizer", device=place, dtype=torch.float32)
    return build_model(
        _lighter(read_config(folder)),
        weights,
        codec,
        dtype,
        ignore_progress,
        folder,
    )


def _lighter(config: ModelConfig) -> ModelConfig:
    talker, predictor, codec = config.talker, config.predictor, config.codec
    return replace(
        config,
        talker=replace(
            talker, code_groups=GROUPS, transformer=replace(talker.transformer, layers=LAYERS)
        ),
        predictor=replace(predictor, transformer=replace(predictor.transformer, layers=1)),
        codec=replace(
            codec,
            codebooks=GROUPS,
            decoder_dim=CHANNELS,
            transformer=replace(codec.transformer, layers=1),
        ),
    )


class Corners(Weights):
    """Of each tensor the first numbers along each axis, as many as are asked for."""

    def __init__(self, folder: Path, *, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__(folder, device=device, dtype=dtype, ignored=("",))

    def take(self, name: str, *shape: int, keep_dtype: bool = False) -> Tensor:
        view = self._files[name].get_slice(name)
        tensor: Tensor = view[tuple(slice(size) for size in shape)]
        assert tensor.shape == shape, f"{name} has no {list(shape)}"
        dtype = FLOAT_TYPES[view.get_dtype()] if keep_dtype else self._dtype
        return tensor.to(device=self.device, dtype=dtype, copy=True)
