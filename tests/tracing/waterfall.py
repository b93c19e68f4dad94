"""`python -m tests.tracing.waterfall`: the demo voice speaks a turn whose text pauses, and the
trace that a collector gets of it is printed, as docs/tracing.md shows it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator

from realtime_tts.client import RealtimeTTS
from tests.clients.serving import serving
from tests.tracing.collector import TRACEPARENT, Collector, Seen, collecting

_WIDTH = 44
_SHOWN = "realtime_tts."


def waterfall(collector: Collector, turn: Seen) -> str:
    """A line for each span, with a bar where it was; then what the turn's span says."""
    whole = turn.ends - turn.begins
    lines = []
    for span in [turn, *collector.parts(turn)]:
        begins = round((span.begins - turn.begins) / whole * _WIDTH)
        ends = max(begins + 1, round((span.ends - turn.begins) / whole * _WIDTH))
        bar = " " * begins + "█" * (ends - begins)
        name = span.name if span is turn else f"  {span.name}"
        of = span.attributes.get(f"{_SHOWN}queue.of")
        name += f" ({of})" if of else ""
        from_ms, took_ms = (span.begins - turn.begins) / 1e6, (span.ends - span.begins) / 1e6
        lines.append(f"{name:22}{from_ms:9.1f} ms {took_ms:9.1f} ms  |{bar:{_WIDTH}}|")
    lines += [f"    {name} = {value}" for name, value in sorted(turn.attributes.items())]
    return "\n".join(line.rstrip() for line in lines)


async def _deltas() -> AsyncIterator[str]:
    yield "The tide is coming in, and the wind has turned. "
    await asyncio.sleep(4.5)  # a language model that calls a tool
    yield "Good morning to you all."


async def _speak(url: str) -> None:
    async with RealtimeTTS(url, voice="ava", seed=7) as tts:
        async for _ in tts.speak("Warm."):
            pass
        async for _ in tts.speak(_deltas(), traceparent=TRACEPARENT):
            pass


def main() -> None:
    with collecting() as collector:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.endpoint
        with serving("--tracing") as server:
            asyncio.run(_speak(server.websocket_url))
            while len(collector.turns) < 2:
                time.sleep(0.1)
        sys.stdout.write(waterfall(collector, collector.turns[-1]) + "\n")


if __name__ == "__main__":
    main()
