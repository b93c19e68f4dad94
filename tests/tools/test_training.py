"""What is trained is what is served: the same inputs, the same sums, the same samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from realtime_tts.model import PromptSpec, SpeechModel, load_model
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.when_used import WhenUsed
from tools.demo_voice.codec_model import Codec
from tools.demo_voice.codes import CodedShard
from tools.demo_voice.settings import CODEC, EOS, IM_START, PREDICTOR, TALKER
from tools.demo_voice.speech import VOICE_NAMES

if TYPE_CHECKING:
    from tools.demo_voice import export, layers, voice_data, voice_model
else:  # the compiler comes with them
    export, layers, voice_data, voice_model = (
        WhenUsed(f"tools.demo_voice.{name}")
        for name in ("export", "layers", "voice_data", "voice_model")
    )

TOKENIZER = Path(__file__).parents[2] / "realtime_tts" / "demo_voice" / "checkpoint"
TEXTS = ("Good morning, how can I help you?", "Yes.")
FRAMES = (9, 4)


@pytest.fixture(scope="module")
def parts() -> tuple[voice_model.Voice, Codec]:
    torch.manual_seed(3)
    voice, codec = voice_model.Voice(TALKER, PREDICTOR, 0.0).eval(), Codec(CODEC).eval()
    # As stored: what is compared must not differ by the rounding of the export.
    for part in (voice, codec.decoder, codec.quantizer):
        part.half().float()
    return voice, codec


@pytest.fixture(scope="module")
def model(
    parts: tuple[voice_model.Voice, Codec], tmp_path_factory: pytest.TempPathFactory
) -> SpeechModel:
    folder = tmp_path_factory.mktemp("checkpoint")
    export.write_voice(parts[0].state_dict(), TOKENIZER, folder)
    export.write_codec(parts[1].state_dict(), folder)
    return load_model(folder)


def test_an_export_of_several_trainings_has_the_mean_of_their_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "a.pt", tmp_path / "b.pt", tmp_path / "c.pt"]
    for path, value in zip(paths, (1.0, 2.0, 6.0), strict=True):
        weights = {"model.norm.weight": torch.full((4,), value), "phone_head.bias": torch.ones(2)}
        torch.save({"voice": {}, "average": weights}, path)
    out = tmp_path / "checkpoint"
    words = ["export", "--voice", *map(str, paths), "--codec", str(TOKENIZER)]
    words += ["--tokenizer", str(TOKENIZER), "--out", str(out)]
    monkeypatch.setattr("sys.argv", words)
    export.main()
    stored = load_file(out / "model.safetensors")
    assert {name: part.tolist() for name, part in stored.items()} == {
        "talker.model.norm.weight": [3.0] * 4
    }


@pytest.fixture(scope="module")
def tokenizer() -> Qwen2Tokenizer:
    return Qwen2Tokenizer.from_folder(TOKENIZER)


@pytest.fixture(scope="module")
def pool(tokenizer: Qwen2Tokenizer) -> voice_data.VoicePool:
    chance = np.random.default_rng(1)
    tokens = [tokenizer.encode(text) for text in TEXTS]
    counts = [len(ids) for ids in tokens]
    pool = voice_data.VoicePool(
        [IM_START, *tokenizer.encode("assistant\n")], torch.device("cpu"), frames=200
    )
    total = sum(FRAMES)
    assert pool.add(
        CodedShard(
            codes=chance.integers(0, 256, (total, 16)).astype(np.uint8),
            phones=chance.integers(0, 40, (total, 4)).astype(np.uint8),
            pitch=chance.integers(0, 300, (total, 4)).astype(np.float16),
            words=np.arange(total).astype(np.int16) // 3,
            tokens=np.concatenate(tokens).astype(np.int16),
            token_words=np.arange(sum(counts)).astype(np.int16) // 2,
            entries=np.array(
                [(0, 0, 1, FRAMES[0], counts[0]), (FRAMES[0], counts[0], 0, FRAMES[1], counts[1])],
                np.int32,
            ),
        )
    )
    return pool


def row(
    pool: voice_data.VoicePool, *, full: bool, named: bool
) -> tuple[voice_data.Batch, list[int]]:
    """Both utterances in one row, and their positions."""
    sizes = [
        8 + named + (int(tokens) + 1) * full + 1 + int(frames) for frames, tokens in pool.lengths
    ]
    planned = [(entry, int(full), int(named), size) for entry, size in enumerate(sizes)]
    return pool.batch(pool.plan([planned]), 1, sum(sizes) + 5), sizes


@torch.inference_mode()
def served(
    model: SpeechModel,
    pool: voice_data.VoicePool,
    tokenizer: Qwen2Tokenizer,
    entry: int,
    *,
    full: bool,
    named: bool,
) -> torch.Tensor:
    """The talker's outputs [frames + 1, H] for an utterance, step by step as in the engine."""
    builder = model.prompt_builder(tokenizer.encode)
    first, _, voice, frames, _ = pool.entries[entry].tolist()
    spec = PromptSpec(speaker=VOICE_NAMES[voice], language="english" if named else None)
    ids = tokenizer.encode(TEXTS[entry])
    prompt = builder.prompt(spec, ids, "full_text" if full else "streaming")
    later = [] if prompt.eos_used else [*builder.text(ids[prompt.text_used :]), builder.tts_eos]
    state = model.new_state(1)
    outputs = [model.talker.prefill(prompt.inputs, 0, state.kv)]
    codes = pool.codes[first : first + frames].long()
    embedded = builder.frames(codes)
    for frame in range(frames):
        text = later[frame] if frame < len(later) else builder.tts_pad
        outputs.append(model.talker.decode((embedded[frame] + text)[None], [0], state.kv)[0])
    return torch.stack(outputs)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("full", [True, False])
def test_rows_are_what_the_engine_feeds(
    parts: tuple[voice_model.Voice, Codec],
    model: SpeechModel,
    pool: voice_data.VoicePool,
    tokenizer: Qwen2Tokenizer,
    full: bool,
    named: bool,
) -> None:
    batch, sizes = row(pool, full=full, named=named)
    with torch.inference_mode():
        hidden, _ = parts[0](batch.rows)
    begin = 0
    for entry, size in enumerate(sizes):
        trained = hidden[0, begin + size - FRAMES[entry] - 1 : begin + size]
        target = batch.target[0, begin : begin + size]
        expected = served(model, pool, tokenizer, entry, full=full, named=named)
        torch.testing.assert_close(trained, expected, atol=2e-5, rtol=1e-4)
        assert target[-1] == EOS and (target >= 0).sum() == FRAMES[entry] + 1
        begin += size
    assert (batch.target[0, begin:] == -1).all(), "what fills the row up predicts nothing"


@torch.inference_mode()
def test_the_predictor_reads_a_frame_as_the_engine_writes_it(
    parts: tuple[voice_model.Voice, Codec], model: SpeechModel
) -> None:
    voice = parts[0]
    hidden = torch.randn(5, TALKER.hidden_size)
    codes = torch.randint(256, (5, 16))
    first = voice.model.codec_embedding(codes[:, 0])
    together = voice.code_predictor(hidden, first, codes[:, 1:])
    one_by_one: list[torch.Tensor] = []

    def choose(logits: torch.Tensor, codebook: int) -> torch.Tensor:
        one_by_one.append(logits.clone())
        return codes[:, codebook]

    model.predictor.codes(hidden, first, choose)
    torch.testing.assert_close(torch.stack(one_by_one, 1), together, atol=2e-5, rtol=1e-4)


@torch.inference_mode()
def test_the_codec_decodes_in_pieces_as_it_was_trained_whole(
    parts: tuple[voice_model.Voice, Codec], model: SpeechModel
) -> None:
    codec, state = parts[1], model.new_state(1).codec
    codes = torch.randint(256, (1, 30, 16))
    whole = codec.decoder(codec.quantizer.decode(codes)).clamp(-1, 1)
    pieces = [model.codec.decode(piece, [0], state) for piece in codes.split(7, 1)]
    torch.testing.assert_close(torch.cat(pieces, 1), whole, atol=1e-3, rtol=1e-3)


def test_noise_stays_within_an_utterance_and_its_frames(pool: voice_data.VoicePool) -> None:
    rows = row(pool, full=False, named=True)[0].rows
    noisy = voice_data.corrupted(rows, neighbour=1.0, tail=0.5, single=0.2).codes
    assert ((noisy >= 0) == (rows.codes >= 0)).all() and noisy.max() < 256
    assert (voice_data.corrupted(rows, neighbour=0, tail=0, single=0).codes == rows.codes).all()


def test_pointer_loss_is_less_where_the_spoken_word_is_looked_at(
    pool: voice_data.VoicePool,
) -> None:
    batch, _ = row(pool, full=False, named=True)
    length = batch.heard.shape[1]
    position = torch.eye(length)[None, :, None]  # every key is its own direction
    words = (batch.heard[0][:, None] == batch.seen[0]) & (batch.heard[0] >= 0)[:, None]
    looking = (words.float() * 40)[None, :, None]
    away = voice_model.pointer_loss(
        (torch.zeros_like(position), position), batch.rows, batch.heard, batch.seen
    )
    there = voice_model.pointer_loss((looking, position), batch.rows, batch.heard, batch.seen)
    assert 0 <= there < away


def test_plain_causal_sight_and_a_mask_agree() -> None:
    layer = voice_model.Voice(TALKER, PREDICTOR, 0.0).eval().model.layers[0]
    x, angles = torch.randn(1, 6, TALKER.hidden_size), torch.zeros(1, 6, 1, TALKER.head_dim)
    bias = torch.full((1, 1, 6, 6), -1e4).triu(1)
    causal = layer(x, angles.cos(), angles.sin(), layers.Sight())[0]
    torch.testing.assert_close(
        layer(x, angles.cos(), angles.sin(), layers.Sight(bias=bias))[0], causal
    )
