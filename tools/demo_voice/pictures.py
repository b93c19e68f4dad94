"""How close one recording is to another, as a number and as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tools.demo_voice.recognise import SAMPLE_RATE, Recording
from tools.demo_voice.spectra import MelSpectrogram

_WINDOW, _HOP, _MELS = 400, 160, 80  # 25 ms and 10 ms
_DECIBELS = 20 / math.log(10)
_FLOOR = -60.0
_COLOURS = 40
_LARGEST_BYTES = 150_000


def mel_decibels(recording: Recording) -> NDArray[np.float32]:
    """Mel spectrum [80, N] in dB below 8 kHz, one column every 10 ms; nothing below -60 dB."""
    samples = torch.from_numpy(recording.resampled(SAMPLE_RATE)).float()[None]
    mels = MelSpectrogram(SAMPLE_RATE, _WINDOW, _HOP, _MELS)(samples)[0].numpy()
    decibels: NDArray[np.float32] = np.maximum(mels * _DECIBELS, _FLOOR)
    return decibels


def mel_distance(one: Recording, other: Recording) -> float:
    """Mean difference in dB, over the shorter one's time. Both must have the same timing."""
    first, second = mel_decibels(one), mel_decibels(other)
    columns = min(first.shape[1], second.shape[1])
    return float(np.abs(first[:, :columns] - second[:, :columns]).mean())


def draw(rows: Mapping[str, Mapping[str, Recording]], title: str, path: Path) -> None:
    """Spectra as a PNG below 150 kB: one row a voice, one column a source.

    Raises ImportError without matplotlib and pillow.
    """
    try:
        from matplotlib.figure import Figure
        from PIL import Image
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install -e '.[demo-voice]'") from error
    longest = max(recording.seconds for row in rows.values() for recording in row.values())
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    figure = Figure(figsize=(3.2 * len(columns), 1.7 * len(rows) + 0.4), layout="constrained")
    grid = figure.subplots(len(rows), len(columns), squeeze=False)
    for axes, (voice, row) in zip(grid, rows.items(), strict=True):
        for axis, name in zip(axes, columns, strict=True):
            if name in row:
                _draw_one(axis, row[name])
            axis.set_title(f"{voice}: {name}", fontsize=9)
            axis.tick_params(labelsize=7)
            axis.set_xlim(0, longest)
            axis.set_facecolor("black")
    figure.suptitle(title, fontsize=9)
    for dpi in (110, 90, 75, 60, 45):
        full, data = BytesIO(), BytesIO()
        figure.savefig(full, format="png", dpi=dpi)
        Image.open(full).convert("RGB").quantize(_COLOURS).save(data, "PNG", optimize=True)
        if data.tell() <= _LARGEST_BYTES:
            break
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.getvalue())


def _draw_one(axis: Any, recording: Recording) -> None:
    mels = mel_decibels(recording)
    extent = (0, mels.shape[1] * _HOP / SAMPLE_RATE, 0, _MELS)
    axis.imshow(mels, origin="lower", aspect="auto", extent=extent, cmap="magma", vmin=_FLOOR)
    axis.set_yticks([])
