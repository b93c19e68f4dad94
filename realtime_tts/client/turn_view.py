"""TurnView: what can be read of a turn without waiting."""

from __future__ import annotations

import math

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.client.inbox import Inbox
from realtime_tts.errors import ClientError
from realtime_tts.protocol import messages as m

_ROUNDING_MS = 0.01  # less than a sample: 16.08 s are a little less than 16080 ms


class TurnView:
    """The properties of a turn and a blocking turn. `sent`: the deltas of its text."""

    def __init__(self, inbox: Inbox, sent: list[str]) -> None:
        self._inbox, self._sent = inbox, sent

    @property
    def turn_id(self) -> str:
        """The turn's name on the wire and in the server's logs."""
        return self._inbox.turn_id

    @property
    def text(self) -> str:
        """All text sent so far."""
        return "".join(self._sent)

    @property
    def over(self) -> bool:
        """Whether the turn has ended, so that nothing more comes for it."""
        return self._inbox.over

    @property
    def result(self) -> m.TurnDone | None:
        """How the turn ended, once the server has reported it."""
        return self._inbox.result

    @property
    def interrupted(self) -> m.TurnInterrupted | None:
        """The server's answer to `interrupt`, once it has arrived."""
        return self._inbox.interrupted

    @property
    def resumes(self) -> int:
        """How often the turn went on in another session, because its socket was lost."""
        return self._inbox.resumes

    @property
    def layout(self) -> str | None:
        """The prompt layout in use, `streaming` or `full_text`, once audio began."""
        return self._inbox.layout

    @property
    def samples_received(self) -> int:
        """Samples received, whether or not they were read, at the rate in `audio`.

        They are 0 for a format that is not raw samples: only its decoder can count those.
        """
        return self._inbox.samples_received

    @property
    def last_audio_at(self) -> float | None:
        """When the last packet arrived, by `time.perf_counter`; None before the first. Packets that
        an interrupt keeps from you count as well, so this shows how long audio went on arriving."""
        return self._inbox.last_audio_at

    @property
    def audio(self) -> AudioFormat:
        """The format of this turn's packets, once audio began; before that the default."""
        return self._inbox.audio

    @property
    def warnings(self) -> tuple[m.WarningMessage, ...]:
        """Warnings of the server, such as of text with nothing to speak."""
        return tuple(self._inbox.warnings)

    @property
    def words(self) -> tuple[m.Word, ...]:
        """The words that are spoken in the packets received, and when.

        Only the option `word_times="on"` brings them. Joined they are the text, as far as it was
        spoken. A packet's words come right behind it. `words_exact` says how good their times are.
        """
        return tuple(self._inbox.words)

    @property
    def words_exact(self) -> bool:
        """Whether the model reported when it speaks the words, so that times are good to a frame of
        80 ms. Otherwise they are the server's estimate."""
        return self._inbox.words_exact

    def heard(self, played_ms: float) -> str:
        """Return the beginning of the text that a listener has heard by `played_ms` of the audio.

        It is taken from `words`. An interrupt gets the server's own answer, which may know better,
        in `interrupt(played_ms).text_spoken`. Raises ClientError where no words were asked for.
        """
        settings, words = self._inbox.settings, self._inbox.words
        if settings is not None and not words and settings.word_times == "off":
            raise ClientError('heard() needs the session option word_times="on"')
        return "".join(word.text for word in words if word.end_ms <= played_ms + _ROUNDING_MS)


def check_position(played_ms: float | None) -> None:
    """Raise ClientError for what is no position. A server would refuse it and speak on, and an
    interrupt would wait in vain for its answer."""
    if played_ms is not None and not (
        isinstance(played_ms, int | float) and 0 <= played_ms < math.inf
    ):
        raise ClientError(f"played_ms is a number of milliseconds, 0 or more; found {played_ms!r}")
