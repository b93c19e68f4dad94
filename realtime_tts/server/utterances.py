"""Utterances: one segment of a speech in the engine, from its first text to its last sound.

Text comes in and leaves as token ids for the engine; PCM comes back, and what was sent of it, and
when, is kept for reports. It knows no encoder, no socket and no session: speech.py has those who
listen.

A pause in the text parts it into utterances. The next one is opened when the engine has made the
last sound of the one before: its listener is free only when that and the pause have been heard, so
it has at least the pause's length to begin. Whatever else is to end an utterance and go on in
another, as the same voice, is one more part of `TextPipeline.segments` for `_give` to go on to.
"""

from __future__ import annotations

from enum import Enum, auto

from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.engine.link import (
    Append,
    Audio,
    Ended,
    Event,
    Failed,
    Finish,
    Flush,
    Lead,
    Open,
    Played,
    Refused,
    Started,
)
from realtime_tts.protocol.effects import HeardReport, TurnFailure, TurnStats
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.engine_host import EngineHost, EventHandler
from realtime_tts.server.session_settings import number_language, utterance_spec, voice_of
from realtime_tts.text.lexicon import lexicon_for
from realtime_tts.text.pipeline import TextPipeline, TextSegment
from realtime_tts.text.speech_times import SpokenSpan
from realtime_tts.text.spoken_text import SpokenText
from tts_scheduler import Playback

_LEAD_EVERY = 1.0  # seconds of sound


class Mark(Enum):
    """What stands between pieces of PCM."""

    CUT = auto()
    """A pause: what an encoder holds so far leaves before it, where its packets may be cut."""
    END = auto()
    """No more sound of this segment."""


Made = list[bytes | Mark]
"""Sound that was made (s16le, 24 kHz, mono), in its order."""


class Utterances:
    """`name` is unique among all of this server, and the first utterance's; later ones add to it.

    `listener_free_at`: when the listener will have heard what was sent before. `saved`: see
    `Delivery`.
    """

    def __init__(
        self,
        name: str,
        settings: SessionSettings,
        engine: EngineHost,
        on_event: EventHandler,
        listener_free_at: float | None,
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
        self._held_seconds = 0.0
        self._generated = 0  # samples that came from the engine, and pauses
        self._complete = False  # they are all the speech of all the text
        self._taken = 0  # of them handed to the writer
        self._first_text_at: float | None = None
        self._unread = ""  # text that came and was not taken in
        self._settings = settings
        self._engine = engine
        self._on_event = on_event
        self._at = 0  # the part of the text on the air
        self._before = 0  # samples before the speech of that part
        self._held_before = 0.0
        self._pause = 0.0  # seconds of silence before the next sound
        self._opened = False  # the utterance on the air is known to the engine
        self._finished = False  # the engine knows the end of its text
        self._silenced = False
        self._listener_free_at = listener_free_at
        self._saved = saved
        self._lead_after = 0.0  # seconds sent, from which on the engine is told the lead cap anew
        tokenizer = engine.tokenizer_for(settings.model, settings.voice)
        self._text = TextPipeline(
            tokenizer,
            filtered=settings.text_filter == "on",
            language=number_language(settings, engine),
            lexicon=lexicon_for(settings.lexicon),
        )
        pace = engine.paces.of(voice_of(settings))
        self._spoken = SpokenText(self._text, settings.language, pace)
        self._playback = Playback(listener_free_at=listener_free_at)

    # Text.

    @property
    def has_speech(self) -> bool:
        """Whether there is anything to speak in the text so far."""
        return self._text.has_speech

    def text_came(self, now: float) -> None:
        """Text is there, and may yet wait to be taken in: the listener waits from now on."""
        if self._first_text_at is None:
            self._first_text_at = now

    def feed(self, text: str, now: float, *, withhold: bool = False) -> None:
        """`withhold`: the engine is told with the `end`, which is on its way."""
        self.text_came(now)
        self._text.feed(text, now)
        if not withhold:
            self._give(now)

    def flush(self, now: float, *, withhold: bool = False) -> None:
        """Speak what there is now; more text of the same utterance may follow."""
        self._text.flush(now)
        if withhold:
            return
        self._give(now)
        if self._opened and not self._finished:
            self._engine.submit(Flush(self.utterance_id))

    def end(self, now: float) -> Made:
        """No more text. Gives the end, where the engine has no more to say: then it is `over`."""
        was_over = self.over
        self._text.finish(now)
        self._give(now)
        if was_over or not self.over:
            return []
        return [*(self._silence() if self.has_speech else ()), Mark.END]

    def leave_unread(self, text: str) -> None:
        """This came as well, and is not taken in any more."""
        self._unread += text

    def poll(self, now: float) -> None:
        """Release text that was held back for long enough."""
        self._text.poll(now)
        self._give(now)

    def text_deadline(self) -> float | None:
        """When `poll` should be called."""
        return self._text.deadline()

    def _give(self, now: float) -> None:
        """Give the engine what there is for the utterance on the air."""
        if self.over:
            return
        part = self._text.segments[self._at]
        while part.closed and not part.has_speech:
            if self._at + 1 == len(self._text.segments):
                self.over = self._complete = not self._opened
                return
            part = self._next_part()
        if part.ids and part.has_speech:  # only punctuation: it need not hear of it yet
            if not self._opened:
                self._opened = True
                self._engine.open(self._open_command(now), self._on_event)
            self._engine.submit(Append(self.utterance_id, part.ids))
            self.text_tokens += len(part.ids)
            part.ids = []
        if part.closed and self._opened and not self._finished:
            self._finished = True
            self._engine.submit(Finish(self.utterance_id))

    def _next_part(self) -> TextSegment:
        """Go on to the text behind the next pause, which there is."""
        self._at += 1
        part = self._text.segments[self._at]
        self.utterance_id = f"{self.name}.{self._at}"
        self._opened = self._finished = False
        self._pause += part.pause
        self._held_before = self._held_seconds
        self._spoken.begin(part)
        return part

    def _open_command(self, now: float) -> Open:
        free_at = self._listener_free_at
        if self._generated:
            unsent = self._generated - self._playback.sent_samples
            free_at = max(now, self._playback.deadline() or now)
            free_at += unsent / self._playback.sample_rate
        return Open(
            self.utterance_id,
            utterance_spec(self._settings),
            listener_free_after=0.0 if free_at is None else max(0.0, free_at - now),
            lead_cap=self._lead_cap(now),
        )

    def _lead_cap(self, now: float) -> float:
        """In seconds. What is saved may be so far ahead of what was taken, not of what is heard."""
        seconds = self._settings.lead_ms / 1000
        return seconds + self._playback.lead(now) if self._saved else seconds

    # Sound.

    def take(self, event: Event, now: float) -> Made:
        """What the engine says of the utterance on the air, which has ended with some of it."""
        match event:
            case Audio():
                return self._audio(event)
            case Started(layout=layout):
                self.layout = layout
                return []
            case Ended() | Failed() | Refused():
                self._engine.forget(event.id)
                return self._ended(event, now)

    def _audio(self, event: Audio) -> Made:
        self._held_seconds = self._held_before + event.held_seconds
        silence = self._silence()
        samples = len(event.pcm) // BYTES_PER_SAMPLE
        self._generated += samples
        self._spoken.made(samples / self._playback.sample_rate)
        return [*silence, event.pcm]

    def _silence(self) -> Made:
        """The pause that is due, cut off: the speech behind it begins like a turn."""
        samples = round(self._pause * self._playback.sample_rate)
        self._pause = 0.0
        if not samples:
            return []
        self._generated += samples
        self._before = self._generated
        return [bytes(samples * BYTES_PER_SAMPLE), Mark.CUT]

    def _ended(self, event: Ended | Failed | Refused, now: float) -> Made:
        """Goes on to the next part of the text, or notes why all is `over`."""
        if isinstance(event, Ended):
            self._held_seconds = self._held_before + event.held_seconds
            # Else the model has ended by itself, or was stopped: text may be left unspoken.
            all_spoken = event.reason == "complete" and self._finished
            if all_spoken:
                self._engine.paces.learn(voice_of(self._settings), *self._spoken.measured())
            if event.reason == "complete" and self._at + 1 < len(self._text.segments):
                return self._go_on(now)
            self._complete = all_spoken
            self.reason = event.reason
        elif isinstance(event, Failed):
            self._held_seconds = self._held_before + event.held_seconds
            self.failure = TurnFailure(event.code, event.message, event.retryable)
        else:
            retry_after_ms = round(event.retry_after * 1000)
            self.failure = TurnFailure(event.code, event.message, True, retry_after_ms)
        self.over = True
        return [Mark.END]

    def _go_on(self, now: float) -> Made:
        self._next_part()
        silence = self._silence()
        self._give(now)
        return [*silence, *self._silence(), Mark.END] if self.over else silence

    def taken(self, samples: int | None = None) -> int:
        """The writer has taken the speech up to here (None: all), which an interrupt cannot stop
        any more. Gives by how many samples that is more than before."""
        taken = self._generated if samples is None else min(samples, self._generated)
        more = max(0, taken - self._taken)
        self._taken += more
        return more

    def sent(self, samples: int, now: float) -> float:
        """The socket has so many more; returns by how many seconds they were late."""
        late = self._playback.sent(samples, now)
        if self._saved and not self.over and self._playback.sent_seconds >= self._lead_after:
            self._lead_after = self._playback.sent_seconds + _LEAD_EVERY
            self._engine.submit(Lead(self.utterance_id, self._lead_cap(now)))
        return late

    def cancel(self) -> None:
        """The engine stops at once, and no more of its events come. Idempotent."""
        self._engine.cancel(self.utterance_id)

    def release(self) -> None:
        """No event comes any more: whoever would be told is forgotten."""
        self._on_event = _nothing

    # What the listener has heard.

    def played(self, samples: int, now: float) -> None:
        """The listener reports a position."""
        seconds = samples / self._playback.sample_rate
        self._playback.played(seconds, now)
        if self._opened and samples >= self._before:
            seconds = (samples - self._before) / self._playback.sample_rate
            self._engine.submit(Played(self.utterance_id, seconds))

    def heard(self, played_samples: int | None, now: float) -> HeardReport:
        """The listener stops here: what was heard, and what text that was.

        Without a position from the client: what has played by now if playback began with the first
        packet and never paused.
        """
        self._silenced = True
        rate = self._playback.sample_rate
        sent = self._taken / rate
        if played_samples is None:
            played = max(0.0, sent - self._playback.lead(now))
        else:
            played = min(played_samples / rate, sent)
        text = self._spoken.split(played, self._generated / rate, self._complete)
        remaining = text.remaining + self._unread
        return HeardReport(self._taken, played * 1000, text.spoken, remaining)

    def take_words(self) -> list[SpokenSpan]:
        """The next words that became spoken with the sound taken so far, by estimate, in seconds
        of this speech; none when all were given."""
        if not self._taken:
            return []  # also of a text with nothing to speak
        rate = self._playback.sample_rate
        in_all = self._generated / rate if self._complete else None
        ended = self.over and self.failure is None
        return self._spoken.take(self._taken / rate, in_all, ended=ended)

    def heard_at(self) -> float | None:
        """When the listener will have heard all of it; None if that is no matter."""
        return None if self._silenced else self._playback.deadline()

    @property
    def text_chars(self) -> int:
        """Characters of text that came so far."""
        return len(self._text.source) + len(self._unread)

    def stats(self) -> TurnStats:
        """What it came to so far."""
        sent_at, text_at = self._playback.first_sent_at, self._first_text_at
        waited = None if sent_at is None or text_at is None else sent_at - text_at
        return TurnStats(
            samples=self._taken,
            ttfa_ms=None if waited is None else round(waited * 1000, 1),
            underruns=self._playback.underruns,
            held_ms=round(self._held_seconds * 1000, 1),
        )


def _nothing(_: Event) -> None:
    """Whoever would be told is gone."""
