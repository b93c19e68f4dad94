"""A TTS for LiveKit Agents: `AgentSession(tts=TTS("ws://127.0.0.1:8000", voice="ava"), ...)`.

Needs the extra `livekit`: `pip install -e '.[livekit]'` in a checkout, or
`pip install 'realtime-tts-server[livekit]'`. Text goes to the server as the language model writes
it: no sentence tokenizer in between, since the server begins to speak with the first words.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Never, Unpack
from weakref import WeakSet

from livekit.agents import (
    DEFAULT_API_CONNECT_OPTIONS,
    APIConnectOptions,
    APITimeoutError,
    tts,
    utils,
)

from realtime_tts.adapters.livekit_attempt import Attempt, api_error
from realtime_tts.adapters.session_pool import Session, SessionPool
from realtime_tts.adapters.utterance import Utterance
from realtime_tts.client import DEFAULT_SERVER, SessionOptions
from realtime_tts.client.options import merged, session_start
from realtime_tts.errors import ConfigError, RealtimeTTSError
from realtime_tts.protocol.messages import SAMPLE_RATE

log = logging.getLogger(__name__)


class TTS(tts.TTS[Never]):
    """Speech from a realtime-tts server.

    Streams that overlap get a session (a WebSocket) each; sessions are used again, also after an
    interruption.

    Args:
        server: ws(s) or http(s) URL, or host:port.
        api_key: sent as a bearer token.
        options: voice, language and so on, see SessionOptions. `word_times` is on by default,
            for an AgentSession with `use_tts_aligned_transcript=True`.

    Raises ConfigError for an address or option that cannot be used.
    """

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        api_key: str | None = None,
        **options: Unpack[SessionOptions],
    ) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=True, aligned_transcript=True),
            sample_rate=SAMPLE_RATE,
            num_channels=1,
        )
        self._pool = SessionPool(server, api_key)
        self._options: dict[str, Any] = {}
        self._model = "unknown"
        self._streams: WeakSet[SynthesizeStream | ChunkedStream] = WeakSet()
        self._prewarming: asyncio.Task[None] | None = None
        self.update_options(**options)

    @property
    def model(self) -> str:
        """The checkpoint: the one set, else the server's; "unknown" before the first session."""
        return str(self._options.get("model", self._model))

    @property
    def provider(self) -> str:
        """The provider that the framework's metrics name."""
        return "realtime-tts"

    def update_options(self, **options: Unpack[SessionOptions]) -> None:
        """Change settings for the streams that begin from now on.

        None resets a setting to the server's default. Raises ConfigError; what only the server can
        find wrong, such as an unknown voice, fails the next stream.
        """
        session_start(options)
        if options.get("audio") is not None:
            raise ConfigError("LiveKit Agents is given PCM at 24 kHz: leave the option audio out")
        self._options = merged(self._options, options)
        self.capabilities.aligned_transcript = session_start(self._asked).word_times == "on"

    def prewarm(self) -> None:
        """Connect now, in the background, so that the first reply does not have to wait for it.

        Must be called in the event loop; a failure is logged, and the first stream tries again.
        """
        if self._prewarming is None and not self._pool.in_use:
            self._prewarming = asyncio.create_task(self._prewarm(), name="realtime-tts prewarm")

    def stream(
        self, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> SynthesizeStream:
        """Return a stream for one reply: text deltas in, audio out."""
        stream = SynthesizeStream(tts=self, conn_options=conn_options)
        self._streams.add(stream)
        return stream

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> ChunkedStream:
        """Speak a text that is known whole."""
        stream = ChunkedStream(tts=self, input_text=text, conn_options=conn_options)
        self._streams.add(stream)
        return stream

    async def aclose(self) -> None:
        """Interrupt what is spoken and close all sessions. A later stream connects again."""
        if self._prewarming is not None:
            await utils.aio.cancel_and_wait(self._prewarming)
            self._prewarming = None
        await asyncio.gather(*(stream.aclose() for stream in list(self._streams)))
        self._streams.clear()
        await self._pool.close()

    async def _prewarm(self) -> None:
        try:
            async with asyncio.timeout(DEFAULT_API_CONNECT_OPTIONS.timeout):
                session = await self._pool.acquire(self._asked)
        except (RealtimeTTSError, TimeoutError) as error:
            log.warning("cannot connect ahead of the first reply: %s", error or "no answer")
        else:
            self._know(session)
            self._pool.release(session)
        finally:
            self._prewarming = None

    @property
    def _asked(self) -> dict[str, Any]:
        """The settings of a session: with word times, unless they are set otherwise."""
        return {"word_times": "on"} | self._options

    def _know(self, session: Session) -> None:
        self._model = session.client.ready.model

    @asynccontextmanager
    async def _attempt(
        self,
        stream: SynthesizeStream | ChunkedStream,
        emitter: tts.AudioEmitter,
        options: APIConnectOptions,
    ) -> AsyncIterator[Attempt]:
        """Yield an attempt of a stream, with a session. All errors in the block are APIErrors."""
        try:
            began = time.perf_counter()
            async with asyncio.timeout(options.timeout):
                if self._prewarming is not None:
                    await asyncio.wait([self._prewarming])
                session = await self._pool.acquire(self._asked)
            stream._acquire_time = 0.0 if session.reused else time.perf_counter() - began
            stream._connection_reused = session.reused
            self._know(session)
            try:
                async with asyncio.timeout(None) as deadline:
                    yield Attempt(session, emitter, deadline, options.timeout)
            except TimeoutError:
                session.broken = True
                raise
            finally:
                self._pool.release(session)
        except TimeoutError:
            raise APITimeoutError(f"no answer within {options.timeout:g} s") from None
        except RealtimeTTSError as error:
            raise api_error(error) from error


class SynthesizeStream(tts.SynthesizeStream):
    """One reply, as one segment; it ends with the first flush after text, or the end of input.

    Closing or cancelling it interrupts the turn: the server stops at once, and no audio follows.
    """

    _tts: TTS

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        async with self._tts._attempt(self, output_emitter, self._conn_options) as attempt:
            attempt.begin(streaming=True)
            utterance = Utterance(attempts=1)  # the framework has attempts of its own
            feeding = asyncio.create_task(self._feed(self._input_ch, utterance, attempt))
            try:
                await attempt.speak(utterance)
            finally:
                await utils.aio.cancel_and_wait(feeding)
            attempt.end(self._pushed_text)

    async def _feed(
        self, pushed: AsyncIterable[Any], utterance: Utterance, attempt: Attempt
    ) -> None:
        """Pass on what is pushed, which in each attempt is another channel."""
        begun = False
        async for delta in pushed:
            if isinstance(delta, str):
                begun = True
                utterance.add(delta)
                self._mark_started()
            elif begun:
                break  # a flush: the framework takes no more text for this stream
        utterance.end()
        attempt.text_ended()


class ChunkedStream(tts.ChunkedStream):
    """A whole text. Closing or cancelling it interrupts the turn."""

    _tts: TTS

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        async with self._tts._attempt(self, output_emitter, self._conn_options) as attempt:
            attempt.begin(streaming=False)
            attempt.text_ended()
            utterance = Utterance(attempts=1)
            utterance.add(self._input_text)
            utterance.end()
            await attempt.speak(utterance)
            attempt.end(self._input_text)
