"""Utterances: one segment of a speech in the engine, from its first text to its last sound.

Text comes in and leaves as token ids for the engine; PCM comes back, for the `Listener`. It knows
no encoder, no socket and no session: speech.py has those who listen.

A segment is parted into utterances: by a pause in its text, and where its text is committed
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
from realtime_tts.server.session_settings import utterance_spec, voice_of
from realtime_tts.server.speech_text import SpeechText
from realtime_tts.text.pipeline import TextSegment
from tts_scheduler import FeedPace

_FIRST_WAIT = 0.25  # seconds that speech may stand before its first sound


class Utterances:
    """`name` is unique among all of this server, and the first utterance's; later ones add to it.

    `listener_free_at`: when the listener will have heard what was sent before. `feed_pace`: of the
    texts of this session. `saved`: see `Delivery`. `resumption`: what was spoken elsewhere."""

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
        self.over = False  # no more sound comes but what was given out already
        self.reason = "complete"
        self.failure: TurnFailure | None = None
        self.text_tokens = self._moves = 0  # tokens given to the engine; moves to another
        self.opened_at: float | None = None  # when it first had some
        self._first_text_at: float | None = None
        self._settings, self._engine, self._on_event = settings, engine, on_event
        self._spec = utterance_spec(settings)
        self._held_seconds = self._held_before = self._starved_since = 0.0
        self._pause = 0.0  # seconds of silence before the next sound
        self._waits_since: float | None = None  # for the text of the next part
        self._first = FirstSound()
        self._opened = self._finished = False  # the engine knows of it; and the end of its text
        self._lead_cap = LeadCap(settings.lead_ms / 1000, saved=saved)
        self._text = SpeechText(settings, engine, feed_pace, resumption, account)
        text, pace = self._text.pipeline, engine.paces.of(voice_of(settings))
        self.listener = Listener(text, settings.language, pace, listener_free_at)
        self._resumption, self._before = resumption, TurnStats()
        if resumption is not None:
            self._spec, self._before = resumption.seeded(self._spec), resumption.stats
            self.listener.resume(resumption, time.monotonic())
        self.progress = progress_of(
            name, settings, engine, self._spec.seed, self._text, self.listener, resumption
        )
        """What the client is told, if it wants to be able to go on elsewhere."""

    @property
    def utterance_id(self) -> str:
        """Of the utterance on the air."""
        return f"{self.name}.{self._text.at}" if self._text.at else self.name

    # Text.

    @property
    def has_speech(self) -> bool:
        """Whether there is anything to speak in the text so far."""
        return self._text.pipeline.has_speech

    @property
    def text_warnings(self) -> list[tuple[str, str]]:
        """What its text asked for and did not get, as the protocol's warnings: code and message."""
        return self._text.warnings

    def text_received(self, now: float) -> None:
        """Text is there, and may yet wait to be taken in: the listener waits from now on."""
        if self._first_text_at is None:
            self._first_text_at = now

    def feed(self, text: str, now: float, *, withhold: bool = False) -> None:
        """`withhold`: the engine is told with the `end`, which is on its way."""
        self.text_received(now)
        self._text.feed(text, now)
        if not withhold:
            self._give(now)

    def commit(self, now: float, *, withhold: bool = False) -> None:
        """Speak all there is now to its end; more text of the same segment may follow."""
        self._text.commit(now)
        if not withhold:
            self._give(now)

    def end(self, now: float) -> Made:
        """No more text. Gives the end, where the engine has no more to say: then it is `over`."""
        was_over = self.over
        self._text.pipeline.finish(now)
        self._give(now)
        if was_over or not self.over:
            return []
        return [*(self._silence() if self.has_speech else ()), Mark.END]

    def poll(self, now: float) -> None:
        """Release text that was held back for long enough."""
        self._text.poll(now)
        self._give(now)

    def text_deadline(self) -> float:
        """When `poll` should be called; infinite if nothing waits for time to pass."""
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
        if part.ids and part.has_speech:  # only punctuation: it need not hear of it yet
            if not self._opened:
                self._open(now)
            self._engine.submit(Append(self.utterance_id, part.ids))
            self.text_tokens += len(part.ids)
            part.ids = []
        if part.closed and self._opened and not self._finished:
            self._finished = True
            self._engine.submit(Finish(self.utterance_id))

    def _catch_up(self) -> bool:
        """Whether all text came again of what was spoken elsewhere: then it goes on."""
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
        """Take more of the text that waits, where it belongs to the utterance on the air."""
        paced = self._text.paced
        if self._text.is_last:
            # Of speech that stands, an encoder may keep the last: that must not seem to be heard
            # ever later, or there would never be a time to close.
            dry_at = self.listener.dry_at(self._starved_since if paced.starved else now)
            if self._first.waits:
                dry_at = max(dry_at, self._starved_since + _FIRST_WAIT)
            paced.advance(dry_at, now)
        else:
            paced.due = None

    def _next_part(self) -> TextSegment:
        """Go on to the text behind the next pause or commit, which there is."""
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
        seed = (self._spec.seed + self._text.number) % 2**63
        spec, spoken = self._text.directed(msgspec.structs.replace(self._spec, seed=seed)), None
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
            continues=self.listener.made > 0,
            spoken=spoken,
            payer=self._account.payer,
        )
        self._engine.open(command, self._on_event)

    # Sound.

    def take(self, event: Event, now: float) -> Made:
        """What the engine says of the utterance on the air, which has ended with some of it."""
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
        # Of speech that stands still the listener gets all there is.
        if not self._text.paced.starved:
            return []
        return self._first.give([Mark.PAUSE], self.listener.made, more_may_come=not self._finished)

    def _silence(self) -> Made:
        """The pause that is due, cut off: the speech behind it begins like a turn."""
        samples, self._pause = round(self._pause * SAMPLE_RATE), 0.0
        if not samples:
            return []
        self.listener.add_silence(samples)
        return [bytes(samples * BYTES_PER_SAMPLE), Mark.PAUSE]

    def _ended(self, event: Ended | Failed | Refused, now: float) -> Made:
        """Goes on to the next part of the text, or notes why all is `over`."""
        if isinstance(event, Ended):
            self._held_seconds = self._held_before + event.held_seconds
            if event.reason == "complete":
                if self._finished:
                    self._engine.paces.learn(voice_of(self._settings), *self.listener.measured())
                else:  # the model has ended by itself: what it was not given is still to be spoken
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
        """The socket has so many more; returns by how many seconds they were late."""
        playback = self.listener.playback
        late = playback.sent(samples, now)
        if not self.over and self._lead_cap.is_due(playback):
            self._engine.submit(Lead(self.utterance_id, self._lead_cap.seconds(playback, now)))
        return late

    def cancel(self) -> None:
        """The engine stops at once, or never hears of it, and no more events come. Idempotent."""
        self.over = True
        self._engine.cancel(self.utterance_id)

    def release(self) -> None:
        """No event comes any more: whoever would be told is forgotten."""
        self._on_event = lambda event: None

    def played(self, samples: int, now: float) -> None:
        """The listener reports a position."""
        self.listener.playback.played(samples / SAMPLE_RATE, now)
        seconds = (samples - self.listener.part_begins) / SAMPLE_RATE
        if self._opened and seconds >= 0:
            self._engine.submit(Played(self.utterance_id, seconds))

    def stats(self, sent_at: float | None = None) -> TurnStats:
        """What it came to so far, on all sockets. `sent_at`: when the next packet is sent."""
        playback, before = self.listener.playback, self._before
        sent_at, text_at = playback.first_sent_at or sent_at, self._first_text_at
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
