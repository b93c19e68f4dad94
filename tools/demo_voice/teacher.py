"""The teacher: Kokoro, many sentences at a time.

Kokoro knows what it says: it decides how long each phone lasts and how high the voice is, so every
sentence comes with its phones, words and pitch. Sentences of nearly the same length are made as
exactly as long (by a few 40ths of a second of silence at their ends), so that nothing is padded
and each sounds as it would alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tools.demo_voice import questions
from tools.demo_voice.kokoro import network
from tools.demo_voice.phonetics import Reading, phone_numbers

SAMPLE_RATE = 24_000
LABEL_SAMPLES = 480
"""Phones, words and pitch are given for every 20 ms."""
_UNIT_SAMPLES = 600  # Kokoro's durations are whole numbers of these
_LENGTHS = 8  # sentences last a multiple of so many units: memory is used again
_HALF = 128  # of a style: how the voice sounds; the other half is how it moves
_SILENT = 0.003  # amplitude, 50 dB below full scale
_LEAD = 240  # samples before the first sound
_TAIL = 1440  # and after the last
_FADE = 960  # samples behind the last phone
_RMS = 0.148
"""Of speech without its pauses: about -18 LUFS."""
_KNEE, _LOUDEST = 0.7, 0.97
"""Peaks above the knee are bent so that none is louder than this."""
_VOICED_HERTZ = 30.0


class Blend(NamedTuple):
    """Shares of Kokoro's styles: of those that the sound is taken from, and the melody."""

    sound: dict[str, float]
    melody: dict[str, float]


_AMERICAN_WOMEN = "alloy aoede bella heart jessica kore nova river sarah sky".split()
_AMERICAN_MEN = "adam echo eric fenrir liam michael onyx puck".split()
_HER_MELODY = {f"af_{name}": 1.0 for name in _AMERICAN_WOMEN}
_HIS_MELODY = {f"am_{name}": 1.0 for name in _AMERICAN_MEN}
VOICES = {
    "ava": Blend({"jf_nezumi": 1.0}, _HER_MELODY),
    "ray": Blend({"jm_kumo": 0.7, "jf_gongitsune": 0.3}, _HIS_MELODY),
}


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """samples [N] int16 at 24 kHz, N a multiple of 480; for each 20 ms, phones [N / 480] uint8
    (index into PHONES), words [N / 480] int16 (which of the text's whitespace-separated words is
    spoken; -1 in a pause) and pitch [N / 480] float16 (Hz; 0 where there is none)."""

    samples: np.ndarray
    phones: np.ndarray
    words: np.ndarray
    pitch: np.ndarray


class _Sentence(NamedTuple):
    """What is known of a sentence before its sound: reading; style [256]; phones' features for
    the melody [n, 640] and for the sound [512, n]; how long each lasts, [n]."""

    reading: Reading
    style: Tensor
    features: Tensor
    texture: Tensor
    durations: Tensor


class Teacher:
    """Kokoro on a device. `styles`: the folder of kokoro-js's voices (`.bin`)."""

    def __init__(self, weights: Path, styles: Path, device: torch.device) -> None:
        self._network, self._device = network(weights, device), device
        self._styles = {name: _blend(styles, blend).to(device) for name, blend in VOICES.items()}

    @torch.no_grad()
    def speak(self, readings: Sequence[Reading], voice: str) -> Iterator[tuple[Reading, Speech]]:
        """Every reading, in another order: by length, two minutes of speech at a time."""
        planned: list[_Sentence] = []
        ordered = sorted(readings, key=lambda reading: len(reading.phones))
        for start in range(0, len(ordered), 64):
            planned += self._plan(ordered[start : start + 64], self._styles[voice])
        planned.sort(key=lambda sentence: int(sentence.durations.sum()))
        while planned:
            longest = int(planned[-1].durations.sum()) * _UNIT_SAMPLES / SAMPLE_RATE
            rows = max(1, int(120 / longest))
            yield from self._sound(planned[-rows:])
            del planned[-rows:]

    def _plan(self, readings: Sequence[Reading], styles: Tensor) -> list[_Sentence]:
        """How long each phone lasts, as KModel.forward_with_tokens decides for one sentence."""
        model = self._network
        tokens = [[0, *(model.vocab[c] for c in r.phones), 0] for r in readings]
        lengths = torch.tensor([len(row) for row in tokens])
        longest = int(lengths.max())
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in tokens])
        ids = ids.to(self._device)
        style = styles[lengths.to(self._device) - 3]  # as many phones as there are, from one
        mask = (torch.arange(longest)[None] >= lengths[:, None]).to(self._device)
        bert = model.bert(ids, attention_mask=(~mask).int())
        encoded = model.bert_encoder(bert).transpose(1, 2)
        manner = style[:, _HALF:]
        features = model.predictor.text_encoder(encoded, manner, lengths, mask)
        packed = pack_padded_sequence(features, lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(
            model.predictor.lstm(packed)[0], batch_first=True, total_length=longest
        )
        durations = torch.sigmoid(model.predictor.duration_proj(hidden)).sum(-1)
        durations = durations.round().clamp(min=1).long().cpu()
        texture = model.text_encoder(ids, lengths, mask)
        return [
            _Sentence(
                reading,
                style[row],
                features[row, :n],
                texture[row, :, :n],
                durations[row, :n],
            )
            for row, (reading, n) in enumerate(zip(readings, lengths.tolist(), strict=True))
        ]

    def _sound(self, sentences: Sequence[_Sentence]) -> Iterator[tuple[Reading, Speech]]:
        longest = int(sentences[-1].durations.sum())
        model, length = self._network, -(-longest // _LENGTHS) * _LENGTHS
        features, textures, counts = [], [], []
        for sentence in sentences:
            durations = sentence.durations.clone()
            durations[-1] += length - int(durations.sum())
            each = durations.to(self._device)
            features.append(sentence.features.repeat_interleave(each, 0, output_size=length))
            textures.append(sentence.texture.repeat_interleave(each, 1, output_size=length))
            counts.append(durations.numpy())
        style = torch.stack([sentence.style for sentence in sentences])
        spoken = torch.stack(features).transpose(1, 2)
        pitch, energy = model.predictor.F0Ntrain(spoken, style[:, _HALF:])
        for row, sentence in enumerate(sentences):
            if questions.rises(sentence.reading.text):
                pitch[row] = _risen(pitch[row], sentence.reading, counts[row])
        sound = model.decoder(torch.stack(textures), pitch, energy, style[:, :_HALF])
        samples = sound.float().flatten(1)[:, : length * _UNIT_SAMPLES].cpu().numpy()
        hertz = pitch.float().cpu().numpy()
        for row, sentence in enumerate(sentences):
            yield (
                sentence.reading,
                _labelled(samples[row], hertz[row], sentence.reading, counts[row]),
            )


def _risen(pitch: Tensor, reading: Reading, durations: np.ndarray) -> Tensor:
    """Pitch, two values for each unit of the durations, with the rise of a question."""
    ends = 2 * durations.cumsum()  # the first duration is that of the silence before
    begin = int(ends[questions.nucleus(reading.phones)])
    return questions.raised(pitch, begin, _VOICED_HERTZ)


def _blend(folder: Path, blend: Blend) -> Tensor:
    """[510, 256]: the style for each number of phones."""

    def mean(shares: dict[str, float]) -> np.ndarray:
        parts = [share * _style(folder, name) for name, share in shares.items()]
        return np.sum(parts, 0) / sum(shares.values())

    both = np.concatenate((mean(blend.sound)[:, :_HALF], mean(blend.melody)[:, _HALF:]), 1)
    return torch.from_numpy(both.astype(np.float32))


def _style(folder: Path, name: str) -> np.ndarray:
    path = folder / f"{name}.bin"
    try:
        return np.fromfile(path, np.float32).reshape(-1, 2 * _HALF)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing: npm pack kokoro-js, tar xzf …") from None


def _labelled(samples: np.ndarray, hertz: np.ndarray, reading: Reading, counts: Any) -> Speech:
    """Cut to what is heard, at equal loudness, with a label for every 20 ms."""
    heard, ends = [0, *phone_numbers(reading.phones), 0], np.cumsum(counts) * _UNIT_SAMPLES
    samples = _faded(samples, int(ends[np.flatnonzero(heard)[-1]]))
    loud = np.flatnonzero(np.abs(samples) > _SILENT)
    if not len(loud):
        raise ValueError(f"Kokoro says nothing for {reading.text!r}")
    first = max(0, int(loud[0]) - _LEAD)
    labels = -(-(int(loud[-1]) + _TAIL - first) // LABEL_SAMPLES)
    cut = np.zeros(labels * LABEL_SAMPLES, np.float32)
    part = samples[first : first + len(cut)]
    cut[: len(part)] = part
    times = first + (np.arange(labels) + 0.5) * LABEL_SAMPLES
    at = np.minimum(np.searchsorted(ends, times), len(ends) - 1)
    phones = np.array(heard, np.uint8)[at]
    words = np.array([-1, *_said(reading), -1], np.int16)[at]
    of_pitch = np.minimum((times / (_UNIT_SAMPLES / 2)).astype(int), len(hertz) - 1)
    pitch = np.where(hertz[of_pitch] > _VOICED_HERTZ, hertz[of_pitch], 0)
    return Speech(_leveled(cut), phones, words, pitch.astype(np.float16))


def _faded(samples: np.ndarray, end: int) -> np.ndarray:
    """Without what is behind the end of the last phone. Kokoro murmurs there, and where longer
    sentences go on, which makes a short text sound as if it had another word: "Yes, sir."."""
    fade = np.clip(1 - (np.arange(len(samples)) - end) / _FADE, 0, 1)
    faded: np.ndarray = samples * fade.astype(samples.dtype)
    return faded


def _said(reading: Reading) -> list[int]:
    """For each phone its word; a space within a phrase belongs to the word before it."""
    words, heard = list(reading.words), phone_numbers(reading.phones)
    for at in range(1, len(words)):
        if words[at] < 0 and heard[at]:
            words[at] = words[at - 1]
    return words


def _leveled(samples: np.ndarray) -> np.ndarray:
    """int16, as loud as the other sentences."""
    blocks = samples.reshape(-1, LABEL_SAMPLES)
    power = np.square(blocks).mean(1)
    rms = float(np.sqrt(power[power > 1e-3 * power.max()].mean()))
    louder = samples * (_RMS / rms)
    over = np.maximum(np.abs(louder) - _KNEE, 0)
    bent = (_LOUDEST - _KNEE) * np.tanh(over / (_LOUDEST - _KNEE)) - over
    return np.round((louder + np.sign(louder) * bent) * 32767).astype(np.int16)
