"""Commands that wait to be applied by an engine loop."""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Iterator, Sequence

from realtime_tts.engine.link import Cancel, Command, CommandQueue, Open


class PendingCommands:
    """In the order in which they came, by way of `source` or of `put`."""

    def __init__(self, source: CommandQueue | None = None) -> None:
        self._source: CommandQueue = queue.SimpleQueue() if source is None else source
        self._group: deque[Command] = deque()

    def put(self, commands: Sequence[Command]) -> None:
        """These are to be applied together. Callable from any thread; never blocks."""
        self._source.put(commands)

    def __iter__(self) -> Iterator[Command]:
        """Those that are there, until there are none. Whoever stops leaves the others here."""
        while True:
            while self._group:
                yield self._group.popleft()
            try:
                self._group.extend(self._source.get_nowait())
            except queue.Empty:
                return

    def wait(self, timeout: float) -> None:
        """Until there are some, for so many seconds at most."""
        with contextlib.suppress(queue.Empty):
            self._group.extend(self._source.get(timeout=timeout))

    def left(self) -> list[str]:
        """Once nobody applies them any more: whom they would still open. Empties the queue."""
        ids: dict[str, None] = {}
        for command in self:
            if isinstance(command, Open):
                ids[command.id] = None
            elif isinstance(command, Cancel):
                ids.pop(command.id, None)
        return list(ids)
