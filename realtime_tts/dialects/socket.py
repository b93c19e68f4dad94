"""SpeechSocket: what every API over a WebSocket needs, whatever its messages look like.

Admission and its refusals, the subprotocol, contexts by id, idle time, the server's drain and end,
and a lost client; `json_socket.py` has the messages. A dialect subclasses it, turns each message
into calls of `SpeechContext`, and returns the messages that go back.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, ClassVar

from msgspec.structs import replace
from starlette.websockets import WebSocket

from realtime_tts.audio.packets import FramedPackets
from realtime_tts.dialects.context import ContextSocket, SpeechContext
from realtime_tts.dialects.fields import check_length
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import CloseCode
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.alarm import Alarm
from realtime_tts.server.front import Front
from realtime_tts.server.refusals import GOING_AWAY
from realtime_tts.server.track import Delivery, Segment
from realtime_tts.server.writer import Messages

_KEY_SECONDS = 10.0  # within which the first message must bring the key
_LOST = 256  # ids


class SpeechSocket(ContextSocket):
    """An accepted socket with contexts. `serve` is the endpoint; a dialect fills in the hooks."""

    max_contexts: ClassVar[int] = 64
    """Contexts that may be open at once."""
    idle_seconds: float = 300.0
    """After this time without a message and without speech, the socket is closed with 1000."""
    hold_seconds: ClassVar[float] = 3.0
    """Text that pauses for this time is spoken to its end."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self.contexts: dict[str, SpeechContext] = {}
        self.failed_ids: deque[str] = deque(maxlen=_LOST)
        """Ids of contexts that an error ended, for APIs whose clients choose them: what still comes
        for one is the rest of a lost text, and is not spoken without what was before it."""
        self._opened = 0  # number of contexts opened so far
        self._last_close: tuple[int, str] | None = None  # how to close, after `finish`
        self._alarm = Alarm(self._on_time)

    # What a dialect fills in; the hooks of `JsonSocket` and `ContextSocket` as well.

    def greet(self) -> None:
        """Called when the socket was accepted: a greeting can be sent, a context opened."""

    def finished(self) -> Messages:
        """Return the messages after `finish`, when all contexts are done and before the close."""
        return ()

    # What a dialect calls.

    def idle_after(self, seconds: float) -> None:
        """Let the socket be idle for so long from now on, if that is shorter."""
        self.idle_seconds = min(seconds, self.idle_seconds)
        self._alarm.set(self._active_at + self.idle_seconds)

    def open_context(
        self,
        context_id: str,
        settings: SessionSettings,
        *,
        hold_seconds: float | None = None,
        lasting: bool = False,
        continuous: bool = True,
        after: SpeechContext | None = None,
        tag: Any = None,
    ) -> SpeechContext:
        """Open a context, which is in `contexts` until it is over. A `lasting` one never ends for
        idleness; one that is not `continuous` makes a file of each segment. One that comes `after`
        another is silent until that is over, and counts with it. `hold_seconds` replaces the API's.

        Raises TurnFailure if there is no capacity for it now, RequestError for settings or a format
        that this server cannot do.
        """
        assert context_id not in self.contexts, "a context is opened once"
        if len(self.contexts) >= self.max_contexts:
            message = f"{self.max_contexts} contexts are open on this socket; end one of them first"
            raise TurnFailure("too_many_contexts", message, True, 1_000)
        if after is not None or not self.contexts:
            self.front.admit(self.account, held=1)  # the socket's own session
        else:
            self.front.admit(self.account, more=True)
        idle = self.limits.turn_idle_ms / 1000
        saved = settings.lead_ms == self.limits.max_lead_ms  # nobody listens while it comes
        self._opened += 1
        name = f"{self.name}-{self._opened}"
        speech = self.front.open_speech(
            name,
            replace(settings, traceparent=self.traceparent),
            self.front.reporter(name, self.client),
            Delivery(FramedPackets, continuous=continuous, fills=True, saved=saved),
            self.account,
            hold_seconds=self.hold_seconds if hold_seconds is None else hold_seconds,
            starts=after is None,
        )
        context = SpeechContext(
            self,
            context_id,
            speech,
            idle_seconds=None if lasting else idle,
            max_chars=self.limits.max_turn_chars,
            after=after,
            tag=tag,
        )
        self.contexts[context_id] = context
        return context

    def taking_text(self, context_id: str) -> SpeechContext | None:
        """Return the context with this id, if there is one. Raises RequestError if it was ended."""
        context = self.contexts.get(context_id)
        if context is not None and context.ended:
            raise RequestError(
                f"the context {context_id[:40]!r} was ended, and is still spoken; wait until it is "
                "done, or take another id"
            )
        return context

    def cancel(self, context_id: str, reason: str = "interrupted") -> bool:
        """Silence a context at once, so that none of it is sent. Return False if there is none."""
        context = self.contexts.pop(context_id, None)
        if context is None:
            return False
        context.cancel(reason)
        self._gone(context)
        return True

    def lose(self, context_id: str, *, goes_on: bool = True) -> None:
        """Silence the context of a text that was refused, if it was opened. Where its text
        `goes_on`, the rest is left out."""
        if goes_on:
            self.failed_ids.append(context_id)
        self.cancel(context_id, "error")

    def cancel_all(self, reason: str = "interrupted") -> None:
        """Silence every context at once; none that waited for another begins meanwhile."""
        contexts, self.contexts = self.contexts, {}
        for context in contexts.values():
            context.cancel(reason)

    def close(self, code: int = CloseCode.DONE, reason: str = "") -> None:
        """Close the socket after everything that waits; what still speaks is silenced.

        Must not be called from a context's hooks: there, and to let contexts finish, call `finish`.
        """
        self.closing = True
        self.cancel_all("closed")
        super().close(code, reason)

    @property
    def finishing(self) -> bool:
        """Whether `finish` was called."""
        return self._last_close is not None

    def finish(self, code: int = CloseCode.DONE, reason: str = "") -> None:
        """End all text, and close when all contexts are done. Messages are still handled, so that
        speech can be cancelled. Idempotent; the first code counts."""
        self._last_close = self._last_close or (code, reason)
        for context in self.contexts.values():
            context.end()
        self._leave_if_done()

    # ServedSocket.

    def take_frame(self, raw: str | bytes) -> None:
        super().take_frame(raw)
        self._leave_if_done()  # now that the answer waits: a close lets nothing follow

    def opened(self) -> None:
        self.greet()
        first = _KEY_SECONDS if self.needs_key else self.idle_seconds
        self._alarm.set(self._active_at + first)

    def gone(self) -> None:
        self.closing = True
        self._alarm.release()
        self.cancel_all("closed")

    # Front: Registered.

    @property
    def sessions(self) -> int:
        if self.needs_key:
            return 0  # an unauthenticated socket takes no session from others
        return max(1, sum(not context.waits for context in self.contexts.values()))

    @property
    def open_turns(self) -> int:
        return sum(context.busy for context in self.contexts.values())

    @property
    def live_turns(self) -> int:
        return sum(context.speaking for context in self.contexts.values())

    def drain(self) -> None:
        """Let contexts that have begun finish, then close the socket: at once without any."""
        with self.contained():
            for context in self.contexts.values():
                context.drain()
            self._leave_if_done()

    def end(self, why: TurnFailure) -> None:
        with self.contained():
            for context in reversed(list(self.contexts.values())):  # or the next would begin
                context.fail(why)
            self._leave_if_done()

    # SpeechContext: ContextSocket.

    def context_over(self, context: SpeechContext) -> None:
        if self.contexts.get(context.id) is context:
            del self.contexts[context.id]
        self._gone(context)
        self.segment_over()

    def segment_over(self) -> None:
        self._active_at = time.monotonic()
        with self.contained():
            self._leave_if_done()

    # The end, and what goes wrong.

    def _gone(self, context: SpeechContext) -> None:
        for other in list(self.contexts.values()):
            other.gone(context)

    def _leave_if_done(self) -> None:
        if self.closing:
            return
        if self._last_close is not None:
            if not self.contexts:
                self.say(*self.finished())
                self.close(*self._last_close)
        elif self.front.draining:
            if not any(context.busy for context in self.contexts.values()):
                self.close(CloseCode.GOING_AWAY, GOING_AWAY)

    def _on_time(self) -> None:
        if self.needs_key:
            with self.contained():
                self.present_key(None)
            return
        now = time.monotonic()
        if any(context.speaking for context in self.contexts.values()):
            self._active_at = now
        due = self._active_at + self.idle_seconds
        if now >= due and not self.closing:
            self.close(CloseCode.DONE, "idle")
        else:
            self._alarm.set(due)


class SingleVoiceSocket(SpeechSocket):
    """A socket for APIs without ids, which is one voice that says one thing at a time.

    The voice and the format may change at any time, for the text that follows: earlier text is
    spoken to its end in the old ones, and then the new ones take over. So its contexts follow one
    another, each with its settings. Every segment is a file of its own.
    """

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._chosen: SessionSettings | None = None
        self._voice: SpeechContext | None = None
        self.kept = ""  # text that the client has not committed
        self.skipping = False
        """Whether the rest of what is being said is left out, since some of it was refused or has
        failed. The dialect ends that where something else begins."""

    def take(self, text: str, *, at_once: bool) -> Segment | None:
        """Speak text `at_once`, or keep it until the client commits it. Return the segment of what
        is spoken, if there is one. Raises RequestError if it is too much, and as
        `SpeechContext.feed` does: then what follows is skipped."""
        if self.skipping:
            return None
        try:
            check_length("text", text, self.limits.max_text_chars)
            if at_once:
                return self.voice.feed(text)
            self._keep(text)
        except (TurnFailure, RequestError):
            self.skipping = True
            raise
        return None

    def _keep(self, text: str) -> None:
        if len(self.kept) + len(text) > self.limits.max_turn_chars:
            most = self.limits.max_turn_chars
            raise RequestError(f"at most {most} characters may wait to be spoken")
        self.kept += text

    def speak_kept(self) -> Segment | None:
        """Speak what was kept; return its segment. Raises as `SpeechContext.feed` does, and then
        the text is still kept, unless it could not be spoken later either: it would be in the way
        of all that follows."""
        text, segment = self.kept, None
        if text:
            try:
                segment = self.voice.feed(text)
            except TurnFailure as failure:
                self.kept = text if failure.retryable else ""
                raise
            self.kept = ""
        return segment

    def speak_as(self, chosen: SessionSettings) -> None:
        """Speak the text that follows with these settings."""
        self._chosen = chosen
        self.skipping = self.skipping and bool(self.kept)  # what is kept will still be gone on with
        current, self._voice = self._voice, None
        if current is not None and current.id in self.contexts:
            if current.speaking:
                current.end()
            else:
                self.cancel(current.id)

    @property
    def between_segments(self) -> bool:
        """Whether the next text begins a segment."""
        return self._voice is None or self._voice.ended or self._voice.speech.open is None

    @property
    def voice(self) -> SpeechContext:
        """The context that takes the text. Raises TurnFailure and RequestError: see
        `open_context`."""
        if self._voice is None or self._voice.ended:
            assert self._chosen is not None, "`speak_as` comes first"
            self._voice = self.open_context(
                str(self._opened),
                self._chosen,
                lasting=True,
                continuous=False,
                after=next(reversed(self.contexts.values()), None),
            )
        return self._voice
