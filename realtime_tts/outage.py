"""Outage: whether work that is tried again and again fails at present, which the log says once."""

from __future__ import annotations

import logging

from realtime_tts.logs import event


class Outage:
    """Logs `begins` when work fails that did not before, and `ends`, unless that is None, when it
    succeeds again. Each kind of work has its own, for one thread at a time.

    `present`: whether it failed the last time.
    """

    def __init__(
        self, log: logging.Logger, begins: str, ends: str | None, level: int = logging.ERROR
    ) -> None:
        self._log, self._begins, self._ends, self._level = log, begins, ends, level
        self.present = False

    def begin(self, **fields: object) -> None:
        """Note that the work failed."""
        if not self.present:
            event(self._log, self._level, self._begins, **fields)
        self.present = True

    def end(self, **fields: object) -> None:
        """Note that the work succeeded."""
        if self.present and self._ends is not None:
            event(self._log, logging.INFO, self._ends, **fields)
        self.present = False
