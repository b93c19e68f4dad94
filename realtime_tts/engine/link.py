"""What the front asks of an engine: commands go in, events come back.

All of them are msgspec structs, so that the same link can cross a process boundary. Free of torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from realtime_tts.engine.interface import EngineInfo, UtteranceSpec

# Commands: front -> engine ------------------------------------------------------------------


class Open(msgspec.Struct, frozen=True, tag=True):
    """`listener_free_after`: seconds until the listener has heard the session's earlier turns.
    `continues`: a turn that was spoken in part, and is not refused for lack of room."""

    id: str
    spec: UtteranceSpec
    listener_free_after: float = 0.0
    lead_cap: float | None = None
    continues: bool = False


class Append(msgspec.Struct, frozen=True, tag=True):
    id: str
    ids: list[int]


class Finish(msgspec.Struct, frozen=True, tag=True):
    id: str


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Stop at once. Idempotent; no event answers it, and events under way are to be ignored."""

    id: str


class Played(msgspec.Struct, frozen=True, tag=True):
    """The listener has played `seconds` of this utterance."""

    id: str
    seconds: float


class Lead(msgspec.Struct, frozen=True, tag=True):
    """`lead_cap` of this utterance is so many seconds from now on."""

    id: str
    lead_cap: float


Command = Open | Append | Finish | Cancel | Played | Lead


# Events: engine -> front --------------------------------------------------------------------


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Not admitted, or queued too long. Nothing more follows for this id.

    `full`: the next turn would be refused as well, for `retry_after` seconds or until one ends."""

    id: str
    code: str
    message: str
    retry_after: float
    full: bool = False


class Started(msgspec.Struct, frozen=True, tag=True):
    """Prefilled: the first audio follows. `layout` is the one that was used."""

    id: str
    layout: str


class Audio(msgspec.Struct, frozen=True, tag=True):
    """`pcm`: s16le mono at the engine's sample rate. `held_seconds`: waited for text so far.
    `stands`: its text is used up; `Waits` comes next, and says so."""

    id: str
    pcm: bytes
    held_seconds: float = 0.0
    stands: bool = False


class Waits(msgspec.Struct, frozen=True, tag=True):
    """The `text_tokens` that came are used up: without more, or the end, nothing more is made."""

    id: str
    text_tokens: int


class Ended(msgspec.Struct, frozen=True, tag=True):
    """Speech is over and all audio was sent. Nothing more follows for this id.

    `reason`: complete, max_length, guard_budget, guard_silence or guard_repetition.
    """

    id: str
    reason: str
    frames: int
    held_seconds: float


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The utterance ended with an error. Nothing more follows for this id."""

    id: str
    code: str
    message: str
    retryable: bool
    held_seconds: float = 0.0


Event = Refused | Started | Audio | Waits | Ended | Failed


class EngineStatus(msgspec.Struct, frozen=True):
    """A snapshot for `/readyz` and `/metrics`."""

    ready: bool
    active: int
    held: int
    queued: int
    capacity: int
    last_step_age: float
    """Seconds since the loop last finished a step or looked for work."""
    failure: str | None = None


class EngineLink(Protocol):
    """The front's handle on an engine, whatever carries it (thread or process)."""

    @property
    def info(self) -> EngineInfo: ...

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        """Start the loop. `deliver` is called on the asyncio loop, once per step, in order."""

    def submit(self, *commands: Command) -> None:
        """Queue commands; never blocks, callable from the asyncio loop.

        Those of one call are applied together: no step comes between them.
        """

    def info_for(self, spec: UtteranceSpec) -> EngineInfo:
        """What the checkpoint that speaks this can do, where there are several.

        Raises RequestError for one that is not loaded.
        """

    def check(self, spec: UtteranceSpec) -> None:
        """Raise RequestError if the engine cannot do what `spec` asks. Cheap."""

    def status(self) -> EngineStatus: ...

    async def stop(self) -> None:
        """Stop the loop; running utterances end with Failed(code="engine_stopped")."""
