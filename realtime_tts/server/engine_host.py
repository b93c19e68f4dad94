"""EngineHost: the engine as the server sees it, from loading to its end.

It starts the link, knows whether turns can be taken, and hands each event of the engine to the
turn it belongs to.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from realtime_tts.audio.stages import Stages
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec, check_spec
from realtime_tts.engine.link import Cancel, Command, EngineLink, EngineStatus, Event, Refused
from realtime_tts.errors import EngineError, RealtimeTTSError
from realtime_tts.lexicons.library import StoredLexicon
from realtime_tts.metrics import Metrics
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.announcement import announce
from realtime_tts.server.time_slices import TimeSlices
from realtime_tts.text.spoken import SpeechRates
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tts_scheduler import Reaction

log = logging.getLogger(__name__)

EventHandler = Callable[[Event], None]
LoadTokenizer = Callable[[], Qwen2Tokenizer] | Mapping[str, Callable[[], Qwen2Tokenizer]]
"""One for all models, or each by the name of its model."""
_POLL_SECONDS = 0.05
_LEAST_WAIT_MS = 250  # before another try
_STOP_SECONDS = 5.0
_STOP_LOADING_SECONDS = 0.5


class EngineHost:
    """One engine link and the tokenizers of its models.

    `load_tokenizer` is called in a thread once the engine is ready (a checkpoint may have to be
    downloaded first). Until both are there, `not_ready` says why. Where it `announces`, the log
    says that the engine is ready.
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
        self.in_context: Callable[[str], bool] = lambda voice: False
        """Whether an utterance of this voice waits for much of its text, or for its end."""
        self.lexicons: Callable[[Sequence[str]], list[StoredLexicon]] = lambda refs: []
        """The stored lexicons of a speech, by `name@version`."""
        self._tokenizers: dict[str, Qwen2Tokenizer] = {}
        self._handlers: dict[str, EventHandler] = {}
        self._outgoing: list[Command] = []
        self._full: dict[tuple[str, str], tuple[float, Refused]] = {}
        """Until when, by model and account; see `overloaded`."""
        self._loading: asyncio.Task[None] | None = None
        self.load_failure: str | None = None
        """Set if the engine never became ready; the server cannot recover from it."""
        self.loading: Callable[[], str] = str
        """How far it is with that, such as `: warm-up, 3 of 8`; empty where nobody knows."""
        self.stuck = False
        """The engine did not stop when it was told to."""
        self.on_ready: Callable[[], None] | None = None
        self.time_slices = TimeSlices()
        """In which long texts are made into tokens: see `text_input.py`."""

    async def start(self) -> None:
        """Begin to load; returns at once."""
        self._link.start(self._deliver)
        self._metrics.watch_engine(self._link.status)
        self._loading = asyncio.create_task(self._load(), name="engine-loading")

    async def stop(self) -> None:
        """Stop the engine. Turns that still run get their Failed event first.

        Waits some seconds for a step under way, less for a model that is still loading.
        """
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
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
        """None if turns can be taken, else the reason why not."""
        if self.load_failure is not None:
            return f"the engine failed to load: {self.load_failure}"
        if not self._tokenizers:
            return f"the engine is loading{self.loading()}"
        reason = self.dead()
        if reason is None and not self._link.status().ready:
            return "the engine restarts"
        return reason

    def dead(self) -> str | None:
        """Why only a restart helps, or None."""
        status = self._link.status()
        if status.failure is not None:
            return f"the engine failed: {status.failure}"
        if status.last_step_age > self._stall_seconds:  # an idle loop looks around twice a second
            return f"the engine has made no step for {status.last_step_age:.0f} s"
        return None

    @property
    def info(self) -> EngineInfo:
        """What the engine can do; only once it is ready."""
        return self._link.info

    @property
    def status(self) -> EngineStatus:
        """What the engine says of itself."""
        return self._link.status()

    @property
    def model(self) -> str | None:
        """Of the first checkpoint; None until it is ready for the first time."""
        return self._link.info.model if self._tokenizers else None

    @property
    def slots(self) -> int:
        """Turns that the engine has room for; 0 until it is ready for the first time."""
        return self._link.info.slots if self._tokenizers else 0

    def tokenizer_of(self, info: EngineInfo) -> Qwen2Tokenizer:
        """The tokenizer of this checkpoint; only once the engine is ready."""
        assert self._tokenizers, "the engine is not ready: ask not_ready() first"
        return self._tokenizers[info.model]

    def info_for(self, model: str | None, voice: str | None) -> EngineInfo:
        """What the checkpoint that speaks with these can do; only once the engine is ready."""
        return self._link.info_for(UtteranceSpec(model=model, voice=voice))

    def check(self, spec: UtteranceSpec) -> None:
        """Raise RequestError if the engine cannot do what `spec` asks.

        A Base checkpoint without a voice passes: a session may begin before it names one. A turn
        without one is refused by the engine.
        """
        info = self._link.info_for(spec)
        if spec.voice is None and info.variant == "base":
            check_spec(info, spec)
        else:
            self._link.check(spec)

    @property
    def open_utterances(self) -> int:
        """Utterances whose events somebody waits for."""
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
        """Why a turn would not be taken now, if the engine has just said so of another of the same
        account: to refuse it costs no text processing, and the engine hears nothing of it."""
        if not self._full:
            return None
        return self._refusal_of(self.info_for(model, voice).model, account)

    def full(self, account: str = "") -> TurnFailure | None:
        """The same where it holds of every model."""
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
        """The engine has refused a turn with these; gives what its owner is told."""
        if refused.full:
            until = time.monotonic() + refused.retry_after
            model = self.info_for(settings.model, settings.voice).model
            self._full[model, account] = until, refused
        return TurnFailure(refused.code, refused.message, True, round(refused.retry_after * 1000))

    def submit(self, command: Command) -> None:
        """Send a command, together with all others of this round of the event loop.

        So a message that both brings text and ends it reaches the engine in one piece, and the
        engine sees a complete text where the client sent one.
        """
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(command)

    def _flush(self) -> None:
        commands, self._outgoing = self._outgoing, []
        if commands:
            self._link.submit(*commands)

    def cancel(self, utterance_id: str) -> None:
        """Stop an utterance; none of its events is delivered from here on. Idempotent."""
        if self._handlers.pop(utterance_id, None) is not None:
            self._full.clear()  # there may be room again
            self.submit(Cancel(utterance_id))

    def forget(self, utterance_id: str) -> None:
        """The utterance has ended by itself."""
        if self._handlers.pop(utterance_id, None) is not None:
            self._full.clear()

    def guarded(self, reason: str) -> None:
        """A turn was found here to be ended for such a reason of the guards."""
        self._metrics.guard(reason)

    def _deliver(self, events: list[Event]) -> None:
        """One engine step's events: one look-up each. Those of cancelled utterances fall away."""
        handlers = self._handlers
        for event in events:
            handler = handlers.get(event.id)
            if handler is None:
                continue
            try:
                handler(event)
            except Exception:  # it should have contained this; the step's other events still count
                log.exception("engine.event_lost", extra={"fields": {"utterance": event.id}})
                self.cancel(event.id)

    async def _load(self) -> None:
        try:
            await self._until_ready()
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
        self._metrics.describe_engine(info.models or (info,))
        if self.on_ready is not None:
            self.on_ready()

    def _load_failed(self, why: str, *, unforeseen: bool = False) -> None:
        self.load_failure = why
        log.error("engine.load_failed", exc_info=unforeseen, extra={"fields": {"error": why}})

    async def _until_ready(self) -> None:
        while True:
            status = self._link.status()
            if status.failure is not None:
                raise EngineError(status.failure)
            if status.ready:
                return
            await asyncio.sleep(_POLL_SECONDS)


def _loaded(load: LoadTokenizer, info: EngineInfo) -> dict[str, Qwen2Tokenizer]:
    """By the names of the models."""
    if isinstance(load, Mapping):
        return {name: load_one() for name, load_one in load.items()}
    return dict.fromkeys((one.model for one in info.models or (info,)), load())
