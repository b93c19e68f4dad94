"""ConnectedService: a Pipecat TTS service's connection to the server, and its settings there."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

from pipecat.frames.frames import CancelFrame, StartFrame
from pipecat.services.settings import NOT_GIVEN, TTSSettings, is_given
from pipecat.services.tts_service import TTSService
from pipecat.utils.errors import ErrorCategory

from realtime_tts.adapters.link import Link
from realtime_tts.adapters.utterance import Utterance
from realtime_tts.client import SamplingOptions, SessionOptions
from realtime_tts.client.options import merged
from realtime_tts.errors import (
    ConfigError,
    ConnectionLost,
    HandshakeRefused,
    OverloadedError,
    RealtimeTTSError,
    RequestError,
    TurnError,
)
from realtime_tts.languages import language_name

OPTIONS = frozenset(SessionOptions.__annotations__)
"""The settings that the server has; Pipecat's classes may get more."""


def _not_given() -> Any:
    return NOT_GIVEN


@dataclass
class RealtimeTTSSettings(TTSSettings):
    """Settings of the speech that begins from now on. None leaves one to the server.

    Besides `model`, `voice` and `language` (a Pipecat `Language`, or one of `ready.languages`), it
    has all of `realtime_tts.client.SessionOptions` except `word_times`, which the service sets, and
    `audio`, which the pipeline sets. In an update `sampling` changes the fields it has and keeps
    the others.
    """

    instructions: str | None = field(default_factory=_not_given)
    seed: int | None = field(default_factory=_not_given)
    sampling: SamplingOptions | None = field(default_factory=_not_given)
    text_filter: Literal["on", "off"] | None = field(default_factory=_not_given)
    text_normalization: Literal["auto", "on", "off"] | None = field(default_factory=_not_given)
    lexicon: dict[str, str] | None = field(default_factory=_not_given)
    lexicons: list[str] | None = field(default_factory=_not_given)
    layout: Literal["auto", "streaming", "full_text"] | None = field(default_factory=_not_given)
    trim_silence: Literal["on", "off"] | None = field(default_factory=_not_given)
    loudness: Literal["on", "off"] | None = field(default_factory=_not_given)
    pacing: Literal["auto", "token", "clause", "sentence"] | None = field(
        default_factory=_not_given
    )
    speed: float | None = field(default_factory=_not_given)
    lead_ms: int | None = field(default_factory=_not_given)

    @classmethod
    def unset(cls) -> RealtimeTTSSettings:
        """Return settings that leave everything to the server."""
        names = [each.name for each in dataclasses.fields(cls) if each.name != "extra"]
        return cls(**dict.fromkeys(names))


def session_options(settings: TTSSettings) -> dict[str, Any]:
    """Return the options of `RealtimeTTS` that are set."""
    given = {name: getattr(settings, name, None) for name in OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    if isinstance(options.get("language"), str):
        options["language"] = language_name(options["language"]) or str(options["language"])
    return options


def with_all_sampling(settings: TTSSettings, delta: TTSSettings) -> TTSSettings:
    """Return `delta` with all of the sampling that results, if it changes some of it."""
    new = getattr(delta, "sampling", NOT_GIVEN)
    old = getattr(settings, "sampling", None)
    if not is_given(new) or not new or not old:
        return delta
    return dataclasses.replace(delta, sampling=merged(old, new))


class ConnectedService(TTSService):
    """A service that connects when its pipeline starts, and disconnects when that is over.

    An EndFrame is handled by the subclass: it calls `_disconnect` when all is spoken.
    """

    _settings: RealtimeTTSSettings

    def __init__(self, link: Link, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._link = link
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._utterances: dict[str, Utterance] = {}  # by audio context
        self._applying: asyncio.Task[None] | None = None

    async def start(self, frame: StartFrame) -> None:
        """Begin to connect; text that arrives meanwhile waits."""
        await super().start(frame)
        self._spawn(self._connect(), "connect")

    async def cancel(self, frame: CancelFrame) -> None:
        """Disconnect; the server stops at once."""
        await super().cancel(frame)
        await self._disconnect()

    async def cleanup(self) -> None:
        """Release the connection, however the pipeline ended."""
        await super().cleanup()
        await self._disconnect()

    async def _connect(self, *, report: bool = True) -> None:
        try:
            await self._link.connect()
        except RealtimeTTSError as error:
            if report:  # otherwise it is for the utterance that needs the connection
                await self._report(error)
        else:
            await self._call_event_handler("on_connected")

    async def _disconnect(self) -> None:
        if self._closed:
            return
        self._closed = True
        for task in list(self._tasks):
            await self.cancel_task(task)
        await self._link.close()
        await self._call_event_handler("on_disconnected")

    # Settings

    async def _update_settings(self, delta: TTSSettings) -> dict[str, Any]:
        """Change settings for the speech that begins after this; what has begun keeps its own."""
        changed = await super()._update_settings(with_all_sampling(self._settings, delta))
        names = changed.keys() & OPTIONS
        self._warn_unhandled_updated_settings(changed.keys() - names)
        if names and not self._closed:
            options = session_options(self._settings)
            new = {name: options.get(name) for name in names}
            applying = self._apply(new, list(self._utterances.values()), self._applying)
            self._applying = self._spawn(applying, "settings")
        return changed

    async def _apply(
        self, new: dict[str, Any], earlier: list[Utterance], before: asyncio.Task[None] | None
    ) -> None:
        """Send the server the `new` options, when `earlier` has begun with the old ones."""
        if before is not None:
            await asyncio.wait([before])
        for utterance in earlier:
            await utterance.wait_begun()
        await self._change(new)
        if not self._utterances:
            await self._link.close_retired()

    async def _change(self, new: dict[str, Any]) -> None:
        """Send the server changed options; those go back to what they were if it refuses."""
        old = self._link.options  # without an earlier update that was refused
        options = {name: value for name, value in (old | new).items() if value is not None}
        try:
            await self._link.change(options)
        except (RequestError, ConfigError) as error:
            self._restore(old, new)
            message = f"the settings stay as they were: {error}"
            await self.push_error(message, error, category=ErrorCategory.APPLICATION)
        except RealtimeTTSError as error:
            await self._report(error)

    def _restore(self, old: dict[str, Any], refused: dict[str, Any]) -> None:
        current = session_options(self._settings)
        for name, value in refused.items():
            if current.get(name) == value:  # not changed again since
                setattr(self._settings, name, old.get(name))
        if not self._link.client.connected:
            self._link.renew(old)

    # Errors and tasks

    def _classify_error(self, exception: Exception) -> ErrorCategory | None:
        return category(exception)

    async def _report(self, error: Exception) -> None:
        if isinstance(error, ConnectionLost | HandshakeRefused):
            await self._call_event_handler("on_connection_error", str(error))
        await self.push_error(str(error), error)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def category(error: Exception) -> ErrorCategory | None:
    """Return the category of one of our errors, None for others.

    INVALID_REQUEST and a refused key are permanent: Pipecat gives the service no more work until
    its settings change.
    """
    match error:
        case RequestError() | ConfigError() | TurnError(server_code="bad_request"):
            return ErrorCategory.INVALID_REQUEST
        case OverloadedError() | TurnError(server_code="queue_full"):
            return ErrorCategory.RATE_LIMIT
        case TurnError(server_code="text_too_long" | "turn_too_long" | "too_large"):
            return ErrorCategory.APPLICATION
        case TurnError():
            return ErrorCategory.SERVER
        case ConnectionLost() | HandshakeRefused(status=0):
            return ErrorCategory.CONNECTIVITY
    return None  # Pipecat judges a refused handshake by its HTTP status
