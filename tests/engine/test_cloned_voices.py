"""Cloned voices, from the recording to the sound, with text that arrives in pieces."""

from __future__ import annotations

import json
import queue
import threading
import time
import wave
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from realtime_tts.audio.pcm import FULL_SCALE
from realtime_tts.engine.check import check_spec
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import (
    Append,
    Audio,
    Ended,
    Event,
    Failed,
    Finish,
    Flush,
    Open,
    Refused,
    SamplerSettings,
    SamplingSettings,
    Started,
    UtteranceSpec,
)
from realtime_tts.engine.loop import EngineLoop
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.errors import RequestError
from realtime_tts.model import (
    PromptSpec,
    ReferenceSound,
    Sampling,
    SpeechModel,
    Voice,
    VoiceEncoder,
    load_model,
    load_voice,
    save_voice,
    to_reference,
)
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tts_scheduler import Scheduler, SchedulerConfig

PARITY = Path(__file__).parents[1] / "data" / "parity"
GREEDY = SamplingSettings(SamplerSettings(0.0), SamplerSettings(0.0))
FRAMES, SLOTS = 40, 8
DOING = "How are you doing today?"
TRANSCRIPTS = {  # of the stored cases; the recording is the short one where `SHORT` says so
    "icl_textshort_st": DOING,
    "icl_textlong_st": DOING,
    "icl_ns": DOING,
    "icl_batch_st.0": DOING,
    "icl_batch_st.1": "Hello.",
}
SHORT = ("icl_textlong_st", "icl_batch_st.1")


@cache
def stored() -> dict[str, NDArray[Any]]:
    with np.load(PARITY / "tiny-base.npz") as arrays:
        return dict(arrays)


@cache
def encoder() -> VoiceEncoder:
    return VoiceEncoder.load(PARITY / "tiny-base")


@cache
def tokenizer() -> Qwen2Tokenizer:
    return Qwen2Tokenizer.from_folder(PARITY / "tiny-base")


def ids(text: str) -> list[int]:
    return tokenizer().encode("assistant\n" + text)[2:]


@cache
def model(variant: str) -> SpeechModel:
    """Speech without an end, as the stored one is."""
    torch.set_num_threads(1)
    found = load_model(PARITY / f"tiny-{variant}")
    endless = replace(found.config.generation, min_frames=10**6)
    found.config = replace(found.config, generation=endless)
    return found


def engine(voices: Mapping[str, Voice], variant: str = "base") -> TorchEngine:
    """Every turn has `FRAMES` frames."""
    return TorchEngine(
        model(variant), tokenizer(), name=variant, slots=SLOTS, max_frames=FRAMES,
        voices=lambda name: voices.get(name),
    )  # fmt: skip


class Conversation:
    """A loop in a thread, and what it said."""

    def __init__(self, engine: TorchEngine) -> None:
        self._arrived: queue.SimpleQueue[list[Event]] = queue.SimpleQueue()
        config = SchedulerConfig(slots=SLOTS, max_rows=SLOTS, lead_cap=60.0)
        self.loop = EngineLoop(
            engine, Scheduler(config), self._arrived.put, guards=GuardConfig(enabled=False)
        )
        self.events: list[Event] = []

    def of(self, id: str) -> list[Event]:
        while not self._arrived.empty():
            self.events += self._arrived.get()
        return [event for event in self.events if event.id == id]

    def over(self, id: str) -> Event:
        """The utterance's last event, when it is there."""
        while not any(isinstance(e, Ended | Failed | Refused) for e in self.of(id)):
            self.events += self._arrived.get(timeout=30)
        return self.of(id)[-1]

    def sound(self, id: str) -> NDArray[np.int16]:
        pcm = b"".join(event.pcm for event in self.of(id) if isinstance(event, Audio))
        return np.frombuffer(pcm, "<i2")

    def say(
        self, id: str, spec: UtteranceSpec, text: str, piece: int = 3, pause: float = 0.004
    ) -> None:
        """Open, send token ids in pieces, finish."""
        self.loop.submit(Open(id, spec))
        tokens = ids(text)
        for at in range(0, len(tokens), piece):
            self.loop.submit(Append(id, tokens[at : at + piece]))
            time.sleep(pause)
        self.loop.submit(Finish(id))


@contextmanager
def conversation(engine: TorchEngine) -> Iterator[Conversation]:
    talk = Conversation(engine)
    thread = threading.Thread(target=talk.loop.run)
    thread.start()
    try:
        yield talk
    finally:
        talk.loop.stop()
        thread.join(10)
        assert not thread.is_alive()


def stored_cases() -> list[tuple[str, str, str | None, str]]:
    """(name, text, language, layout) of every stored row."""
    rows = []
    for name, case in json.loads(str(stored()["meta"]))["cases"].items():
        texts, languages = case["text"], case["language"]
        layout = "full_text" if case["non_streaming_mode"] else "streaming"
        if isinstance(texts, str):
            rows.append((name, texts, languages, layout))
        else:
            rows += [(f"{name}.{at}", text, languages[at], layout) for at, text in enumerate(texts)]
    return rows


def voice_of(case: str) -> Voice:
    """The voice of a stored case, made from its recording."""
    samples = stored()["ref_short/samples" if case in SHORT else "ref/samples"]
    voice = encoder().encode(samples, 24_000, transcript=TRANSCRIPTS.get(case), silence=0)
    if case == "icl_batch_st.1":
        # Its last code heard the padding of its batch (tests/model/test_voice_encoder.py).
        voice = replace(voice, codes=torch.from_numpy(stored()[f"{case}/ref_codes"]).long())
    return replace(voice, name=case)


@pytest.fixture(scope="module")
def spoken() -> Conversation:
    """Every stored case, spoken at once on one engine, their texts arriving in turn."""
    voices = {name.lower(): voice_of(name) for name, *_ in stored_cases()}
    with conversation(engine(voices)) as talk:
        for name, text, language, layout in stored_cases():
            spec = UtteranceSpec(voice=name, language=language, sampling=GREEDY, layout=layout)
            talk.say(name, spec, text)
        for name, *_ in stored_cases():
            talk.over(name)
    return talk


@pytest.mark.parametrize("case", [name for name, *_ in stored_cases()])
def test_a_cloned_voice_speaks_the_official_waveform(case: str, spoken: Conversation) -> None:
    """From the recording to the sound; of the reference, nothing is heard."""
    ended = spoken.over(case)
    assert isinstance(ended, Ended) and (ended.reason, ended.frames) == ("max_length", FRAMES)
    wav = stored()[f"{case}/wav"] * FULL_SCALE
    assert len(spoken.sound(case)) == len(wav) == FRAMES * 1920
    assert np.abs(spoken.sound(case) - wav).max() <= 0.5 + 1e-4 * FULL_SCALE


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
    return found.astype(np.float32) / 32_768, rate


@pytest.mark.parametrize("transcript", [None, DOING], ids=["embedding", "in-context"])
def test_a_voice_cloned_from_a_wav_file_speaks_streamed_text(
    transcript: str | None, tmp_path: Path
) -> None:
    """Cloned, stored, loaded, and registered while the engine runs; the cut of the text, and when
    its pieces come, change nothing."""
    samples, rate = recording(tmp_path / "ref.wav")
    voice = encoder().encode(samples, rate, transcript=transcript, name="anna")
    save_voice(voice, tmp_path / "anna.safetensors")
    voices: dict[str, Voice] = {}
    spec = UtteranceSpec(voice="Anna", seed=5, layout="streaming")
    text = "She said she would be here by noon. " * 3
    with conversation(engine(voices)) as talk:
        talk.say("early", spec, text)
        assert isinstance(talk.over("early"), Failed)
        voices["anna"] = load_voice(tmp_path / "anna.safetensors")
        talk.say("whole", spec, text, piece=1000, pause=0)
        talk.say("pieces", spec, text, piece=1, pause=0.002)
        talk.say("other", UtteranceSpec(voice="Anna", seed=6, layout="streaming"), text)
        for id in ("whole", "pieces", "other"):
            assert isinstance(talk.over(id), Ended), talk.over(id)
        assert len(talk.sound("whole")) == FRAMES * 1920
        assert np.array_equal(talk.sound("whole"), talk.sound("pieces"))
        assert not np.array_equal(talk.sound("whole"), talk.sound("other"))


def test_a_reference_in_context_waits_for_the_text_its_prompt_takes() -> None:
    """26 positions, 7 of them the transcript's: nothing before 19 tokens, flushed or not."""
    voices = {"anna": voice_of("icl_ns")}
    spec = UtteranceSpec(voice="anna", sampling=GREEDY)
    found = engine(voices)
    assert found.text_needed(spec) == 19
    with conversation(found) as talk:
        talk.loop.submit(Open("a", spec), Append("a", [5] * 18), Flush("a"))
        time.sleep(0.3)
        assert talk.of("a") == []
        talk.loop.submit(Append("a", [5]))
        deadline = time.monotonic() + 10
        while not talk.of("a") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert talk.of("a")[0] == Started("a", "streaming")
        talk.loop.submit(Finish("a"))
        assert isinstance(talk.over("a"), Ended)


def test_a_transcript_longer_than_its_recording_goes_on_under_the_first_frames() -> None:
    """Its rest is fed before the text, one id to a frame."""
    voice = replace(voice_of("icl_textlong_st"), name="anna", transcript=DOING * 3)
    spoken_by = engine({"anna": voice})
    spec = UtteranceSpec(voice="anna", sampling=GREEDY, layout="streaming")
    assert spoken_by.text_needed(spec) == 11 - len(ids(DOING * 3)) < 0
    with conversation(spoken_by) as talk:
        talk.say("a", spec, "Hello there.")
        talk.over("a")
    wanted = spoken_by_hand(voice, [*ids(DOING * 3), *ids("Hello there.")])
    assert np.abs(talk.sound("a") - wanted * FULL_SCALE).max() <= 0.5 + 1e-4 * FULL_SCALE


def spoken_by_hand(voice: Voice, text: list[int]) -> NDArray[np.float32]:
    """Greedy speech; of `text`, transcript and all, the prompt takes an id for each position."""
    talker, config = model("base"), model("base").config
    builder = talker.prompt_builder(tokenizer().encode)
    reference = to_reference(voice, config, tokenizer().encode)
    prompt = builder.prompt(PromptSpec(reference=reference), [1], "streaming")
    assert voice.codes is not None
    left = [*text[len(voice.codes) + 1 :], config.text.tts_eos]
    left += [config.text.tts_pad] * FRAMES
    state, codes = talker.new_state(1), []
    state.begin(0, Sampling(temperature=0, predictor_temperature=0), 0)
    hidden = talker.talker.prefill(prompt.inputs, 0, state.kv)[None]
    for frame in range(FRAMES):
        made = talker.frame(hidden, [0], state)
        codes.append(made.codes)
        inputs = made.embedding + builder.text(left[frame : frame + 1])
        hidden = talker.talker.decode(inputs, [0], state.kv)
    ReferenceSound(talker.codec, state.codec).begin(0, reference)
    return talker.codec.decode(torch.stack(codes, 1), [0], state.codec)[0].numpy()


def test_a_voice_deleted_while_its_turn_waits_still_speaks() -> None:
    voices = {"anna": voice_of("xvec_st")}
    with conversation(engine(voices)) as talk:
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


@pytest.mark.parametrize(
    ("variant", "spec", "message"),
    [
        ("base", {}, "name one of /v1/voices, or load a CustomVoice"),
        ("base", {"voice": "ryan"}, "unknown voice 'ryan': .*CustomVoice"),
        ("base", {"voice": "anna", "instructions": "Sad."}, "CustomVoice and VoiceDesign"),
        ("base", {"voice": "small"}, r"'small' was made for .*-0b6: .* Base checkpoint of the"),
        ("base", {"voice": "anna", "language": "latin"}, "unknown language 'latin'"),
        ("custom_voice", {"voice": "anna"}, r"'anna' is a cloned .*Base checkpoint .*-1b7"),
        ("custom_voice", {"voice": "nobody"}, "unknown voice 'nobody'; this checkpoint has"),
        ("voice_design", {"voice": "anna"}, r"'anna' is a cloned .*Base checkpoint .*-1b7"),
        ("voice_design", {"voice": "ryan"}, "a CustomVoice checkpoint has some"),
    ],
)
def test_what_a_checkpoint_cannot_do_is_refused_with_the_one_that_can(
    variant: str, spec: dict[str, str], message: str
) -> None:
    anna = voice_of("xvec_st")
    small = Voice("small", torch.ones(64), None, None, "qwen3-tts-12hz-0b6")
    found = engine({"anna": anna, "small": small}, variant)
    with pytest.raises(RequestError, match=message):
        found.check(UtteranceSpec(**spec))


@pytest.mark.parametrize(
    ("variant", "spec"),
    [
        ("base", {"voice": "Anna", "language": "German"}),
        ("custom_voice", {"voice": "Ryan", "instructions": "Sad."}),
        ("custom_voice", {}),
        ("voice_design", {"instructions": "An old man with a deep voice."}),
        ("voice_design", {}),
    ],
)
def test_what_a_checkpoint_can_do_passes_front_and_engine(
    variant: str, spec: dict[str, str]
) -> None:
    found = engine({"anna": voice_of("xvec_st")}, variant)
    found.check(UtteranceSpec(**spec))
    check_spec(found.info, UtteranceSpec(**spec))


def test_a_base_checkpoint_warms_up_without_any_voice() -> None:
    steps = engine({}).warm_up(lambda what, done, total: None)
    assert [step.plan.rows for step in steps if step.plan.prefills] == [1, 2, 4, 8]
