"""Word error rate of speech, by an independent recogniser.

    python -m tools.demo_voice.recognise --texts tools/demo_voice/held_out.txt build/wavs/*.wav

The recogniser is pocketsphinx with the US English model it comes with and its own settings, except
that each recording is normalised by itself: results do not depend on the order of recordings.
Errors of all sentences are added up before they are divided (pooled word error rate).
https://github.com/cmusphinx/pocketsphinx
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.demo_voice.words import WordErrors, pooled, word_errors

SAMPLE_RATE = 16_000
"""What the recogniser's acoustic model was trained on."""
PADDING_SECONDS = 0.3
"""Of silence, before and behind what is recognised."""
_FRAME_RATE = 100  # of the recogniser's times
_NEEDED = "pip install -e '.[demo-voice]'"


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """samples [N], int16 or float in [-1, 1], mono, at `sample_rate`."""

    samples: NDArray[Any]
    sample_rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.sample_rate

    @classmethod
    def read(cls, path: Path) -> Recording:
        """A mono 16-bit WAV file. Raises ValueError for another kind."""
        import wave

        with wave.open(str(path)) as file:
            if file.getnchannels() != 1 or file.getsampwidth() != 2:
                raise ValueError(f"{path}: expected mono 16-bit PCM")
            data = file.readframes(file.getnframes())
            return cls(np.frombuffer(data, "<i2"), file.getframerate())

    def write(self, path: Path) -> None:
        """As a mono 16-bit WAV file."""
        import wave

        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(self.sample_rate)
            file.writeframes(self.int16().astype("<i2").tobytes())

    def int16(self) -> NDArray[np.int16]:
        """The samples [N] as integers."""
        if self.samples.dtype == np.int16:
            return self.samples
        return np.clip(np.rint(self.samples * 32767.0), -32768, 32767).astype(np.int16)

    def resampled(self, sample_rate: int) -> NDArray[np.float64]:
        """The samples [N'] in [-1, 1] at another rate, by a linear-phase polyphase filter."""
        samples = self.int16() / 32768.0
        if sample_rate == self.sample_rate:
            return samples
        try:
            from scipy.signal import resample_poly
        except ImportError as error:
            raise ImportError(f"resampling needs scipy: {_NEEDED}") from error
        shared = math.gcd(sample_rate, self.sample_rate)
        resampled: NDArray[np.float64] = resample_poly(
            samples, sample_rate // shared, self.sample_rate // shared
        )
        return resampled


def in_silence(recording: Recording) -> NDArray[np.float64]:
    """[N] in [-1, 1] at `SAMPLE_RATE`, with silence before and behind: a word that begins in the
    first moment of a recording is often misheard, and listeners hear silence before it, too."""
    return np.pad(recording.resampled(SAMPLE_RATE), round(PADDING_SECONDS * SAMPLE_RATE))


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word that was heard; seconds from the beginning of the recording."""

    word: str
    begin: float
    end: float


class Recogniser:
    """pocketsphinx, loaded. Not to be shared by threads. Raises ImportError without it."""

    def __init__(self, vocabulary: Collection[str] | None = None) -> None:
        """`vocabulary`: the words it knows, lower case; None for all of its dictionary. A small
        one is several times as fast, without the second pass over the whole tree of words, and
        hears a little less wrong: figures of one vocabulary compare with each other only."""
        try:
            from pocketsphinx import Decoder, get_model_path
        except ImportError as error:
            raise ImportError(f"word error rates need pocketsphinx: {_NEEDED}") from error
        # "live", the default, would carry the channel's mean from one recording to the next.
        given = {"cmn": "batch", "loglevel": "FATAL"}
        if vocabulary is None:
            self._decoder = Decoder(**given)
            return
        known = Path(get_model_path()) / "en-us" / "cmudict-en-us.dict"
        lines = known.read_text(encoding="utf-8").splitlines()
        chosen = [line for line in lines if line.split()[0].partition("(")[0] in vocabulary]
        with NamedTemporaryFile("w", suffix=".dict") as file:
            file.write("\n".join(chosen) + "\n")
            file.flush()
            self._decoder = Decoder(**given, dict=file.name, fwdflat=False)

    def transcribe(self, recording: Recording) -> str:
        """The words heard, in lower case; empty if there are none."""
        self._listen(recording)
        heard = self._decoder.hyp()
        return heard.hypstr if heard is not None else ""

    def timed_words(self, recording: Recording) -> list[TimedWord]:
        """The words of `transcribe`, with where in the recording they were heard."""
        self._listen(recording)
        found = []
        for part in self._decoder.seg() or ():
            word = part.word.partition("(")[0]  # "the(2)" is another way to say it
            if word and word[0] not in "<[":  # silence and noise
                begin = part.start_frame / _FRAME_RATE - PADDING_SECONDS
                end = (part.end_frame + 1) / _FRAME_RATE - PADDING_SECONDS
                found.append(TimedWord(word, begin, end))
        return found

    def _listen(self, recording: Recording) -> None:
        samples = np.rint(in_silence(recording) * 32767)
        speech = np.clip(samples, -32768, 32767).astype(np.int16)
        self._decoder.start_utt()
        self._decoder.process_raw(speech.tobytes(), no_search=False, full_utt=True)
        self._decoder.end_utt()


_recogniser: Recogniser | None = None  # one per process


def _transcribe(recording: Recording) -> str:
    global _recogniser
    _recogniser = _recogniser or Recogniser()
    return _recogniser.transcribe(recording)


def transcribe_all(recordings: Sequence[Recording], jobs: int = 1) -> list[str]:
    """The words heard in each recording, with `jobs` processes. Raises ImportError."""
    if jobs == 1 or len(recordings) < 2:
        return [_transcribe(recording) for recording in recordings]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return pool.map(_transcribe, recordings, chunksize=1)


def score(texts: Sequence[str], recordings: Sequence[Recording], jobs: int = 1) -> list[WordErrors]:
    """The errors of each recording against what it should say. Raises ImportError."""
    heard = transcribe_all(recordings, jobs)
    return [word_errors(text, words) for text, words in zip(texts, heard, strict=True)]


def read_texts(path: Path) -> list[str]:
    """One text a line, without empty lines and lines that begin with #."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wavs", type=Path, nargs="+", help="in the order of the texts")
    parser.add_argument("--texts", type=Path, required=True, help="one a line")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    given = parser.parse_args()
    texts = read_texts(given.texts)[: len(given.wavs)]
    results = score(texts, [Recording.read(path) for path in given.wavs], given.jobs)
    for path, text, result in zip(given.wavs, texts, results, strict=True):
        if result.errors:
            print(f"{path.name}: {result.errors}/{result.words}  {text}\n    heard: {result.heard}")
    total = pooled(results)
    print(f"word error rate {total.rate:.3f} ({total.errors} of {total.words} words)")


if __name__ == "__main__":
    main()
