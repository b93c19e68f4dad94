"""The steps of talker and code predictor: what a GPU may replay of them, and what reaches them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.when_used import WhenUsed
from tools.demo_voice.codes import CodedShard
from tools.demo_voice.settings import IM_START

if TYPE_CHECKING:
    from tools.demo_voice import recording, voice_data, voice_trainer
else:  # the compiler comes with them
    recording, voice_data, voice_trainer = (
        WhenUsed(f"tools.demo_voice.{name}")
        for name in ("recording", "voice_data", "voice_trainer")
    )

CPU = torch.device("cpu")
COUNT, LENGTH = 4, 96
FRAMES, TOKENS = np.array([30, 21, 55, 24]), np.array([9, 5, 20, 6])


@pytest.fixture(scope="module")
def pool() -> voice_data.VoicePool:
    chance = np.random.default_rng(1)
    frames, tokens = int(FRAMES.sum()), int(TOKENS.sum())
    begins = (FRAMES.cumsum() - FRAMES, TOKENS.cumsum() - TOKENS)
    pool = voice_data.VoicePool([IM_START, 7, 8], CPU, frames=400)
    pool._bounded = True
    assert pool.add(
        CodedShard(
            codes=chance.integers(0, 256, (frames, 16)).astype(np.uint8),
            phones=chance.integers(0, 40, (frames, 4)).astype(np.uint8),
            pitch=chance.integers(0, 300, (frames, 4)).astype(np.float16),
            words=(np.arange(frames) // 3).astype(np.int16),
            tokens=chance.integers(0, 2000, tokens).astype(np.int16),
            token_words=(np.arange(tokens) // 2).astype(np.int16),
            entries=np.stack((*begins, FRAMES % 2, FRAMES, TOKENS), 1).astype(np.int32),
        )
    )
    return pool


def made(pool: voice_data.VoicePool, seed: int, rows: int = COUNT) -> voice_data.Batch:
    """`rows` rows with utterances, and the rest without."""
    chance = np.random.default_rng(seed)
    entries = chance.integers(0, len(FRAMES), 40)
    packed = pool.pack(entries, voice_data.random_layouts(40, chance), LENGTH)
    return pool.batch(pool.plan(packed[:rows]), COUNT, LENGTH)


def masked(batch: voice_data.Batch) -> voice_data.Batch:
    """Without bounds, for which this device has no kernel."""
    return batch._replace(rows=batch.rows._replace(bounds=None))


def trainer_of() -> voice_trainer.Trainer:
    torch.manual_seed(3)
    plan = voice_trainer.Plan(1.0, COUNT, LENGTH, 16, 1e-3, 0.05, 60.0, 0.35)
    return voice_trainer.Trainer(plan, CPU, compiled=False, recorded=False)


@pytest.mark.parametrize("rows", [COUNT, 2])
def test_bounds_let_see_what_the_mask_does(pool: voice_data.VoicePool, rows: int) -> None:
    whole = made(pool, seed=rows, rows=rows)
    for batch in (whole, whole.first_rows(2), whole.first_rows(1)):
        bounds, own = batch.rows.bounds, batch.rows.utterances
        assert bounds is not None and bounds.dtype == torch.int32
        assert len(bounds) == COUNT * (LENGTH // 32) + 1, "as many in every batch"
        assert (bounds.diff() >= 0).all() and bounds[0] == 0 and bounds[-1] == batch.target.numel()
        places = torch.arange(batch.target.numel(), dtype=torch.int32)
        of = torch.searchsorted(bounds, places, right=True).view(batch.target.shape)
        assert torch.equal(of[:, :, None] == of[:, None], own[:, :, None] == own[:, None])


def test_more_utterances_than_bounds_are_told(pool: voice_data.VoicePool) -> None:
    plan = pool.plan([[(1, 0, 0, 30)] * 3] * COUNT)
    with pytest.raises(AssertionError, match="16 utterances in a batch, 12 at most"):
        pool.batch(plan, COUNT, LENGTH)


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_step_learns_from_the_batch_it_is_given(pool: voice_data.VoicePool, share: float) -> None:
    first, batch = masked(made(pool, 1)), masked(made(pool, 2))
    trainer, other = trainer_of(), trainer_of()
    trainer._take(first, 0.9)
    kept = [part.clone() for part in first.tensors()]
    torch.manual_seed(5)
    losses = trainer.step(batch, share)
    assert all(map(torch.equal, kept, first.tensors())), "a batch stays its owner's"

    torch.manual_seed(5)
    other._chance.fill_(share)
    noise = min(1.0, share * 8)
    rows = other._self_heard(batch) if share > 0.35 else batch.rows
    assert (rows.codes != batch.rows.codes).any() == (share > 0.35)
    rows = voice_data.corrupted(
        rows, neighbour=0.05 * noise, tail=0.15 * noise, single=0.03 * noise
    )
    other.voice.train()
    expected = other.losses(batch, rows)
    assert losses.keys() == expected.keys()
    for name, loss in losses.items():
        torch.testing.assert_close(loss, expected[name], msg=name, equal_nan=True)


class _Host(TorchDispatchMode):
    """Raises where a GPU would have to wait for the host, or the host for it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        asks = ("_local_scalar_dense", "lift_fresh", "nonzero", "masked_select", "unique")
        assert not any(name in str(func) for name in asks), func
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", ["plain_step", "heard_step"])
def test_a_step_touches_nothing_of_the_host(
    pool: voice_data.VoicePool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = trainer_of()
    trainer._take(masked(made(pool, 1)), 0.5)
    monkeypatch.setattr(trainer.optimizer, "step", lambda: None)  # on a GPU it is `capturable`
    with _Host():
        getattr(trainer, kind)()


def test_the_schedule_reaches_the_optimizer(pool: voice_data.VoicePool, tmp_path: Path) -> None:
    batch, trainer = masked(made(pool, 1)), trainer_of()
    trainer.steps = 1000
    trainer.step(batch, 0.1)
    trainer.save(tmp_path / "voice.pt")
    again = trainer_of()
    again.restore(tmp_path / "voice.pt")
    for each, share, rate in ((trainer, 0.7, 5e-4), (again, 0.85, 2.5e-4)):
        before = each.voice.codec_head.weight.detach().clone()
        each.step(batch, share)
        assert [float(group["lr"]) for group in each.optimizer.param_groups] == [
            pytest.approx(rate)
        ] * 2
        moved = (each.voice.codec_head.weight - before).abs().max()
        assert 0.1 * rate < moved < 10 * rate, "the rate of this step is what it moves by"


def test_an_optimizer_goes_on_as_it_is_made() -> None:
    weight = torch.ones(3, requires_grad=True)
    weight.sum().backward()
    plain = torch.optim.AdamW([weight], 0.5)
    plain.step()
    rate = torch.zeros(())
    optimizer = recording.adamw([weight], rate, weight_decay=0.0)
    recording.resume(optimizer, plain.state_dict())
    before = weight.detach().clone()
    recording.update(optimizer, weight.sum())
    assert torch.equal(weight, before), "its rate is none, as the tensor says"
    rate.fill_(0.1)
    recording.update(optimizer, weight.sum())
    assert (weight < before).all()
    assert optimizer.state[weight]["step"] == 3, "and it remembers the steps before"


def test_each_step_is_recorded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[recording.Step] = []

    def record(step: recording.Step) -> recording.Step:
        recorded.append(step)
        return lambda: {"replayed": torch.ones(())}

    def first() -> dict[str, Tensor]:
        return {}

    monkeypatch.setattr("tools.demo_voice.recording._record", record)
    run = recording.Recorder(records=True)
    run.record(first)
    assert [*run(first), *run(first)] == ["replayed"] * 2 and recorded == [first]
    assert recording.Recorder(records=False)(first) == {} and recorded == [first]
