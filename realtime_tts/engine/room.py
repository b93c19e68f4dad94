"""Memory for keys and values: who has some, and who had to give it up for a while."""

from __future__ import annotations

from torch import Tensor

from realtime_tts.errors import OutOfPages
from realtime_tts.model.slot_store import SlotStore


class Room:
    """A store, and on the host the keys and values of rows that were set aside, by id."""

    def __init__(self, store: SlotStore) -> None:
        self.store = store
        self.aside: dict[str, Tensor] = {}

    def take(self, slot: int, positions: int) -> bool:
        """Memory for so many positions of a slot in all; False if there is none now."""
        try:
            self.store.reserve(slot, positions)
        except OutOfPages:
            return False
        return True

    def set_aside(self, id: str, slot: int, positions: int) -> None:
        """Keep what the slot holds on the host, and give its memory to others."""
        self.store.upload()
        self.aside[id] = self.store.read(slot, positions).cpu()
        self.store.clear(slot)

    def bring_back(self, id: str, slot: int) -> None:
        """Undo `set_aside`, if it was done; the slot has its memory again."""
        kv = self.aside.pop(id, None)
        if kv is not None:
            self.store.copy_prefix([slot], kv)

    def forget(self, id: str, slot: int) -> None:
        """The utterance is over."""
        self.aside.pop(id, None)
        if slot >= 0:
            self.store.clear(slot)
