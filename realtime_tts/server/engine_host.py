"""EngineHost: the engine as the server sees it, from loading to its end.

It starts the link, knows whether turns are accepted, and hands each event to its turn.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from realtime_tts.audio.stages import Stages
from realtime_tts.background import cancel
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec, check_spec
from realtime_tts.engine.link import (
    Cancel,
    Command,
    EngineLink,
    EngineStatus,
    Event,
    Finish,
    Refused,
)
from realtime_tts.errors import EngineError, RealtimeTTSError
from realtime_tts.lexicons.library import StoredLexicon
from realtime_tts.metrics import Metrics
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.announcement import announce
from realtime_tts.server.time_slices import TimeSlices
from realtime_tts.text.pipeline import warm_up
from realtime_tts.text.spoken import SpeechRates
from realtime_tts.text.tokenizer import LoadTokenizer, Qwen2Tokenizer
from realtime_tts.voices.file import VoiceRecord
from tts_scheduler import Reaction

log = logging.getLogger(__name__)

EventHandler = Callable[[Event], None]
_POLL_SECONDS = 0.05
_LEAST_WAIT_MS = 250  # before trying again
_STOP_SECONDS = 5.0
_STOP_LOADING_SECONDS = 0.5


class EngineHost:
    """One engine link and the tokenizers of its models.

    `load_tokenizer` is called in a thread once the engine is ready (a checkpoint may have to be
    downloaded first). Until both are there, `not_ready` says why. `announces`: log that it is
    ready.
    """

    def __init__(
        self,
        link: EngineLink,
        load_tokenizer: LoadTokenizer,
        metrics: Metrics,
        *,
        stall_seconds: float,
        announces: bool = True,
    ) -> None:
        self._link = link
        self._announces = announces
        self._load_tokenizer = load_tokenizer
        self._metrics = metrics
        self._stall_seconds = stall_seconds
        self.paces = SpeechRates()
        self.stages = Stages()
        self.reaction = Reaction()
        self.registered: Callable[[str], VoiceRecord | None] = lambda voice: None
        """Returns the registered voice of this name, if there is one."""
        self.lexicons: Callable[[Sequence[str]], list[StoredLexicon]] = lambda refs: []
        """Returns the stored lexicons of a speech, by `name@version`."""
        self._tokenizers: dict[str, Qwen2Tokenizer] = {}
        self._handlers: dict[str, EventHandler] = {}
        self._outgoing: list[Command] = []
        self._full: dict[tuple[str, str], tuple[float, Refused]] = {}
        """When turns may be tried again, and the refusal, by model and account: see
        `overloaded`."""
        self._loading: asyncio.Task[None] | None = None
        self.load_failure: str | None = None
        """Why the engine never became ready; the server cannot recover from it."""
        self.loading: Callable[[], str] = str
        """Returns the progress of loading, such as `: warm-up, 3 of 8`; empty if unknown."""
        self.stuck = False
        """Whether the engine did not stop when it was told to."""
        self.on_ready: Callable[[], None] | None = None
        self.time_slices = TimeSlices()
        """The time slices in which long texts are tokenised: see `text_input.py`."""

    async def start(self) -> None:
        """Begin to load; return at once."""
        self._link.start(self._deliver)
        self._metrics.watch_engine(self._link.status)
        self._loading = asyncio.create_task(self._load(), name="engine-loading")

    async def stop(self) -> None:
        """Stop the engine. Turns that still run get their Failed event first.

        Waits some seconds for a step under way, less for a model that is still loading.
        """
        await cancel(self._loading)
        patience = _STOP_SECONDS if self._link.status().ready else _STOP_LOADING_SECONDS
        self._flush()
        stopping = asyncio.create_task(self._link.stop())
        await asyncio.wait([stopping], timeout=patience)
        self.stuck = not stopping.done()
        if not self.stuck:
            await stopping
            await asyncio.sleep(0)  # the last events, already on this loop, are delivered

    # State.

    def not_ready(self) -> str | None:
        """Return None if turns are accepted, else the reason why not."""
        if self.load_failure is not None:
            return f"the engine failed to load: {self.load_failure}"
        if not self._tokenizers:
            return f"the engine is loading{self.loading()}"
        reason = self.dead()
        if reason is None and not self._link.status().ready:
            return "the engine restarts"
        return reason

    def dead(self) -> str | None:
        """Return why only a restart helps, or None."""
        status = self._link.status()
        if status.failure is not None:
            return f"the engine failed: {status.failure}"
        if status.last_step_age > self._stall_seconds:  # an idle loop wakes twice a second
            return f"the engine has made no step for {status.last_step_age:.0f} s"
        return None

    async def until_ready(self) -> None:
        """Wait until the engine is ready. Raises EngineError if it does not load."""
        while self.not_ready() is not None:
            if self.load_failure is not None:
                raise EngineError(self.load_failure)
            await asyncio.sleep(_POLL_SECONDS)

    @property
    def info(self) -> EngineInfo:
        """What the engine can do; only available once it is ready."""
        return self._link.info

    @property
    def status(self) -> EngineStatus:
        """What the engine reports about itself."""
        return self._link.status()

    @property
    def model(self) -> str | None:
        """Name of the first checkpoint; None until it is ready for the first time."""
        return self._link.info.model if self._tokenizers else None

    @property
    def slots(self) -> int:
        """Turns that the engine can speak at once; 0 until it is ready for the first time."""
        return self._link.info.slots if self._tokenizers else 0

    def tokenizer_of(self, info: EngineInfo) -> Qwen2Tokenizer:
        """Return the tokenizer of this checkpoint; only once the engine is ready."""
        assert self._tokenizers, "the engine is not ready: ask not_ready() first"
        return self._tokenizers[info.model]

    def info_for(self, model: str | None, voice: str | None) -> EngineInfo:
        """Return what the checkpoint of this model and voice can do, once the engine is ready."""
        return self._link.info_for(UtteranceSpec(model=model, voice=voice))

    def check(self, spec: UtteranceSpec) -> None:
        """Raise RequestError if the engine cannot do what `spec` asks.

        A Base checkpoint without a voice passes: a session may begin before it names one. The
        engine refuses a turn without a voice.
        """
        info = self._link.info_for(spec)
        if spec.voice is None and info.variant == "base":
            check_spec(info, spec)
        else:
            self._link.check(spec)

    @property
    def open_utterances(self) -> int:
        """Number of utterances whose events are handled."""
        return len(self._handlers)

    # Commands and events.

    def open(self, command: Command, handler: EventHandler) -> None:
        """Begin an utterance; `handler` gets its events, on the event loop."""
        assert command.id not in self._handlers, f"utterance {command.id} is open already"
        self._handlers[command.id] = handler
        self.submit(command)

    def overloaded(
        self, model: str | None, voice: str | None, account: str = ""
    ) -> TurnFailure | None:
        """Return why a turn would be refused now, if the engine has just refused another turn of
        the same account: that costs no text processing, and the engine is not asked again."""
        if not self._full:
            return None
        return self._refusal_of(self.info_for(model, voice).model, account)

    def full(self, account: str = "") -> TurnFailure | None:
        """Return why a turn of this account would be refused now, whatever its model."""
        if len(self._full) < len(self._tokenizers):
            return None
        refusals = [self._refusal_of(model, account) for model in self._tokenizers]
        return refusals[0] if all(refusals) else None

    def _refusal_of(self, model: str, account: str) -> TurnFailure | None:
        found = self._full.get((model, account))
        if found is None or (left := found[0] - time.monotonic()) <= 0:
            return None
        wait_ms = max(_LEAST_WAIT_MS, round(left * 1000))
        return TurnFailure(found[1].code, found[1].message, True, wait_ms)

    def refused(self, settings: SessionSettings, refused: Refused, account: str) -> TurnFailure:
        """The engine has refused a turn with these settings; return the failure for its owner."""
        if refused.full:
            until = time.monotonic() + refused.retry_after
            model = self.info_for(settings.model, settings.voice).model
            self._full[model, account] = until, refused
        return TurnFailure(refused.code, refused.message, True, round(refused.retry_after * 1000))

    def submit(self, command: Command) -> None:
        """Send a command, together with all others of this pass of the event loop. The end of a
        text completes what comes before it, and so waits for no other.

        So a message that both brings text and ends it reaches the engine in one piece, and the
        engine sees a complete text where the client sent one.
        """
        self._outgoing.append(command)
        if isinstance(command, Finish):
            self._flush()
        elif len(self._outgoing) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        commands, self._outgoing = self._outgoing, []
        if commands:
            self._link.submit(*commands)

    def cancel(self, utterance_id: str) -> None:
        """Stop an utterance; none of its events is delivered from now on. Idempotent."""
        if self._handlers.pop(utterance_id, None) is not None:
            self._full.clear()  # there may be capacity again
            self.submit(Cancel(utterance_id))

    def forget(self, utterance_id: str) -> None:
        """Note that the utterance has ended by itself."""
        if self._handlers.pop(utterance_id, None) is not None:
            self._full.clear()

    def guarded(self, reason: str) -> None:
        """Count a turn that the server itself ended for a reason of the guards."""
        self._metrics.guard(reason)

    def _deliver(self, events: list[Event]) -> None:
        """Deliver the events of one engine step, with one look-up each. Events of cancelled
        utterances are dropped."""
        handlers = self._handlers
        for event in events:
            handler = handlers.get(event.id)
            if handler is None:
                continue
            try:
                handler(event)
            except Exception:  # a bug: the step's other events must still be delivered
                log.exception("engine.event_lost", extra={"fields": {"utterance": event.id}})
                self.cancel(event.id)

    async def _load(self) -> None:
        try:
            await self._link_ready()
            self._tokenizers = await asyncio.to_thread(_loaded, self._load_tokenizer, self.info)
        except RealtimeTTSError as error:
            self._load_failed(str(error))
            return
        except Exception as error:
            self._load_failed(f"{type(error).__name__}: {error}", unforeseen=True)
            return
        info = self.info
        if self._announces:
            announce(info, self._link.status())
        self._metrics.describe_engine(info.all_models)
        if self.on_ready is not None:
            self.on_ready()

    def _load_failed(self, why: str, *, unforeseen: bool = False) -> None:
        self.load_failure = why
        log.error("engine.load_failed", exc_info=unforeseen, extra={"fields": {"error": why}})

    async def _link_ready(self) -> None:
        while True:
            status = self._link.status()
            if status.failure is not None:
                raise EngineError(status.failure)
            if status.ready:
                return
            await asyncio.sleep(_POLL_SECONDS)


def _loaded(load: LoadTokenizer, info: EngineInfo) -> dict[str, Qwen2Tokenizer]:
    """Load the tokenizers, by the names of their models, and what texts of these models need."""
    if isinstance(load, Mapping):
        loaded = {name: load_one() for name, load_one in load.items()}
    else:
        loaded = dict.fromkeys((one.model for one in info.all_models), load())
    for one in info.all_models:
        warm_up(loaded[one.model], one.languages)
    return loaded
