"""Questions that rise: those that can be answered by yes or no, as in American English.

Kokoro lets a question fall as its statement does. In 41 of the 42 styles tried, the last quarter
second of both moved down alike; in the other (`af_sky`) both moved up. The rise begins with the
last stressed syllable.
"""

from __future__ import annotations

import re

import torch
from torch import Tensor

from tools.demo_voice.phonetics import VOWELS

_LOW, _HIGH = -1.0, 7.0
"""Semitones from the sentence's median, where the rise begins and where it ends."""
_BLEND = 6
"""Values, 12.5 ms each, over which the melody turns into the rise."""
_OTHERS = "who whom whose what what's when where where's which why how how's".split()
_BEFORE = "and but so well okay then".split()


def rises(text: str) -> bool:
    """Return whether a sentence is a question that asks for yes or no."""
    if not text.rstrip("\"')”’ ").endswith("?") or " or " in text:
        return False
    words = (word.strip("'") for word in re.findall(r"[\w']+", text.lower()))
    return next((word for word in words if word and word not in _BEFORE), "") not in _OTHERS


def nucleus(phones: str) -> int:
    """Return where a question's rise begins, its last stressed vowel, as an index of `phones`."""
    stressed = max(phones.rfind("ˈ"), 0)
    vowels = (at for at in range(stressed, len(phones)) if phones[at] in VOWELS)
    return next(vowels, stressed)


def raised(pitch: Tensor, begin: int, voiced: float) -> Tensor:
    """Return pitch [N], in Hz, that rises from `begin` to its end. Values up to `voiced` are no
    pitch and stay as they are."""
    spoken = pitch > voiced
    end = int(spoken.nonzero()[-1]) if spoken.any() else 0
    if end <= begin:
        return pitch
    steps = torch.arange(len(pitch), device=pitch.device, dtype=pitch.dtype) - begin
    semitones = _LOW + (_HIGH - _LOW) * steps.clamp(min=0) / (end - begin)
    target = pitch[spoken].median() * 2 ** (semitones / 12)
    share = (steps / _BLEND).clamp(0, 1)
    risen = pitch.clamp(min=1) ** (1 - share) * target**share
    return torch.where(spoken & (steps >= 0), risen, pitch)
