import pytest

from realtime_tts.bench.machine import Gpu, gpus, names, parse


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
