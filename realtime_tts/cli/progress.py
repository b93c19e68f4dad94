"""Progress bars on a terminal."""

from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def progress_bars(console: Console) -> Progress:
    """Make bars that are removed at the end, each with how much is done and the time it took."""
    # Here, because a server without a terminal has no bars, and would start later for them.
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True)


class _AboveBars(io.TextIOBase):
    """A stream whose text appears above the bars, in lines as long as they are. Rich's replacement
    of standard error breaks them at the edge of the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, text: str) -> int:
        self._console.print(
            text, end="", soft_wrap=True, markup=False, emoji=False, highlight=False
        )
        return len(text)


class LoadingProgress:
    """Shows how far a checkpoint is downloaded, loaded and warmed up, with a bar for each stage.

    `update` may be called from any thread. Nothing is shown if the output is not a terminal.

    Use as a context manager, so that the terminal is left clean whatever happens.
    """

    def __init__(self, console: Console) -> None:
        shown = console.is_terminal  # elsewhere rich leaves an empty line
        self._bars = progress_bars(console) if shown else None
        self._tasks: dict[str, TaskID] = {}
        self._lock = threading.Lock()
        self.log: TextIO = _AboveBars(console) if shown else sys.stderr  # type: ignore[assignment]
        """The stream for a log, during the progress and after it."""

    def __enter__(self) -> LoadingProgress:
        if self._bars is not None:
            self._bars.add_task("start", total=1)  # until the first stage: imports take seconds
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def update(self, what: str, done: int, total: int) -> None:
        """Show that stage `what` has reached `done` of `total`."""
        with self._lock:
            if self._bars is None:
                return
            if what not in self._tasks:
                for task in self._bars.tasks:  # when a stage begins, the others are done
                    self._bars.update(task.id, completed=task.total)
                self._tasks[what] = self._bars.add_task(what, total=total)
            self._bars.update(self._tasks[what], completed=done, total=total)

    def close(self) -> None:
        """Remove the bars. Idempotent."""
        with self._lock:
            if self._bars is not None:
                self._bars.stop()
                self._bars = None
