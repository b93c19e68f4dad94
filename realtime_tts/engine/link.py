"""The front's interface to an engine: commands go in, events come back.

All of them are msgspec structs, so that the same link can cross a process boundary. Free of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec

from realtime_tts.engine.interface import EngineInfo, UtteranceSpec

# Commands: front -> engine ------------------------------------------------------------------


class Spoken(msgspec.Struct, frozen=True):
    """What another engine has spoken of an utterance, and the listener was given.

    `codes` and `tokens`: of all its frames, as in `Audio`. `samples`: the number of their samples
    for the listener, without silence that was left out; the last `unsent` of them wait for their
    packet to be full. `silent` and `held_seconds` as in the last `Audio`.
    """

    codes: bytes
    samples: int
    unsent: int = 0
    silent: int = 0
    held_seconds: float = 0.0
    tokens: bytes = b""


class Open(msgspec.Struct, frozen=True, tag=True):
    """Open an utterance. `listener_free_after`: seconds until the listener has heard the session's
    earlier turns, and what was `spoken` of this one. `continues`: it continues a turn that was
    spoken in part, and is not refused for lack of capacity. All of its text is sent again, in
    commands of the same call. `payer`: the account, and its share of a full engine beside other
    accounts."""

    id: str
    spec: UtteranceSpec
    listener_free_after: float = 0.0
    lead_cap: float | None = None
    continues: bool = False
    spoken: Spoken | None = None
    payer: tuple[str, float] = ("", 1.0)


class Append(msgspec.Struct, frozen=True, tag=True):
    """Add text token ids."""

    id: str
    ids: list[int]


class Finish(msgspec.Struct, frozen=True, tag=True):
    """End the text."""

    id: str


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Stop at once. Idempotent. No event answers it; ignore events that are on their way."""

    id: str


class Played(msgspec.Struct, frozen=True, tag=True):
    """Report that the listener has played `seconds` of this utterance."""

    id: str
    seconds: float


class Lead(msgspec.Struct, frozen=True, tag=True):
    """Set the `lead_cap` of this utterance, in seconds, from now on."""

    id: str
    lead_cap: float


Command = Open | Append | Finish | Cancel | Played | Lead


class CommandQueue(Protocol):
    """A source of commands, like a `queue.SimpleQueue` of groups that are applied together."""

    def put(self, commands: Sequence[Command], /) -> None: ...

    def get(self, *, timeout: float) -> Sequence[Command]: ...

    def get_nowait(self) -> Sequence[Command]: ...


# Events: engine -> front --------------------------------------------------------------------


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The utterance was not admitted, or queued for too long. No event follows for its id.

    `full`: the next turn would be refused as well, for `retry_after` seconds or until one ends.
    """

    id: str
    code: str
    message: str
    retry_after: float
    full: bool = False


class Started(msgspec.Struct, frozen=True, tag=True):
    """The utterance was prefilled; its audio follows. `layout` is the one that was used. `moved`:
    another engine had it before, or the same one before its restart; nothing was lost
    (`failover.py`). `seconds`: duration of the step with its prefill. `engine`: the name in the log
    of the engine process that has it."""

    id: str
    layout: str
    moved: bool = False
    seconds: float = 0.0
    engine: str = ""


class Audio(msgspec.Struct, frozen=True, tag=True):
    """Sound of an utterance. `pcm`: s16le mono at the engine's sample rate. `held_seconds`: time it
    has waited for text so far. `stands`: its text is used up; `Waits` follows. `codes`: of the
    frames that make this sound (`made_codes.py`); the last frame ends with the last sample.
    `silent`: number of inaudible samples in a row, up to the last one. `tokens`: the text token
    that each of these frames speaks, in the same form; empty where the checkpoint does not tell."""

    id: str
    pcm: bytes
    held_seconds: float = 0.0
    stands: bool = False
    codes: bytes = b""
    silent: int = 0
    tokens: bytes = b""


class Waits(msgspec.Struct, frozen=True, tag=True):
    """All `text_tokens` received are used up: no more is made without more text, or its end."""

    id: str
    text_tokens: int


class Ended(msgspec.Struct, frozen=True, tag=True):
    """Speech is over and all audio was sent. No event follows for its id.

    `reason`: complete, max_length, guard_budget, guard_silence, guard_repetition or guard_text.
    """

    id: str
    reason: str
    frames: int
    held_seconds: float


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The utterance ended with an error. No event follows for its id."""

    id: str
    code: str
    message: str
    retryable: bool
    held_seconds: float = 0.0


RESTARTED = (
    "engine_restarted",
    "the engine was restarted in the middle of this turn; send its text again",
)
"""Code and message of the failure of a turn that nothing continues when its engine restarts."""


Event = Refused | Started | Audio | Waits | Ended | Failed
Last = Refused | Ended | Failed
"""Events after which none follows for their id."""


class EngineStatus(msgspec.Struct, frozen=True):
    """A snapshot for `/readyz` and `/metrics`, and for choosing an engine for a turn.

    `others`: utterances of other fronts. `silence`: seconds without a message from an engine's
    process, or of the step it is in. `step`: the longest of its recent steps, in seconds.
    `leaving`: it is about to stop, and takes new turns only if no other engine does.
    """

    ready: bool
    active: int = 0
    held: int = 0
    queued: int = 0
    capacity: int = 0
    last_step_age: float = 0.0
    """Seconds since the loop last finished a step or looked for work."""
    failure: str | None = None
    others: int = 0
    silence: float = 0.0
    step: float = 0.0
    leaving: bool = False


class Why(Enum):
    """Why utterances should leave an engine."""

    LEAVING = "it is to be stopped"
    SILENT = "nothing was heard of it for long"
    CROWDED = "it has more turns than it can speak"


class Stranded(NamedTuple):
    """Utterances that should leave their engine; others can take `free_capacity` of them."""

    why: Why
    ids: Sequence[str]
    free_capacity: int


class EngineLink(Protocol):
    """The front's handle on an engine, in a thread or a process."""

    @property
    def info(self) -> EngineInfo: ...

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        """Start the loop. `deliver` is called on the asyncio loop, once per step, in order."""

    def submit(self, *commands: Command) -> None:
        """Queue commands; never blocks. Call it on the asyncio loop.

        The commands of one call are applied together, without a step in between.
        """

    def info_for(self, spec: UtteranceSpec) -> EngineInfo:
        """Return what the checkpoint that would speak this can do; by default there is only one.

        Raises RequestError for one that is not loaded.
        """
        return self.info

    def check(self, spec: UtteranceSpec) -> None:
        """Raise RequestError if the engine cannot do what `spec` asks. Cheap."""

    def status(self) -> EngineStatus: ...

    def stranded(self) -> Sequence[Stranded]:
        """Return utterances that should leave engines that still run, for others with capacity; by
        default there are no others."""
        return []

    async def stop(self) -> None:
        """Stop the loop; open utterances end with Failed(code="engine_stopped")."""
