"""Checks a checkpoint folder with the official package: it loads it, speaks it, and both agree.

The official package pins libraries of its own, so it needs a virtual environment of its own:

    python -m venv build/official
    build/official/bin/pip install --no-deps qwen-tts==0.1.1 transformers==4.57.3 accelerate==1.12.0
    build/official/bin/pip install torch==2.13.0 "numpy<2.4" librosa soundfile einops \\
        "huggingface-hub<1" "tokenizers==0.22.2" safetensors regex pyyaml requests psutil \\
        msgspec websockets rich
    build/official/bin/python -m tools.demo_voice.official --checkpoint DIR

What it installs without: gradio (its demo page), and torchaudio, onnxruntime and sox, which only
its 25 Hz codec uses, but which it imports in any case: empty modules stand in for them below.
torchaudio's wheels want a torch with CUDA. Nothing of the official package itself is changed.

Token ids of all evaluation texts must be equal; and for every text, voice and layout below, greedy
codes must be equal in every frame, and waveforms within rounding. (The official
codec decodes 300 frames at a time and forgets all but 25 frames of what came before, ours carries
its state: only the first 300 frames of a waveform are compared.)
"""

from __future__ import annotations

import argparse
import sys
import time
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realtime_tts import demo_voice
from realtime_tts.model import PromptSpec, SpeechModel, load_model
from realtime_tts.sampling import PredictorSampling, Sampling
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tools.demo_voice.held_out import evaluation_texts

TEXTS = (
    "Hello there, how are you?",
    "No.",
    "The train to the airport leaves every fifteen minutes, but today it is late.",
    "I'm sorry: that item isn't available! Would you like to order 12 of the others?",
)
_ODD_TEXTS = (
    "\u201cDon't!\u201d \u2014 3.5% of 1,234 caf\u00e9s",
    "two  spaces\nand a line",
    "\u4f60\u597d",
    "\U0001f600 a.b@c.de https://x.y/z",
)
_STAND_INS = (
    "torchaudio",
    "torchaudio.compliance",
    "torchaudio.compliance.kaldi",
    "onnxruntime",
    "sox",
)
_COMPARED_FRAMES = 300
_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """codes [N, 16] and samples [N * 1920] in [-1, 1], made in `seconds`."""

    codes: NDArray[np.int64]
    samples: NDArray[np.float32]
    seconds: float


class Official:
    """The official model on a CPU in float32. Raises ImportError outside of its environment."""

    def __init__(self, folder: Path) -> None:
        with _stand_ins():
            from qwen_tts import Qwen3TTSModel
        self._model = Qwen3TTSModel.from_pretrained(
            str(folder), device_map="cpu", dtype=torch.float32
        )

    def ids(self, text: str) -> list[int]:
        """Token ids of the text within the official template."""
        template = self._model._build_assistant_text(text)
        ids: list[int] = self._model._tokenize_texts([template])[0][0].tolist()
        return ids[3:-5]  # as its generate() cuts them

    def speak(self, text: str, voice: str, *, layout: str, max_frames: int) -> Spoken:
        began = time.monotonic()
        with self._codes_seen() as seen:
            samples, _ = self._model.generate_custom_voice(
                text=text,
                speaker=voice,
                language="English",
                non_streaming_mode=layout == "full_text",
                do_sample=False,
                subtalker_dosample=False,
                max_new_tokens=max_frames + 1,  # the last token never becomes a frame
            )
        return Spoken(seen[0].numpy(), np.asarray(samples[0]), time.monotonic() - began)

    @contextmanager
    def _codes_seen(self) -> Iterator[list[Tensor]]:
        """The codes [N, 16] of what is spoken, on their way to the codec."""
        codec = self._model.model.speech_tokenizer
        decode, seen = codec.decode, list[Tensor]()

        def listen(encoded: list[dict[str, Tensor]]) -> Any:
            seen.extend(each["audio_codes"] for each in encoded)
            return decode(encoded)

        codec.decode = listen
        try:
            yield seen
        finally:
            codec.decode = decode


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Empty modules for what is imported and not used, for as long as the block lasts."""
    import librosa  # noqa: F401 - these look for what is installed, and must not see ours
    import transformers  # noqa: F401

    missing = [name for name in _STAND_INS if name not in sys.modules]
    for name in missing:
        module = types.ModuleType(name)
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        module.__path__ = []
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]


class Ours:
    """The same, by this repository's model."""

    def __init__(self, folder: Path) -> None:
        self._model: SpeechModel = load_model(folder)
        self._encode = Qwen2Tokenizer.from_folder(folder).encode
        self._prompts = self._model.prompt_builder(self._encode)
        self._state = self._model.new_state(1)

    @property
    def voices(self) -> Sequence[str]:
        return self._model.config.speakers

    def ids(self, text: str) -> list[int]:
        """Token ids of the text behind the prompt's opening, as the text pipeline has them."""
        return self._encode("assistant\n" + text)[2:]

    @torch.inference_mode()
    def speak(self, text: str, voice: str, *, layout: str, max_frames: int) -> Spoken:
        began, model, state = time.monotonic(), self._model, self._state
        ids = self.ids(text)
        penalty = model.default_sampling.repetition_penalty
        rest = PredictorSampling(temperature=0)
        greedy = Sampling(temperature=0, repetition_penalty=penalty, predictor=rest)
        state.begin(0, greedy, seed=0)
        spec = PromptSpec(speaker=voice, language="english")
        prompt = self._prompts.prompt(spec, ids, layout)
        texts = iter(self._trailing(ids[prompt.text_used :], prompt.eos_used))
        hidden = model.talker.prefill(prompt.inputs, 0, state.kv)[None]
        codes: list[Tensor] = []
        while not (frame := model.frame(hidden, [0], state)).ended[0] and len(codes) < max_frames:
            codes.append(frame.codes[0])
            inputs = frame.embedding + next(texts, self._prompts.tts_pad)
            hidden = model.talker.decode(inputs, [0], state.kv)
        all_codes = torch.stack(codes) if codes else torch.zeros(0, 16, dtype=torch.int64)
        samples = model.codec.decode(all_codes[None], [0], state.codec)[0]
        return Spoken(all_codes.numpy(), samples.numpy(), time.monotonic() - began)

    def _trailing(self, ids: Sequence[int], eos_used: bool) -> list[Tensor]:
        vectors = list(self._prompts.text(ids)) if ids else []
        return vectors if eos_used else [*vectors, self._prompts.tts_eos]


def compare(official: Spoken, ours: Spoken) -> tuple[bool, str]:
    """Whether they agree, and a line for people."""
    shorter = min(len(official.codes), len(ours.codes))
    same = (official.codes[:shorter] == ours.codes[:shorter]).all(axis=1)
    agreed = shorter if same.all() else int(same.argmin())
    if agreed < max(len(official.codes), len(ours.codes)):
        lengths = f"{len(official.codes)} and {len(ours.codes)} frames"
        return False, f"codes differ from frame {agreed} on ({lengths})"
    samples = min(agreed, _COMPARED_FRAMES) * 1920
    if min(len(official.samples), len(ours.samples)) < samples:
        return False, f"{len(official.samples)} and {len(ours.samples)} samples"
    difference = np.abs(official.samples[:samples] - ours.samples[:samples]).max(initial=0.0)
    line = f"{agreed} frames equal, waveform within {difference:.1e}"
    return bool(difference < _TOLERANCE), line


def differing_ids(official: Official, ours: Ours) -> int:
    """How many of many texts do not give the same token ids."""
    texts = [*_ODD_TEXTS, *evaluation_texts()]
    wrong = [text for text in texts if official.ids(text) != ours.ids(text)]
    for text in wrong:
        print(f"FAIL token ids differ: {text!r}")
    print(f"ok   token ids of {len(texts) - len(wrong)} texts equal")
    return len(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--checkpoint", type=Path, default=demo_voice.FOLDER)
    parser.add_argument("--max-frames", type=int, default=250)
    parser.add_argument("--text", action="append", help="instead of the built-in ones")
    given = parser.parse_args()
    torch.set_num_threads(1)
    official, ours = Official(given.checkpoint), Ours(given.checkpoint)
    failures = differing_ids(official, ours)
    for text in given.text or TEXTS:
        for voice in ours.voices:
            for layout in ("full_text", "streaming"):
                arguments = {"layout": layout, "max_frames": given.max_frames}
                theirs, mine = (who.speak(text, voice, **arguments) for who in (official, ours))
                agrees, line = compare(theirs, mine)
                failures += not agrees
                took = f"{theirs.seconds:.1f} s and {mine.seconds:.1f} s"
                mark = "ok  " if agrees else "FAIL"
                print(f"{mark} {voice} {layout:9} {line} ({took}): {text[:40]}", flush=True)
    print("all agree" if not failures else f"{failures} do not agree")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
