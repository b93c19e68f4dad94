"""Prompts: what they refuse, what they leave out, how long they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from realtime_tts.errors import CheckpointError, RequestError
from realtime_tts.model import PromptBuilder, PromptSpec, Reference, SpeechModel, load_model

IDS = [3, 4, 5, 6, 7]


@pytest.fixture(scope="module")
def custom(prompts: Callable[[str], PromptBuilder]) -> PromptBuilder:
    return prompts("custom_voice")


@pytest.fixture(scope="module")
def design(prompts: Callable[[str], PromptBuilder]) -> PromptBuilder:
    return prompts("voice_design")


@pytest.fixture(scope="module")
def base(prompts: Callable[[str], PromptBuilder]) -> PromptBuilder:
    return prompts("base")


def inputs(builder: PromptBuilder, layout: str = "streaming", **spec: Any) -> torch.Tensor:
    return builder.prompt(PromptSpec(**spec), IDS, layout).inputs


def test_names_are_case_insensitive(custom: PromptBuilder) -> None:
    assert torch.equal(
        inputs(custom, speaker="RYAN", language="EngLish"),
        inputs(custom, speaker="ryan", language="english"),
    )


def test_auto_and_none_are_the_same_language(custom: PromptBuilder) -> None:
    auto = inputs(custom, speaker="ryan", language="Auto")
    assert torch.equal(auto, inputs(custom, speaker="ryan"))
    assert len(auto) == len(inputs(custom, speaker="ryan", language="german")) - 1


@pytest.mark.parametrize("language", [None, "auto", "Chinese"])
def test_a_dialect_speaker_speaks_the_dialect_in_chinese(
    language: str | None, custom: PromptBuilder, model: SpeechModel
) -> None:
    """Position 5 after the template is the language."""
    dialect = model.config.talker.languages["beijing_dialect"]
    found = inputs(custom, speaker="dylan", language=language)[5]
    wanted = custom.tts_pad + model.talker.codec([dialect])[0]
    torch.testing.assert_close(found, wanted)


def test_a_dialect_speaker_speaks_other_languages_plainly(
    custom: PromptBuilder, model: SpeechModel
) -> None:
    found = inputs(custom, speaker="dylan", language="korean")[5]
    wanted = custom.tts_pad + model.talker.codec([model.config.talker.languages["korean"]])[0]
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("code", ["ko", "ko-KR", "KOREAN"])
def test_a_language_may_be_named_by_its_code(custom: PromptBuilder, code: str) -> None:
    found, wanted = (inputs(custom, speaker="ryan", language=name) for name in (code, "korean"))
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (PromptSpec(speaker="nobody"), "unknown voice 'nobody'; this checkpoint has: serena"),
        (PromptSpec(speaker="ryan", language="latin"), "'latin'; this checkpoint has: auto, ch"),
        (PromptSpec(speaker="ryan", language="beijing_dialect"), "unknown language"),
        (PromptSpec(reference=Reference(torch.zeros(128))), "a Base checkpoint can"),
    ],
)
def test_what_a_custom_voice_checkpoint_cannot_do_is_refused(
    spec: PromptSpec, message: str, custom: PromptBuilder
) -> None:
    for refuse in (
        lambda: custom.check(spec),
        lambda: custom.prefix_length(spec),
        lambda: custom.prompt(spec, IDS, "streaming"),
    ):
        with pytest.raises(RequestError, match=message):
            refuse()


def test_a_voice_design_checkpoint_has_no_named_voices(design: PromptBuilder) -> None:
    with pytest.raises(RequestError, match="no named voices"):
        design.check(PromptSpec(speaker="ryan"))
    design.check(PromptSpec(instructions="A deep voice.", language="French"))


def test_a_base_checkpoint_needs_a_reference_and_takes_no_instructions(
    base: PromptBuilder,
) -> None:
    with pytest.raises(RequestError, match="CustomVoice checkpoint, which has"):
        base.check(PromptSpec())
    with pytest.raises(RequestError, match="no instructions"):
        base.check(PromptSpec(instructions="Sad.", reference=Reference(torch.zeros(128))))


def shown(frames: int, transcript: int) -> Reference:
    """A reference of so many frames and transcript tokens."""
    codes = torch.arange(frames * 16).view(frames, 16) % 256
    return Reference(torch.ones(128), codes, tuple(range(100, 100 + transcript)))


def test_a_transcript_longer_than_its_recording_goes_on_after_the_prompt(
    base: PromptBuilder,
) -> None:
    """Three frames and codec bos take four of the six ids; the other two come before the text."""
    spec = PromptSpec(reference=shown(3, 6))
    assert base.text_needed(spec) == -2
    early = base.prompt(spec, IDS[:1], "streaming", finished=False)
    whole = base.prompt(spec, IDS, "streaming")
    assert torch.equal(early.inputs, whole.inputs)
    for prompt in (early, whole):
        assert (prompt.carried, prompt.text_used, prompt.eos_used) == ((104, 105), 0, False)
    full = base.prompt(spec, IDS, "full_text")
    assert (full.carried, full.text_used, full.eos_used) == ((), len(IDS), True)


@pytest.mark.parametrize("transcript", [1, 4, 9])
def test_prompt_length_is_that_of_the_longer_layout_without_text(
    transcript: int, base: PromptBuilder
) -> None:
    spec = PromptSpec(reference=shown(5, transcript))
    full = base.prompt(spec, IDS, "full_text").inputs
    assert base.prompt_length(spec) == len(full) - len(IDS) - 1
    alone = PromptSpec(reference=Reference(torch.ones(128)))
    assert base.prompt_length(alone) == base.prefix_length(alone)


def test_what_was_prepared_for_one_voice_is_not_used_for_another(base: PromptBuilder) -> None:
    """Equal in everything that is written down, and still two."""
    one, other = Reference(torch.ones(128)), Reference(torch.zeros(128))
    found = [inputs(base, reference=reference) for reference in (one, other, one)]
    assert torch.equal(found[0], found[2]) and not torch.equal(found[0], found[1])
    first, second = shown(5, 3), Reference(torch.ones(128), torch.zeros(5, 16).long(), (7, 8, 9))
    found = [inputs(base, reference=reference) for reference in (first, second, first)]
    assert torch.equal(found[0], found[2]) and not torch.equal(found[0], found[1])


def test_a_head_is_made_once(
    prompts: Callable[[str], PromptBuilder], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder, made = prompts("custom_voice"), list[PromptSpec]()
    think = builder._thinking  # a part of the head, and of nothing else that is made

    def thinking(spec: PromptSpec) -> list[int]:
        made.append(spec)
        return think(spec)

    monkeypatch.setattr(builder, "_thinking", thinking)
    for speaker in ("ryan", "Ryan", "ryan"):
        inputs(builder, speaker=speaker, language="italian", instructions="As if in a hurry.")
    assert len(made) == 1
    inputs(builder, speaker="ryan", language="german", instructions="As if in a hurry.")
    assert len(made) == 2


@pytest.mark.parametrize("layout", ["streaming", "full_text"])
def test_no_text_is_refused(layout: str, custom: PromptBuilder) -> None:
    with pytest.raises(RequestError, match="no text"):
        custom.prompt(PromptSpec(speaker="ryan"), [], layout)


@pytest.mark.parametrize("language", [None, "english"])
@pytest.mark.parametrize("speaker", [None, "eric"])
@pytest.mark.parametrize("instructions", [None, "", "Very happy."])
def test_prefix_length_counts_the_positions_before_the_text(
    language: str | None, speaker: str | None, instructions: str | None, custom: PromptBuilder
) -> None:
    spec = PromptSpec(speaker=speaker, language=language, instructions=instructions)
    assert custom.prefix_length(spec) == len(custom.prompt(spec, IDS, "streaming").inputs) - 1
    full = custom.prompt(spec, IDS, "full_text")
    assert custom.prefix_length(spec) == len(full.inputs) - len(IDS) - 2


def test_the_streaming_layout_takes_one_token_and_the_full_text_layout_all(
    custom: PromptBuilder,
) -> None:
    spec = PromptSpec(speaker="ryan")
    streaming = custom.prompt(spec, IDS, "streaming")
    assert (streaming.text_used, streaming.eos_used) == (1, False)
    assert torch.equal(streaming.inputs, custom.prompt(spec, IDS[:1], "streaming").inputs)
    full = custom.prompt(spec, IDS, "full_text")
    assert (full.text_used, full.eos_used) == (len(IDS), True)


def test_the_small_custom_voice_checkpoint_ignores_instructions(small_checkpoint: Path) -> None:
    small = load_model(small_checkpoint)
    builder = small.prompt_builder(
        lambda text: [small.config.text.assistant, 1] if text == "assistant\n" else [1]
    )
    told = builder.prompt(PromptSpec(speaker="ryan", instructions="Sad."), IDS, "streaming")
    plain = builder.prompt(PromptSpec(speaker="ryan"), IDS, "streaming")
    assert torch.equal(told.inputs, plain.inputs)


def test_a_tokenizer_of_another_model_is_noticed(model: SpeechModel) -> None:
    with pytest.raises(CheckpointError, match="do not belong together"):
        model.prompt_builder(lambda text: [7, 8] if text == "assistant\n" else [8])


def test_a_text_vector_does_not_depend_on_its_company(custom: PromptBuilder) -> None:
    together = custom.text(list(range(30)))
    for count in (1, 2, 5):
        assert torch.equal(custom.text(list(range(count))), together[:count])


def test_a_text_for_warming_up_is_spoken_text(custom: PromptBuilder, model: SpeechModel) -> None:
    assert len(custom.sample_ids) >= 3
    assert max(custom.sample_ids) < model.config.text.im_start


def test_a_prefix_is_counted_once_and_refused_each_time(
    design: PromptBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine asks four times for every utterance, and instructions are tokenized for it."""
    encode, told = design._encode, list[str]()

    def noted(text: str) -> Sequence[int]:
        told.append(text)
        return encode(text)

    monkeypatch.setattr(design, "_encode", noted)
    spec = PromptSpec(instructions="Quietly, with a smile.")
    assert len({design.prefix_length(spec) for _ in range(3)}) == 1
    assert len(told) == 1
    for _ in range(2):
        with pytest.raises(RequestError, match="voice 'nobody' is unknown"):
            design.prefix_length(PromptSpec(speaker="nobody"))
