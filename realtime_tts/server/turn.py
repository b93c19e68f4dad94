"""OnAirTurn: one turn between its OpenTurn and its end.

Text comes in and leaves as token ids for the engine; PCM comes back and leaves as packets in the
session's format, through an encoder of the turn's own; what was sent, and when, is kept for
`turn.done` and for the answer to an interrupt. It knows neither the socket nor the session:
connection.py carries its packets to the one and its end to the other.
"""

from __future__ import annotations

import secrets

from realtime_tts.audio.packets import Packet, packets_in
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.engine.interface import (
    Append,
    Audio,
    Ended,
    Failed,
    Finish,
    Flush,
    Open,
    Played,
    Refused,
    SamplerSettings,
    SamplingSettings,
    UtteranceSpec,
)
from realtime_tts.protocol.effects import HeardReport, TurnFailure, TurnStats
from realtime_tts.protocol.settings import Sampling, SessionSettings
from realtime_tts.server.engine_host import EngineHost, EventHandler
from realtime_tts.server.formats import format_of
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.spoken import split_spoken
from tts_scheduler import Playback


class OnAirTurn:
    """`utterance_id` is the turn's name towards the engine, unique among all connections.

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
        self.layout = "streaming"  # until the engine says what it used
        self.announced = False  # turn.started was sent
        self.reason = "complete"
        self.failure: TurnFailure | None = None
        self.text_tokens = 0  # given to the engine
        self._held_seconds = 0.0
        self._generated = 0  # samples that came from the engine
        self._complete = False  # they are all the speech there is
        self._samples = 0  # of them handed to the writer
        self._first_text_at: float | None = None
        self._settings = settings
        self._engine = engine
        self._on_event = on_event
        self._opened = False
        self._waiting: list[int] = []  # ids that the engine has not been given
        self._silenced = False
        self._listener_free_at = listener_free_at
        tokenizer = engine.tokenizer_for(settings.model, settings.voice)
        self._text = TextPipeline(tokenizer, filtered=settings.text_filter == "on")
        self._packets = packets_in(format_of(settings.audio))
        self._playback = Playback(listener_free_at=listener_free_at)

    # Text.

    def feed(self, text: str, now: float) -> None:
        if self._first_text_at is None:
            self._first_text_at = now
        self._append(self._text.feed(text, now), now)

    def flush(self, now: float) -> None:
        self._append(self._text.flush(now), now)
        if self._opened:
            self._engine.submit(Flush(self.utterance_id))

    def end(self, now: float) -> bool:
        """No more text. False if the turn has nothing to speak: then the engine never hears of
        it, and the turn is over."""
        self._append(self._text.finish(now), now)
        if self._opened:
            self._engine.submit(Finish(self.utterance_id))
        return self._opened

    def poll(self, now: float) -> None:
        """Release text that was held back for long enough."""
        self._append(self._text.poll(now), now)

    def text_deadline(self) -> float | None:
        """When `poll` should be called."""
        return self._text.deadline()

    def _append(self, ids: list[int], now: float) -> None:
        self._waiting += ids
        if not self._waiting or not self._text.has_speech:
            return  # only punctuation so far: the engine need not hear of it yet
        if not self._opened:
            self._opened = True
            self._engine.open(self._open_command(now), self._on_event)
        self._engine.submit(Append(self.utterance_id, self._waiting))
        self.text_tokens += len(self._waiting)
        self._waiting = []

    def _open_command(self, now: float) -> Open:
        free_at = self._listener_free_at
        return Open(
            self.utterance_id,
            utterance_spec(self._settings),
            listener_free_after=0.0 if free_at is None else max(0.0, free_at - now),
            lead_cap=self._settings.lead_ms / 1000,
        )

    # Audio.

    def audio(self, event: Audio) -> list[Packet]:
        """Packets that are due, now that the engine has made more sound."""
        self._held_seconds = event.held_seconds
        self._generated += len(event.pcm) // BYTES_PER_SAMPLE
        return self._packets.push(event.pcm)

    def ended(self, event: Ended | Failed | Refused) -> list[Packet]:
        """The engine is done with the turn: notes why, gives the last packets, if any."""
        if isinstance(event, Ended):
            self._complete = True
            self.reason = event.reason
            self._held_seconds = event.held_seconds
        elif isinstance(event, Failed):
            self._held_seconds = event.held_seconds
            self.failure = TurnFailure(event.code, event.message, event.retryable)
        else:
            retry_after_ms = round(event.retry_after * 1000)
            self.failure = TurnFailure(event.code, event.message, True, retry_after_ms)
        return self._packets.finish()

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
        if self._opened:
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
        text = split_spoken(
            self._text,
            played,
            self._generated / rate,
            complete=self._complete and self._text.finished,
            language=self._settings.language,
        )
        return HeardReport(self._samples, played * 1000, text.spoken, text.remaining)

    def heard_at(self) -> float | None:
        """When the listener will have heard all of it; None if that is no matter."""
        return None if self._silenced else self._playback.deadline()

    def seconds_in_all(self) -> float | None:
        """How long the speech of all the text is; None until the engine has made all of it."""
        whole = self._complete and self._text.finished and self.reason == "complete"
        return self._generated / self._playback.sample_rate if whole else None

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


def utterance_spec(settings: SessionSettings) -> UtteranceSpec:
    """What the engine is told about a turn with these settings; without a seed, a fresh one."""
    return UtteranceSpec(
        model=settings.model,
        voice=settings.voice,
        language=settings.language,
        instructions=settings.instructions,
        seed=secrets.randbits(63) if settings.seed is None else settings.seed,
        sampling=_sampling(settings.sampling),
        layout=settings.layout,
    )


def _sampling(sampling: Sampling) -> SamplingSettings:
    predictor = sampling.predictor
    return SamplingSettings(
        talker=SamplerSettings(sampling.temperature, sampling.top_k, sampling.top_p),
        predictor=SamplerSettings(predictor.temperature, predictor.top_k, predictor.top_p),
        repetition_penalty=sampling.repetition_penalty,
    )
