"""A round of a voice's own speech: which processes run, and what becomes of one that fails."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tools.demo_voice import own_round
from tools.demo_voice.own_round import Round, Step, compared, run_together

STARTS, FILES = (Path("a"), Path("b")), (Path("sentences.txt"), Path("replies.txt"))


def planned(gpus: int) -> Round:
    return Round(STARTS, FILES, (5e-4, 8e-4), 4.0, 5.0, ("--seeds", "3"), Path("out"), gpus)


def option(step: Step, name: str) -> str:
    return step.arguments[step.arguments.index(f"--{name}") + 1]


def test_with_two_gpus_both_checkpoints_say_both_files_and_each_gpu_is_shared_by_two() -> None:
    steps = planned(2).speaking()
    said = [(option(step, "checkpoint"), option(step, "sentences")) for step in steps]
    assert len({*said}) == 4
    assert [(option(step, "part"), option(step, "parts")) for step in steps] == [
        (str(part), "4") for part in range(4)
    ]
    for stage in (steps, planned(2).learning()):
        assert sorted(str(step.gpu) for step in stage) == ["0", "0", "1", "1"]


def test_those_that_speak_share_the_memory_of_their_gpu() -> None:
    for speakers in (2, 4):
        steps = replace(planned(1), speakers=speakers).speaking()
        assert len(steps) == speakers
        assert {option(step, "gpu-memory") for step in steps} == {f"{48 // speakers}%"}


def test_every_training_reads_what_was_said_and_is_its_own() -> None:
    one = planned(2)
    steps = one.learning()
    assert {option(step, "codes") for step in steps} == {
        option(step, "out") for step in one.speaking()
    }
    assert len({(option(step, "start"), option(step, "rate")) for step in steps}) == 4
    assert len({option(step, "out") for step in steps}) == 4
    assert len({option(step, "seed") for step in steps}) == 4


def test_every_group_of_trainings_is_exported_and_compared_once() -> None:
    one = planned(2)
    voices = [option(step, "out") for step in one.learning()]
    exported = {option(step, "out"): step for step in one.exporting()}
    assert len(exported) == 15
    joined = exported["out/1+3"].arguments
    assert joined[joined.index("--voice") + 1 :] == (voices[0], voices[2])
    steps = one.comparing()
    names = [step.arguments[: step.arguments.index("--gpu-memory")] for step in steps]
    folders = [folder for some in names for folder in some]
    assert sorted(folders) == sorted(["a", "b", *exported]) and len(steps) == 8
    assert len({option(step, "out") for step in steps}) == 8
    assert {option(step, "seeds") for step in steps} == {"3"}


def test_with_likenesses_texts_are_tried_and_each_is_a_training_of_its_own() -> None:
    one = replace(planned(1), starts=STARTS[:1], likenesses=(5.0, 2.0))
    said, learnt = one.speaking(), one.learning()
    assert {step.module for step in said} == {"tries"}
    assert {step.module for step in learnt} == {"reinforce"}
    assert {option(step, "tries") for step in learnt} == {option(step, "out") for step in said}
    assert len({(option(step, "rate"), option(step, "likeness")) for step in learnt}) == 4
    assert len(one.exporting()) == 15


@pytest.mark.parametrize(
    "one", [planned(1), replace(planned(1), starts=STARTS[:1], likenesses=(2.0,))]
)
def test_every_step_has_only_the_options_of_its_module(one: Round) -> None:
    for step in (*one.speaking(), *one.learning()):
        text = (Path(own_round.__file__).parent / f"{step.module}.py").read_text("utf-8")
        names = [part for part in step.arguments if part.startswith("--")]
        assert [name for name in names if f'"{name}"' not in text] == []


def test_tries_of_several_checkpoints_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--start", "a", "b", "--likeness", "2"]
    monkeypatch.setattr(sys, "argv", ["own_round", *arguments])
    with pytest.raises(SystemExit):
        own_round.main()
    assert "one --start, not 2" in capsys.readouterr().err


def test_without_a_gpu_all_runs_on_the_cpu() -> None:
    one = planned(0)
    steps = [*one.speaking(), *one.learning(), *one.exporting(), *one.comparing()]
    assert [step for step in steps if step.gpu is not None] == []


@dataclass(frozen=True)
class Program:
    """Runs Python code."""

    name: str
    code: str

    def start(self, folder: Path) -> subprocess.Popen[bytes]:
        with (folder / f"{self.name}.log").open("wb") as log:
            return subprocess.Popen([sys.executable, "-c", self.code], stdout=log, stderr=log)


def test_when_one_fails_the_others_end_and_it_is_said_why(tmp_path: Path) -> None:
    until = tmp_path / "late"
    late = f"import time; time.sleep(60); open({str(until)!r}, 'w')"
    began = time.monotonic()
    with pytest.raises(SystemExit, match="(?s)^wrong ended with 1:.*no speech here"):
        run_together(
            [Program("late", late), Program("wrong", "raise RuntimeError('no speech here')")],
            tmp_path,
        )
    assert time.monotonic() - began < 50 and not until.exists()


def test_the_tables_of_all_processes_are_one(tmp_path: Path) -> None:
    steps = [
        Program(name, f"print('said\\n| checkpoint |\\n| --- |\\n| {name} |\\n')")
        for name in ("one", "two")
    ]
    run_together(steps, tmp_path)
    assert [*compared(steps, tmp_path)] == ["| checkpoint |", "| --- |", "| one |", "| two |"]
