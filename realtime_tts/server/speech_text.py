"""SpeechText: the text of a segment, split into the parts that are spoken as utterances.

Its pipeline makes token ids, and its pacing says when the engine gets them. If the turn was spoken
in part on another socket, its text is first brought to where it was (`Replay`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from realtime_tts.access.account import Account
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.directing import Director
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.made import Volume
from realtime_tts.server.paced_text import PacedText
from realtime_tts.server.replay import Replay
from realtime_tts.server.resumption import Resumption
from realtime_tts.server.session_settings import number_language
from realtime_tts.text.lexicon import lexicon_for
from realtime_tts.text.pipeline import TextPipeline, TextSegment
from realtime_tts.voices.file import VoiceRecord
from tts_scheduler import FeedPace, Pacing


class SpeechText:
    """The text of a segment. `registered`: the voice, if it is one. `part`: the utterance on the
    air, segment `at` of the pipeline."""

    def __init__(
        self,
        settings: SessionSettings,
        engine: EngineHost,
        registered: VoiceRecord | None,
        feed_pace: FeedPace,
        resumption: Resumption | None,
        account: Account,
    ) -> None:
        info = engine.info_for(settings.model, settings.voice)
        tokenizer = engine.tokenizer_of(info)
        self._director = Director(settings, engine, account)
        self.pipeline = TextPipeline(
            tokenizer,
            filtered=settings.text_filter == "on",
            paced=True,
            language=number_language(settings, info),
            lexicon=lexicon_for(settings.lexicon, engine.lexicons(settings.lexicons)),
            languages=info.languages,
            able=self._director.able,
            language_of=self._director.language_of,
        )
        closed = registered is not None and registered.in_context  # waits for its text
        self.paced = PacedText(
            self.pipeline,
            tokenizer,
            Pacing(
                "sentence" if closed else settings.pacing,
                feed_pace,
                engine.reaction,
                settings.speed,
            ),
            engine.reaction,
            info.safe_tokens or inf,
            whole=settings.layout == "full_text",
            closed=closed,
        )
        self.at = 0
        self.skipped = 0
        """Utterances before those in the pipeline."""
        self._replay: Replay | None = None
        if resumption is not None:
            self._replay = Replay(self.pipeline, resumption)
            self.skipped = 0 if resumption.part is None else resumption.part.skipped

    @property
    def part(self) -> TextSegment:
        """The text of the utterance on the air."""
        return self.pipeline.segments[self.at]

    @property
    def is_last(self) -> bool:
        """Whether no text after the utterance on the air is known."""
        return self.at + 1 == len(self.pipeline.segments)

    @property
    def number(self) -> int:
        """How many utterances were before the one on the air."""
        return self.skipped + self.at

    def directed(self, spec: UtteranceSpec) -> UtteranceSpec:
        """Return the spec for the utterance on the air, with what its markup asks for."""
        return self._director.direct(spec, self.part.voicing)

    @property
    def volume(self) -> Volume:
        """The volume of the utterance on the air."""
        asked = self.part.voicing.volume
        return Volume(1.0 if asked is None else asked)

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """What the text asked for and did not get, as the protocol's warnings: code and message."""
        warnings = []
        if scripts := ", ".join(self.pipeline.left_out):
            why = f"the voice speaks no language written in {scripts}: that text was left out"
            warnings.append(("unspeakable_script", why))
        if asked := "; ".join([*self._director.warnings, *self.pipeline.markup_left_out]):
            why = f"the text was spoken, but not as its markup asks: {asked}"
            warnings.append(("unsupported_markup", why))
        return warnings

    def feed(self, text: str, now: float) -> None:
        """Add text."""
        if self._replay is not None:
            self._replay.feed(text, now)
        else:
            self.paced.received(text, now)
            self.pipeline.feed(text, now)

    def commit(self, now: float) -> None:
        """End the utterance after the text so far."""
        self.pipeline.flush(now)
        if self._replay is not None:
            self._replay.advance()

    def poll(self, now: float) -> None:
        """Release text that was held long enough; text that comes again waits for no time."""
        if self._replay is None:
            self.pipeline.poll(now)

    def deadline(self) -> float:
        """Return when to `poll` or advance next; infinite if nothing waits for time."""
        if self._replay is not None:
            return inf
        times = (self.pipeline.deadline(), self.paced.due)
        return min((at for at in times if at is not None), default=inf)

    @property
    def replaying(self) -> bool:
        """Whether text that was spoken elsewhere has not all come again."""
        return self._replay is not None

    def catch_up(self) -> Sequence[int] | None:
        """Once the text is where it was, return the samples of speech of each utterance before the
        one on the air; until then None."""
        if self._replay is None or not self._replay.advance():
            return None
        before, self._replay = self._replay.made(), None
        self.at = len(before)
        for part in self.pipeline.segments[: self.at]:
            part.ids = []
        self.paced.resumed()
        return before
