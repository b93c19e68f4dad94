"""A fake engine whose memory for keys and values is short, and which checks every plan."""

from __future__ import annotations

from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.interface import StepOutput
from tests.engine.faulty import FaultyEngine
from tts_scheduler import KVCacheSize, StepPlan

PAGE_SIZE = 16


class PagedFakeEngine(FaultyEngine):
    """`pages` of 16 positions are its memory for keys and values."""

    def __init__(self, config: FakeEngineConfig, pages: int) -> None:
        super().__init__(config)
        self._size = KVCacheSize(pages, PAGE_SIZE, pages * PAGE_SIZE, config.max_frames)
        self._pages = Pages(PAGE_SIZE)

    @property
    def kv_cache(self) -> KVCacheSize:
        return self._size

    def step(self, plan: StepPlan) -> StepOutput:
        self._pages.follow(plan)
        return super().step(plan)

    def close(self, utterance_id: str) -> None:
        super().close(utterance_id)
        self._pages.tables.pop(utterance_id, None)
        self._pages.swapped.pop(utterance_id, None)


class Pages:
    """Block tables as plans say them, and the promises that plans have to keep."""

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._prompts: dict[str, int] = {}
        self.tables: dict[str, list[int]] = {}
        self.swapped: dict[str, int] = {}
        """Pages that rows in host memory had, by id."""

    def follow(self, plan: StepPlan) -> None:
        for out in plan.swap_outs:
            self.swapped[out.id] = len(self.tables.pop(out.id))
        for each in plan.reservations:
            table = self.tables.setdefault(each.id, [])
            assert len(table) == each.first, f"a gap in the block table of {each.id}"
            table += each.pages
        for back in plan.swap_ins:
            assert len(self.tables[back.id]) >= self.swapped.pop(back.id), "pages were lost"
        owned = [page for table in self.tables.values() for page in table]
        assert len(owned) == len(set(owned)), "a page has two owners"
        self._prompts.update((prefill.id, prefill.positions) for prefill in plan.prefills)
        for id, frame in [(p.id, 0) for p in plan.prefills] + [
            (d.id, d.frame) for d in plan.decodes
        ]:
            assert id not in self.swapped, f"{id} is in host memory"
            room = len(self.tables[id]) * self._page_size
            assert self._prompts[id] + frame <= room, f"{id} has no page for frame {frame}"
