"""Decisions of a streaming speech engine: which utterances prefill, decode or hold in a step.

The package is pure: counts and ids go in, plans come out, and time is an argument. See
scheduler/README.md.
"""

from tts_scheduler.admission import SHORTEST_RETRY, Admission, Admitted, Queued, Refused
from tts_scheduler.config import SchedulerConfig
from tts_scheduler.cost import CostModel, Load, StepCosts
from tts_scheduler.kv_cache import DoesNotFit, KVCacheManager, KVCacheSize
from tts_scheduler.pacing import FeedPace, Pacing, Reaction
from tts_scheduler.plan import (
    CodecRun,
    Decode,
    Layout,
    Prefill,
    Reservation,
    StepPlan,
    StepResult,
    SwapIn,
    SwapOut,
)
from tts_scheduler.playback import Playback
from tts_scheduler.scheduler import Scheduler
from tts_scheduler.utterance import Phase, Spoken, Stats

__all__ = [
    "SHORTEST_RETRY",
    "Admission",
    "Admitted",
    "CodecRun",
    "CostModel",
    "Decode",
    "DoesNotFit",
    "FeedPace",
    "KVCacheManager",
    "KVCacheSize",
    "Layout",
    "Load",
    "Pacing",
    "Phase",
    "Playback",
    "Prefill",
    "Queued",
    "Reaction",
    "Refused",
    "Reservation",
    "Scheduler",
    "SchedulerConfig",
    "Spoken",
    "Stats",
    "StepCosts",
    "StepPlan",
    "StepResult",
    "SwapIn",
    "SwapOut",
]
