"""Find out how many sessions fit on a machine, with the real scheduler and without a GPU.

    python examples/simulate.py --base-ms 7 --row-ms 0.06 --slots 512 --png curve.png
    python examples/simulate.py --base-ms 12 --row-ms 8 --slots 8 --sessions 2 4 6 8 --compare
    python examples/simulate.py --kv-positions 20000      # memory for keys and values, too

The flags give the cost of one engine step: base + row · rows, plus the prefills in it. The defaults
fit a large GPU; measure your own at two batch sizes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tts_scheduler import KVCacheSize, SchedulerConfig, StepCosts
from tts_scheduler.machine import Machine
from tts_scheduler.playback import FRAME_SECONDS
from tts_scheduler.policy import DEADLINE_ORDER, POLICIES, Policy
from tts_scheduler.sizing import Limits, Point, curve, largest_fit
from tts_scheduler.workload import FEEDS, Workload

UNLIMITED = 1e6  # utilisation at which admission never refuses
PAGE_SIZE = 16
MAX_FRAMES = 400  # more than the longest turn of the workload


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. The name of each duration says whether it is in ms or in seconds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    machine = parser.add_argument_group("machine")
    machine.add_argument("--base-ms", type=float, default=8.0, help="a step without any row")
    machine.add_argument("--row-ms", type=float, default=0.1, help="one row: frame and codec")
    machine.add_argument("--prefill-ms", type=float, default=2.0, help="any prefill in a step")
    machine.add_argument("--prefill-row-ms", type=float, default=0.3, help="each prefill")
    machine.add_argument("--slots", type=int, default=256, help="utterances there is room for")
    machine.add_argument(
        "--kv-positions", type=int, help="positions of the KV cache (default: no limit)"
    )
    machine.add_argument(
        "--swap-ms", type=float, default=5.0, help="keys and values of a turn to the host or back"
    )
    machine.add_argument("--max-rows", type=int, help="rows decoded per step (default: all)")
    machine.add_argument(
        "--utilisation",
        type=float,
        default=SchedulerConfig().utilisation,
        help="share of real time to use (default: %(default)s)",
    )
    load = parser.add_argument_group("load")
    load.add_argument("--sessions", type=int, nargs="+", help="numbers to try (default: a range)")
    load.add_argument("--turns", type=int, default=4, help="turns per session")
    load.add_argument("--pause", type=float, default=1.5, help="mean seconds between turns")
    names = [feed.name for feed in FEEDS]
    load.add_argument("--feeds", nargs="+", choices=names, default=names, help="language models")
    load.add_argument("--seed", type=int, default=1)
    policy = parser.add_argument_group("policy")
    policy.add_argument("--compare", action="store_true", help="also round robin, arrival order")
    policy.add_argument("--no-admission", action="store_true", help="refuse nobody")
    parser.add_argument("--png", type=Path, help="draw the curve into this file (needs matplotlib)")
    return parser.parse_args(arguments)


def setting(args: argparse.Namespace) -> tuple[Machine, SchedulerConfig, Workload]:
    """Make what the flags describe. Half of a row's cost is counted as the codec's."""
    half_row = args.row_ms / 2e3
    costs = StepCosts(
        base=args.base_ms / 1e3,
        row=half_row,
        codec_frame=half_row,
        prefill=args.prefill_ms / 1e3,
        prefill_row=args.prefill_row_ms / 1e3,
        prefill_token=0.0,
    )
    config = SchedulerConfig(
        slots=args.slots,
        max_rows=args.max_rows,
        utilisation=UNLIMITED if args.no_admission else args.utilisation,
        kv_utilisation=UNLIMITED if args.no_admission else SchedulerConfig().kv_utilisation,
    )
    feeds = tuple(feed for feed in FEEDS if feed.name in args.feeds)
    workload = Workload(0, turns=args.turns, pause_seconds=args.pause, feeds=feeds)
    machine = Machine(costs, kv_cache=kv_cache(args), swap_seconds=args.swap_ms / 1e3)
    return machine, config, workload


def kv_cache(args: argparse.Namespace) -> KVCacheSize | None:
    """Return the machine's memory for keys and values, in pages of 16 positions."""
    if args.kv_positions is None:
        return None
    pages = args.kv_positions // PAGE_SIZE
    return KVCacheSize(pages, PAGE_SIZE, pages * PAGE_SIZE, MAX_FRAMES)


def steps_to_try(args: argparse.Namespace, machine: Machine, config: SchedulerConfig) -> list[int]:
    """Return numbers of sessions around the number that the machine can speak at once."""
    if args.sessions:
        return sorted(args.sessions)
    rows = machine.lesson().capacity(
        FRAME_SECONDS * args.utilisation, config.slots, config.max_rows
    )
    return sorted({max(1, round(rows * share)) for share in (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2)})


def show(points: Sequence[Point], console: Console) -> None:
    """Print a table with a line for each run."""
    paged = any(point.outcome.peak_pages for point in points)
    gap = 0 if paged else 1  # whole headings in 80 columns
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, gap, 0, 0))
    table.add_column("policy", no_wrap=True)
    names = ["sessions", "live", "TTFA", "gapless", "in time", "gaps s", "refused"]
    for name in (*names, "pages", "swaps") if paged else names:
        table.add_column(name, justify="right", no_wrap=True)
    for point in points:
        summary = point.summary
        ttfa = summary.ttfa
        table.add_row(
            point.policy,
            str(point.sessions),
            str(point.outcome.peak),
            f"{ttfa.p50 * 1e3:.0f}/{ttfa.p95 * 1e3:.0f}" if ttfa else "–",
            f"{summary.kept_turns:.1%}",
            f"{summary.viability:.1%}",
            f"{summary.late_seconds:.1f}",
            f"{point.outcome.refusals:.1%}",
            *((str(point.outcome.peak_pages), str(point.outcome.swap_outs)) if paged else ()),
        )
    console.print(table)
    console.print(
        "live: most turns at once. TTFA: p50/p95, in ms. gapless: turns without a gap, but for "
        "late text. in time: packets (viability). gaps: silence in all turns. pages: most in use "
        "at once. swaps: turns preempted for want of memory.",
        style="dim",
    )


def draw(points: Sequence[Point], path: Path) -> None:
    """Plot gapless turns and TTFA p95 against the number of sessions, into the file at `path`.

    There is one line per policy; the left axis is a share, the right one milliseconds. Raises
    ModuleNotFoundError without matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, left = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    right = left.twinx()
    for number, name in enumerate(dict.fromkeys(point.policy for point in points)):
        line = [point for point in points if point.policy == name]
        sessions = [point.sessions for point in line]
        kept = [100 * point.summary.kept_turns for point in line]
        ttfa = [1e3 * point.summary.ttfa.p95 if point.summary.ttfa else 0.0 for point in line]
        left.plot(sessions, kept, f"C{number}o-", label=name)
        right.plot(sessions, ttfa, f"C{number}s--", alpha=0.5)
    left.set(xlabel="sessions", ylabel="turns without a gap of ours, % (solid)", ylim=(0, 102))
    right.set(ylabel="TTFA p95, ms (dashed)", ylim=(0, None))
    left.grid(alpha=0.3)
    left.legend(loc="lower left")
    figure.savefig(path, format="png", dpi=130)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print and draw; return the exit status."""
    args = parse(arguments)
    console = Console()
    machine, config, workload = setting(args)
    tries = steps_to_try(args, machine, config)
    policies: Sequence[Policy] = POLICIES if args.compare else (DEADLINE_ORDER,)
    points: list[Point] = []
    with console.status("simulating"):
        for policy in policies:
            points += curve(tries, workload, machine, config, args.seed, policy)
    show(points, console)
    limits = Limits()
    most = largest_fit([p for p in points if p.policy == DEADLINE_ORDER.name], limits)
    console.print(
        f"[bold]{most} sessions fit[/bold]: TTFA p95 within {limits.ttfa_p95 * 1e3:.0f} ms, "
        f"{limits.kept_turns:.0%} of turns gapless, {limits.refusals:.0%} refused at most"
    )
    if args.png is not None:
        try:
            draw(points, args.png)
        except ModuleNotFoundError as error:
            console.print(f"cannot draw {args.png}: {error}. Install it: pip install matplotlib")
            return 1
        console.print(f"curve drawn into {args.png}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
