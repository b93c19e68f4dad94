import asyncio

from realtime_tts.bench.barriers import BurstBarrier, CompletionCounter, Share, no_others
from realtime_tts.bench.observation import clock


class Others:
    """Other processes, which are there when the test says so."""

    def __init__(self) -> None:
        self.arrived, self.asked = asyncio.Event(), asyncio.Event()

    async def wait(self) -> float:
        self.asked.set()
        await self.arrived.wait()
        return clock()


def test_shares_cover_every_session_once() -> None:
    shares = [Share(index, 3) for index in range(3)]
    assert [list(share.of_many(range(7))) for share in shares] == [[0, 3, 6], [1, 4], [2, 5]]


async def test_a_burst_begins_for_all_or_for_nobody() -> None:
    bursts, begun = BurstBarrier(3, no_others), []

    async def session() -> None:
        for _ in range(2):
            begun.append(await bursts.begin())

    early = [asyncio.create_task(session()) for _ in range(2)]
    await asyncio.sleep(0)
    assert begun == []
    await asyncio.gather(*early, session())
    assert len(begun) == 6 and len(set(begun)) == 2  # the same time for all three
    assert begun == sorted(begun)


async def test_completion_waits_for_the_other_processes() -> None:
    others = Others()
    completion = CompletionCounter(2, others.wait)
    first = asyncio.create_task(completion.one_more())
    await asyncio.sleep(0)
    assert not others.asked.is_set()
    second = asyncio.create_task(completion.one_more())
    await others.asked.wait()
    assert not first.done() and not second.done()
    others.arrived.set()
    await asyncio.gather(first, second)
