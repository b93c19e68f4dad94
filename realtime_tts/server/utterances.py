"""Utterances: one segment of a speech in the engine, from its first text to its last sound.

Text comes in and leaves as token ids for the engine; PCM comes back, for the `Listener`. It knows
no encoder, no socket and no session: speech.py has those who listen.

A segment is parted into utterances: by a pause in its text, and where its text is committed
(`PacedText`), because no more of it is known or because it is long. The next one is opened when the
engine has made the last sound of the one before and there is text for it: its listener is free only
when that and the pause have been heard.
"""

from __future__ import annotations

from math import inf

import msgspec

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
from realtime_tts.server.listener import Listener
from realtime_tts.server.made import Made, Mark
from realtime_tts.server.paced_text import PacedText
from realtime_tts.server.session_settings import number_language, utterance_spec, voice_of
from realtime_tts.text.lexicon import lexicon_for
from realtime_tts.text.pipeline import TextPipeline, TextSegment
from tts_scheduler import FeedPace, Pacing

_LEAD_EVERY = 1.0  # seconds of sound
_FIRST_SAMPLES = 2_880
"""A turn begins with so much sound where the engine has no text for more: the next word is to come
before it is over."""
_FIRST_WAIT = 0.25  # seconds that speech may stand before its first sound


class Utterances:
    """`name` is unique among all of this server, and the first utterance's; later ones add to it.

    `listener_free_at`: when the listener will have heard what was sent before. `feed_pace`: of the
    texts of this session. `saved`: see `Delivery`.
    """

    def __init__(
        self,
        name: str,
        settings: SessionSettings,
        engine: EngineHost,
        on_event: EventHandler,
        listener_free_at: float | None,
        feed_pace: FeedPace,
        *,
        saved: bool = False,
    ) -> None:
        self.name = name
        self.utterance_id = name
        """Of the utterance on the air."""
        self.layout = "streaming"  # until the engine says what it used
        self.over = False
        """No more sound comes but what was given out already."""
        self.reason = "complete"
        self.failure: TurnFailure | None = None
        self.text_tokens = 0  # given to the engine
        self._moves = 0
        self._held_seconds = 0.0
        self._first_text_at: float | None = None
        self._settings = settings
        self._engine = engine
        self._on_event = on_event
        self._spec = utterance_spec(settings)
        self._at = 0  # the part of the text on the air
        self._held_before = 0.0
        self._waits_since: float | None = None  # for the text of the next part
        self._first: Made | None = []  # sound that is not enough to begin with
        self._stands_since = 0.0
        self._pause = 0.0  # seconds of silence before the next sound
        self._opened = False  # the utterance on the air is known to the engine
        self._finished = False  # the engine knows the end of its text
        self._saved = saved
        self._lead_after = 0.0  # seconds sent, from which on the engine is told the lead cap anew
        info = engine.info_for(settings.model, settings.voice)
        tokenizer = engine.tokenizer_for(settings.model, settings.voice)
        self._text = TextPipeline(
            tokenizer,
            filtered=settings.text_filter == "on",
            paced=True,
            language=number_language(settings, engine),
            lexicon=lexicon_for(settings.lexicon),
            languages=info.languages,
        )
        closed = settings.voice is not None and engine.in_context(settings.voice)
        self._paced = PacedText(
            self._text,
            tokenizer,
            Pacing("sentence" if closed else settings.pacing, feed_pace, engine.reaction),
            engine.reaction,
            info.safe_tokens or inf,
            whole=settings.layout == "full_text",
            closed=closed,
        )
        pace = engine.paces.of(voice_of(settings))
        self.listener = Listener(self._text, settings.language, pace, listener_free_at)

    # Text.

    @property
    def has_speech(self) -> bool:
        """Whether there is anything to speak in the text so far."""
        return self._text.has_speech

    @property
    def scripts_left_out(self) -> list[str]:
        """The scripts of text that was not spoken, since the voice's languages do not use them."""
        return self._text.left_out

    def text_came(self, now: float) -> None:
        """Text is there, and may yet wait to be taken in: the listener waits from now on."""
        if self._first_text_at is None:
            self._first_text_at = now

    def feed(self, text: str, now: float, *, withhold: bool = False) -> None:
        """`withhold`: the engine is told with the `end`, which is on its way."""
        self.text_came(now)
        self._paced.came(text, now)
        self._text.feed(text, now)
        if not withhold:
            self._give(now)

    def flush(self, now: float, *, withhold: bool = False) -> None:
        """Speak all there is now to its end; more text of the same segment may follow."""
        self._text.flush(now)
        if not withhold:
            self._give(now)

    def end(self, now: float) -> Made:
        """No more text. Gives the end, where the engine has no more to say: then it is `over`."""
        was_over = self.over
        self._text.finish(now)
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
        if self.over:
            return inf
        times = (self._text.deadline(), self._paced.due)
        return min((at for at in times if at is not None), default=inf)

    def _give(self, now: float) -> None:
        """Give the engine what there is for the utterance on the air."""
        if self.over:
            return
        part = self._text.segments[self._at]
        self._advance(now)
        while part.closed and not part.has_speech:
            if self._at + 1 == len(self._text.segments):
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

    def _advance(self, now: float) -> None:
        """Take more of the text that waits, where it belongs to the utterance on the air."""
        if self._at + 1 == len(self._text.segments):
            # Of speech that stands, an encoder may keep the last: that must not seem to be heard
            # ever later, or there would never be a time to close.
            dry_at = self.listener.dry_at(self._stands_since if self._paced.stands else now)
            if self._first is not None:
                dry_at = max(dry_at, self._stands_since + _FIRST_WAIT)
            self._paced.advance(dry_at, now)
        else:
            self._paced.due = None

    def _next_part(self) -> TextSegment:
        """Go on to the text behind the next pause or commit, which there is."""
        self._at += 1
        part = self._text.segments[self._at]
        self.utterance_id = f"{self.name}.{self._at}"
        self._opened = self._finished = False
        self._pause += part.pause
        self._held_before = self._held_seconds
        self.listener.begin(part)
        return part

    def _open(self, now: float) -> None:
        self._opened = True
        if self._waits_since is not None:
            self._held_before += now - self._waits_since
            self._held_seconds, self._waits_since = self._held_before, None
        command = Open(
            self.utterance_id,
            msgspec.structs.replace(self._spec, seed=(self._spec.seed + self._at) % 2**63),
            listener_free_after=max(0.0, self.listener.dry_at(now) - now),
            lead_cap=self._lead_cap(now),
            continues=self.listener.made > 0,
        )
        self._engine.open(command, self._on_event)

    def _lead_cap(self, now: float) -> float:
        """In seconds. What is saved may be so far ahead of what was taken, not of what is heard."""
        seconds = self._settings.lead_ms / 1000
        return seconds + self.listener.playback.lead(now) if self._saved else seconds

    # Sound.

    def take(self, event: Event, now: float) -> Made:
        """What the engine says of the utterance on the air, which has ended with some of it."""
        match event:
            case Audio():
                return self._audio(event, now)
            case Started():
                self.layout = event.layout
                self._moves += event.moved
                return []
            case Waits(text_tokens=tokens):
                return self._waits(tokens, now)
            case Ended() | Failed() | Refused():
                self._engine.forget(event.id)
                first, self._first = self._first or [], None
                return [*first, *self._ended(event, now)]

    def _audio(self, event: Audio, now: float) -> Made:
        self._held_seconds = self._held_before + event.held_seconds
        silence = self._silence()
        samples = len(event.pcm) // BYTES_PER_SAMPLE
        self.listener.add_speech(samples, event.tokens, event.silent)
        self._paced.sounded(now)
        return self._begun([*silence, event.pcm], stands=event.stands)

    def _begun(self, made: Made, *, stands: bool) -> Made:
        """The same, once there is enough to begin with, or more to come of the text there is."""
        if self._first is not None:
            made = self._first = [*self._first, *made]
            if stands and not self._finished and self.listener.made < _FIRST_SAMPLES:
                return []
            self._first = None
        return made

    def _waits(self, tokens: int, now: float) -> Made:
        self._paced.used, self._stands_since = tokens, now
        self._give(now)
        # Of speech that stands still the listener gets all there is.
        return self._begun([Mark.CUT], stands=True) if self._paced.stands else []

    def _silence(self) -> Made:
        """The pause that is due, cut off: the speech behind it begins like a turn."""
        samples = round(self._pause * SAMPLE_RATE)
        self._pause = 0.0
        if not samples:
            return []
        self.listener.add_silence(samples)
        return [bytes(samples * BYTES_PER_SAMPLE), Mark.CUT]

    def _ended(self, event: Ended | Failed | Refused, now: float) -> Made:
        """Goes on to the next part of the text, or notes why all is `over`."""
        if isinstance(event, Ended):
            self._held_seconds = self._held_before + event.held_seconds
            if event.reason == "complete":
                if self._finished:
                    learnt = self.listener.measured()
                    self._engine.paces.learn(voice_of(self._settings), *learnt)
                else:  # the model has ended by itself: what it was not given is still to be spoken
                    self._paced.commit()
                if self._at + 1 < len(self._text.segments):
                    return self._go_on(now)
            self.reason = self.listener.finish(event.reason)
        elif isinstance(event, Failed):
            self._held_seconds = self._held_before + event.held_seconds
            self.failure = TurnFailure(event.code, event.message, event.retryable)
        else:
            self._engine.refused(self._settings.model, self._settings.voice, event)
            retry_after_ms = round(event.retry_after * 1000)
            self.failure = TurnFailure(event.code, event.message, True, retry_after_ms)
        self.over = True
        self.listener.ended = self.failure is None
        return [Mark.END]

    def _go_on(self, now: float) -> Made:
        self._next_part()
        silence = self._silence() or [Mark.CUT]
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
        if self._saved and not self.over and playback.sent_seconds >= self._lead_after:
            self._lead_after = playback.sent_seconds + _LEAD_EVERY
            self._engine.submit(Lead(self.utterance_id, self._lead_cap(now)))
        return late

    def cancel(self) -> None:
        """The engine stops at once, and no more of its events come. Idempotent."""
        self._engine.cancel(self.utterance_id)

    def release(self) -> None:
        """No event comes any more: whoever would be told is forgotten."""
        self._on_event = lambda event: None

    def played(self, samples: int, now: float) -> None:
        """The listener reports a position."""
        self.listener.playback.played(samples / SAMPLE_RATE, now)
        begins = self.listener.part_begins
        if self._opened and samples >= begins:
            self._engine.submit(Played(self.utterance_id, (samples - begins) / SAMPLE_RATE))

    def stats(self) -> TurnStats:
        """What it came to so far."""
        playback = self.listener.playback
        sent_at, text_at = playback.first_sent_at, self._first_text_at
        waited = None if sent_at is None or text_at is None else sent_at - text_at
        return TurnStats(
            samples=self.listener.taken,
            ttfa_ms=None if waited is None else round(waited * 1000, 1),
            underruns=playback.underruns,
            held_ms=round(self._held_seconds * 1000, 1),
            held_inside_word=self._paced.held_inside_word,
            moves=self._moves,
        )
