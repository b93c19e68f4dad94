from pathlib import Path

import pytest

from realtime_tts.bench import machine
from realtime_tts.bench.machine import Gpu, gpus, names, parse


def test_outside_a_checkout_the_environment_names_the_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "a" / "b" / "machine.py"))
    monkeypatch.delenv(machine.COMMIT_VARIABLE, raising=False)
    assert machine.commit() == ""
    monkeypatch.setenv(machine.COMMIT_VARIABLE, "0123456789ab")
    assert machine.describe_machine()["commit"] == "0123456789ab"


def test_a_machine_has_a_processor_and_cores() -> None:
    found = machine.describe_machine()
    assert found["cpu"] and int(found["cores"]) >= 1
    assert {"gpu", "gpu_driver", "python", "torch", "realtime_tts", "commit"} <= set(found)


@pytest.mark.parametrize(
    ("cores", "gpu", "wanted"),
    [
        (1, "", "a CPU, 1 core"),
        (2, "", "a CPU, 2 cores"),
        (16, "NVIDIA H200", "a CPU, 16 cores, NVIDIA H200 (driver 570)"),
    ],
)
def test_a_machines_hardware_is_a_phrase(cores: int, gpu: str, wanted: str) -> None:
    known: dict[str, str | int] = {
        "cpu": "a CPU",
        "cores": cores,
        "gpu": gpu,
        "gpu_driver": "570",
    }
    assert machine.hardware(known) == wanted


def test_the_drivers_table_is_read() -> None:
    found = parse("NVIDIA H200, 570.86, 1203\nNVIDIA H200, 570.86, 4\n")
    assert found == (Gpu("NVIDIA H200", "570.86", 1203), Gpu("NVIDIA H200", "570.86", 4))
    assert names(found) == "2 x NVIDIA H200"
    assert names(found[:1]) == "NVIDIA H200"


def test_what_is_no_gpu_is_left_out() -> None:
    assert parse("NVIDIA-SMI has failed\nGPU, 1.0, [N/A]\n\n") == ()
    assert names(()) == ""


def test_without_the_tool_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert gpus() == ()
