"""Engines that speak cloned voices, for tests: the stored recordings, voices, and conversations."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import Append, Audio, Ended, Event, Failed, Finish, Open, Refused
from realtime_tts.engine.loop import EngineLoop
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.model import SpeechModel, Voice, VoiceLookup, load_model
from realtime_tts.model.voice_encoder import VoiceEncoder
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.model.light import GROUPS, light_model
from tests.parity import PARITY, rows_of
from tests.waiting import SECONDS
from tts_scheduler import Scheduler, SchedulerConfig

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
def model(variant: str, light: bool = False) -> SpeechModel:
    """Speech without an end, as the stored one is; a `light` one says something else, sooner."""
    torch.set_num_threads(1)
    found = (light_model if light else load_model)(PARITY / f"tiny-{variant}")
    endless = replace(found.config.generation, min_frames=10**6)
    found.config = replace(found.config, generation=endless, alignment_heads=((0, 1), (1, 0)))
    return found


def engine(
    voices: Mapping[str, Voice],
    variant: str = "base",
    *,
    captured: bool = False,
    light: bool = False,
    frames: int = FRAMES,
) -> ModelEngine:
    """Every turn has `frames` frames. The voices of a `light` one are `lighter`."""
    lookup: VoiceLookup = lambda name: voices.get(name)  # noqa: E731
    if not captured:
        return TorchEngine(
            model(variant, light),
            tokenizer(),
            name=variant,
            slots=SLOTS,
            max_frames=frames,
            voices=lookup,
        )
    return CapturedEngine(
        model(variant, light),
        tokenizer(),
        name=variant,
        slots=SLOTS,
        kv_positions=128 * SLOTS,
        max_frames=frames,
        voices=lookup,
    )


def lighter(voice: Voice) -> Voice:
    """With as many codes of each frame as a light model has."""
    return voice if voice.codes is None else replace(voice, codes=voice.codes[:, :GROUPS])


class Conversation:
    """A loop in a thread, and what it said."""

    def __init__(self, engine: ModelEngine) -> None:
        self._arrived: queue.SimpleQueue[list[Event]] = queue.SimpleQueue()
        # Nobody listens: a machine with other work, too, is to let everybody in.
        config = SchedulerConfig(
            slots=SLOTS, max_rows=SLOTS, lead_cap=60.0, utilisation=1000.0, kv_utilisation=1000.0
        )
        scheduler = Scheduler(config, kv_cache=engine.kv_cache)
        self.loop = EngineLoop(
            engine, scheduler, self._arrived.put, guards=GuardConfig(enabled=False)
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
def conversation(engine: ModelEngine) -> Iterator[Conversation]:
    talk = Conversation(engine)
    thread = threading.Thread(target=talk.loop.run)
    thread.start()
    try:
        yield talk
    finally:
        talk.loop.stop()
        thread.join(SECONDS)
        assert not thread.is_alive()


def stored_cases() -> list[tuple[str, str, str | None, str]]:
    """(name, text, language, layout) of every stored row."""
    return [
        (
            name,
            given["text"],
            given["language"],
            "full_text" if given["non_streaming_mode"] else "streaming",
        )
        for name, given in rows_of(json.loads(str(stored()["meta"])))
    ]


def voice_of(case: str) -> Voice:
    """The voice of a stored case, made from its recording."""
    samples = stored()["ref_short/samples" if case in SHORT else "ref/samples"]
    voice = encoder().encode(samples, 24_000, transcript=TRANSCRIPTS.get(case))
    if case == "icl_batch_st.1":
        # Its last code heard the padding of its batch (tests/model/test_voice_encoder.py).
        voice = replace(voice, codes=torch.from_numpy(stored()[f"{case}/ref_codes"]).long())
    return replace(voice, name=case)
