"""The codec's training: which weights a step moves; the teacher's generator, computed otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tools.demo_voice import teacher, vocoder
from tools.demo_voice.codec_trainer import CodecTrainer, SpeechPool
from tools.demo_voice.codes import load_codec
from tools.demo_voice.speech import Shard
from tools.demo_voice.teacher import LABEL_SAMPLES
from tools.demo_voice.train_codec import Plan


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> CodecTrainer:
    folder = tmp_path_factory.mktemp("speech")
    labels = 150
    sound = 6000 * np.sin(np.arange(labels * LABEL_SAMPLES) * 2 * np.pi * 150 / 24_000)
    Shard(
        samples=sound.astype(np.int16),
        phones=np.ones(labels, np.uint8),
        words=np.zeros(labels, np.int16),
        pitch=np.full(labels, 150, np.float16),
        lengths=np.array([len(sound)], np.int32),
        voices=np.zeros(1, np.uint8),
        texts=["One."],
    ).save(folder / "speech-00-00000.npz")
    torch.manual_seed(3)
    pool = SpeechPool(folder, torch.device("cpu"), hours=0.01)
    pool.refresh()
    return CodecTrainer(pool, torch.device("cpu"), rows=1, frames=1, recorded=False)


PARTS = ("encoder", "quantizer", "decoder", "judge", "listener")


def weights(trainer: CodecTrainer) -> dict[str, Tensor]:
    codec = trainer.codec
    parts = (codec.encoder, codec.quantizer, codec.decoder, trainer.judge, trainer.listener)
    return {
        name: torch.cat([each.detach().flatten().clone() for each in part.state_dict().values()])
        for name, part in zip(PARTS, parts, strict=True)
    }


@pytest.mark.parametrize(
    ("step", "moves"),
    [
        ("adversarial_step", {*PARTS}),
        ("listening_step", {"listener"}),
        ("judging_step", {"judge"}),
        ("decoder_step", {"decoder", "judge"}),
    ],
)
def test_a_step_moves_what_it_says(trainer: CodecTrainer, step: str, moves: set[str]) -> None:
    before = weights(trainer)
    losses = trainer.step(getattr(trainer, step), 1e-3)
    after = weights(trainer)
    assert {name for name in PARTS if not torch.equal(before[name], after[name])} == moves
    assert all(loss.isfinite() for loss in losses.values())


def test_the_averaged_decoder_is_what_is_used(trainer: CodecTrainer, tmp_path: Path) -> None:
    trainer.keep_average(1.0)
    own = [part.clone() for part in trainer.codec.decoder.state_dict().values()]
    trainer.step(trainer.decoder_step, 1e-3)
    torch.save(trainer.state(), tmp_path / "codec.pt")
    found = load_codec(tmp_path / "codec.pt", torch.device("cpu")).decoder.state_dict().values()
    now = trainer.codec.decoder.state_dict().values()
    for old, average, new in zip(own, found, now, strict=True):
        torch.testing.assert_close(average, old + 0.001 * (new - old))


def test_a_restored_trainer_learns_at_the_rate_it_is_given(
    trainer: CodecTrainer, tmp_path: Path
) -> None:
    trainer.step(trainer.decoder_step, 1e-3)
    torch.save(trainer.state(), tmp_path / "codec.pt")
    trainer.restore(tmp_path / "codec.pt")
    before = weights(trainer)["decoder"]
    trainer.step(trainer.decoder_step, 0.0)
    assert torch.equal(weights(trainer)["decoder"], before)


def test_phases_follow_each_other() -> None:
    plan = Plan(1.0, 0.0, 2.0)
    assert [plan.progress(seconds) for seconds in (0, 30, 60, 120, 180)] == [
        (0, 0.0),
        (0, 0.5),
        (2, 0.0),
        (2, 0.5),
        (3, 0.0),
    ]


def test_peaks_are_bent_and_never_cut() -> None:
    sound = 0.05 * np.sin(np.arange(48_000, dtype=np.float32) / 9)
    sound[24_000] = 1.0
    loud = teacher._leveled(sound).astype(float) / 32767
    assert loud[24_000] == pytest.approx(0.97, abs=1e-3)
    rest = np.delete(loud, 24_000)
    assert np.abs(rest).max() < 0.7 and np.sqrt((rest**2).mean()) == pytest.approx(0.148, rel=0.02)


class _Norm(nn.Module):
    """An `AdaIN1d` of the teacher's."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm1d(channels, affine=True)
        self.fc = nn.Linear(8, 2 * channels)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        gamma, beta = self.fc(style)[..., None].chunk(2, 1)
        normed: Tensor = self.norm(x)
        return (1 + gamma) * normed + beta


class _Block(nn.Module):
    """An `AdaINResBlock1` of the teacher's (iSTFTNet with the styles of StyleTTS 2)."""

    def __init__(self, channels: int, taps: int) -> None:
        super().__init__()
        self.convs1 = nn.ModuleList(
            nn.Conv1d(channels, channels, taps, dilation=d, padding=(taps - 1) * d // 2)
            for d in (1, 3)
        )
        self.convs2 = nn.ModuleList(
            nn.Conv1d(channels, channels, taps, padding=taps // 2) for _ in range(2)
        )
        self.adain1 = nn.ModuleList(_Norm(channels) for _ in range(2))
        self.adain2 = nn.ModuleList(_Norm(channels) for _ in range(2))
        alphas = [nn.Parameter(0.5 + torch.rand(1, channels, 1)) for _ in range(4)]
        self.alpha1, self.alpha2 = nn.ParameterList(alphas[:2]), nn.ParameterList(alphas[2:])

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        for at in range(2):
            y = self.adain1[at](x, style)
            y = self.convs1[at](y + torch.sin(self.alpha1[at] * y) ** 2 / self.alpha1[at])
            y = self.adain2[at](y, style)
            y = self.convs2[at](y + torch.sin(self.alpha2[at] * y) ** 2 / self.alpha2[at])
            x = x + y
        return x


@torch.no_grad()
def test_the_vocoders_blocks_are_the_generators() -> None:
    torch.manual_seed(4)
    block, x, style = _Block(6, 5), torch.randn(2, 6, 50), torch.randn(2, 8)
    fast = vocoder._Block(block, torch.float32)
    torch.testing.assert_close(
        fast(x, style, vocoder._styled), block(x, style), rtol=1e-4, atol=1e-4
    )
    half = vocoder._Block(block, torch.float16)(x, style, vocoder._styled)
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float(), block(x, style), rtol=0.02, atol=0.05)
