"""What the front asks of an engine: commands go in, events come back.

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

    `codes` and `tokens`: of all its frames, as `Audio` brought them. `samples`: what they came to
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
    """`listener_free_after`: seconds until the listener has heard the session's earlier turns, and
    what was `spoken` of this. `continues`: a turn that was spoken in part, and is not refused for
    lack of room. All text of what was `spoken` comes again, in commands of the same call.
    `payer`: the account, and its share of a full engine beside other accounts."""

    id: str
    spec: UtteranceSpec
    listener_free_after: float = 0.0
    lead_cap: float | None = None
    continues: bool = False
    spoken: Spoken | None = None
    payer: tuple[str, float] = ("", 1.0)


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


class CommandQueue(Protocol):
    """Where commands come from: a `queue.SimpleQueue` of those that are applied together."""

    def put(self, commands: Sequence[Command], /) -> None: ...

    def get(self, *, timeout: float) -> Sequence[Command]: ...

    def get_nowait(self) -> Sequence[Command]: ...


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
    """Prefilled: the next audio follows. `layout` is the one that was used. `moved`: another engine
    had it before, or the same one before its restart; nothing was lost (`failover.py`). `seconds`:
    how long the step with its prefill took."""

    id: str
    layout: str
    moved: bool = False
    seconds: float = 0.0


class Audio(msgspec.Struct, frozen=True, tag=True):
    """`pcm`: s16le mono at the engine's sample rate. `held_seconds`: waited for text so far.
    `stands`: its text is used up; `Waits` comes next, and says so. `codes`: of the frames that this
    is the sound of (`made_codes.py`). `silent`: how many samples in a row, up to the last of these,
    cannot be heard. `tokens`: which text token each of these frames speaks, in the same form; empty
    where the checkpoint does not tell. The last frame ends with the last sample."""

    id: str
    pcm: bytes
    held_seconds: float = 0.0
    stands: bool = False
    codes: bytes = b""
    silent: int = 0
    tokens: bytes = b""


class Waits(msgspec.Struct, frozen=True, tag=True):
    """The `text_tokens` that came are used up: without more, or the end, nothing more is made."""

    id: str
    text_tokens: int


class Ended(msgspec.Struct, frozen=True, tag=True):
    """Speech is over and all audio was sent. Nothing more follows for this id.

    `reason`: complete, max_length, guard_budget, guard_silence, guard_repetition or guard_text.
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
Last = Refused | Ended | Failed
"""After one of these nothing follows for its id."""


class EngineStatus(msgspec.Struct, frozen=True):
    """A snapshot for `/readyz` and `/metrics`, and for who places turns.

    `others`: utterances of other fronts. `silence`: seconds in which nothing was heard of an engine
    in a process, or its step has lasted. `step`: the longest of its recent steps, in seconds.
    `leaving`: it is to be stopped, and takes no new turns if another one does.
    """

    ready: bool
    active: int
    held: int
    queued: int
    capacity: int
    last_step_age: float
    """Seconds since the loop last finished a step or looked for work."""
    failure: str | None = None
    others: int = 0
    silence: float = 0.0
    step: float = 0.0
    leaving: bool = False


class Why(Enum):
    """Why utterances are to leave an engine."""

    LEAVING = "it is to be stopped"
    SILENT = "nothing was heard of it for long"
    CROWDED = "it has more turns than it can speak"


class Stranded(NamedTuple):
    """Utterances of an engine that they are to leave; others have room for `room` of them."""

    why: Why
    ids: Sequence[str]
    room: int


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

    def stranded(self) -> Sequence[Stranded]:
        """Utterances that are to leave their engines, which live, for others that have room."""

    async def stop(self) -> None:
        """Stop the loop; running utterances end with Failed(code="engine_stopped")."""
