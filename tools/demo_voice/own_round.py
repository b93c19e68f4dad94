"""One round in which a voice learns from its own speech, on all GPUs of a machine.

    python -m tools.demo_voice.own_round --start CHECKPOINT --speak 8 --learn 8 \
        --sentences build/demo_voice/sentences.txt build/demo_voice/replies.txt

Some processes for each GPU say texts (`own_speech`). Then every pair of a checkpoint and a rate is
a training that learns from all that was understood (`train_voice`); all run at once. With
--likeness, every text is said several times (`tries`), and every pair of a rate and a likeness is a
training that learns from the tries that were understood (`reinforce`). Every
training, and the mean of every group of them, becomes a checkpoint in --out (`export`), and all of
these are compared (`compare`). The log of each process is there, too. Which checkpoint to keep is
left to who reads the table; then follow `silent_start` and `evaluate`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from pathlib import Path
from typing import Protocol

import torch

SPEAKING = 2
"""Processes that share a GPU, of those that say texts, if nothing else is asked for."""
COMPARING = 4
"""Of those that compare."""
_MEMORY = "12%"
"""Of the GPU, for the engine of each of those."""
_SPEAKING_MEMORY = 48
"""Percent of it, for the engines of all that say texts."""
_RECIPE = (
    *("--rows", "16", "--length", "1536", "--dropout", "0.1", "--warm-up", "200"),
    *("--listens-from", "0.2", "--first-shards", "2", "--frames", "60000000"),
)
_TOLD = 15  # lines of the log of what failed


class Runs(Protocol):
    """Such as a step."""

    @property
    def name(self) -> str: ...

    def start(self, folder: Path) -> subprocess.Popen[bytes]: ...


@dataclass(frozen=True, slots=True)
class Step:
    """A module of this package to run. `gpu`: its number, None for the CPU."""

    name: str
    module: str
    arguments: tuple[str, ...]
    gpu: int | None = None

    def start(self, folder: Path) -> subprocess.Popen[bytes]:
        """Its output goes to NAME.log in the folder."""
        visible = "" if self.gpu is None else str(self.gpu)
        command = [sys.executable, "-m", f"tools.demo_voice.{self.module}", *self.arguments]
        with (folder / f"{self.name}.log").open("wb") as log:
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"OMP_NUM_THREADS": "2", **os.environ, "CUDA_VISIBLE_DEVICES": visible},
            )


@dataclass(frozen=True, slots=True)
class Round:
    """What is to be done. `speak`, `learn`: minutes; `compare`: options of `compare`; `gpus`: how
    many there are; 0: all is done on the CPU; `sure`: as of `Judge`; `speakers`: processes of each
    GPU that say texts; `likenesses`: of `reinforce`, which learns if there are any."""

    starts: tuple[Path, ...]
    sentences: tuple[Path, ...]
    rates: tuple[float, ...]
    speak: float
    learn: float
    compare: tuple[str, ...]
    out: Path
    gpus: int
    sure: float = 0.0
    speakers: int = SPEAKING
    likenesses: tuple[float, ...] = ()

    def speaking(self) -> list[Step]:
        """Each file of sentences is said by each checkpoint, if there are processes enough."""
        count = self.speakers * max(1, self.gpus)
        steps = []
        for part in range(count):
            path = self.sentences[part % len(self.sentences)]
            start = self.starts[part // len(self.sentences) % len(self.starts)]
            given = {
                "checkpoint": start,
                "sentences": path,
                "out": self.out / "own",
                "minutes": self.speak,
                "part": part,
                "parts": count,
                "gpu-memory": f"{_SPEAKING_MEMORY // self.speakers}%",
            }
            module = "tries"
            if not self.likenesses:
                module = "own_speech"
                given["sure"] = self.sure
            steps.append(Step(f"speak-{part}", module, _options(given), self._gpu(part)))
        return steps

    def learning(self) -> list[Step]:
        """A training for each checkpoint, rate and likeness, with a seed of its own."""
        steps = []
        wanted = product(self.starts, self.rates, self.likenesses or (None,))
        for number, (start, rate, likeness) in enumerate(wanted, 1):
            given = {
                "start": start,
                "rate": rate,
                "minutes": self.learn,
                "seed": number,
                "out": self._voice(number),
            }
            own = self.out / "own"
            if likeness is None:
                module = "train_voice"
                arguments = (*_options(given | {"tokenizer": start, "codes": own}), *_RECIPE)
            else:
                module = "reinforce"
                arguments = _options(given | {"tries": own, "likeness": likeness})
            steps.append(Step(f"learn-{number}", module, arguments, self._gpu(number)))
        return steps

    def candidates(self) -> list[str]:
        """The names of all checkpoints, such as 2 and 1+3."""
        numbers = range(1, 1 + len(self.learning()))
        groups = chain.from_iterable(combinations(numbers, size) for size in numbers)
        return ["+".join(map(str, group)) for group in groups]

    def exporting(self) -> list[Step]:
        start = str(self.starts[0])
        return [
            Step(
                f"export-{name}",
                "export",
                (
                    *("--codec", start, "--tokenizer", start, "--out", str(self.out / name)),
                    *("--voice", *(str(self._voice(int(number))) for number in name.split("+"))),
                ),
            )
            for name in self.candidates()
        ]

    def comparing(self) -> list[Step]:
        """Each process has a share of them; the checkpoints they began with come first."""
        folders = [*self.starts, *(self.out / name for name in self.candidates())]
        count = min(len(folders), COMPARING * max(1, self.gpus))
        return [
            Step(
                f"compare-{part}",
                "compare",
                (
                    *map(str, folders[part::count]),
                    *("--gpu-memory", _MEMORY, *self.compare),
                    *("--out", str(self.out / f"compared-{part}.json")),
                ),
                self._gpu(part),
            )
            for part in range(count)
        ]

    def _gpu(self, number: int) -> int | None:
        return number % self.gpus if self.gpus else None

    def _voice(self, number: int) -> Path:
        return self.out / f"voice-{number}.pt"


def _options(given: dict[str, object]) -> tuple[str, ...]:
    return tuple(part for name, value in given.items() for part in (f"--{name}", str(value)))


def run_together(steps: Sequence[Runs], folder: Path) -> None:
    """Run them until all have ended. When one fails, the others are ended, and SystemExit says
    what it wrote last."""
    running = {step.name: step.start(folder) for step in steps}
    try:
        while running:
            time.sleep(0.1)
            for name, process in [*running.items()]:
                if process.poll() is None:
                    continue
                del running[name]
                if process.returncode:
                    log = folder / f"{name}.log"
                    last = log.read_text("utf-8", errors="replace").splitlines()[-_TOLD:]
                    raise SystemExit("\n".join([f"{name} ended with {process.returncode}:", *last]))
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def compared(steps: Sequence[Runs], folder: Path) -> Iterator[str]:
    """The lines of all tables that were printed, as one table."""
    head: list[str] = []
    for step in steps:
        lines = (folder / f"{step.name}.log").read_text("utf-8").splitlines()
        rows = [line for line in lines if line.startswith("|")]
        if not head:
            head = rows[:2]
            yield from head
        yield from rows[2:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add, folder = parser.add_argument, Path("build/demo_voice")
    add("--start", type=Path, nargs="+", required=True, help="checkpoints that speak and learn")
    add("--sentences", type=Path, nargs="+", default=[folder / "sentences.txt"])
    add("--rates", type=float, nargs="+", default=[5e-4, 8e-4])
    add("--sure", type=float, default=0.0, help="as of own_speech")
    add("--likeness", type=float, nargs="+", default=[], help="as of reinforce: learn from tries")
    add("--speakers", type=int, default=SPEAKING, help="processes of each GPU that say texts")
    add("--speak", type=float, default=8.0, metavar="MINUTES")
    add("--learn", type=float, default=8.0, metavar="MINUTES")
    add("--seeds", default="3", help="of each text that is compared")
    add("--limit", help="compare with the first texts of each set only")
    add("--out", type=Path, default=folder / "round")
    given = parser.parse_args()
    if given.likeness and len(given.start) > 1:
        parser.error(f"tries teach the voice that made them: one --start, not {len(given.start)}")
    todo = Round(
        tuple(given.start),
        tuple(given.sentences),
        tuple(given.rates),
        given.speak,
        given.learn,
        ("--seeds", given.seeds, *(("--limit", given.limit) if given.limit else ())),
        given.out,
        torch.cuda.device_count(),
        given.sure,
        given.speakers,
        tuple(given.likeness),
    )
    given.out.mkdir(parents=True, exist_ok=True)
    comparing = todo.comparing()
    for steps in (todo.speaking(), todo.learning(), todo.exporting(), comparing):
        began = time.monotonic()
        run_together(steps, given.out)
        took = time.monotonic() - began
        print(f"{steps[0].module}: {len(steps)} processes in {took:.0f} s", flush=True)
    print("\n".join(compared(comparing, given.out)))


if __name__ == "__main__":
    main()
