"""Utterances: one segment of a speech in the engine, from its first text to its last sound.

Text comes in and goes to the engine as token ids; PCM comes back, for the `Listener`. It knows no
encoder, no socket and no session: those are speech.py's.

A segment is split into utterances: by a pause in its text, and where its text is committed
(`PacedText`), because no more of it is known or because it is long. The next one is opened when the
engine has made the last sound of the one before and there is text for it.
"""

from __future__ import annotations

import time
from math import inf

import msgspec

from realtime_tts.access.account import Account
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.engine.link import (
    Append,
    Audio,
    Ended,
    Event,
    Failed,
    Finish,
    Lead,
    Open,
    Played,
    Refused,
    Started,
    Waits,
)
from realtime_tts.protocol.effects import TurnFailure, TurnStats
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.engine_host import EngineHost, EventHandler
from realtime_tts.server.listener import LeadCap, Listener
from realtime_tts.server.made import FirstSound, Made, Mark
from realtime_tts.server.progress import progress_of
from realtime_tts.server.resumption import Resumption
from realtime_tts.server.session_settings import registered_voice, utterance_spec, voice_of
from realtime_tts.server.speech_text import SpeechText
from realtime_tts.text.pipeline import TextSegment
from tts_scheduler import FeedPace

_FIRST_WAIT = 0.25  # seconds that a starved row may wait before its first sound


class Utterances:
    """One segment. `name` is unique in the server; later utterances append a number.

    `listener_free_at`: when the listener will have heard what was sent before. `feed_pace`: the
    pace of the session's texts. `saved`: see `Delivery`. `resumption`: what was spoken elsewhere.
    """

    def __init__(
        self,
        name: str,
        settings: SessionSettings,
        engine: EngineHost,
        on_event: EventHandler,
        listener_free_at: float | None,
        feed_pace: FeedPace,
        account: Account,
        *,
        saved: bool = False,
        resumption: Resumption | None = None,
    ) -> None:
        self.name, self._account = name, account
        self.layout = "streaming"  # until the engine says what it used
        self.over = False  # whether no more sound comes
        self.reason = "complete"
        self.failure: TurnFailure | None = None
        self.text_tokens = self._moves = 0  # tokens given to the engine; moves to another
        self.opened_at: float | None = None  # when the engine first had some
        self._first_text_at: float | None = None
        self._settings, self._engine, self._on_event = settings, engine, on_event
        registered = registered_voice(settings, engine)
        self._spec, self._voice = utterance_spec(settings), voice_of(settings, registered)
        self._held_seconds = self._held_before = self._starved_since = 0.0
        self._pause = 0.0  # seconds of silence before the next sound
        self._waits_since: float | None = None  # since when the next utterance has waited for text
        self._opened = self._finished = False  # whether the engine has it; and the end of its text
        self._first, self._lead_cap = FirstSound(), LeadCap(settings.lead_ms / 1000, saved=saved)
        self._text = SpeechText(settings, engine, registered, feed_pace, resumption, account)
        text, pace = self._text.pipeline, engine.paces.of(self._voice)
        self.listener = Listener(text, settings.language, pace, listener_free_at)
        self._resumption, self._before = resumption, TurnStats()
        if resumption is not None:
            self._spec, self._before = resumption.seeded(self._spec), resumption.stats
            self.listener.resume(resumption, time.monotonic())
        self.progress = progress_of(
            name, settings, engine, self._spec.seed, self._text, self.listener, resumption
        )
        """What the client gets to continue elsewhere; None if it does not want that."""

    @property
    def utterance_id(self) -> str:
        """The id of the utterance on the air."""
        return f"{self.name}.{self._text.at}" if self._text.at else self.name

    # Text.

    @property
    def has_speech(self) -> bool:
        """Whether there is anything to speak in the text so far."""
        return self._text.pipeline.has_speech

    @property
    def text_warnings(self) -> list[tuple[str, str]]:
        """What the text asked for and did not get, as the protocol's warnings: code and message."""
        return self._text.warnings

    def text_received(self, now: float) -> None:
        """Note that text came, which may wait to be processed: the listener waits from now on."""
        if self._first_text_at is None:
            self._first_text_at = now

    def feed(self, text: str, now: float, *, withhold: bool = False) -> None:
        """Add text. `withhold`: the engine gets it with the `end`, which follows."""
        self.text_received(now)
        self._text.feed(text, now)
        if not withhold:
            self._give(now)

    def commit(self, now: float, *, withhold: bool = False) -> None:
        """Speak all text so far to its end; more text of the same segment may follow."""
        self._text.commit(now)
        if not withhold:
            self._give(now)

    def end(self, now: float) -> Made:
        """End the text. Return the end, if the engine has no more to say: then it is `over`."""
        was_over = self.over
        self._text.pipeline.finish(now)
        self._give(now)
        if was_over or not self.over:
            return []
        return [*(self._silence() if self.has_speech else ()), Mark.END]

    def poll(self, now: float) -> None:
        """Release text that was held back long enough."""
        self._text.poll(now)
        self._give(now)

    def text_deadline(self) -> float:
        """Return when to call `poll`; infinite if nothing waits for time."""
        return inf if self.over else self._text.deadline()

    def _give(self, now: float) -> None:
        """Give the engine what there is for the utterance on the air."""
        if self.over or (self._text.replaying and not self._catch_up()):
            return
        part = self._text.part
        self._advance(now)
        while part.closed and not part.has_speech:
            if self._text.is_last:
                self.over = not self._opened
                self.listener.complete = self.listener.ended = self.over
                return
            part = self._next_part()
            self._advance(now)
        if part.ids and part.has_speech:  # not for punctuation alone
            if not self._opened:
                self._open(now)
            self._engine.submit(Append(self.utterance_id, part.ids))
            self.text_tokens += len(part.ids)
            part.ids = []
        if part.closed and self._opened and not self._finished:
            self._finished = True
            self._engine.submit(Finish(self.utterance_id))

    def _catch_up(self) -> bool:
        """Return whether all text spoken elsewhere has come again, and go on from there."""
        before, resumption = self._text.catch_up(), self._resumption
        if before is None or resumption is None:
            return False
        self._held_before = self._held_seconds = resumption.held_before
        self._pause = resumption.pause
        self.layout = resumption.layout or self.layout
        self.listener.caught_up(before, resumption.speech_begins, resumption.spoken)
        if self.progress is not None:
            self.progress.resume(resumption.position)
        return True

    def _advance(self, now: float) -> None:
        """Take more of the waiting text, if it belongs to the utterance on the air."""
        paced = self._text.paced
        if self._text.is_last:
            # An encoder may hold the end of a starved row's speech. That must not seem to be heard
            # ever later, or there would never be a time to close.
            dry_at = self.listener.dry_at(self._starved_since if paced.starved else now)
            if self._first.waits:
                dry_at = max(dry_at, self._starved_since + _FIRST_WAIT)
            paced.advance(dry_at, now)
        else:
            paced.due = None

    def _next_part(self) -> TextSegment:
        """Go on to the text after the next pause or commit, which exists."""
        self._text.at += 1
        part = self._text.part
        self._opened = self._finished = False
        self._pause += part.pause
        self._held_before = self._held_seconds
        self.listener.begin(part)
        if self.progress is not None:
            self.progress.begin(self._pause, self._held_before)
        return part

    def _open(self, now: float) -> None:
        self._opened, self.opened_at = True, self.opened_at or now
        if self._waits_since is not None:
            self._held_before += now - self._waits_since
            self._held_seconds, self._waits_since = self._held_before, None
        begun, seed = self.listener.made > 0, (self._spec.seed + self._text.number) % 2**63
        spec = msgspec.structs.replace(self._spec, seed=seed, begun=begun)
        spec, spoken = self._text.directed(spec), None
        if self._resumption is not None:
            spec, spoken = self._resumption.in_layout(spec), self._resumption.spoken
            self._resumption = None
        if spoken is None:
            self.listener.play_at(spec.speed)
        command = Open(
            self.utterance_id,
            spec,
            listener_free_after=max(0.0, self.listener.dry_at(now) - now),
            lead_cap=self._lead_cap.seconds(self.listener.playback, now),
            continues=begun,
            spoken=spoken,
            payer=self._account.payer,
        )
        self._engine.open(command, self._on_event)

    # Sound.

    def take(self, event: Event, now: float) -> Made:
        """Handle an event of the utterance on the air, and return the sound that it makes."""
        match event:
            case Audio():
                return self._audio(event, now)
            case Started():
                self.layout, self._moves = event.layout, self._moves + event.moved
                if self.progress is not None:
                    self.progress.started(event.layout)
                return []
            case Waits(text_tokens=tokens):
                return self._waits(tokens, now)
            case Ended() | Failed() | Refused():
                self._engine.forget(event.id)
                return [*self._first.all(), self.listener.rest(), *self._ended(event, now)]

    def _audio(self, event: Audio, now: float) -> Made:
        self._held_seconds = self._held_before + event.held_seconds
        sound = [*self._silence(), self._text.volume, self.listener.add_speech(event)]
        self._text.paced.sounded(now)
        if self.progress is not None:
            self.progress.sounded(event, self._held_before, self.layout)
        more = event.stands and not self._finished
        return self._first.give(sound, self.listener.made, more_may_come=more)

    def _waits(self, tokens: int, now: float) -> Made:
        self._text.paced.used, self._starved_since = tokens, now
        self._give(now)
        # The listener of a starved row gets all the sound there is.
        if not self._text.paced.starved:
            return []
        return self._first.give([Mark.PAUSE], self.listener.made, more_may_come=not self._finished)

    def _silence(self) -> Made:
        """Return the pause that is due, cut off: the speech after it begins like a turn."""
        samples, self._pause = round(self._pause * SAMPLE_RATE), 0.0
        if not samples:
            return []
        self.listener.add_silence(samples)
        return [bytes(samples * BYTES_PER_SAMPLE), Mark.PAUSE]

    def _ended(self, event: Ended | Failed | Refused, now: float) -> Made:
        """Go on to the next utterance, or note why the segment is `over`."""
        if isinstance(event, Ended):
            self._held_seconds = self._held_before + event.held_seconds
            if event.reason == "complete":
                if self._finished:
                    self._engine.paces.learn(self._voice, *self.listener.measured())
                else:  # the model ended by itself, before the rest of the text
                    self._text.paced.commit()
                if not self._text.is_last:
                    return self._go_on(now)
            self.reason = self.listener.finish(event.reason)
            if self.reason != event.reason:
                self._engine.guarded(self.reason)
        elif isinstance(event, Failed):
            self._held_seconds = self._held_before + event.held_seconds
            self.failure = TurnFailure(event.code, event.message, event.retryable)
        else:
            self.failure = self._engine.refused(self._settings, event, self._account.id)
        self.over = True
        self.listener.ended = self.failure is None
        return [Mark.END]

    def _go_on(self, now: float) -> Made:
        self._next_part()
        silence = self._silence() or [Mark.PAUSE]
        self._give(now)
        if self.over:
            return [*silence, *self._silence(), Mark.END]
        if not self._opened:
            self._waits_since = now
        return silence

    def sent(self, samples: int, now: float) -> float:
        """Note that this many more samples are sent; return by how many seconds they were late."""
        playback = self.listener.playback
        late = self.listener.sent(samples, now)
        if not self.over and self._lead_cap.is_due(playback):
            self._engine.submit(Lead(self.utterance_id, self._lead_cap.seconds(playback, now)))
        return late

    def cancel(self) -> None:
        """Stop the engine, or never begin; no more events come. Idempotent."""
        self.over = True
        self._engine.cancel(self.utterance_id)

    def release(self) -> None:
        """Forget the owner: no more events come."""
        self._on_event = lambda event: None

    def played(self, samples: int, now: float) -> None:
        """Take a position that the listener reports."""
        self.listener.playback.played(samples / SAMPLE_RATE, now)
        seconds = (samples - self.listener.part_begins) / SAMPLE_RATE
        if self._opened and seconds >= 0:
            self._engine.submit(Played(self.utterance_id, seconds))

    def stats(self, sent_at: float | None = None) -> TurnStats:
        """Return the turn's numbers, over all sockets. `sent_at`: when the next packet leaves."""
        playback, before = self.listener.playback, self._before
        sent_at, text_at = self.listener.first_sent_at or sent_at, self._first_text_at
        ttfa_ms = before.ttfa_ms
        if ttfa_ms is None and sent_at is not None and text_at is not None:
            ttfa_ms = round((sent_at - text_at) * 1000, 1)
        return TurnStats(
            samples=self.listener.taken,
            ttfa_ms=ttfa_ms,
            underruns=before.underruns + playback.underruns,
            held_ms=round(self._held_seconds * 1000, 1),
            held_inside_word=before.held_inside_word + self._text.paced.held_inside_word,
            moves=before.moves + self._moves,
        )
