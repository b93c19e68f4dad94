"""What one sees while a checkpoint is downloaded, loaded and warmed up."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class LoadingProgress:
    """One bar per stage; `update` may be called from any thread. Silent where nobody watches.

    Use as a context manager, so that the terminal is left clean whatever happens.
    """

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._tasks: dict[str, int] = {}
        self._lock = threading.Lock()
        self._open = False

    def __enter__(self) -> LoadingProgress:
        self._open = self._progress.console.is_terminal  # elsewhere rich leaves an empty line
        if self._open:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def update(self, what: str, done: int, total: int) -> None:
        """Stage `what` has come to `done` of `total`."""
        with self._lock:
            if not self._open:
                return
            if what not in self._tasks:
                self._finish_earlier_stages()
                self._tasks[what] = self._progress.add_task(what, total=total)
            task = self._progress.tasks[self._tasks[what]].id
            self._progress.update(task, completed=done, total=total)

    def _finish_earlier_stages(self) -> None:
        """One stage follows another: that a new one begins says that the others are done."""
        for task in self._progress.tasks:
            self._progress.update(task.id, completed=task.total)

    def close(self) -> None:
        """Take the bars away. Idempotent."""
        with self._lock:
            if self._open:
                self._open = False
                self._progress.stop()
