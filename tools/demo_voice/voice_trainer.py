"""Talker and code predictor as they learn: two kinds of step, which a GPU replays."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from tools.demo_voice.listener import pitch_loss
from tools.demo_voice.phonetics import PHONES
from tools.demo_voice.recording import Losses, Recorder, adamw, mixed, resume, update
from tools.demo_voice.settings import CODEBOOK_SIZE, EOS, PREDICTOR, TALKER
from tools.demo_voice.voice_data import Batch, corrupted
from tools.demo_voice.voice_model import Rows, Voice, pointer_loss


@dataclass(frozen=True, slots=True)
class Plan:
    minutes: float
    rows: int
    length: int
    predicted: int
    """Frames per step whose other codes are predicted: a sample trains as well as all."""
    rate: float
    dropout: float
    save_every: float
    listens_from: float
    """The share of the training after which the model also hears itself."""
    warm_up: int = 500
    """Steps in which the rate rises."""


_AVERAGE_EVERY, _AVERAGE_STEP = 10, 0.02


class Trainer:
    """Steps touch nothing of the host, so that a GPU can replay them: the batch and what depends on
    progress are copied to where the steps read them."""

    def __init__(self, plan: Plan, device: torch.device, *, compiled: bool, recorded: bool) -> None:
        self.plan, self.device = plan, device
        self._run = Recorder(records=recorded)
        self._batch: Batch | None = None
        self.rate, self._noise, self._chance = (torch.zeros((), device=device) for _ in range(3))
        self.voice = Voice(TALKER, PREDICTOR, plan.dropout).to(device)
        if compiled:
            for layer in (*self.voice.model.layers, *self.voice.code_predictor.model.layers):
                layer.compile()
        self._pointer = torch.compile(pointer_loss) if compiled else pointer_loss
        decayed = [p for p in self.voice.parameters() if p.ndim >= 2]
        others = [p for p in self.voice.parameters() if p.ndim < 2]
        self.optimizer = adamw(
            [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
            self.rate,
            betas=(0.9, 0.98),
            fused=device.type == "cuda",
        )
        self.average = {name: part.clone() for name, part in self.voice.state_dict().items()}
        """Of the weights over the last few hundred steps: what is exported."""
        self.seconds, self.steps = 0.0, 0

    def prepare(self, batch: Batch, share: float) -> None:
        """Compile and record both kinds of step: what fails shall fail at once."""
        self._take(batch, share)
        self._run.record(self.plain_step, self.heard_step)

    def step(self, batch: Batch, share: float) -> Losses:
        """One update; `share` of the whole training is done."""
        self._take(batch, share)
        heard = share > self.plan.listens_from
        losses = self._run(self.heard_step if heard else self.plain_step)
        self.steps += 1
        if self.steps % _AVERAGE_EVERY == 0:
            now = self.voice.state_dict()
            average = [self.average[name] for name in now]
            torch._foreach_lerp_(average, list(now.values()), average_share(self.steps))
        return losses

    def _take(self, batch: Batch, share: float) -> None:
        if self._batch is None:
            self._batch = deepcopy(batch)
        for held, part in zip(self._batch.tensors(), batch.tensors(), strict=True):
            held.copy_(part)
        self.rate.fill_(self.plan.rate * rate_share(share, self.steps, self.plan.warm_up))
        self._noise.fill_(min(1.0, share * 8))
        self._chance.fill_(min(0.5, share))

    def plain_step(self) -> Losses:
        """An update by the batch that was taken."""
        return self._learn(hears=False)

    def heard_step(self) -> Losses:
        """As `plain_step`, but some rows hear what the model itself says."""
        return self._learn(hears=True)

    def _learn(self, hears: bool) -> Losses:
        batch, noise = self._batch, self._noise
        assert batch is not None
        rows = self._self_heard(batch) if hears else batch.rows
        rows = corrupted(rows, neighbour=0.05 * noise, tail=0.15 * noise, single=0.03 * noise)
        self.voice.train()
        losses = self.losses(batch, rows)
        helpers = 0.3 * losses["phones"] + 0.2 * losses["pointer"] + 0.1 * losses["pitch"]
        update(self.optimizer, losses["first"] + losses["others"] + helpers)
        return losses

    @torch.no_grad()
    def _self_heard(self, batch: Batch) -> Rows:
        """A quarter of the rows with frames replaced, with some probability each, by what the
        model says in their place: it learns to go on from its own speech (Bengio et al. 2015)."""
        count = max(1, len(batch.target) // 4)
        some = batch.first_rows(count)
        self.voice.eval()
        with mixed(self.device):
            hidden, _ = self.voice(some.rows)
            likely = (2 * self.voice.first_logits(hidden)[..., :CODEBOOK_SIZE].float()).softmax(-1)
            # A draw, as `torch.multinomial` makes it, which asks the host about its arguments.
            first = (likely / torch.empty_like(likely).exponential_()).argmax(-1)
            embedded = self.voice.model.codec_embedding(first).flatten(0, 1)
            others = self.voice.code_predictor(
                hidden.flatten(0, 1), embedded, some.others.flatten(0, 1)
            )
        said = torch.cat((first[..., None], others.argmax(-1).view(some.others.shape)), -1)
        heard = F.pad(said, (0, 0, 1, 0))[:, :-1]  # a frame is heard one position later
        swap = (torch.rand(some.target.shape, device=self.device) < self._chance)[..., None]
        swap &= some.rows.codes[..., :1] >= 0
        codes = batch.rows.codes.clone()
        codes[:count] = torch.where(swap, heard, some.rows.codes)
        return batch.rows._replace(codes=codes)

    def losses(self, batch: Batch, rows: Rows) -> Losses:
        """All losses and some accuracies, as tensors on the device."""
        with mixed(self.device):
            hidden, pointer = self.voice(rows)
            logits = self.voice.first_logits(hidden)
            spoken = self.voice.phone_head(hidden).unflatten(-1, (-1, len(PHONES)))
            high = self.voice.pitch_head(hidden).unflatten(-1, (-1, 2))
            frames, codes = self._some_frames(batch)
            chosen = hidden.flatten(0, 1)[frames]
            first = self.voice.model.codec_embedding(codes[:, 0])
            noisy = torch.where(
                torch.rand(codes.shape, device=codes.device) < 0.03 * self.voice.training,
                torch.randint_like(codes, 256),
                codes,
            )
            others = self.voice.code_predictor(chosen, first, noisy[:, 1:])
        target = batch.target.flatten()
        phones = batch.phones.flatten()
        logits, spoken = logits.flatten(0, 1).float(), spoken.flatten(0, 2).float()
        said, ends, known = target >= 0, target == EOS, phones >= 0
        right = others.argmax(-1) == codes[:, 1:]
        return {
            "pitch": pitch_loss(high, batch.pitch),
            "first": F.cross_entropy(logits, target, ignore_index=-1),
            "others": F.cross_entropy(others.flatten(0, 1).float(), codes[:, 1:].flatten()),
            "phones": F.cross_entropy(spoken, phones, ignore_index=-1, reduction="sum")
            / known.sum().clamp(min=1),
            "pointer": self._pointed(batch, pointer),
            "first_right": ((logits.argmax(1) == target) & said).sum() / said.sum(),
            "phones_right": (spoken.argmax(1) == phones).sum() / known.sum().clamp(min=1),
            "ends_right": ((logits.argmax(1) == EOS) & ends).sum() / ends.sum(),
            "second_right": right[:, 0].float().mean(),
            "eighth_right": right[:, 6].float().mean(),
            "last_right": right[:, -1].float().mean(),
        }

    def _pointed(self, batch: Batch, pointer: tuple[Tensor, Tensor]) -> Tensor:
        """The pointer loss of a quarter of the rows; it is dear, and learnt early."""
        count = max(1, len(batch.target) // 4)
        some = batch.first_rows(count)
        q, k = pointer
        return self._pointer((q[:count], k[:count]), some.rows, some.heard, some.seen)

    def _some_frames(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Flat positions [K] that predict a frame, and that frame's codes [K, 16]."""
        spoken = batch.spoken().flatten().cumsum(0)
        picked = torch.rand(self.plan.predicted, device=spoken.device) * spoken[-1]
        frames = torch.searchsorted(spoken, picked.long(), right=True)
        return frames, batch.frame_codes(frames)

    @torch.no_grad()
    def validate(self, batches: list[Batch]) -> dict[str, float]:
        self.voice.eval()
        every = [self.losses(batch, batch.rows) for batch in batches]
        return {name: float(np.mean([one[name].item() for one in every])) for name in every[0]}

    def save(self, path: Path) -> None:
        partial = path.with_suffix(".partial")
        state = {
            "voice": self.voice.state_dict(),
            "average": self.average,
            "optimizer": self.optimizer.state_dict(),
            "seconds": self.seconds,
            "steps": self.steps,
        }
        torch.save(state, partial)
        partial.rename(path)

    def restore(self, path: Path) -> None:
        """The state of an earlier run, or only weights from an exported checkpoint folder."""
        if path.is_dir():
            read_voice(self.voice, path)
            self.average = {n: part.clone() for n, part in self.voice.state_dict().items()}
            return
        held = torch.load(path, map_location=self.device, weights_only=True)
        self.voice.load_state_dict(held["voice"])
        self.average = held["average"]
        resume(self.optimizer, held["optimizer"])
        self.seconds, self.steps = held["seconds"], held["steps"]


def read_voice(voice: Voice, checkpoint: Path) -> None:
    """Give it the weights of an exported checkpoint folder; heads that are not in it stay."""
    stored = load_file(checkpoint / "model.safetensors")
    weights = {name.removeprefix("talker."): part for name, part in stored.items()}
    voice.load_state_dict(voice.state_dict() | weights)


def rate_share(share: float, steps: int, warm_up: int) -> float:
    """Warm up, stay, and fall over the last 60 % to a fiftieth."""
    return min(1.0, (steps + 1) / warm_up) * min(1.0, max(0.02, (1 - share) / 0.6))


def average_share(steps: int) -> float:
    """How much the weights after so many steps count in their average. The first ones count for
    more, or a short training would end where it began."""
    return max(_AVERAGE_STEP, 9 / (9 + steps / _AVERAGE_EVERY))
