"""Coded shards taken in, and rows planned, beside the training."""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path

import numpy as np
from torch import Tensor

from tools.demo_voice.codes import CodedShard
from tools.demo_voice.voice_data import Batch, Row, VoicePool, random_layouts


class Feed:
    """Takes in coded shards beside the training, and plans its rows."""

    def __init__(self, pool: VoicePool, folder: Path, rows: int, length: int, seed: int) -> None:
        self._pool, self._folder = pool, folder
        self._size, self._length = rows, length
        self._chance = np.random.default_rng(seed)
        self._seen: set[Path] = set()
        self._plans: queue.Queue[Tensor] = queue.Queue(64)
        self.validation = 0
        """The first so many entries are kept for validation."""
        self.shards = 0
        self.paused = threading.Lock()
        """Held by who must be alone on the device for a while: nothing is taken in then."""

    def take_in(self) -> None:
        """Read all new shards."""
        for path in sorted(self._folder.glob("speech-*.npz")):
            if path in self._seen:
                continue
            self._seen.add(path)
            if self._pool.add(CodedShard.load(path)):
                self.shards += 1
                self.validation = self.validation or len(self._pool.lengths)

    def start(self) -> None:
        for work in (self._plan_rows, self._keep_taking_in):
            threading.Thread(target=work, daemon=True).start()

    def next(self) -> Batch:
        return self._pool.batch(self._plans.get(), self._size, self._length)

    def validation_batches(self, count: int) -> list[Batch]:
        layouts = random_layouts(self.validation, np.random.default_rng(0))
        rows = self._pool.pack(np.arange(self.validation), layouts, self._length)
        size = self._size
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        return [
            self._pool.batch(self._pool.plan(part), size, self._length) for part in parts[:count]
        ]

    def _keep_taking_in(self) -> None:
        while True:
            with self.paused:
                self.take_in()
            time.sleep(1)

    def _plan_rows(self) -> None:
        """Random entries of whatever is held by now, a few thousand at a time."""
        waiting: list[Row] = []
        while True:
            entries = self._chance.integers(self.validation, len(self._pool.lengths), 4096)
            layouts = random_layouts(len(entries), self._chance)
            waiting += self._pool.pack(entries, layouts, self._length)[:-1]
            while len(waiting) >= self._size:
                self._plans.put(self._pool.plan(waiting[: self._size]))
                waiting = waiting[self._size :]
