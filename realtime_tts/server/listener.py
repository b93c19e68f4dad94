"""Listener: what one who hears a segment of a speech was sent of it and has heard, and what text
that was."""

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

_LEAD_EVERY = 1.0  # seconds of sound after which the engine gets a saver's lead cap again


class UtteranceSound:
    """The speech of one utterance, as it is made and as it is played. At a speed of 1 the very
    bytes that came are played, and nothing is held."""

    def __init__(self, speed: Speed) -> None:
        self.speed = speed
        self.made = 0
        """Samples that the engine made."""
        self._scale = TimeScale(speed) if speed.changes else None

    def resume(self, made: int, place: Place | None) -> None:
        """Go on with an utterance of which `made` samples were made on another socket, and played
        up to `place`."""
        self.made = made
        if self._scale is not None:
            self._scale = TimeScale(self.speed, place, made)

    def add(self, pcm: bytes) -> tuple[bytes, int]:
        """Add speech that was made. Return what is played now, and how many samples all of `pcm` is
        when it is played."""
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
        """Samples of all that was made, when it is played."""
        return self.speed.played(self.made)

    def has_left_behind(self, made: int) -> bool:
        """Whether what follows the place does not depend on the first `made` samples."""
        return self._scale is None or made <= self._scale.place.next - self._scale.HISTORY

    @property
    def place(self) -> Place | None:
        """How far the speech was played; None: all that was made."""
        return None if self._scale is None else self._scale.place


class LeadCap:
    """How far the engine may be ahead of a listener. Of a client that saves the sound (`saved`), it
    counts from what the client has taken, not from what was played, and changes as that does."""

    def __init__(self, seconds: float, *, saved: bool) -> None:
        self._seconds, self._saved = seconds, saved
        self._due = 0.0  # seconds sent, from which on the engine must get it again

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
    """`free_at`: when all that was sent before will have been heard. Counts are samples of the
    segment's sound as it is played, at the engine's rate."""

    def __init__(
        self, text: TextPipeline, language: str | None, pace: float, free_at: float | None
    ) -> None:
        self.made = 0
        """That came from the engine, as they are played, and pauses."""
        self.part_begins = 0
        """Of them before the speech of the part on the air."""
        self.taken = 0
        """Of them handed to the writer."""
        self.complete = False
        """They are all the speech of all the text."""
        self.ended = False
        """No more speech comes, though perhaps not all was spoken."""
        self.unread = ""
        """Text that came and was not taken in."""
        self.playback = Playback(listener_free_at=free_at)
        self.catching_up: int | None = None
        """Characters of text that were spoken on another socket, while that text is taken in."""
        self._text = text
        self._spoken = SpokenText(text, language, pace)
        self.sound = UtteranceSound(AS_MADE)
        """Of the part on the air."""
        self._silenced = False
        self._place: Place | None = None  # of the sound that came on another socket

    # What came on another socket.

    def resume(self, resumption: Resumption, now: float) -> None:
        """How much of that was heard, nobody knows here."""
        self.made, self.taken = resumption.made, resumption.samples
        self._place = resumption.place
        if resumption.spoken is not None:
            self.play_at(resumption.speed)
        self.catching_up = resumption.text_chars
        if self.taken:
            self.playback.runs_out_at = now
            self.playback.resume(self.taken, 0, now)

    def caught_up(self, before: Sequence[int], begins: int, spoken: Spoken | None) -> None:
        """The text is where it was: behind parts with so many samples of speech each. That of the
        one on the air began at `begins`, and is `spoken` so far."""
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
        """Samples of speech of each part that was begun."""
        rate = self.playback.sample_rate
        return [round(part.generated * rate) for part in self._spoken.parts]

    @property
    def words_chars(self) -> int:
        """Characters of text whose words `take_words` has given."""
        return self._spoken.told

    # What was made.

    def begin(self, part: TextSegment) -> None:
        """The speech so far is complete; what follows is this part's, after its pause."""
        self._spoken.begin(part, self.sound.speed)
        self.sound = UtteranceSound(self.sound.speed)
        self.part_begins = self.made

    def play_at(self, speed: float) -> None:
        """The speed of the part on the air, which has not sounded yet."""
        if speed != self.sound.speed:
            self.sound = UtteranceSound(Speed(speed))
            self._spoken.play_at(speed)

    def add_speech(self, audio: Audio) -> bytes:
        """More speech was made. Gives what is played of it: of other speeds than 1, the last
        comes with what follows, or with the `rest`."""
        rate = self.playback.sample_rate
        pcm, samples = self.sound.add(audio.pcm)
        self.made += len(pcm) // BYTES_PER_SAMPLE
        tokens = unpacked(audio.tokens, 1)[:, 0].tolist()
        self._spoken.made(samples / rate, tokens, audio.silent / rate / self.sound.speed)
        return pcm

    def rest(self) -> bytes:
        """All speech of the part was made. Gives what is still to be played of it."""
        pcm = self.sound.rest()
        self.made += len(pcm) // BYTES_PER_SAMPLE
        return pcm

    def add_silence(self, samples: int) -> None:
        """So long is the pause before the speech of the part on the air."""
        self.made += samples
        self.part_begins = self.made

    def finish(self, reason: str) -> str:
        """The engine has ended for this reason, and nothing follows. Gives the turn's: it is not
        complete if the model tells which words it speaks and did not speak them all."""
        if reason == "complete" and not self._spoken.all_spoken():
            reason = TEXT
        self.complete = reason == "complete"
        return reason

    def measured(self) -> tuple[float, float]:
        """Expected and true seconds of the last part, when all its speech was made."""
        return self._spoken.measured()

    def dry_at(self, now: float) -> float:
        """When all that was made will have been heard, if what is unsent leaves now."""
        unsent = max(0, self.made - self.playback.sent_samples)
        runs_out_at = self.playback.deadline()
        if not unsent and runs_out_at is not None:
            return runs_out_at
        return max(now, runs_out_at or now) + unsent / self.playback.sample_rate

    # What was sent.

    def take(self, samples: int | None = None) -> int:
        """The writer has taken the speech up to here (None: all), which an interrupt cannot stop
        any more. Gives by how many samples that is more than before."""
        taken = self.made if samples is None else min(samples, self.made)
        more = max(0, taken - self.taken)
        self.taken += more
        return more

    # What was heard.

    def heard(self, played_samples: int | None, now: float) -> HeardReport:
        """The listener stops here: what was heard, and what text that was.

        Without a position from the client: what has played by now if playback began with the first
        packet and never paused.
        """
        self._silenced = True
        rate = self.playback.sample_rate
        sent = self.taken / rate
        if played_samples is None:
            played = max(0.0, sent - self.playback.lead(now))
        else:
            played = min(played_samples / rate, sent)
        if self.catching_up is not None:
            source, cut = self._text.source + self.unread, self.catching_up
            return HeardReport(self.taken, played * 1000, source[:cut], source[cut:])
        text = self._spoken.split(played, self.made / rate, self.complete)
        return HeardReport(self.taken, played * 1000, text.spoken, text.remaining + self.unread)

    def heard_at(self) -> float | None:
        """When the listener will have heard all of it; None if that is no matter."""
        return None if self._silenced else self.playback.deadline()

    def take_words(self) -> list[SpokenSpan]:
        """The next words that became spoken with the sound taken so far, in seconds of this
        speech; none when all were given."""
        if not self.taken:
            return []  # also of a text with nothing to speak
        rate = self.playback.sample_rate
        in_all = self.made / rate if self.complete else None
        return self._spoken.take(self.taken / rate, in_all, ended=self.ended)

    @property
    def text_chars(self) -> int:
        """Characters of text that came so far."""
        return len(self._text.source) + len(self.unread)
