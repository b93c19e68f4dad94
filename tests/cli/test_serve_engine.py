"""What `serve` chooses when nobody says, on machines that are made up, and what its start shows."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from realtime_tts.cli import command_parser
from realtime_tts.cli.serve_engine import (
    chosen_lines,
    device_choice,
    engine_config,
    engine_configs,
    front_count,
)
from realtime_tts.config import LimitsConfig
from realtime_tts.engine.devices import Choice, Gpu, Machine
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.interface import EngineInfo, Execution
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import ConfigError
from tests.serving import serving
from tts_scheduler import SchedulerConfig

H200 = Gpu("NVIDIA H200", (9, 0))
TWO_GPUS = Machine("cuda", (H200, H200))
NO_GPU = Machine("cuda")


def config(machine: Machine, *words: str) -> EngineConfig:
    arguments = flags(*words)
    return engine_config(arguments, device_choice(arguments, lambda: machine))


def flags(*words: str) -> argparse.Namespace:
    return command_parser(["serve"]).parse_args(["serve", *words])


def not_asked() -> Machine:
    raise AssertionError("the machine was asked")


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice"],
        ["--random-weights", "1.7B"],
        [],
    ],
)
def test_a_gpu_is_used_by_default_in_a_process_with_what_fits_and_what_is_stored(
    words: list[str],
) -> None:
    found = config(TWO_GPUS, *words)
    assert (found.device, found.devices, found.kind) == ("cuda:0", (), "process")
    assert (found.dtype, found.eager, found.fit_slots) == ("auto", False, True)
    assert found.scheduler.slots == 512, "at most"
    assert found.scheduler.max_queue is None, "follows from the slots"


def test_a_machine_without_a_gpu_serves_as_ever() -> None:
    found = config(NO_GPU)
    assert (found.device, found.devices, found.kind) == ("cpu", (), "inline")
    assert found.scheduler == SchedulerConfig() and not found.fit_slots
    assert config(NO_GPU, "--devices", "all") == found


def test_all_gpus_get_a_process_each() -> None:
    found = config(TWO_GPUS, "--devices", "all")
    assert found.devices == ("cuda:0", "cuda:1") and found.kind == "process" and found.fit_slots
    assert [one.device for one in found.processes()] == ["cuda:0", "cuda:1"]
    assert all(one.fit_slots for one in found.processes())
    with pytest.raises(ConfigError, match="one device"):
        config(TWO_GPUS, "--devices", "all", "--engine", "inline")


def test_every_model_gets_the_same_device() -> None:
    arguments = flags("--model", "demo", "--model", "other")
    found = engine_configs(arguments, device_choice(arguments, lambda: TWO_GPUS))
    assert [one.device for one in found] == ["cuda:0", "cuda:0"]


@pytest.mark.parametrize(
    ("words", "devices"),
    [
        (["--device", "cpu"], ("cpu",)),
        (["--device", "cuda:3"], ("cuda:3",)),
        (["--devices", "cuda:1,cuda:2"], ("cuda:1", "cuda:2")),
        (["--engine", "fake"], ("cpu",)),
    ],
)
def test_who_names_a_device_or_wants_tones_asks_nothing_of_the_machine(
    words: list[str], devices: tuple[str, ...]
) -> None:
    assert device_choice(flags(*words), not_asked) == Choice(devices)


def test_flags_win() -> None:
    found = config(
        TWO_GPUS, "--slots", "24", "--max-queue", "7", "--dtype", "float32", "--device", "cpu"
    )
    assert (found.device, found.kind, found.dtype) == ("cpu", "inline", "float32")
    assert found.scheduler.slots == 24 and found.scheduler.queue_length == 7
    on_gpu = config(TWO_GPUS, "--slots", "900")
    assert on_gpu.scheduler.slots == 900 and not on_gpu.fit_slots


def test_eager_is_for_few_turns_in_plain_modules() -> None:
    found = config(TWO_GPUS, "--eager")
    assert found.eager and found.device == "cuda:0" and found.dtype == "auto"
    assert found.scheduler.slots == SchedulerConfig().slots and not found.fit_slots


def test_sessions_follow_from_slots_unless_they_were_asked_for() -> None:
    assert [LimitsConfig().sessions_for(slots) for slots in (0, 16, 512)] == [512, 512, 1024]
    assert LimitsConfig(max_sessions=3).sessions_for(512) == 3


@pytest.mark.parametrize(
    ("machine", "words", "cores", "fronts"),
    [
        (NO_GPU, [], 64, 1),  # the engine is a thread
        (NO_GPU, ["--engine", "process"], 64, 1),
        (TWO_GPUS, [], 16, 8),
        (TWO_GPUS, [], 8, 4),
        (TWO_GPUS, [], 3, 1),
        (TWO_GPUS, ["--slots", "64"], 64, 1),
        (TWO_GPUS, ["--slots", "65"], 64, 2),
        (TWO_GPUS, ["--devices", "all"], 64, 8),
        (TWO_GPUS, ["--devices", "all"], 12, 6),
        (NO_GPU, ["--fronts", "3"], 2, 3),
        (TWO_GPUS, ["--fronts", "1"], 64, 1),
    ],
)
def test_fronts_follow_from_slots_and_cores_unless_they_were_asked_for(
    machine: Machine, words: list[str], cores: int, fronts: int
) -> None:
    arguments = flags(*words)
    engines = engine_configs(arguments, device_choice(arguments, lambda: machine))
    assert front_count(arguments.fronts, engines, cores) == fronts


def test_a_server_has_a_front_and_not_thousands() -> None:
    for wrong in ("0", "8000"):
        arguments = flags("--fronts", wrong)
        with pytest.raises(ConfigError, match=f"--fronts must be from 1 to 256, got {wrong}"):
            front_count(arguments.fronts, engine_configs(arguments, Choice(("cpu",))))


def test_a_session_is_an_open_file_and_as_many_as_the_system_allows_may_be_open() -> None:
    code = (
        "import resource as r; from realtime_tts.cli.serve import allow_open_files; "
        "hard = r.getrlimit(r.RLIMIT_NOFILE)[1]; r.setrlimit(r.RLIMIT_NOFILE, (99, hard)); "
        "allow_open_files(); print(r.getrlimit(r.RLIMIT_NOFILE) == (hard, hard))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def info(slots: int, *executions: Execution) -> EngineInfo:
    from msgspec.structs import replace

    fake = FakeEngine(FakeEngineConfig(slots=slots)).info
    return replace(fake, executions=executions)


def test_the_start_says_what_was_chosen_and_for_how_many_conversations() -> None:
    on_gpu = [
        Execution(
            f"cuda:{number}",
            "bfloat16",
            "NVIDIA H200",
            "captured",
            "triton",
            "persistent",
            kv_bytes=2**37,
        )
        for number in range(2)
    ]
    assert chosen_lines(info(1024, *on_gpu), 1000, SchedulerConfig(slots=512), 2048) == (
        "engine: cuda:0, cuda:1: NVIDIA H200, bfloat16, captured programs, "
        "Triton kernels, separate talker, persistent code predictor",
        "memory: slots for 1024 turns, 256.0 GiB for keys and values",
        "speed:  1000 conversations can speak at once, 128 more turns may wait; "
        "up to 2048 sessions",
    )
    on_cpu = info(16, Execution("cpu", "float32"))
    assert chosen_lines(on_cpu, 11, SchedulerConfig(max_queue=2), 512) == (
        "engine: cpu: float32, plain torch modules",
        "memory: slots for 16 turns",
        "speed:  11 conversations can speak at once, 2 more turns may wait; up to 512 sessions",
    )


def test_a_slow_machine_speaks_one_conversation() -> None:
    on_cpu = info(1, Execution("cpu", "float32"))
    _, *lines = chosen_lines(on_cpu, 1, SchedulerConfig(max_queue=1), 1)
    assert lines == [
        "memory: slots for 1 turn",
        "speed:  1 conversation can speak at once, 1 more turn may wait; up to 1 session",
    ]


def test_the_lines_follow_the_welcome() -> None:
    with serving("--engine", "fake") as server:
        server.stop()
        lines, log = server.said, server.records()
    assert [line.split(":")[0].strip() for line in lines[4:7]] == ["engine", "memory", "speed"]
    assert "tones, no model" in lines[4] and "16 turns" in lines[5]
    starting, started, ready = log[:3]
    assert starting["event"] == "server.starting" and starting["devices"] == ["cpu"]
    assert started["event"] == "engine.started"
    assert ready["event"] == "engine.ready" and ready["slots"] == 16
    assert f"{ready['capacity']} conversations" in lines[6]
