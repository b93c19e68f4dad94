"""SessionTurn: the frames of a turn of the native protocol, in order; and the traces of turns."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from realtime_tts.protocol.effects import Begun, TurnFailure, TurnStats
from realtime_tts.protocol.messages import TurnState, TurnWords, Word
from realtime_tts.protocol.parsing import encode
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.protocol.ticks import ticks
from realtime_tts.server.front import Front
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.resumption import Resumption
from realtime_tts.server.speech import Speech
from realtime_tts.server.state_signer import StateSigner
from realtime_tts.server.track import Done
from realtime_tts.server.writer import Frame
from realtime_tts.tracing.turn import TurnTrace


class SessionTurn:
    """A turn on the air, or a recent one: a source of frames for the writer. `changed` is called
    when its speech may have something to give, `over` when everything was handed to the socket.
    `signer` signs the state that the client keeps."""

    def __init__(
        self,
        turn_id: str,
        speech: Speech,
        resumption: Resumption | None,
        signer: StateSigner,
        changed: Callable[[SessionTurn], None],
        over: Callable[[SessionTurn, TurnFailure | None], None],
    ) -> None:
        self.id = turn_id
        self.speech = speech
        self.announced = False  # whether turn.started was sent
        self._over = over
        self._sends_words = speech.settings.word_times == "on"
        self._reported_elsewhere = 0 if resumption is None else resumption.words_chars
        self.before = TurnStats() if resumption is None else resumption.stats
        """The numbers of the turn on other sockets."""
        self._signer = signer
        self._frames = self._run()
        speech.on_change = partial(changed, self)

    def heard_at(self) -> float | None:
        """Return when the listener will have heard all of it; None if that no longer matters."""
        return self.speech.utterances.listener.heard_at()

    def next_frame(self) -> Frame | None:
        return next(self._frames, None)

    def close(self) -> None:
        """Release the speech, and drop the frames that were not taken. Idempotent."""
        self.speech.close()
        self._frames = iter(())  # a suspended generator would keep this object alive

    def _run(self) -> Iterator[Frame | None]:
        failure = None
        try:
            while not isinstance(given := self.speech.take(), Done):
                if given is None:
                    yield None
                    continue
                if (told := self._state()) is not None:
                    yield told
                yield given.data
                yield from self._words()
            yield from self._words()  # some waited to know where the turn ends
        except TurnFailure as error:
            failure = error
        self._over(self, failure)

    def _state(self) -> str | None:
        """Return what another server needs to continue after the next packet, if that is wanted."""
        utterances = self.speech.utterances
        progress, samples = utterances.progress, utterances.listener.taken
        if progress is None:
            return None
        new = progress.update(samples, utterances.stats(time.monotonic()))
        signed = new.part, self._signer.sign(*new), new.codes
        part, state, codes = (b64encode(each).decode() for each in signed)
        return encode(
            TurnState(
                turn_id=self.id,
                samples=samples,
                text_chars=progress.spoken_chars,
                state=state,
                codes=codes,
                part=part,
            )
        )

    def _words(self) -> Iterator[str]:
        """Yield the words spoken with the packets sent so far."""
        if not self._sends_words and self.speech.utterances.progress is None:
            return
        while spoken := self.speech.take_words():
            words = [
                Word(text=text, start_ms=ticks(start, 10_000) / 10, end_ms=ticks(end, 10_000) / 10)
                for text, start, end in spoken
            ]
            words = self._unreported(words)
            if words and self._sends_words:
                exact = spoken[0].exact
                yield encode(TurnWords(turn_id=self.id, words=tuple(words), exact=exact))

    def _unreported(self, words: list[Word]) -> list[Word]:
        """Return the words that were not reported on another socket."""
        while words and self._reported_elsewhere > 0:
            word = words.pop(0)
            rest = word.text[self._reported_elsewhere :]
            self._reported_elsewhere -= len(word.text) - len(rest)
            if rest:
                words.insert(0, replace(word, text=rest))
        return words


class TurnTraces:
    """The traces of a connection's turns, by id; there are none if turns are not traced."""

    def __init__(self, front: Front, reporter: SessionReporter) -> None:
        self._front, self._reporter = front, reporter
        self._known: dict[str, TurnTrace | None] = {}

    def of(
        self, turn_id: str, begun: Begun | None, settings: SessionSettings | None = None
    ) -> TurnTrace | None:
        """Return the trace of a turn, or None. The first call that passes `begun` begins it."""
        if begun is not None and self._front.tracer is not None and turn_id not in self._known:
            model = None if settings is None else self._front.model_of(settings)
            self._known[turn_id] = self._reporter.trace(turn_id, begun, model)
        return self._known.get(turn_id)

    def maker(
        self, turn_id: str, begun: Begun | None, settings: SessionSettings
    ) -> Callable[[str, bool], TurnTrace | None]:
        """Return what begins a segment's trace; it keeps no reference to the connection."""
        return lambda name, waits: self.of(turn_id, begun, settings)

    def end(self, turn_id: str) -> TurnTrace | None:
        """Return the trace of a turn that is done or given up, and forget it."""
        return self._known.pop(turn_id, None)
