"""Commands that wait to be applied by an engine loop."""

from __future__ import annotations

import contextlib
import queue
import time
from collections import deque
from collections.abc import Iterator, Sequence

from realtime_tts.engine.link import Cancel, Command, CommandQueue, Open

BURST = 4
"""Number of utterances, opened together, from which an idle engine takes them for a burst."""
BURST_PAUSE, BURST_SECONDS = 0.001, 0.006
"""A burst is over when nothing has come for the pause, and after so many seconds at the latest. A
step takes some milliseconds, whatever starts in it: what comes just after it began waits for all of
them."""


class PendingCommands:
    """Commands in the order in which they came, through `source` or `put`."""

    def __init__(self, source: CommandQueue | None) -> None:
        self._source: CommandQueue = queue.SimpleQueue() if source is None else source
        self._group: deque[Command] = deque()
        self._burst_ends = 0.0

    def put(self, commands: Sequence[Command]) -> None:
        """Add commands that have to be applied together. Callable from any thread; never blocks."""
        self._source.put(commands)

    def __iter__(self) -> Iterator[Command]:
        """Yield commands until there are none; after `wait`, also those that follow in a burst. If
        the caller stops, the others stay here."""
        opened = 0
        while True:
            while self._group:
                command = self._group.popleft()
                opened += isinstance(command, Open)
                yield command
            try:
                self._group.extend(self._next(opened >= BURST))
            except queue.Empty:
                self._burst_ends = 0.0
                return

    def wait(self, timeout: float) -> None:
        """Wait until there are commands, for `timeout` seconds at most."""
        with contextlib.suppress(queue.Empty):
            self._group.extend(self._source.get(timeout=timeout))
        self._burst_ends = time.monotonic() + BURST_SECONDS

    def _next(self, in_burst: bool) -> Sequence[Command]:
        """Return the next group. Raises queue.Empty."""
        if in_burst and (left := self._burst_ends - time.monotonic()) > 0.0:
            return self._source.get(timeout=min(left, BURST_PAUSE))
        return self._source.get_nowait()

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
