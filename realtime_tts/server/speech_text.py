"""SpeechText: the text of a segment of speech, in the parts that are spoken as utterances.

Its pipeline makes ids of it, and its pacing says when they are given to the engine. The text of a
turn that was spoken in part on another socket is first brought to where it was (`Replay`).
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
from tts_scheduler import FeedPace, Pacing


class SpeechText:
    """`part` is the one on the air, the one at `at` in its pipeline's segments."""

    def __init__(
        self,
        settings: SessionSettings,
        engine: EngineHost,
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
        closed = settings.voice is not None and engine.in_context(settings.voice)
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
        """Parts before those in the pipeline."""
        self._replay: Replay | None = None
        if resumption is not None:
            self._replay = Replay(self.pipeline, resumption)
            self.skipped = 0 if resumption.part is None else resumption.part.skipped

    @property
    def part(self) -> TextSegment:
        """The one on the air."""
        return self.pipeline.segments[self.at]

    @property
    def is_last(self) -> bool:
        """No part behind the one on the air is known."""
        return self.at + 1 == len(self.pipeline.segments)

    @property
    def number(self) -> int:
        """How many parts were before it."""
        return self.skipped + self.at

    def directed(self, spec: UtteranceSpec) -> UtteranceSpec:
        """What the engine is told of the part on the air, where its markup says more."""
        return self._director.direct(spec, self.part.voicing)

    @property
    def volume(self) -> Volume:
        """Of the part on the air."""
        asked = self.part.voicing.volume
        return Volume(1.0 if asked is None else asked)

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """What it asked for and did not get, as the protocol's warnings: code and message."""
        warnings = []
        if scripts := ", ".join(self.pipeline.left_out):
            why = f"the voice speaks no language written in {scripts}: that text was left out"
            warnings.append(("unspeakable_script", why))
        if asked := "; ".join([*self._director.warnings, *self.pipeline.markup_left_out]):
            why = f"the text was spoken, but not as its markup asks: {asked}"
            warnings.append(("unsupported_markup", why))
        return warnings

    def feed(self, text: str, now: float) -> None:
        """More text came."""
        if self._replay is not None:
            self._replay.feed(text, now)
        else:
            self.paced.received(text, now)
            self.pipeline.feed(text, now)

    def commit(self, now: float) -> None:
        """All there is now is a part of its own, or several."""
        self.pipeline.flush(now)
        if self._replay is not None:
            self._replay.advance()

    def poll(self, now: float) -> None:
        """Release text that was held back for long enough; what comes again waits for no time."""
        if self._replay is None:
            self.pipeline.poll(now)

    def deadline(self) -> float:
        """When time changes something next; infinite if nothing waits for it."""
        if self._replay is not None:
            return inf
        times = (self.pipeline.deadline(), self.paced.due)
        return min((at for at in times if at is not None), default=inf)

    @property
    def replaying(self) -> bool:
        """It was spoken in part elsewhere, and not all of that has come again."""
        return self._replay is not None

    def catch_up(self) -> Sequence[int] | None:
        """Once the text is where it was: samples of speech of each part before the one on the
        air."""
        if self._replay is None or not self._replay.advance():
            return None
        before, self._replay = self._replay.made(), None
        self.at = len(before)
        for part in self.pipeline.segments[: self.at]:
            part.ids = []
        self.paced.resumed()
        return before
