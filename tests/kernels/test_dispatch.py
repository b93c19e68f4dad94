"""Which form of a kernel runs, that both can be called alike, and that Triton accepts its own."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from realtime_tts import kernels
from realtime_tts.kernels import Kernel, dispatch, rms_norm

KERNELS = [getattr(kernels, name) for name in kernels.__all__]
KERNELS = [kernel for kernel in KERNELS if isinstance(kernel, Kernel)]


def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of rms_norm, from now on: "plain" or "triton"."""
    made: list[str] = []
    monkeypatch.setattr(rms_norm, "plain", lambda *_: made.append("plain"))
    monkeypatch.setattr(rms_norm, "_triton", lambda *_: made.append("triton"))
    return made


def test_a_tensor_on_the_cpu_goes_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    made = calls(monkeypatch)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    rms_norm(torch.ones(1, 4), torch.ones(4), 1e-6)
    assert made == ["plain"]


def test_the_interpreter_and_a_gpu_go_the_other(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = calls(monkeypatch)
    rms_norm(torch.ones(1, 4, device=device), torch.ones(4, device=device), 1e-6)
    assert made == ["triton"]


def test_without_triton_every_device_goes_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    made = calls(monkeypatch)
    monkeypatch.setattr(dispatch, "triton_available", lambda: False)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    rms_norm(torch.ones(1, 4), torch.ones(4), 1e-6)
    assert made == ["plain"]


def test_the_package_does_not_import_triton() -> None:
    code = "import sys, realtime_tts.kernels; print('triton' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_twins_are_called_alike(kernel: Kernel[..., object]) -> None:
    pytest.importorskip("triton", reason="Triton has no build for this platform")
    assert inspect.signature(kernel.triton) == inspect.signature(kernel.plain)
    assert kernel.__doc__


def test_every_kernel_compiles(compiling: dict[str, str]) -> None:
    """To machine code, without a GPU: the interpreter accepts what the compiler does not. Both
    architectures in one process, most of whose time goes into its imports."""
    pytest.importorskip("triton", reason="Triton has no build for this platform")
    script = Path(__file__).with_name("compile_all.py")
    done = subprocess.run(
        [sys.executable, script, "80", "90"],
        env=compiling,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    wanted = {
        "_add_rms_norm",
        "_combine",
        "_decode",
        "_prompt",
        "_rms_norm",
        "_rope_and_store",
        "_sample",
        "_store_prefix",
        "_swiglu",
    }
    launched = {tuple(line.split()) for line in done.stdout.splitlines()}
    assert launched == {(target, name) for target in ("80", "90") for name in wanted}
