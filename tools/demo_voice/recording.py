"""Steps of a training that a GPU replays: hundreds of small kernels cost one launch.

A step may touch nothing of the host: what changes from one to the next lies in tensors that stay
where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Losses = dict[str, Tensor]
Step = Callable[[], Losses]


class Recorder:
    """Runs steps; if it `records`, each as a CUDA graph. The losses of a replay are overwritten by
    the next one of the same step."""

    def __init__(self, *, records: bool) -> None:
        self._records = records
        self._recorded: dict[Step, Step] = {}

    def record(self, *steps: Step) -> None:
        """Record those that are not yet; no other thread may use the GPU meanwhile. Raises
        RuntimeError if a step needs the host."""
        for step in steps:
            if self._records and step not in self._recorded:
                self._recorded[step] = _record(step)

    def __call__(self, step: Step) -> Losses:
        self.record(step)
        return self._recorded.get(step, step)()


def _record(step: Step) -> Step:
    """The steps that warm up are real ones."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(4):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        # Nothing may hold on to the backward pass, which is bound to the streams it ran on.
        losses = {name: loss.detach() for name, loss in step().items()}

    def replay() -> Losses:
        graph.replay()
        return losses

    return replay


def mixed(device: torch.device) -> torch.autocast:
    """Half precision where that is faster."""
    return torch.autocast(
        device.type,
        torch.bfloat16,
        enabled=device.type == "cuda",
        cache_enabled=False,  # a cast kept from one recording would be stale in another
    )


def adamw(parameters: list[Any], rate: Tensor, **settings: Any) -> torch.optim.AdamW:
    """AdamW that reads its learning rate from a tensor and can be recorded. `parameters`: tensors,
    or groups of them."""
    on_gpu = rate.device.type == "cuda"
    optimizer = torch.optim.AdamW(parameters, rate, capturable=on_gpu, **settings)
    for group in optimizer.param_groups:
        group["lr"] = rate
    return optimizer


def resume(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Take over what an optimizer has gathered. How it was made stays: it would otherwise read its
    learning rate from a copy of the tensor."""
    made = [dict(group) for group in optimizer.param_groups]
    groups = [
        group | {"params": held["params"]}
        for group, held in zip(made, state["param_groups"], strict=True)
    ]
    optimizer.load_state_dict(state | {"param_groups": groups})
    for group, own in zip(optimizer.param_groups, made, strict=True):
        group["lr"] = own["lr"]


def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step down the gradient, which is clipped to a norm of 1."""
    optimizer.zero_grad()
    loss.backward()
    parameters = [part for group in optimizer.param_groups for part in group["params"]]
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
