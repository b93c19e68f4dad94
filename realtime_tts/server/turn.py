"""OnAirTurn: one turn between its OpenTurn and its end.

Text comes in and leaves as token ids for the engine; PCM comes back and leaves as packets in the
session's format, through an encoder of the turn's own; what was sent, and when, is kept for
`turn.done` and for the answer to an interrupt. It knows neither the socket nor the session:
connection.py carries its packets to the one and its end to the other.

A pause in the text parts the turn into segments, each an utterance of its own to the engine. The
next one is opened when the engine has made the last sound of the one before: its listener is free
only when that and the pause have been heard, so it has at least the pause's length to begin.
"""

from __future__ import annotations

from realtime_tts.audio.packets import Packet, packets_in
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.engine.link import (
    Append,
    Audio,
    Ended,
    Failed,
    Finish,
    Flush,
    Open,
    Played,
    Refused,
)
from realtime_tts.protocol.effects import HeardReport, TurnFailure, TurnStats
from realtime_tts.protocol.messages import TurnWords
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.engine_host import EngineHost, EventHandler
from realtime_tts.server.turn_settings import number_language, utterance_spec, voice_of
from realtime_tts.server.turn_words import turn_words
from realtime_tts.text.lexicon import lexicon_for
from realtime_tts.text.pipeline import TextPipeline, TextSegment
from realtime_tts.text.speech_times import SpokenSpan
from realtime_tts.text.spoken_text import SpokenText
from tts_scheduler import Playback


class OnAirTurn:
    """`utterance_id` is the turn's name towards the engine, unique among all connections; later
    segments add a number to it.

    `listener_free_at`: when the listener will have heard the session's earlier turns.
    """

    def __init__(
        self,
        turn_id: str,
        utterance_id: str,
        settings: SessionSettings,
        engine: EngineHost,
        on_event: EventHandler,
        listener_free_at: float | None,
    ) -> None:
        self.turn_id = turn_id
        self.utterance_id = utterance_id
        """Of the segment on the air."""
        self.layout = "streaming"  # until the engine says what it used
        self.announced = False  # turn.started was sent
        self.over = False
        """Nothing of the turn follows but the packets already given."""
        self.reason = "complete"
        self.failure: TurnFailure | None = None
        self.tells_words = settings.word_times == "on"
        self.text_tokens = 0  # given to the engine
        self._held_seconds = 0.0
        self._generated = 0  # samples that came from the engine
        self._complete = False  # they are all the speech of all the text
        self._samples = 0  # of them handed to the writer
        self._first_text_at: float | None = None
        self._unread = ""  # text that came and was not taken in
        self._settings = settings
        self._engine = engine
        self._on_event = on_event
        self._first_id = utterance_id
        self._at = 0  # the segment on the air
        self._before = 0  # samples of the turn before this segment's speech
        self._held_before = 0.0
        self._pause = 0.0  # seconds of silence before the next sound
        self._opened = False  # the segment on the air is known to the engine
        self._finished = False  # the engine knows the end of its text
        self._silenced = False
        self._listener_free_at = listener_free_at
        tokenizer = engine.tokenizer_for(settings.model, settings.voice)
        self._text = TextPipeline(
            tokenizer,
            filtered=settings.text_filter == "on",
            language=number_language(settings, engine),
            lexicon=lexicon_for(settings.lexicon),
        )
        pace = engine.paces.of(voice_of(settings))
        self._spoken = SpokenText(self._text, settings.language, pace)
        self._packets = packets_in(settings.audio)
        self._playback = Playback(listener_free_at=listener_free_at)

    # Text.

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
        self._text.flush(now)
        if withhold:
            return
        self._give(now)
        if self._opened and not self._finished:
            self._engine.submit(Flush(self.utterance_id))

    def end(self, now: float) -> bool:
        """No more text. False if the turn has nothing to speak: then the engine never hears of
        it, and the turn is over. Where only a pause is left, `over` is set: see `last_packets`."""
        self._text.finish(now)
        self._give(now)
        return self._text.has_speech

    def last_packets(self) -> list[Packet]:
        """For a turn that `end` has made over: the pause that it ends with."""
        return [*self._silence(), *self._packets.finish()]

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
        """Give the engine what there is of the segment on the air."""
        if self.over:
            return
        segment = self._text.segments[self._at]
        while segment.closed and not segment.has_speech:
            if self._at + 1 == len(self._text.segments):
                self.over = self._complete = not self._opened
                return
            segment = self._next_segment()
        if segment.ids and segment.has_speech:  # only punctuation: it need not hear of it yet
            if not self._opened:
                self._opened = True
                self._engine.open(self._open_command(now), self._on_event)
            self._engine.submit(Append(self.utterance_id, segment.ids))
            self.text_tokens += len(segment.ids)
            segment.ids = []
        if segment.closed and self._opened and not self._finished:
            self._finished = True
            self._engine.submit(Finish(self.utterance_id))

    def _next_segment(self) -> TextSegment:
        """Go on to the text behind the next pause, which there is."""
        self._at += 1
        segment = self._text.segments[self._at]
        self.utterance_id = f"{self._first_id}.{self._at}"
        self._opened = self._finished = False
        self._pause += segment.pause
        self._held_before = self._held_seconds
        self._spoken.begin(segment)
        return segment

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
            lead_cap=self._settings.lead_ms / 1000,
        )

    # Audio.

    def audio(self, event: Audio) -> list[Packet]:
        """Packets that are due, now that the engine has made more sound."""
        self._held_seconds = self._held_before + event.held_seconds
        packets = self._silence()
        samples = len(event.pcm) // BYTES_PER_SAMPLE
        self._generated += samples
        self._spoken.made(samples / self._playback.sample_rate)
        return packets + self._packets.push(event.pcm)

    def _silence(self) -> list[Packet]:
        """The pause that is due, in packets of its own: the speech behind it begins like a turn."""
        samples = round(self._pause * self._playback.sample_rate)
        self._pause = 0.0
        if not samples:
            return []
        self._generated += samples
        packets = self._packets.push(bytes(samples * BYTES_PER_SAMPLE)) + self._packets.cut()
        self._before = self._generated
        return packets

    def ended(self, event: Ended | Failed | Refused, now: float) -> list[Packet]:
        """The engine is done with the segment on the air: gives the packets that are due.

        Goes on to the next segment, or notes why the turn is `over`.
        """
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
        return self._packets.finish()

    def _go_on(self, now: float) -> list[Packet]:
        self._next_segment()
        packets = self._silence()
        self._give(now)
        return packets + self.last_packets() if self.over else packets

    def packet_taken(self, samples: int) -> None:
        """The writer has taken a packet: an interrupt cannot stop it any more."""
        self._samples += samples

    def packet_sent(self, samples: int, now: float) -> float:
        """The socket has taken it; returns by how many seconds it was late."""
        return self._playback.sent(samples, now)

    def drop(self) -> None:
        """Nothing more will be sent: gives up what the encoder holds. Idempotent."""
        self._packets.drop()

    # What the listener has heard.

    def played(self, samples: int, now: float) -> None:
        """The listener reports a position."""
        seconds = samples / self._playback.sample_rate
        self._playback.played(seconds, now)
        if self._opened and samples >= self._before:
            seconds = (samples - self._before) / self._playback.sample_rate
            self._engine.submit(Played(self.utterance_id, seconds))

    def silence(self, played_samples: int | None, now: float) -> HeardReport:
        """The listener stops here: what was heard, and what text that was.

        Without a position from the client: what has played by now if playback began with the first
        packet and never paused.
        """
        self._silenced = True
        self.drop()
        rate = self._playback.sample_rate
        sent = self._samples / rate
        if played_samples is None:
            played = max(0.0, sent - self._playback.lead(now))
        else:
            played = min(played_samples / rate, sent)
        text = self._spoken.split(played, self._generated / rate, self._complete)
        remaining = text.remaining + self._unread
        return HeardReport(self._samples, played * 1000, text.spoken, remaining)

    def take_words(self) -> list[SpokenSpan]:
        """The next words that became spoken with the packets taken so far, by estimate; none when
        all were given."""
        if not self._samples:
            return []  # also of a text with nothing to speak
        rate = self._playback.sample_rate
        in_all = self._generated / rate if self._complete else None
        ended = self.over and self.failure is None
        return self._spoken.take(self._samples / rate, in_all, ended=ended)

    def words_due(self) -> TurnWords | None:
        """The same for a client that asked for it; None if there is nothing to tell."""
        return turn_words(self.turn_id, self.take_words()) if self.tells_words else None

    def heard_at(self) -> float | None:
        """When the listener will have heard all of it; None if that is no matter."""
        return None if self._silenced else self._playback.deadline()

    @property
    def text_chars(self) -> int:
        """Characters of text that came so far."""
        return len(self._text.source) + len(self._unread)

    def stats(self) -> TurnStats:
        return TurnStats(
            samples=self._samples,
            ttfa_ms=self._ttfa_ms(),
            underruns=self._playback.underruns,
            held_ms=round(self._held_seconds * 1000, 1),
        )

    def _ttfa_ms(self) -> float | None:
        sent_at = self._playback.first_sent_at
        if sent_at is None or self._first_text_at is None:
            return None
        return round((sent_at - self._first_text_at) * 1000, 1)
