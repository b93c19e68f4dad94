"""The teacher: flite, a classic synthesiser, called through its C library.

flite (Black and Lenzo, Carnegie Mellon University; BSD-like licence, Debian package `libflite1`)
knows what it says: every phone comes with its end and with the written word it belongs to. The
voices of `ava` and `ray` draw noise from the C library's `rand`: the same text, timed alike, never
sounds quite alike unless that is seeded. https://github.com/festvox/flite
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_left
from ctypes import c_char_p, c_float, c_int, c_short, c_void_p
from dataclasses import dataclass

import numpy as np

SAMPLE_RATE = 16_000
LABEL_SAMPLES = 320
"""Phones and words are given for every 20 ms."""
VOICES = {"ava": "slt", "ray": "rms", "kal": "kal16"}
"""Our voices and flite's."""
_GAINS = {"ava": 0.8, "ray": 1.3, "kal": 2.3}  # to about the same loudness
PAUSE = "pau"
PHONES = (
    PAUSE, "aa", "ae", "ah", "ao", "aw", "ax", "ay", "b", "ch", "d", "dh", "eh", "er", "ey", "f",
    "g", "hh", "ih", "iy", "jh", "k", "l", "m", "n", "ng", "ow", "oy", "p", "r", "s", "sh", "t",
    "th", "uh", "uw", "v", "w", "y", "z", "zh",
)  # fmt: skip
_NUMBERS = {phone: number for number, phone in enumerate(PHONES)}
_WORD = b"R:SylStructure.parent.parent"


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """samples [N] int16 at 16 kHz, N a multiple of 320; for each 20 ms, phones [N / 320] uint8
    (index into PHONES) and words [N / 320] int16 (which of the text's whitespace-separated words
    is spoken; -1 in a pause)."""

    samples: np.ndarray
    phones: np.ndarray
    words: np.ndarray


class _Wave(ctypes.Structure):
    _fields_ = (
        ("type", c_char_p),
        ("sample_rate", c_int),
        ("num_samples", c_int),
        ("num_channels", c_int),
        ("samples", ctypes.POINTER(c_short)),
    )


class Teacher:
    """flite with its voices loaded. Not to be shared by threads. Raises OSError with what to
    install if the library is not there."""

    def __init__(self) -> None:
        self._library = library = _load("libflite.so.1")
        for part in ("libflite_usenglish.so.1", "libflite_cmulex.so.1"):
            _load(part)
        for name, arguments, result in (
            ("flite_init", (), c_int),
            ("flite_synth_text", (c_char_p, c_void_p), c_void_p),
            ("delete_utterance", (c_void_p,), None),
            ("utt_wave", (c_void_p,), ctypes.POINTER(_Wave)),
            ("utt_relation", (c_void_p, c_char_p), c_void_p),
            ("relation_head", (c_void_p,), c_void_p),
            ("item_next", (c_void_p,), c_void_p),
            ("ffeature_string", (c_void_p, c_char_p), c_char_p),
            ("ffeature_int", (c_void_p, c_char_p), c_int),
            ("ffeature_float", (c_void_p, c_char_p), c_float),
        ):
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, result
        library.flite_init()
        self._voices = {voice: _register(name) for voice, name in VOICES.items()}

    def synthesize(self, text: str, voice: str, *, lead_ms: int = 60, tail_ms: int = 100) -> Speech:
        """Speak `text` (one utterance, however many sentences). Silence before the first and
        after the last phone is cut to about `lead_ms` and `tail_ms`."""
        library = self._library
        utterance = library.flite_synth_text(text.encode("ascii"), self._voices[voice])
        try:
            wave = library.utt_wave(utterance).contents
            assert wave.sample_rate == SAMPLE_RATE, wave.sample_rate
            samples = np.ctypeslib.as_array(wave.samples, (wave.num_samples,)).copy()
            segments = self._segments(utterance)
        finally:
            library.delete_utterance(utterance)
        loud = np.clip(samples * _GAINS[voice], -32767, 32767).astype(np.int16)
        return _trimmed(loud, segments, text, lead_ms, tail_ms)

    def _segments(self, utterance: int) -> list[tuple[int, float, int]]:
        """Of every phone: its number, its end in seconds, and where its word ends in the text."""
        library, segments = self._library, []
        item = library.relation_head(library.utt_relation(utterance, b"Segment"))
        while item:
            phone = _NUMBERS[library.ffeature_string(item, b"name").decode()]
            end = library.ffeature_float(item, b"end")
            place = 0
            if phone:
                place = library.ffeature_int(item, _WORD + b".R:Token.parent.file_pos")
            segments.append((phone, end, place))
            item = library.item_next(item)
        return segments


def _load(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise OSError(f"{name} is needed: apt-get install libflite1 ({error})") from error


def _register(name: str) -> int:
    register = getattr(_load(f"libflite_cmu_us_{name}.so.1"), f"register_cmu_us_{name}")
    register.restype = c_void_p
    voice: int = register(None)
    return voice


def _trimmed(
    samples: np.ndarray,
    segments: list[tuple[int, float, int]],
    text: str,
    lead_ms: int,
    tail_ms: int,
) -> Speech:
    spoken = [index for index, segment in enumerate(segments) if segment[0]]
    if not spoken:
        raise ValueError(f"flite finds nothing to say in {text!r}")
    start = segments[spoken[0] - 1][1] if spoken[0] else 0.0
    first = max(0, int((start - lead_ms / 1000) * SAMPLE_RATE))
    last = int((segments[spoken[-1]][1] + tail_ms / 1000) * SAMPLE_RATE)
    samples = samples[first : max(last, first + LABEL_SAMPLES)]
    labels = -(-len(samples) // LABEL_SAMPLES)
    samples = np.pad(samples, (0, labels * LABEL_SAMPLES - len(samples)))
    times = ((np.arange(labels) + 0.5) * LABEL_SAMPLES + first) / SAMPLE_RATE
    ends = np.array([end for _, end, _ in segments])
    at = np.minimum(np.searchsorted(ends, times), len(segments) - 1)
    after = times > ends[-1]
    phones = np.array([phone for phone, _, _ in segments], np.uint8)[at]
    word_ends = [match.end() + 1 for match in re.finditer(r"\S+", text)]
    numbers = [
        min(bisect_left(word_ends, place), len(word_ends) - 1) if phone else -1
        for phone, _, place in segments
    ]
    words = np.array(numbers, np.int16)[at]
    phones[after], words[after] = 0, -1
    return Speech(samples, phones, words)
