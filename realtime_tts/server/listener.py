"""Listener: what was sent of a segment and what its listener has heard, and which text that was."""

from __future__ import annotations

from collections.abc import Sequence

from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.audio.speed import AS_MADE, Speed
from realtime_tts.audio.time_scale import Place, TimeScale
from realtime_tts.engine.guards import TEXT
from realtime_tts.engine.link import Audio, Spoken
from realtime_tts.engine.made_codes import unpacked
from realtime_tts.protocol.effects import HeardReport
from realtime_tts.server.resumption import Resumption
from realtime_tts.text.pipeline import TextPipeline, TextSegment
from realtime_tts.text.speech_times import SpokenSpan, SpokenText
from tts_scheduler import Playback

_LEAD_EVERY = 1.0  # seconds of sound between the lead caps of a client that saves


class UtteranceSound:
    """The speech of one utterance, as it is made and as it is played. At a speed of 1 the engine's
    very bytes are played, and nothing is held."""

    def __init__(self, speed: Speed) -> None:
        self.speed = speed
        self.made = 0
        """Samples that the engine made."""
        self._scale = TimeScale(speed) if speed.changes else None

    def resume(self, made: int, place: Place | None) -> None:
        """Continue an utterance that made `made` samples on another socket, played up to
        `place`."""
        self.made = made
        if self._scale is not None:
            self._scale = TimeScale(self.speed, place, made)

    def add(self, pcm: bytes) -> tuple[bytes, int]:
        """Add speech that was made. Return what is played now, and the samples of `pcm` as
        played."""
        before = self.made
        self.made += len(pcm) // BYTES_PER_SAMPLE
        if self._scale is None:
            return pcm, self.made - before
        return self._scale.push(pcm), self.speed.played(self.made) - self.speed.played(before)

    def rest(self) -> bytes:
        """Return all that was held, since nothing follows."""
        return b"" if self._scale is None else self._scale.finish()

    @property
    def played(self) -> int:
        """Samples of all that was made, as it is played."""
        return self.speed.played(self.made)

    def has_left_behind(self, made: int) -> bool:
        """Return whether what follows the place does not depend on the first `made` samples."""
        return self._scale is None or made <= self._scale.place.next - self._scale.HISTORY

    @property
    def place(self) -> Place | None:
        """How far the speech was played; None: all that was made."""
        return None if self._scale is None else self._scale.place


class LeadCap:
    """How far the engine may be ahead of a listener. For a client that saves the sound (`saved`) it
    counts from what the client has taken, not from what was played, and changes as that does."""

    def __init__(self, seconds: float, *, saved: bool) -> None:
        self._seconds, self._saved = seconds, saved
        self._due = 0.0  # seconds sent when the engine must get it again

    def seconds(self, playback: Playback, now: float) -> float:
        """Return the lead cap to give the engine now."""
        return self._seconds + playback.lead(now) if self._saved else self._seconds

    def is_due(self, playback: Playback) -> bool:
        """Return whether the engine must get it again; True once for each second of sound."""
        if not self._saved or playback.sent_seconds < self._due:
            return False
        self._due = playback.sent_seconds + _LEAD_EVERY
        return True


class Listener:
    """What the listener of one segment got and heard. `free_at`: when everything sent before will
    have been heard. Counts are samples as they are played, at the engine's rate."""

    def __init__(
        self, text: TextPipeline, language: str | None, pace: float, free_at: float | None
    ) -> None:
        self.made = 0
        """Samples made so far, as they are played: speech and pauses."""
        self.part_begins = 0
        """Samples made before the speech of the utterance on the air."""
        self.taken = 0
        """Samples handed to the writer."""
        self.complete = False
        """Whether all speech of all the text was made."""
        self.ended = False
        """Whether no more speech comes, though perhaps not all text was spoken."""
        self.unread = ""
        """Text that came and was never processed."""
        self.playback = Playback(listener_free_at=free_at)
        self.first_sent_at: float | None = None
        """When the first packet left on this socket; the playback may go on from another one."""
        self.catching_up: int | None = None
        """Characters spoken on another socket, while their text comes again; else None."""
        self._text = text
        self._spoken = SpokenText(text, language, pace)
        self.sound = UtteranceSound(AS_MADE)
        """The sound of the utterance on the air."""
        self._stopped_at: float | None = None  # seconds heard when the listener was interrupted
        self._place: Place | None = None  # how far sound was played on another socket

    # What came on another socket.

    def resume(self, resumption: Resumption, now: float) -> None:
        """Continue a segment of another socket. How much of it was heard is not known here."""
        self.made, self.taken = resumption.made, resumption.samples
        self._place = resumption.place
        if resumption.spoken is not None:
            self.play_at(resumption.speed)
        self.catching_up = resumption.text_chars
        if self.taken:
            self.playback.runs_out_at = now
            self.playback.resume(self.taken, 0, now)

    def caught_up(self, before: Sequence[int], begins: int, spoken: Spoken | None) -> None:
        """Continue with the utterance after those that made `before` samples of speech each: the
        text is where it was. Its speech began at sample `begins`, and is `spoken` so far."""
        self.catching_up, self.part_begins = None, begins
        rate = self.playback.sample_rate
        for part, samples in zip(self._text.segments[1:], before, strict=False):
            self._spoken.made(samples / rate)
            self._spoken.begin(part, self.sound.speed)
        tokens, silent = (spoken.tokens, spoken.silent) if spoken is not None else (b"", 0)
        numbers = unpacked(tokens, 1)[:, 0].tolist()
        if spoken is not None:
            self.sound.resume(spoken.samples, self._place)
        speed = self.sound.speed
        self._spoken.made(self.sound.played / rate, numbers, silent / rate / speed)

    @property
    def parts_made(self) -> list[int]:
        """Samples of speech of each utterance that has begun."""
        rate = self.playback.sample_rate
        return [round(part.generated * rate) for part in self._spoken.parts]

    @property
    def words_chars(self) -> int:
        """Characters of text whose words `take_words` has returned."""
        return self._spoken.told

    # What was made.

    def begin(self, part: TextSegment) -> None:
        """Begin another utterance, after its pause: the speech of the one before is complete."""
        self._spoken.begin(part, self.sound.speed)
        self.sound = UtteranceSound(self.sound.speed)
        self.part_begins = self.made

    def play_at(self, speed: float) -> None:
        """Set the speed of the utterance on the air, which has not sounded yet."""
        if speed != self.sound.speed:
            self.sound = UtteranceSound(Speed(speed))
            self._spoken.play_at(speed)

    def add_speech(self, audio: Audio) -> bytes:
        """Add speech that was made. Return the part to play now; at other speeds than 1, the end
        comes with what follows, or with the `rest`."""
        rate = self.playback.sample_rate
        pcm, samples = self.sound.add(audio.pcm)
        self.made += len(pcm) // BYTES_PER_SAMPLE
        tokens = unpacked(audio.tokens, 1)[:, 0].tolist()
        self._spoken.made(samples / rate, tokens, audio.silent / rate / self.sound.speed)
        return pcm

    def rest(self) -> bytes:
        """Return what is still to be played of the utterance, all of whose speech was made."""
        pcm = self.sound.rest()
        self.made += len(pcm) // BYTES_PER_SAMPLE
        return pcm

    def add_silence(self, samples: int) -> None:
        """Add a pause of this many samples before the speech of the utterance on the air."""
        self.made += samples
        self.part_begins = self.made

    def finish(self, reason: str) -> str:
        """Note that the engine ended for this reason. Return the turn's reason: it is not complete
        if the model tells which words it speaks and did not speak them all."""
        if reason == "complete" and not self._spoken.all_spoken():
            reason = TEXT
        self.complete = reason == "complete"
        return reason

    def measured(self) -> tuple[float, float]:
        """Return the expected and true seconds of the last utterance, once all was made."""
        return self._spoken.measured()

    def dry_at(self, now: float) -> float:
        """Return when the listener runs out of sound, if everything unsent is sent now."""
        unsent = max(0, self.made - self.playback.sent_samples)
        runs_out_at = self.playback.runs_out_at
        if not unsent and runs_out_at is not None:
            return runs_out_at
        return max(now, runs_out_at or now) + unsent / self.playback.sample_rate

    # What was sent.

    def sent(self, samples: int, now: float) -> float:
        """Note that this many more samples are sent; return by how many seconds they were late."""
        self.first_sent_at = self.first_sent_at or now
        return self.playback.sent(samples, now)

    def take(self, samples: int | None = None) -> int:
        """Note that the writer has taken the speech up to here (None: all); an interrupt cannot
        stop that any more. Return by how many samples that is more than before."""
        taken = self.made if samples is None else min(samples, self.made)
        more = max(0, taken - self.taken)
        self.taken += more
        return more

    # What was heard.

    def heard(self, played_samples: int | None, now: float) -> HeardReport:
        """Stop here; return what was heard, and which text that was.

        Without a position: what had played when it stopped before, else what has played by now, if
        playback never paused since the first packet.
        """
        rate = self.playback.sample_rate
        sent = self.taken / rate
        if played_samples is not None:
            played = min(played_samples / rate, sent)
        elif self._stopped_at is not None:
            played = self._stopped_at
        else:
            played = max(0.0, sent - self.playback.lead(now))
        self._stopped_at = played
        if self.catching_up is not None:
            source, cut = self._text.source + self.unread, self.catching_up
            return HeardReport(self.taken, played * 1000, source[:cut], source[cut:])
        text = self._spoken.split(played, self.made / rate, self.complete)
        return HeardReport(self.taken, played * 1000, text.spoken, text.remaining + self.unread)

    def heard_at(self) -> float | None:
        """Return when the listener will have heard all of it; None if that no longer matters."""
        return None if self._stopped_at is not None else self.playback.runs_out_at

    def take_words(self) -> list[SpokenSpan]:
        """Return the next words that became spoken with the sound taken so far, in seconds of this
        segment; none when all were returned."""
        if not self.taken:
            return []  # also if the text has nothing to speak
        rate = self.playback.sample_rate
        in_all = self.made / rate if self.complete else None
        return self._spoken.take(self.taken / rate, in_all, ended=self.ended)

    @property
    def text_chars(self) -> int:
        """Characters of text received so far."""
        return len(self._text.source) + len(self.unread)
