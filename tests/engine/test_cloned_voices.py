"""Cloned voices, from the recording to the sound, with text that arrives in pieces."""

from __future__ import annotations

import time
import wave
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from realtime_tts.audio.pcm import FULL_SCALE
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import Append, Ended, Failed, Finish, Open, Started
from realtime_tts.model import PromptSpec, ReferenceSound, Voice, load_voice, to_reference
from realtime_tts.sampling import PredictorSampling, Sampling
from tests.engine.cloning import (
    DOING,
    FRAMES,
    conversation,
    encoder,
    engine,
    ids,
    lighter,
    model,
    stored,
    stored_cases,
    tokenizer,
    voice_of,
)
from tests.model.voices import save_voice
from tests.parity import GREEDY
from tests.waiting import wait_until

SOME = 24
"""Frames of a turn whose text is used up before."""


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "captured"])
def captured(request: pytest.FixtureRequest) -> bool:
    """Which engine speaks; what is captured on a GPU runs uncaptured here."""
    return bool(request.param)


def test_cloned_voices_speak_the_official_waveforms() -> None:
    """From the recording to the sound, every stored case at once, their texts arriving side by
    side; of the reference, nothing is heard. What a GPU captures does so in
    `test_captured_parity.py`."""
    cases = stored_cases()
    texts = {name: ids(text) for name, text, *_ in cases}
    with conversation(engine({name.lower(): voice_of(name) for name, *_ in cases})) as talk:
        for name, _, language, layout in cases:
            spec = UtteranceSpec(voice=name, language=language, sampling=GREEDY, layout=layout)
            talk.loop.submit(Open(name, spec))
        for at in range(0, max(map(len, texts.values())), 3):
            for name, tokens in texts.items():
                if at < len(tokens):
                    end = [Finish(name)] if at + 3 >= len(tokens) else []
                    talk.loop.submit(Append(name, tokens[at : at + 3]), *end)
            time.sleep(0.004)
        ends = {name: talk.over(name) for name, *_ in cases}
    for name, ended in ends.items():
        assert isinstance(ended, Ended), name
        assert (ended.reason, ended.frames) == ("max_length", FRAMES), name
        wav = stored()[f"{name}/wav"] * FULL_SCALE
        assert len(talk.sound(name)) == len(wav) == FRAMES * 1920, name
        assert np.abs(talk.sound(name) - wav).max() <= 0.5 + 1e-4 * FULL_SCALE, name


def recording(path: Path) -> tuple[NDArray[np.float32], int]:
    """Two seconds of something like vowels, written to a WAV file and read again."""
    rate = 24_000
    at = np.arange(2 * rate) / rate
    pitch = np.cumsum(130 + 20 * np.sin(2 * np.pi * 2 * at)) / rate
    harmonics = sum(np.sin(2 * np.pi * k * pitch) / k for k in range(1, 12))
    pcm = (6_000 * harmonics * (1 + np.sin(2 * np.pi * 3 * at)) / 2).astype("<i2")
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(pcm.tobytes())
    with wave.open(str(path), "rb") as file:
        found = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    return found.astype(np.float32) / np.float32(32_768), rate


@pytest.mark.parametrize("transcript", [None, DOING], ids=["embedding", "in-context"])
def test_a_voice_cloned_from_a_wav_file_speaks_streamed_text(
    transcript: str | None, captured: bool, tmp_path: Path
) -> None:
    """Cloned, stored, loaded, and registered while the engine runs; the cut of the text, and when
    its pieces come, change nothing."""
    samples, rate = recording(tmp_path / "ref.wav")
    voice = lighter(encoder().encode(samples, rate, transcript=transcript, name="anna"))
    save_voice(voice, tmp_path / "anna.safetensors")
    voices: dict[str, Voice] = {}
    spec = UtteranceSpec(voice="Anna", seed=5, layout="streaming")
    text = "She said she would be here by noon."
    with conversation(engine(voices, captured=captured, light=True, frames=SOME)) as talk:
        talk.say("early", spec, text)
        assert isinstance(talk.over("early"), Failed)
        voices["anna"] = load_voice(tmp_path / "anna.safetensors")
        talk.say("whole", spec, text, piece=1000, pause=0)
        talk.say("pieces", spec, text, piece=1, pause=0.002)
        talk.say("other", UtteranceSpec(voice="Anna", seed=6, layout="streaming"), text)
        for id in ("whole", "pieces", "other"):
            assert isinstance(talk.over(id), Ended), talk.over(id)
        assert len(talk.sound("whole")) == SOME * 1920
        assert np.array_equal(talk.sound("whole"), talk.sound("pieces"))
        assert not np.array_equal(talk.sound("whole"), talk.sound("other"))


def test_a_reference_in_context_waits_for_the_text_its_prompt_takes(
    captured: bool,
) -> None:
    """26 positions, 7 of them the transcript's: nothing before 19 tokens."""
    voices = {"anna": lighter(voice_of("icl_ns"))}
    spec = UtteranceSpec(voice="anna", sampling=GREEDY)
    found = engine(voices, captured=captured, light=True, frames=SOME)
    assert found.text_needed(spec) == 19
    with conversation(found) as talk:
        talk.loop.submit(Open("a", spec), Append("a", [5] * 18))
        time.sleep(0.3)
        assert talk.of("a") == []
        talk.loop.submit(Append("a", [5]))
        wait_until(lambda: talk.of("a"))
        begun = talk.of("a")[0]
        assert isinstance(begun, Started) and (begun.id, begun.layout) == ("a", "streaming")
        talk.loop.submit(Finish("a"))
        assert isinstance(talk.over("a"), Ended)


def test_a_transcript_longer_than_its_recording_goes_on_under_the_first_frames(
    captured: bool,
) -> None:
    """Its rest is fed before the text, one id to a frame."""
    voice = lighter(voice_of("icl_textlong_st"))
    voice = replace(voice, name="anna", transcript=DOING * 3)
    spoken_by = engine({"anna": voice}, captured=captured, light=True)
    spec = UtteranceSpec(voice="anna", sampling=GREEDY, layout="streaming")
    assert spoken_by.text_needed(spec) == 11 - len(ids(DOING * 3)) < 0
    with conversation(spoken_by) as talk:
        talk.say("a", spec, "Hello there.")
        talk.over("a")
    wanted = spoken_by_hand(voice, [*ids(DOING * 3), *ids("Hello there.")])
    assert np.abs(talk.sound("a") - wanted * FULL_SCALE).max() <= 0.5 + 1e-4 * FULL_SCALE


def spoken_by_hand(voice: Voice, text: list[int]) -> NDArray[np.float32]:
    """Greedy speech; of `text`, transcript and all, the prompt takes an id for each position."""
    talker = model("base", light=True)
    config = talker.config
    builder = talker.prompt_builder(tokenizer().encode)
    reference = to_reference(voice, config, tokenizer().encode)
    prompt = builder.prompt(PromptSpec(reference=reference), [1], "streaming")
    assert voice.codes is not None
    left = [*text[len(voice.codes) + 1 :], config.text.tts_eos]
    left += [config.text.tts_pad] * FRAMES
    state, codes = talker.new_state(1), []
    state.begin(0, Sampling(temperature=0, predictor=PredictorSampling(temperature=0)), 0)
    hidden = talker.talker.prefill(prompt.inputs, 0, state.kv)[None]
    for frame in range(FRAMES):
        made = talker.frame(hidden, [0], state)
        codes.append(made.codes)
        inputs = made.embedding + builder.text(left[frame : frame + 1])
        hidden = talker.talker.decode(inputs, [0], state.kv)
    ReferenceSound(talker.codec, state.codec).begin(0, reference)
    return talker.codec.decode(torch.stack(codes, 1), [0], state.codec)[0].numpy()


def test_a_voice_deleted_while_its_turn_waits_still_speaks(
    captured: bool,
) -> None:
    voices = {"anna": voice_of("xvec_st")}
    with conversation(engine(voices, captured=captured, light=True, frames=SOME)) as talk:
        talk.loop.submit(Open("a", UtteranceSpec(voice="anna", sampling=GREEDY)))
        deadline = time.monotonic() + 10
        while talk.loop.scheduler.active == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        voices.clear()
        talk.loop.submit(Append("a", ids("Hello there.")), Finish("a"))
        assert isinstance(talk.over("a"), Ended)
        talk.say("b", UtteranceSpec(voice="anna"), "Hello")
        failed = talk.over("b")
        assert isinstance(failed, Failed) and "'anna'" in failed.message
