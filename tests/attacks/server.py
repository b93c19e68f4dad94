"""The server that is attacked: the whole front with short deadlines and few connections for an
address, tones in an engine process, and a voice worker.

`python -m tests.attacks.server FOLDER` prints its port when it is ready. A step raises once for
each time that the file `FOLDER/raise` is made.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from realtime_tts.config import AddressConfig, ServerConfig, SocketConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.interface import Progress
from realtime_tts.engine.multiprocess import MultiprocessEngine
from realtime_tts.logs import configure_logging
from realtime_tts.metrics import Metrics
from realtime_tts.server.run import serve
from realtime_tts.text.stable_bpe import ALPHABET
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.voices.library import VoiceLibrary
from tests.engine.faulty import Faults, FaultyEngine
from tests.voices import makers
from tts_scheduler import SchedulerConfig, StepPlan

SLOTS = 8


@dataclass(frozen=True)
class Breakable:
    """Loads the engine, in its process."""

    fault: Path

    def __call__(self, progress: Progress) -> FakeEngine:
        faults = Faults(before_step=self.before_step)
        return FaultyEngine(FakeEngineConfig(slots=SLOTS, frames_per_token=1), faults)

    def before_step(self, plan: StepPlan) -> None:
        if self.fault.exists():
            self.fault.unlink()
            raise RuntimeError("a step fails (injected)")


def main(folder: Path) -> int:
    """Serve until SIGTERM."""
    configure_logging("json", "info", access_log=True)
    timeouts = SocketConfig(
        write_stall=2.0, handshake_timeout=2.0, body_timeout=2.0, close_timeout=1.0
    )
    metrics = Metrics()
    return serve(
        ServerConfig(port=0, socket=timeouts, addresses=AddressConfig(100.0)),
        lambda: MultiprocessEngine(
            Breakable(folder / "raise"),
            SchedulerConfig(slots=SLOTS, max_queue=4),
            observer=metrics,
        ),
        lambda: Qwen2Tokenizer({char: index for index, char in enumerate(ALPHABET)}, []),
        metrics,
        make_voices=lambda: VoiceLibrary(folder / "voices", makers.faulty(folder / "started")),
        on_ready=lambda port: print(port, flush=True),  # noqa: T201
    )


if __name__ == "__main__":
    from tests.attacks import server  # by its name, which the engine's process finds it by

    sys.exit(server.main(Path(sys.argv[1])))
