"""Which device is chosen: by what the machine has and what torch is built for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from realtime_tts.engine import cuda_probe, devices
from realtime_tts.engine.devices import (
    Choice,
    Gpu,
    Machine,
    build_of,
    choose,
    look_up,
    machine_of,
)
from realtime_tts.engine.torch_setup import chosen_dtype, prepare_torch
from realtime_tts.errors import ConfigError

H200 = Gpu("NVIDIA H200", (9, 0))
A100 = Gpu("NVIDIA A100", (8, 0))
T4 = Gpu("Tesla T4", (7, 5))
GPU_BUILD = (
    "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
)
CPU_BUILD = "__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n"


@pytest.mark.parametrize(
    ("machine", "chosen"),
    [
        (Machine("cpu"), ("cpu",)),
        (Machine("cuda"), ("cpu",)),
        (Machine("cuda", (H200,)), ("cuda:0",)),
        (Machine("cuda", (A100, H200)), ("cuda:0", "cuda:1")),
    ],
)
def test_every_gpu_that_can_be_used_is_chosen_and_else_the_cpu(
    machine: Machine, chosen: tuple[str, ...]
) -> None:
    assert choose(machine) == Choice(chosen)


def test_an_old_gpu_is_left_out_with_a_sentence_and_keeps_its_number() -> None:
    among = choose(Machine("cuda", (T4, H200)))
    assert among.devices == ("cuda:1",)
    assert "Tesla T4 has compute capability 7.5; the engine needs 8.0" in among.reasons[0]
    assert choose(Machine("cuda", (T4,))).devices == ("cpu",)


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (Machine("rocm"), "AMD GPUs are not supported"),
        (
            Machine("cuda", problem="the GPUs cannot be listed: timeout"),
            "cannot be listed: timeout",
        ),
    ],
)
def test_what_cannot_be_used_is_said_and_the_cpu_is_used(machine: Machine, reason: str) -> None:
    choice = choose(machine)
    assert choice.devices == ("cpu",) and reason in choice.reasons[0]


def test_torch_s_build_is_read_from_its_version_file() -> None:
    assert build_of(GPU_BUILD) == ("cuda", "13.0") and build_of(CPU_BUILD) == ("cpu", "")
    assert build_of("cuda = None\nhip = '6.4'\n") == ("rocm", "6.4")
    assert build_of("cuda: Optional[str] = '13.0'\nhip: Optional[str] = '6.4'") == ("rocm", "6.4")
    here = "rocm" if torch.version.hip else "cuda" if torch.version.cuda else "cpu"
    assert devices.torch_build() == (here, torch.version.hip or torch.version.cuda or "")


def test_looking_up_imports_no_torch() -> None:
    code = "import sys; from realtime_tts.engine.devices import look_up; look_up(); "
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Machine]:
    """What is looked up with a torch for CUDA and this script in place of the probe."""

    def look(script: str) -> Machine:
        path = tmp_path / "probe.py"
        path.write_text(script, encoding="utf-8")
        monkeypatch.setattr(devices, "torch_build", lambda: ("cuda", "13.0"))
        monkeypatch.setattr(cuda_probe, "__file__", str(path))
        return look_up()

    return look


def test_the_probe_runs_in_a_process_of_its_own(probed: Callable[[str], Machine]) -> None:
    gpus = [{"name": "NVIDIA H200", "capability": [9, 0]}]
    told = json.dumps({"gpus": gpus, "cuda": 13_000})
    assert probed(f"print({told!r})") == Machine("cuda", (H200,))
    assert probed('print(\'{"gpus": [], "cuda": 0}\')') == Machine("cuda")


@pytest.mark.parametrize(("cuda", "usable"), [(12_080, False), (13_000, True), (14_010, True)])
def test_a_driver_that_is_too_old_for_torch_is_a_reason(cuda: int, usable: bool) -> None:
    gpus = [{"name": "NVIDIA H200", "capability": [9, 0]}]
    choice = choose(machine_of(json.dumps({"gpus": gpus, "cuda": cuda}), "13.2"))
    assert choice.devices == (("cuda:0",) if usable else ("cpu",))
    told = "the NVIDIA driver supports CUDA 12, and torch is built for 13.2: install a newer"
    assert usable or choice.reasons[0].startswith(told)


def test_a_probe_that_fails_or_never_answers_is_a_reason(
    probed: Callable[[str], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = probed("raise OSError('cuInit of the NVIDIA driver failed with error 999')")
    assert failed.gpus == () and "failed with error 999" in str(failed.problem)
    died = probed("import os; os.abort()")
    assert "cannot be listed: status -" in str(died.problem)
    monkeypatch.setattr(devices, "_PROBE_SECONDS", 0.1)
    silent = probed("import time; time.sleep(30)")
    assert "timed out" in str(silent.problem)


def test_a_gpu_without_a_torch_for_it_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(devices, "torch_build", lambda: ("cpu", ""))
    monkeypatch.setattr(devices, "_DRIVER", tmp_path / "version")
    assert look_up() == Machine("cpu")
    (tmp_path / "version").touch()
    assert "torch is built for CPUs" in choose(look_up()).reasons[0]


class FakeDriver:
    """The driver's functions that the probe calls; they write where they are told to."""

    def __init__(self, gpus: tuple[Gpu, ...], init: int = 0) -> None:
        self._gpus, self._init = gpus, init

    def cuInit(self, flags: int) -> int:
        return self._init

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = len(self._gpus)
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 13_020
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> int:
        device._obj.value = index
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:
        name.value = self._gpus[device.value].name.encode()
        return 0

    def cuDeviceGetAttribute(self, number: Any, attribute: int, device: Any) -> int:
        number._obj.value = self._gpus[device.value].capability[{75: 0, 76: 1}[attribute]]
        return 0


def test_the_probe_tells_name_and_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_probe, "_driver", lambda: FakeDriver((T4, H200)))
    assert machine_of(json.dumps(cuda_probe.probe()), "13.0") == Machine("cuda", (T4, H200))


def test_no_driver_and_no_gpu_are_no_error_but_a_broken_driver_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for driver in (None, FakeDriver((), init=100)):
        monkeypatch.setattr(cuda_probe, "_driver", lambda driver=driver: driver)
        assert cuda_probe.probe() == {"gpus": [], "cuda": 0}
    monkeypatch.setattr(cuda_probe, "_driver", lambda: FakeDriver((), init=999))
    with pytest.raises(OSError, match="cuInit .* error 999"):
        cuda_probe.probe()


def test_a_device_that_the_engine_was_not_made_for_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for device in ("mps", "xpu", "meta"):
        with pytest.raises(ConfigError, match=f"not on '{device}' of this torch: use --device cpu"):
            prepare_torch(device, 1)
    monkeypatch.setattr(torch.version, "hip", "6.4")
    with pytest.raises(ConfigError, match="NVIDIA GPUs, not on 'cuda' of this torch"):
        prepare_torch("cuda", 1)


def test_a_device_that_torch_cannot_use_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def empty(*size: int, device: torch.device) -> None:
        raise AssertionError("Torch not compiled with CUDA enabled\nmore")

    monkeypatch.setattr(torch, "empty", empty)
    with pytest.raises(ConfigError, match=r"'cuda': Torch .* enabled; or use --device cpu$"):
        prepare_torch("cuda", 1)


def test_an_old_gpu_that_was_asked_for_by_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "empty", lambda *size, device: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: T4.capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: T4.name)
    with pytest.raises(ConfigError, match=r"Tesla T4 .* 7.5; .* 8.0 .*: use --device cpu"):
        prepare_torch("cuda:0", 1)


@pytest.mark.parametrize(
    ("wanted", "device", "stored", "chosen"),
    [
        ("auto", "cpu", torch.bfloat16, torch.float32),
        ("auto", "cuda:1", torch.bfloat16, torch.bfloat16),
        ("auto", "cuda", torch.float32, torch.float32),
        ("float32", "cuda", torch.bfloat16, torch.float32),
        ("bfloat16", "cpu", torch.float32, torch.bfloat16),
        ("float16", "cuda", torch.float16, torch.float16),
    ],
    ids=str,
)
def test_a_gpu_computes_in_what_is_stored_and_a_cpu_in_float32_if_nothing_else_is_asked_for(
    wanted: str, device: str, stored: torch.dtype, chosen: torch.dtype
) -> None:
    assert chosen_dtype(wanted, device, lambda: stored) is chosen


def test_a_precision_that_no_codec_was_tried_in_is_not_used_unasked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("WARNING"):
        assert chosen_dtype("auto", "cuda", lambda: torch.float16) is torch.float32
    assert caplog.messages == ["engine.fallback"]
    assert "stored in float16" in caplog.records[0].__dict__["fields"]["reason"]
