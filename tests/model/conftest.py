"""Loaded checkpoints, and the smallest loop that makes whole utterances with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from realtime_tts.model import PromptBuilder, PromptSpec, SpeechModel, load_model
from realtime_tts.model.prompt import Prompt
from realtime_tts.model.sampling import SamplingState
from realtime_tts.sampling import PredictorSampling, Sampling
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.one_thread import one_thread as one_thread
from tests.parity import GREEDY, PARITY


@pytest.fixture(scope="session")
def parity() -> Path:
    return PARITY


@cache
def _load(folder: Path) -> SpeechModel:
    return load_model(folder)


@pytest.fixture(scope="session")
def load() -> Callable[[str], SpeechModel]:
    """A parity checkpoint by variant."""
    return lambda variant: _load(PARITY / f"tiny-{variant}")


@pytest.fixture(scope="session")
def model(load: Callable[[str], SpeechModel]) -> SpeechModel:
    return load("custom_voice")


@cache
def _prompts(folder: Path) -> PromptBuilder:
    return _load(folder).prompt_builder(Qwen2Tokenizer.from_folder(folder).encode)


@pytest.fixture(scope="session")
def prompts() -> Callable[[str], PromptBuilder]:
    """A parity checkpoint's prompt builder, on its own tokenizer, by variant."""
    return lambda variant: _prompts(PARITY / f"tiny-{variant}")


# A checkpoint of the smaller topology ----------------------------------------------------------


@pytest.fixture(scope="session")
def small_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random CustomVoice checkpoint of 0.6B topology: the predictor is as wide as the talker."""
    folder = tmp_path_factory.mktemp("small") / "checkpoint"
    source = PARITY / "tiny-custom_voice"
    copy_folder(source, folder)
    config = json.loads((folder / "config.json").read_text())
    config["tts_model_size"] = "0b6"
    predictor = config["talker_config"]["code_predictor_config"]
    predictor["hidden_size"] = config["talker_config"]["hidden_size"]
    (folder / "config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(1)
    tensors = {
        name: _resized(name, tensor, predictor, generator)
        for name, tensor in load_file(source / "model.safetensors").items()
        if "small_to_mtp_projection" not in name
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _resized(
    name: str, tensor: Tensor, predictor: dict[str, Any], generator: torch.Generator
) -> Tensor:
    """The predictor's narrow axes made as wide as `predictor["hidden_size"]`."""
    if not name.startswith("talker.code_predictor.") or "codec_embedding" in name:
        return tensor
    narrow, wide = 96, predictor["hidden_size"]
    shape = [wide if size == narrow else size for size in tensor.shape]
    if len(shape) == 1:
        return torch.ones(shape, dtype=tensor.dtype)
    return (torch.randn(shape, generator=generator) * 0.3).to(tensor.dtype)


def copy_folder(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.is_file():
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())


@pytest.fixture
def checkpoint_copy(tmp_path: Path) -> Path:
    """A CustomVoice checkpoint of one's own, to damage."""
    copy_folder(PARITY / "tiny-custom_voice", tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


# The loop --------------------------------------------------------------------------------------


@dataclass(eq=False)
class Utterance:
    """A row's input, and what came of it."""

    prompt: Prompt
    text: Sequence[Tensor]
    """Text vectors of frames 0, 1, ...; after them `pad`."""
    pad: Tensor
    sampling: Sampling = GREEDY
    seed: int = 0
    slot: int = 0
    codes: list[Tensor] = field(default_factory=list)
    hidden: list[Tensor] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    embedding: Tensor | None = None
    ended: bool = False
    failed: bool = False


class Loop:
    """The smallest engine: every step makes one frame for the rows it is given.

    End of speech is not drawn, unless rows `may_end`.
    """

    def __init__(self, model: SpeechModel, slots: int, *, may_end: bool = False) -> None:
        self.model, self.state = model, model.new_state(slots)
        if not may_end:
            endless = replace(model.config.generation, min_frames=10**6)
            config = replace(model.config, generation=endless)
            self.state = replace(
                self.state, sampling=SamplingState(config, slots, model.talker.device)
            )

    def step(self, rows: Sequence[Utterance]) -> None:
        """Prefill the rows that are new, decode the others, make a frame for all."""
        new = [row for row in rows if row.embedding is None]
        old = [row for row in rows if row.embedding is not None]
        outputs = [self._prefill(row)[None] for row in new]
        hidden = torch.cat(outputs + ([self._decode(old)] if old else []))
        rows = new + old
        frame = self.model.frame(hidden, [row.slot for row in rows], self.state)
        logits = self.model.talker.logits(hidden)
        for at, row in enumerate(rows):
            row.embedding = frame.embedding[at]
            row.ended, row.failed = bool(frame.ended[at]), bool(frame.failed[at])
            if not row.ended:
                row.codes.append(frame.codes[at])
                row.hidden.append(hidden[at])
                row.logits.append(logits[at])

    def _prefill(self, row: Utterance) -> Tensor:
        self.state.begin(row.slot, row.sampling, row.seed)
        return self.model.talker.prefill(row.prompt.inputs, row.slot, self.state.kv)

    def _decode(self, rows: Sequence[Utterance]) -> Tensor:
        inputs = torch.stack([_input(row) for row in rows])
        return self.model.talker.decode(inputs, [row.slot for row in rows], self.state.kv)


def _input(row: Utterance) -> Tensor:
    made = len(row.codes)
    assert row.embedding is not None
    return row.embedding + (row.text[made - 1] if made <= len(row.text) else row.pad)


def speak(
    model: SpeechModel, rows: Sequence[Utterance], frames: int, *, may_end: bool = False
) -> None:
    """Make up to `frames` frames of all rows in one batch; rows leave it at end of speech."""
    loop = Loop(model, 1 + max(row.slot for row in rows), may_end=may_end)
    for _ in range(frames):
        live = [row for row in rows if not row.ended]
        if live:
            loop.step(live)


@pytest.fixture(scope="session")
def utterance() -> type[Utterance]:
    return Utterance


@pytest.fixture(scope="session")
def same_speech() -> Callable[[Utterance, Utterance], None]:
    """Asserts that two rows had the same states, logits and codes, bit for bit."""

    def check(one: Utterance, other: Utterance) -> None:
        for what in ("hidden", "logits", "codes"):
            found, wanted = torch.stack(getattr(one, what)), torch.stack(getattr(other, what))
            assert torch.equal(found, wanted), what

    return check


@pytest.fixture
def make_row(utterance: type[Utterance]) -> Callable[..., Utterance]:
    """A row of a model from its number alone: prompt, text, sampling and seed differ."""

    def make(model: SpeechModel, number: int, **changes: Any) -> Utterance:
        size = model.config.talker.text_vocab // 2
        builder = model.prompt_builder(_fixed_ids(model))
        ids = [(37 * number + 11 * index) % size for index in range(3 + 2 * number)]
        spec = PromptSpec(speaker=model.config.speakers[number % len(model.config.speakers)])
        prompt = builder.prompt(spec, ids, "full_text" if number % 3 == 2 else "streaming")
        text = [] if prompt.eos_used else [*builder.text(ids[1:]), builder.tts_eos]
        row = utterance(prompt, text, builder.tts_pad, _SAMPLINGS[number % len(_SAMPLINGS)])
        row.seed, row.slot = number, number
        for name, value in changes.items():
            setattr(row, name, value)
        return row

    return make


_SAMPLINGS = (
    Sampling(),
    GREEDY,
    Sampling(
        temperature=1.3, top_k=0, repetition_penalty=1.0, predictor=PredictorSampling(top_k=7)
    ),
    Sampling(temperature=0.7, top_p=0.8, predictor=PredictorSampling(top_p=0.6)),
    Sampling(temperature=0, predictor=PredictorSampling(temperature=0.8, top_k=0)),
)


def _fixed_ids(model: SpeechModel) -> Callable[[str], list[int]]:
    """Stands for a tokenizer where no text is tokenised."""
    known = {"assistant\n": [model.config.text.assistant, 1], "\n": [1]}
    return lambda text: known.get(text, [2, 3])
