"""TurnTraces: the traces of a connection's turns, while those have not ended."""

from __future__ import annotations

from collections.abc import Callable

from realtime_tts.protocol.effects import Begun
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.front import Front
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.tracing.turn import TurnTrace


class TurnTraces:
    """By the id of the turn; there are none where turns are not traced."""

    def __init__(self, front: Front, reporter: SessionReporter) -> None:
        self._front, self._reporter = front, reporter
        self._known: dict[str, TurnTrace | None] = {}

    def of(
        self, turn_id: str, begun: Begun | None, settings: SessionSettings | None = None
    ) -> TurnTrace | None:
        """That of a turn. It begins when it is first asked for with how the turn has `begun`."""
        if begun is not None and self._front.tracer is not None and turn_id not in self._known:
            model = None if settings is None else self._front.model_of(settings)
            self._known[turn_id] = self._reporter.trace(turn_id, begun, model)
        return self._known.get(turn_id)

    def maker(
        self, turn_id: str, begun: Begun | None, settings: SessionSettings
    ) -> Callable[[str, bool], TurnTrace | None]:
        """For a speech, which asks when a segment begins; it has no way back to the connection."""
        return lambda name, waits: self.of(turn_id, begun, settings)

    def end(self, turn_id: str) -> TurnTrace | None:
        """The turn is done, or given up; gives its trace."""
        return self._known.pop(turn_id, None)
