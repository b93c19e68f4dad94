"""Segments for the decoder's silence: where speech is and where it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tools.demo_voice.codec_model import Codec
from tools.demo_voice.settings import CODEC
from tools.demo_voice.speech import Shard
from tools.demo_voice.teacher import LABEL_SAMPLES
from tools.demo_voice.train_edges import Edges, EdgeTrainer

SECOND = 16_000
QUIET, LOUD = 0.2, 1.6  # seconds


def shard(folder: Path) -> Path:
    """Two utterances: silence, a tone, silence."""
    parts = []
    for hertz in (200, 300):
        quiet = np.zeros(int(QUIET * SECOND))
        tone = 0.3 * np.sin(2 * np.pi * hertz * np.arange(int(LOUD * SECOND)) / SECOND)
        parts.append(np.concatenate((quiet, tone, quiet)))
    samples = (np.concatenate(parts) * 32767).astype(np.int16)
    labels = np.zeros(len(samples) // LABEL_SAMPLES, np.uint8)
    lengths = np.array([len(part) for part in parts])
    path = folder / "speech-000-00000.npz"
    voices = np.zeros(2, np.int64)
    Shard(samples, labels, labels.astype(np.int16), lengths, voices, ["a", "b"]).save(path)
    return path


def test_beginnings_and_ends_have_their_silence_marked(tmp_path: Path) -> None:
    segments = Edges([shard(tmp_path)], 8, seed=1).draw(8)
    assert segments.samples.shape == (8, (8 + 2 * 4) * 1280)
    assert segments.speech.shape == (8, 8 * 1920)
    for row, speech in enumerate(segments.speech):
        quiet = (speech < 0.5).nonzero()[:, 0]
        at_end = row % 2 == 1
        # 0.2 s of silence, and up to three labels more on one side for the frame grid
        assert QUIET - 0.01 < len(quiet) / 24_000 < QUIET + 0.09
        assert (quiet.min() > 24_000 * 0.3) == at_end
        inner = segments.samples[row, 4 * 1280 : -4 * 1280]
        at = torch.arange(len(speech)) * 2 // 3
        assert inner[at][speech == 0].abs().max() < 0.003


@pytest.mark.slow
def test_a_step_moves_the_decoder_and_nothing_else(tmp_path: Path) -> None:
    torch.manual_seed(1)
    codec = Codec(replace(CODEC, decoder_dim=64, encoder_width=96)).eval().requires_grad_(False)
    codec.decoder.requires_grad_(True)
    before = {name: tensor.clone() for name, tensor in codec.state_dict().items()}
    trainer = EdgeTrainer(codec, 2, 1e-3)
    edges = Edges([shard(tmp_path)], 8, seed=1)
    first = trainer.step(edges.draw(4))
    second = trainer.step(edges.draw(4))
    assert first["moved"] == 0.0 and second["moved"] > 0.0
    changed = {
        name for name, tensor in codec.state_dict().items() if not torch.equal(tensor, before[name])
    }
    assert changed and all(name.startswith("decoder.") for name in changed)
