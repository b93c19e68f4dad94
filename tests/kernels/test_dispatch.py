"""Which form of a kernel runs, and that both can be called alike."""

from __future__ import annotations

import inspect

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


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_twins_are_called_alike(kernel: Kernel[..., object]) -> None:
    pytest.importorskip("triton", reason="Triton has no build for this platform")
    assert inspect.signature(kernel.triton) == inspect.signature(kernel.plain)
    assert kernel.__doc__
