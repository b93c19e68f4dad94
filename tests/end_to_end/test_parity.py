"""Greedy speech that leaves the WebSocket is the official package's, however its text is cut.

The stored waveforms were made with end of speech suppressed (except `*_eos`), so a turn here may
end earlier than the stored one; up to there every sample must agree.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from realtime_tts import RealtimeTTS
from realtime_tts.audio.pcm import FULL_SCALE
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.server.run import RunningServer
from tests.end_to_end.serving import pieces, serving
from tests.parity import PARITY
from tts_scheduler import SchedulerConfig

pytestmark = pytest.mark.asyncio(loop_scope="module")

ServerOf = Callable[[str], Awaitable[RunningServer]]

GREEDY: Any = {"temperature": 0.0, "predictor": {"temperature": 0.0}}


def stored(variant: str) -> Any:
    return np.load(PARITY / f"tiny-{variant}.npz")


def cases(variant: str) -> list[str]:
    with stored(variant) as data:
        meta = json.loads(str(data["meta"]))["cases"]
    return [name for name, case in meta.items() if isinstance(case["text"], str)]


def engine(variant: str, max_frames: int = 40) -> EngineConfig:
    # Random weights may well repeat themselves or fall silent: no guard may cut them.
    return EngineConfig(
        model=str(PARITY / f"tiny-{variant}"),
        scheduler=SchedulerConfig(slots=4),
        max_frames=max_frames,
        guards=GuardConfig(enabled=False),
    )


async def spoken(tts: RealtimeTTS, deltas: Sequence[str]) -> Any:
    turn = await tts.turn()
    for delta in deltas:
        await turn.send(delta)
    await turn.end()
    pcm = b"".join([packet async for packet in turn])
    assert turn.result is not None
    return np.frombuffer(pcm, "<i2"), turn.result


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server_of() -> AsyncIterator[ServerOf]:
    """Gives the server of a variant, started when it is asked for first."""
    started: dict[str, RunningServer] = {}

    async def of(variant: str) -> RunningServer:
        if variant not in started:
            started[variant] = await stack.enter_async_context(serving(engine(variant)))
        return started[variant]

    async with AsyncExitStack() as stack:
        yield of


CASES = [(variant, name) for variant in ("custom_voice", "voice_design") for name in cases(variant)]


@pytest.mark.parametrize(("variant", "name"), CASES)
async def test_greedy_speech_is_the_official_waveform(
    variant: str,
    name: str,
    server_of: ServerOf,
) -> None:
    with stored(variant) as data:
        case = json.loads(str(data["meta"]))["cases"][name]
        wav = data[f"{name}/wav"]
    options: dict[str, Any] = {
        "voice": case.get("speaker"),
        "language": case["language"],
        "instructions": case.get("instruct"),
        "layout": "full_text" if case["non_streaming_mode"] else "streaming",
        "sampling": {**GREEDY, "repetition_penalty": case.get("repetition_penalty", 1.05)},
        "text_filter": "off",
        "trim_silence": "off",
    }
    server = await server_of(variant)
    async with RealtimeTTS(server.websocket_url, **options) as tts:
        # Each case is cut in its own way.
        pcm, result = await spoken(tts, pieces(case["text"], CASES.index((variant, name))))
    assert len(pcm) % 1_920 == 0 and len(pcm) > 0
    assert np.abs(pcm - wav[: len(pcm)] * FULL_SCALE).max() <= 0.5 + 1e-4 * FULL_SCALE
    if name.endswith("_eos"):
        assert (result.reason, len(pcm)) == ("complete", len(wav))
