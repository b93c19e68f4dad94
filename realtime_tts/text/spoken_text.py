"""SpokenText: the text of a turn against its audio, part by part as pauses cut it."""

from __future__ import annotations

from realtime_tts.text.pipeline import TextPipeline, TextSegment
from realtime_tts.text.speech_times import SpeechTimes, SpokenSpan
from realtime_tts.text.spoken import SpokenPart, SpokenSplit, expected_durations, split_spoken


class SpokenText:
    """Seconds are those of the turn's audio. `language` ("Japanese") refines the estimates; `pace`:
    seconds of audio for an expected second, for speech that is not complete."""

    def __init__(
        self, pipeline: TextPipeline, language: str | None = None, pace: float = 1.0
    ) -> None:
        self._pipeline = pipeline
        self._language = language
        self._pace = pace
        self._parts = [SpokenPart(0, 0.0, 0.0)]  # one for each segment begun
        self._times = SpeechTimes(pipeline, language, pace)

    def begin(self, segment: TextSegment) -> None:
        """The speech so far is complete; what follows is this segment's, after its pause."""
        self._parts.append(SpokenPart(segment.start, segment.pause, 0.0))

    def made(self, seconds: float) -> None:
        """So much more speech was made."""
        part = self._parts[-1]
        self._parts[-1] = part._replace(generated=part.generated + seconds)

    def measured(self) -> tuple[float, float]:
        """Expected and true seconds of the last part, when all its speech was made."""
        part, segments = self._parts[-1], self._pipeline.segments
        end = segments[len(self._parts)].start if len(self._parts) < len(segments) else None
        text = self._pipeline.spoken[part.start : end]
        return sum(expected_durations(text, self._language)), part.generated

    def take(
        self, played: float, in_all: float | None = None, *, ended: bool = False
    ) -> list[SpokenSpan]:
        """The next words that are spoken by `played` and were not given out yet, until there are
        none: see `SpeechTimes`."""
        return self._times.take(played, self._parts, in_all, ended=ended)

    def split(self, played: float, generated: float, complete: bool) -> SpokenSplit:
        """The caller's text in two, where its listener stopped: see `split_spoken`."""
        return split_spoken(
            self._pipeline,
            played,
            generated,
            complete=complete,
            language=self._language,
            parts=self._parts if len(self._parts) > 1 else (),
            pace=self._pace,
        )
