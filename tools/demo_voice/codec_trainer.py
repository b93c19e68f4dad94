"""The two kinds of step the codec learns by, and the speech they draw from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_voice.codec_losses import (
    Discriminator,
    MelDistance,
    discriminator_loss,
    generator_losses,
)
from tools.demo_voice.codec_model import Codec
from tools.demo_voice.listener import Listener, listening_losses, pitch_loss
from tools.demo_voice.phonetics import PHONES
from tools.demo_voice.quantizer import start_codebooks
from tools.demo_voice.recording import Losses, Recorder, Step, adamw, mixed, resume, update
from tools.demo_voice.settings import CODEC
from tools.demo_voice.speech import Shard
from tools.demo_voice.teacher import LABEL_SAMPLES, SAMPLE_RATE

FRAME_SAMPLES = 1920
LABELS = FRAME_SAMPLES // LABEL_SAMPLES
_MARGIN = 4
"""Frames around a segment which the encoder sees and the decoder does not speak."""
_GAP = 12
"""Labels of silence between utterances."""


class SpeechPool:
    """All speech of a folder in one tensor on the device; takes in shards as they appear."""

    def __init__(self, folder: Path, device: torch.device, hours: float) -> None:
        self._folder, self._device = folder, device
        self._room = int(hours * 3600 * SAMPLE_RATE) // LABEL_SAMPLES * LABEL_SAMPLES
        self.samples = torch.zeros(self._room, dtype=torch.int16, device=device)
        self.phones = torch.zeros(self._room // LABEL_SAMPLES, dtype=torch.uint8, device=device)
        self.pitch = torch.zeros(self._room // LABEL_SAMPLES, dtype=torch.float16, device=device)
        self.held, self._seen = 0, set[Path]()
        self._labels = torch.zeros((), device=device)  # held, for use inside a graph

    def refresh(self) -> None:
        """Take in new shards while there is room."""
        for path in sorted(self._folder.glob("speech-*.npz")):
            if path in self._seen or self.held == self._room:
                continue
            self._seen.add(path)
            samples, phones, pitch = _apart(Shard.load(path))
            count = min(len(samples), self._room - self.held)
            end = self.held + count
            self.samples[self.held : end] = torch.from_numpy(samples[:count])
            labels = slice(self.held // LABEL_SAMPLES, end // LABEL_SAMPLES)
            for held, part in ((self.phones, phones), (self.pitch, pitch)):
                held[labels] = torch.from_numpy(part[: count // LABEL_SAMPLES])
            self.held = end
        self._labels.fill_(self.held // LABEL_SAMPLES)

    def batch(self, rows: int, frames: int) -> tuple[Tensor, Tensor, Tensor]:
        """Samples [rows, frames * 1920] in [-1, 1], phones and pitch [rows, frames * 4],
        anywhere."""
        labels = frames * LABELS
        where = torch.rand(rows, 1, device=self._device, dtype=torch.float64)
        start = (where * (self._labels - labels)).long()
        label = start + torch.arange(labels, device=self._device)
        length = torch.arange(labels * LABEL_SAMPLES, device=self._device)
        sample = start * LABEL_SAMPLES + length
        sound = self.samples[sample].float() / 32768
        return sound, self.phones[label].long(), self.pitch[label].float()


def _apart(shard: Shard) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples, phones and pitch with silence behind each utterance: the codec has to learn how
    speech begins and ends."""
    ends = np.cumsum(shard.lengths // LABEL_SAMPLES)
    silent = np.repeat(ends, _GAP)
    blocks = np.insert(shard.samples.reshape(-1, LABEL_SAMPLES), silent, 0, axis=0)
    phones, pitch = (np.insert(part, silent, 0) for part in (shard.phones, shard.pitch))
    return blocks.reshape(-1), phones, pitch


class CodecTrainer:
    """`rows` segments of `frames` frames a step. Steps touch nothing of the host: on a GPU each
    kind is `recorded` once and replayed."""

    def __init__(
        self, pool: SpeechPool, device: torch.device, rows: int, frames: int, *, recorded: bool
    ) -> None:
        self.pool, self.device, self.rows, self.frames = pool, device, rows, frames
        self._run = Recorder(records=recorded)
        self.codec = Codec(CODEC).to(device)
        self.phones = nn.Linear(CODEC.codebook_dim, LABELS * len(PHONES)).to(device)
        self.judge, self.listener = Discriminator().to(device), Listener().to(device)
        self.pitch = nn.Linear(CODEC.codebook_dim, 2 * LABELS).to(device)
        self.distance = MelDistance().to(device)
        self.rate = torch.zeros((), device=device)
        decoder = self.codec.decoder
        self._joint = self._optimizer(self.codec, self.phones, self.pitch, self.listener)
        self._alone = self._optimizer(decoder)
        self._judging = self._optimizer(self.judge)
        self._listening = self._optimizer(self.listener)
        self._decode = torch.compile(decoder) if device.type == "cuda" else decoder
        self.average = {name: part.clone() for name, part in decoder.state_dict().items()}
        """Of the decoder's weights over the last thousand adversarial steps: what is exported."""
        self.seconds, self.steps = 0.0, 0

    def _optimizer(self, *modules: nn.Module) -> torch.optim.Optimizer:
        parameters = [part for module in modules for part in module.parameters()]
        return adamw(parameters, self.rate, betas=(0.8, 0.99), weight_decay=1e-3)

    def _parts(self) -> tuple[nn.Module | torch.optim.Optimizer, ...]:
        modules = (self.codec, self.phones, self.pitch, self.judge, self.listener)
        return (*modules, self._joint, self._alone, self._judging)

    def state(self) -> dict[str, object]:
        parts = [part.state_dict() for part in self._parts()]
        times = {"seconds": self.seconds, "steps": self.steps}
        return {"parts": parts, "average": self.average, **times}

    def restore(self, path: Path) -> None:
        held = torch.load(path, map_location=self.device, weights_only=True)
        for part, state in zip(self._parts(), held["parts"], strict=True):
            if isinstance(part, torch.optim.Optimizer):
                resume(part, state)
            else:
                part.load_state_dict(state)
        self.average = held["average"]
        self.seconds, self.steps = held["seconds"], held["steps"]
        start_codebooks(self.codec)

    def begin_with(self, path: Path) -> None:
        """Encoder, codebooks and decoder of another training, of which nothing else is needed."""
        held = torch.load(path, map_location=self.device, weights_only=True)
        self.codec.load_state_dict(held["parts"][0])
        self.keep_average(1.0)
        start_codebooks(self.codec)

    @torch.no_grad()
    def keep_average(self, share: float = 0.001) -> None:
        """Move the average by a share of what it differs from the decoder."""
        now = list(self.codec.decoder.state_dict().values())
        torch._foreach_lerp_(list(self.average.values()), now, share)

    def step(self, kind: Step, rate: float) -> Losses:
        """One update by one of the kinds of step below."""
        self.rate.fill_(rate)
        return self._run(kind)

    def plain_step(self) -> Losses:
        """As `joint_step`, but the decoder reads what is not quantized: a quick beginning."""
        return self._encode_and_speak(plain=True, adversarial=False)

    def joint_step(self) -> Losses:
        """Encoder, codebooks and decoder."""
        return self._encode_and_speak(plain=False, adversarial=False)

    def adversarial_step(self) -> Losses:
        """As `joint_step`, against the discriminator."""
        return self._encode_and_speak(plain=False, adversarial=True)

    def _encode_and_speak(self, plain: bool, adversarial: bool) -> Losses:
        self.codec.train()
        samples, labels, pitch = self._segments()
        quantized = self.codec.quantizer(*self._vectors(samples), plain=plain)
        spoken = self.phones(quantized.first.transpose(1, 2)).view(-1, len(PHONES))
        phone = F.cross_entropy(spoken, labels.flatten())
        high = self.pitch(quantized.vectors.transpose(1, 2)).view(*pitch.shape, 2)
        tone = pitch_loss(high, pitch)
        true, made = self._target(samples), self._speak(quantized.vectors)
        mel = self.distance(made, true)
        with mixed(self.device):
            learns, heard, apart = listening_losses(self.listener, true, made, labels, pitch)
        codes = 0.1 * quantized.loss + 0.5 * phone + 0.3 * tone
        told: Losses = {
            "mel": mel,
            "commit": quantized.loss,
            "learns": learns,
            "heard": heard,
            "apart": apart,
            "pitch": tone,
        }
        told["phones"] = (spoken.argmax(1) == labels.flatten()).float().mean()
        if adversarial:
            told |= self._judge(true, made)
        update(self._joint, codes + learns + _of_sound(told))
        if adversarial:
            self.keep_average()
        return told

    def listening_step(self) -> Losses:
        """The listener alone, on what the teacher said."""
        samples, labels, pitch = self.pool.batch(self.rows, self.frames)
        with mixed(self.device):
            told, high, _ = self.listener(samples)
            learns = F.cross_entropy(told.flatten(0, 1).float(), labels.flatten())
            learns = learns + pitch_loss(high, pitch)
        update(self._listening, learns)
        return {"learns": learns}

    def judging_step(self) -> Losses:
        """The discriminator alone, on what the teacher and the decoder said."""
        samples, _, _ = self._segments()
        return self._judge(self._target(samples), self._speak(self._final(samples)))

    def decoder_step(self) -> Losses:
        """The decoder against the discriminator; codes are final."""
        samples, labels, pitch = self._segments()
        true, made = self._target(samples), self._speak(self._final(samples))
        told = self._judge(true, made)
        mel = self.distance(made, true)
        with mixed(self.device):
            _, heard, apart = listening_losses(self.listener, true, made, labels, pitch)
        told |= {"mel": mel, "heard": heard, "apart": apart}
        update(self._alone, _of_sound(told))
        self.keep_average()
        return told

    def _judge(self, true: Tensor, made: Tensor) -> Losses:
        """The discriminator learns; what it says of the decoder then."""
        with mixed(self.device):
            judged = discriminator_loss(self.judge(true), self.judge(made.detach()))
        update(self._judging, judged)
        self.judge.requires_grad_(False)
        with mixed(self.device):
            fool, match = generator_losses(self.judge(true), self.judge(made))
        self.judge.requires_grad_(True)
        return {"judge": judged, "fool": fool, "match": match}

    @torch.no_grad()
    def _final(self, samples: Tensor) -> Tensor:
        """The decoder's input, of codes that are final."""
        self.codec.eval()
        vectors: Tensor = self.codec.quantizer(*self._vectors(samples)).vectors
        return vectors

    def _vectors(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        with mixed(self.device):
            said, sound = self.codec.encoder(samples)
        inner = slice(_MARGIN, -_MARGIN)
        return said[..., inner].contiguous(), sound[..., inner].contiguous()

    def _segments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Samples with a margin; phones and pitch without."""
        samples, labels, pitch = self.pool.batch(self.rows, self.frames + 2 * _MARGIN)
        inner = slice(_MARGIN * LABELS, -_MARGIN * LABELS)
        return samples, labels[:, inner], pitch[:, inner]

    def _target(self, samples: Tensor) -> Tensor:
        edge = _MARGIN * FRAME_SAMPLES
        return samples[:, edge:-edge]

    def _speak(self, vectors: Tensor) -> Tensor:
        with mixed(self.device):
            made: Tensor = self._decode(vectors)
        return made.float()


def _of_sound(told: Losses) -> Tensor:
    """What the sound is to be judged by, with the discriminator where it was asked."""
    total = 10 * told["mel"] + 0.5 * told["heard"] + 2 * told["apart"]
    return total + told["fool"] + 2 * told["match"] if "fool" in told else total
