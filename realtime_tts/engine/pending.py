"""Commands that wait to be applied by an engine loop."""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Iterator, Sequence

from realtime_tts.engine.link import Cancel, Command, CommandQueue, Open


class PendingCommands:
    """Commands in the order in which they came, through `source` or `put`."""

    def __init__(self, source: CommandQueue | None) -> None:
        self._source: CommandQueue = queue.SimpleQueue() if source is None else source
        self._group: deque[Command] = deque()

    def put(self, commands: Sequence[Command]) -> None:
        """Add commands that have to be applied together. Callable from any thread; never blocks."""
        self._source.put(commands)

    def __iter__(self) -> Iterator[Command]:
        """Yield commands until there are none. If the caller stops, the others stay here."""
        while True:
            while self._group:
                yield self._group.popleft()
            try:
                self._group.extend(self._source.get_nowait())
            except queue.Empty:
                return

    def wait(self, timeout: float) -> None:
        """Wait until there are commands, for `timeout` seconds at most."""
        with contextlib.suppress(queue.Empty):
            self._group.extend(self._source.get(timeout=timeout))

    def left(self) -> list[str]:
        """Return the ids of utterances that the remaining commands would open, and empty the queue.
        For a loop that has ended."""
        ids: dict[str, None] = {}
        for command in self:
            if isinstance(command, Open):
                ids[command.id] = None
            elif isinstance(command, Cancel):
                ids.pop(command.id, None)
        return list(ids)
