"""Which token a frame speaks: what the engines read, against attention worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from realtime_tts import demo_voice
from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.interface import Engine, UtteranceSpec
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.kernels import MOST_TEXT
from realtime_tts.model import PromptBuilder, PromptSpec, load_model, to_reference
from realtime_tts.model.alignment import AlignmentHeads, PagedAlignment, RowAlignment, TextView
from realtime_tts.model.paged_cache import PagedKVCache
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.cloning import DOING, model, tokenizer, voice_of
from tests.engine.speaking import Utterance, speak
from tests.parity import PARITY
from tts_scheduler import Layout

TEXT = "The old bridge was closed after the storm last winter."

pytestmark = pytest.mark.usefixtures("one_thread")


def test_pages_and_slots_are_read_alike_and_as_defined() -> None:
    """Rows of different texts, one longer than a page, one that pads, one without text."""
    torch.manual_seed(3)
    shape = load_model(PARITY / "tiny-custom_voice").config.talker.transformer
    group = shape.heads // shape.kv_heads
    cache = PagedKVCache(shape, 4, 64, torch.device("cpu"), torch.float32)
    cache.upload([(slot, 0, range(1 + 7 * slot, 6 + 7 * slot)) for slot in range(4)])
    cache.pages.normal_()
    pairs = [(0, 1), (1, 0), (1, 3)]
    heads = AlignmentHeads(pairs, shape)
    queries = torch.randn(shape.layers, 4, shape.heads, shape.head_dim)
    views = [TextView(9, 40), TextView(12, 1), TextView(30, 17, 3), TextView(0, 0)]
    slots = torch.tensor([2, 0, 3, 4])
    firsts, counts = (torch.tensor([view[n] for view in views]) for n in (0, 1))
    paged = PagedAlignment(heads, cache.pages, cache.tables, slots, firsts, counts)

    class Rows:
        def keys(self, layer: int, slot: int, head: int, first: int, count: int) -> Tensor:
            return cache.read(slot, 80)[layer, 0, head, first : first + count]

    rows = RowAlignment(heads, Rows(), [2, 0, 3, 1], views)
    for layer in range(shape.layers):
        paged.observe(layer, queries[layer])
        rows.observe(layer, queries[layer])
    wanted = []
    for row, view in enumerate(views[:3]):
        kept = cache.read(int(slots[row]), 80)[:, 0, :, view.first : view.first + view.length]
        weights = torch.zeros(view.length)
        for layer, head in pairs:
            scores = kept[layer, head // group] @ queries[layer, row, head] / shape.head_dim**0.5
            weights += scores.softmax(0)
        wanted.append(int(weights.argmax()))
    assert paged.tokens()[:3].tolist() == wanted
    assert rows.tokens() == [wanted[0], wanted[1], wanted[2] + 3, 0]


@pytest.mark.parametrize(
    ("known", "last", "view"),
    [
        (0, 0, (9, 0, 0)),
        (MOST_TEXT, 200, (9, MOST_TEXT, 0)),
        (MOST_TEXT + 100, 10, (9, MOST_TEXT, 0)),
        (1_000, 400, (9 + 400 - MOST_TEXT // 2, MOST_TEXT, 400 - MOST_TEXT // 2)),
        (1_000, 999, (9 + 1_000 - MOST_TEXT, MOST_TEXT, 1_000 - MOST_TEXT)),
    ],
)
def test_of_a_long_text_what_is_around_the_last_token_is_looked_at(
    known: int, last: int, view: tuple[int, int, int]
) -> None:
    assert TextView.of(9, known, last) == view


def builder(kind: str) -> tuple[PromptBuilder, PromptSpec]:
    """Prompts whose text comes behind different things."""
    variant = {"speaker": "custom_voice", "auto": "custom_voice", "instructed": "voice_design"}
    loaded = model(variant.get(kind, "base"))
    prompts = loaded.prompt_builder(tokenizer().encode)
    if kind in variant:
        speaker = next(iter(loaded.config.speakers), None)
        language = "auto" if kind == "auto" else "english"
        said = "Speak like a pirate." if kind == "instructed" else None
        return prompts, PromptSpec(speaker, language, said)
    voice = voice_of("xvec_st" if kind == "alone" else "icl_ns")
    if kind == "wordy":
        voice = replace(voice_of("icl_textlong_st"), transcript=DOING * 3)
    reference = to_reference(voice, loaded.config, tokenizer().encode)
    return prompts, PromptSpec(reference=reference)


@pytest.mark.parametrize("layout", ["streaming", "full_text"])
@pytest.mark.parametrize("kind", ["speaker", "auto", "instructed", "alone", "shown", "wordy"])
def test_the_texts_first_token_is_where_two_prompts_begin_to_differ(kind: str, layout: str) -> None:
    prompts, spec = builder(kind)
    ids = [list(range(10, 40)), [99, *range(11, 40)]]
    one, other = (prompts.prompt(spec, each, layout) for each in ids)
    length = len(one.inputs)
    differing = (one.inputs != other.inputs).any(1).nonzero().flatten().tolist()
    if one.text_used:
        assert differing == [prompts.text_position(spec)]
    else:  # all of the prompt is the transcript's, and some of that is still to come
        assert prompts.text_position(spec) == length + len(one.carried)


def demo(captured: bool) -> Engine:
    loaded = load_model(demo_voice.FOLDER)
    words = Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
    if captured:
        return CapturedEngine(
            loaded, words, name="demo", slots=4, kv_positions=2_048, max_frames=90
        )
    return TorchEngine(loaded, words, name="demo", slots=4, max_frames=90)


@pytest.mark.parametrize("captured", [False, True])
def test_the_demo_voice_goes_through_its_text_token_by_token(captured: bool) -> None:
    engine = demo(captured)
    ids = Qwen2Tokenizer.from_folder(demo_voice.FOLDER).encode(TEXT)
    told = [
        Utterance(
            f"{layout} {language}",
            slot,
            ids,
            UtteranceSpec(voice="ava", language=language, seed=4, sampling=sampling),
            layout,
        )
        for slot, (layout, language) in enumerate(
            (layout, language)
            for layout in (Layout.STREAMING, Layout.FULL_TEXT)
            for language in ("english", "auto")
        )
        for sampling in [engine.info.default_sampling]
    ]
    speak(engine, told, steps=100)
    for each in told:
        assert each.end == "complete" and len(each.tokens) == len(each.codes) > 30
        assert each.tokens == sorted(each.tokens), each.id
        assert each.tokens[0] == 0 and each.tokens[-1] >= len(ids) - 2, each.id


def test_a_checkpoint_that_names_no_heads_tells_nothing() -> None:
    loaded = load_model(PARITY / "tiny-custom_voice")
    words = Qwen2Tokenizer.from_folder(PARITY / "tiny-custom_voice")
    engines = [
        TorchEngine(loaded, words, name="tiny", slots=1, max_frames=5),
        CapturedEngine(loaded, words, name="tiny", slots=1, kv_positions=512, max_frames=5),
    ]
    for engine in engines:
        one = Utterance("u", 0, [5, 6, 7])
        speak(engine, [one], steps=8)
        assert one.codes and not one.tokens
