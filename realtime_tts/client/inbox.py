"""What the server has sent for one turn, until the caller takes it.

No I/O: the connection's reader puts it in, the turn's consumer takes it out. Putting never waits,
so a consumer that stops reading delays neither its own turn's control messages nor another turn.
What piles up meanwhile is bounded by the server, which sends at most `lead_ms` more than real time
has consumed, and ends a turn after `max_turn_audio_ms`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.client.resuming import ResumeState
from realtime_tts.errors import ConnectionLost, RealtimeTTSError, TurnError
from realtime_tts.protocol import messages as m
from realtime_tts.protocol.settings import SessionSettings

_SAMPLE_BYTES = {"pcm_s16le": 2, "pcm_f32le": 4, "pcm_mulaw": 1, "pcm_alaw": 1}
_ALREADY_DONE = "turn_already_done"
"""The warning in place of a report, when the server has already forgotten the turn."""


class Inbox:
    """Packets, warnings, reports and the end of one turn."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.settings: SessionSettings | None = None  # the session's, when the turn began
        self.bytes_received = 0
        self.last_audio_at: float | None = None
        self.layout: str | None = None
        self.audio = AudioFormat()  # until the server says otherwise
        self.warnings: list[m.WarningMessage] = []
        self.words: list[m.Word] = []
        self.words_exact = False
        self.result: m.TurnDone | None = None
        self.failure: BaseException | None = None
        self.interrupted: m.TurnInterrupted | None = None
        self.forgotten = False
        self.resume = ResumeState(turn_id)
        self.resumes = 0
        self.goes_on: Callable[[ConnectionLost], None] | None = None
        """Called when the socket is lost, where the turn can go on in another session."""
        self._refused: RealtimeTTSError | None = None
        self._unanswered: ConnectionLost | None = None  # why nobody answers after the end
        self._packets: deque[bytes] = deque()
        self._silenced = False
        self._changed = asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether the turn has ended, so that the server sends nothing more for it."""
        return self.result is not None or self.failure is not None

    @property
    def samples_received(self) -> int:
        """Raw samples received, at the turn's sample rate; 0 where only a decoder can count."""
        sample_bytes = _SAMPLE_BYTES.get(self.audio.encoding)
        if sample_bytes is None or self.audio.container != "raw":
            return 0
        return self.bytes_received // sample_bytes

    # For the connection's reader

    def packet(self, data: bytes) -> None:
        """Take a packet of this turn."""
        self.bytes_received += len(data)
        self.last_audio_at = time.perf_counter()
        self.resume.packet()
        if not self._silenced:
            self._packets.append(data)
            self._changed.set()

    def was_interrupted(self, report: m.TurnInterrupted) -> None:
        """Take the server's answer to an interrupt."""
        self.interrupted = report
        self.silence()

    def warn(self, warning: m.WarningMessage) -> None:
        """Take a warning about this turn."""
        self.warnings.append(warning)
        if warning.code == _ALREADY_DONE:
            self.forget()

    def forget(self) -> None:
        """Note that the server has forgotten this turn and will not report on it."""
        self.forgotten = True
        self._changed.set()

    def refuse(self, error: RealtimeTTSError) -> None:
        """Take an error about this turn, which goes on until `turn.done`."""
        if not self.over and self._refused is None:
            self._refused = error

    def done(self, result: m.TurnDone) -> None:
        """Take `turn.done`. The turn fails if the speech is not all that was asked for."""
        self.result = result
        if self.failure is None:
            self.failure = self._shortfall(result.reason)
        self._changed.set()

    def lost(self, error: ConnectionLost, *, for_good: bool) -> None:
        """Note that the socket is lost; unless `for_good`, the turn may go on elsewhere."""
        if self.over:  # but its listener may still hear it
            self._unanswered = error
            self._changed.set()
        elif self.goes_on is None or for_good:
            self.fail(turn_lost(error, self))
        else:
            self.resume.socket_lost()
            self.goes_on(error)

    def fail(self, error: BaseException) -> None:
        """Fail the turn: the consumer gets `error` after the packets that are here.

        Only the first failure counts, and none after the end: later ones are consequences.
        """
        if not self.over:
            self.failure = error
        self._changed.set()

    # For the consumer

    def silence(self) -> None:
        """Drop the packets that are here and all later ones: none reaches the consumer any more."""
        self._silenced = True
        self._packets.clear()
        self._changed.set()

    async def next(self) -> bytes | None:
        """Return the next packet, None when there are no more. Raises the turn's failure."""
        while True:
            if self._packets:
                return self._packets.popleft()
            if self.failure is not None:
                raise self.failure
            if self._silenced or self.over:
                return None
            await self._wait()

    async def wait_interrupted(self) -> m.TurnInterrupted | None:
        """Return the answer to an interrupt, None if the turn is forgotten.

        Raises the failure if there will be no answer, because the connection is gone.
        """
        while self.interrupted is None:
            if self.forgotten:
                return None
            if self.failure is not None and self.result is None:
                raise self.failure
            if self._unanswered is not None:
                raise self._unanswered
            await self._wait()
        return self.interrupted

    async def wait_over(self) -> None:
        """Return when `turn.done` has arrived or the turn has failed."""
        while not self.over:
            await self._wait()

    def _shortfall(self, reason: str) -> RealtimeTTSError | None:
        if reason == "interrupted":
            return None
        if self._refused is not None:  # for example a delta that was too much for the turn
            return self._refused
        if reason == "closed":
            message = "closed: the server ended the session before the turn was spoken"
            return TurnError(message, "closed", server_retryable=True)
        if reason == "error":
            return TurnError("the server ended the turn with an error it did not explain", "error")
        return None

    async def _wait(self) -> None:
        # Several tasks may wait; each looks at the state again, so one event serves them all.
        self._changed.clear()
        await self._changed.wait()


def turn_lost(
    error: ConnectionLost, inbox: Inbox, none_else: RealtimeTTSError | None = None
) -> ConnectionLost:
    """Return `error` with the amount of this turn's speech that was received. `none_else`: why the
    turn did not go on in another session, if that was tried."""
    samples = inbox.samples_received
    if samples == 0 and inbox.bytes_received > 0:
        came = f"{inbox.bytes_received} bytes"
    else:
        came = f"{samples / inbox.audio.sample_rate:.2f} s"
    tried = "" if none_else in (None, error) else f"; connecting again failed: {none_else}"
    lost = ConnectionLost(
        f"{error}{tried}; {came} of speech of turn {inbox.turn_id} had come. Nothing is sent "
        "again: what the listener has not heard is for the caller to speak in a new turn"
    )
    lost.__cause__ = error
    return lost
