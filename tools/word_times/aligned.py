"""Finds when words are spoken by forced alignment, an independent reference for word times.

The aligner is pocketsphinx with the US English model that it comes with. It gets the text and finds
the time of each word, in multiples of 10 ms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.demo_voice.recognise import SAMPLE_RATE, Recording, TimedWord

_PADDING_SECONDS = 0.3
_FRAME_RATE = 100


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """Word number `index` of the text, split at white space, and its time in the recording."""

    index: int
    found: TimedWord


class Aligner:
    """A loaded pocketsphinx, for one thread. Raises ImportError if it is not installed."""

    def __init__(self) -> None:
        from pocketsphinx import Decoder, get_model_path

        dictionary = Path(get_model_path()) / "en-us" / "cmudict-en-us.dict"
        lines = dictionary.read_text(encoding="utf-8").splitlines()
        self._known = {line.split()[0] for line in lines if line}
        # "live", the default, would carry the channel's mean from one recording to the next.
        self._decoder = Decoder(cmn="batch", loglevel="FATAL", lm=None)

    def knows(self, text: str) -> bool:
        """Return whether the dictionary has all words of a text."""
        return all(word in self._known for word in map(_bare, text.split()) if word)

    def place(self, text: str, recording: Recording) -> list[PlacedWord] | None:
        """Return the words of a text with their times, or None if the aligner does not know one of
        them or cannot align all."""
        words = [(index, _bare(word)) for index, word in enumerate(text.split())]
        words = [(index, word) for index, word in words if word]
        if not words or not self.knows(text):
            return None
        try:
            found = self._align(" ".join(word for _, word in words), recording)
        except RuntimeError:
            return None
        if len(found) != len(words):
            return None
        return [PlacedWord(index, each) for (index, _), each in zip(words, found, strict=True)]

    def _align(self, text: str, recording: Recording) -> list[TimedWord]:
        silence = np.zeros(round(_PADDING_SECONDS * SAMPLE_RATE), np.int16)
        samples = np.rint(recording.resampled(SAMPLE_RATE) * 32767)
        speech = np.clip(samples, -32768, 32767).astype(np.int16)
        decoder = self._decoder
        decoder.set_align_text(text)
        decoder.start_utt()
        decoder.process_raw(np.concatenate([silence, speech, silence]).tobytes(), full_utt=True)
        decoder.end_utt()
        return [
            TimedWord(
                part.word,
                part.start_frame / _FRAME_RATE - _PADDING_SECONDS,
                (part.end_frame + 1) / _FRAME_RATE - _PADDING_SECONDS,
            )
            for part in decoder.seg() or ()
            if part.word[0] not in "<["  # silence and noise
        ]


def _bare(word: str) -> str:
    return re.sub(r"[^a-z']", "", word.lower().replace("\u2019", "'")).strip("'")
