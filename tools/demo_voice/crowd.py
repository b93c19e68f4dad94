"""Utterances of a checkpoint, many at a time: from an engine, without a server and its pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Ended,
    EngineLink,
    Event,
    Failed,
    Finish,
    Open,
    Refused,
)
from realtime_tts.engine.links import make_links
from realtime_tts.errors import CheckpointError, EngineError
from realtime_tts.metrics import Metrics
from realtime_tts.sampling import Sampling
from tools.demo_voice.codes import Encode, word_tokens
from tools.demo_voice.speech import VOICE_NAMES
from tools.demo_voice.student import Layout, StudentSettings
from tools.demo_voice.utterance import Text, Utterance

GPU_MEMORY = "30%"
"""One process uses two fifths of a GPU, so two share it, and their recognisers need memory, too."""
_SESSIONS = {"cuda": 256, "cpu": 24}

Job = tuple[Utterance, UtteranceSpec]
"""What is said, and how."""
NextJob = Callable[[Sampling], Job | None]
"""Is told how the checkpoint samples by itself; None: there is no more to say for now."""


def job(
    encode: Encode,
    text: Text,
    voice: int,
    layout: Layout,
    seed: int,
    sampling: Sampling,
    attempt: int = 0,
) -> Job:
    """Make what a crowd says of a text: `voice` is a place in `VOICE_NAMES`."""
    spec = UtteranceSpec(
        voice=VOICE_NAMES[voice], language="english", seed=seed, sampling=sampling, layout=layout
    )
    return Utterance(text, attempt, *word_tokens(encode, " ".join(text)), voice, layout), spec


class Crowd:
    """Says what `next_job` gives. On a GPU the engine has a process of its own: it needs the
    interpreter as much as who judges its speech does. `memory`: of the GPU, for that engine."""

    def __init__(
        self, checkpoint: Path, next_job: NextJob, device: torch.device, memory: str
    ) -> None:
        self._sessions = _SESSIONS[device.type]
        settings = StudentSettings(checkpoint, device.type, threads=1, sessions=self._sessions)
        self._config = settings.engine()
        if device.type == "cuda":
            self._config = replace(
                self._config, kind="process", dtype="bfloat16", gpu_memory=memory
            )
        self._next_job, self._opened = next_job, 0
        self._link: EngineLink | None = None
        self._speaking: dict[str, Utterance] = {}
        self._over: asyncio.Queue[Utterance] = asyncio.Queue()

    async def spoken(self) -> AsyncGenerator[Utterance]:
        """Utterances as they end, until no job is left. Raises CheckpointError, and EngineError
        if the engine does not speak one."""
        link = make_links((self._config,), Metrics(), lambda *stage: None)
        link.start(self._deliver)
        try:
            while not (status := link.status()).ready:
                if status.failure is not None:
                    raise CheckpointError(status.failure)
                await asyncio.sleep(0.05)
            self._link = link
            self._fill()
            while self._speaking or not self._over.empty():
                utterance = await self._over.get()
                if utterance.failure:
                    raise EngineError(f"{' '.join(utterance.text)!r}: {utterance.failure}")
                yield utterance
                self._fill()
        finally:
            self._link = None
            await link.stop()

    def _fill(self) -> None:
        while self._link is not None and len(self._speaking) < self._sessions:
            job = self._next_job(self._link.info.default_sampling)
            if job is None:
                return
            utterance, spec = job
            self._opened += 1
            id = f"utterance-{self._opened}"
            self._speaking[id] = utterance
            self._link.submit(Open(id, spec), Append(id, utterance.ids), Finish(id))

    def _deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Audio):
                utterance = self._speaking[event.id]
                utterance.pcm += event.pcm
                utterance.codes += event.codes
                utterance.tokens += event.tokens
            elif isinstance(event, Ended):
                utterance = self._speaking.pop(event.id)
                utterance.reason = event.reason
                self._over.put_nowait(utterance)
            elif isinstance(event, Failed | Refused):
                utterance = self._speaking.pop(event.id)
                utterance.failure = event.message
                self._over.put_nowait(utterance)
        self._fill()  # also while what was said is judged
