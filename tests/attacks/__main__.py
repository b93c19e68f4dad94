"""Run the attacks and print a table; the exit status says whether all was as expected."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.attacks.broken import BROKEN
from tests.attacks.faults import ALONE, FAULTS
from tests.attacks.floods import FLOODS
from tests.attacks.resuming import RESUMING
from tests.attacks.stage import Attack, Stage, lag_over, staged

Row = tuple[Attack, str, bool]


async def attack(stage: Stage, number: int, one: Attack) -> Row:
    """Do it; then the server lives, nothing is left of it, and the victim heard no gap."""
    stage.source = f"127.0.1.{number}"
    if stage.turns[-1]["reason"] != "complete":
        await recovered(stage)
    began, before = time.monotonic(), await stage.metrics()
    faults = len(stage.faults())
    try:
        seen = await one.run(stage)
        await stage.settled()
        turns = await stage.next_turns(began)
        assert {turn["reason"] for turn in turns} <= {"complete", *one.ends}, turns[-5:]
        spoken = [turn for turn in turns if turn["reason"] == "complete"]
        undisturbed = [turn for turn in spoken if not turn.get("moves")]
        assert not sum(turn["underruns"] for turn in undisturbed), undisturbed[-5:]
        assert turns[-1] in spoken or await recovered(stage), turns[-5:]
        logged = [line for line in stage.faults()[faults:] if (one.logs or "\0") not in line]
        assert not logged, logged
        assert (await stage.request("GET", "/livez"))[0] == 200
    except Exception as error:
        return one, f"{type(error).__name__}: {error}", False
    late = lag_over(before, await stage.metrics(), 0.02)
    return one, f"{seen}; loop over 20 ms: {late}x", True


async def recovered(stage: Stage) -> bool:
    """Whether a turn that begins now is spoken."""
    until = time.monotonic() + 20.0
    while time.monotonic() < until:
        if (await stage.next_turns(time.monotonic()))[-1]["reason"] == "complete":
            return True
    return False


async def attacks(names: list[str]) -> list[Row]:
    """All whose name holds one of `names`."""

    def chosen(one: Attack) -> bool:
        return not names or any(name in one.name for name in names)

    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        async with staged(Path(folder)) as stage:
            for number, one in enumerate(filter(chosen, (*FLOODS, *BROKEN, *RESUMING, *FAULTS)), 1):
                rows.append(await attack(stage, number, one))
                sys.stderr.write("." if rows[-1][2] else "F")
                sys.stderr.flush()
            for one in filter(chosen, ALONE):
                try:
                    rows.append((one, await one.run(stage), True))
                except AssertionError as error:
                    rows.append((one, str(error), False))
    sys.stderr.write("\n")
    return rows


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only attacks whose name holds one of these")
    rows = asyncio.run(attacks(parser.parse_args().names))
    table = Table("tried", "expected", "seen", show_lines=True)
    for one, seen, good in rows:
        table.add_row(one.name, one.expected, seen if good else f"[red]FAILED[/red] {seen}")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    return 0 if rows and all(good for _, _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
