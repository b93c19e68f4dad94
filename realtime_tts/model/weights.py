"""Reads safetensors and checks every tensor against the configuration.

A model asks for each tensor by name and shape. Tensors that are missing, misshaped or left over are
collected and reported at the end, all together, with their names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from realtime_tts.errors import CheckpointError

FLOAT_TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
_POINTER = b"version https://git-lfs.github.com/"
_PICKLED = (".bin", ".pt", ".pth", ".ckpt")
_SHOWN = 8  # problems listed in a message
_MOST_PROBLEMS = 1000  # more than a whole checkpoint has tensors
_MOST_ZEROS = 1 << 28  # numbers, in place of tensors that do not fit


class Weights:
    """The tensors of one folder: `model.safetensors`, or shards named by its index.

    Use as a context manager; `take` every tensor, then `finish`. Tensors whose name starts with
    one of `ignored` may be present and are not read.
    """

    def __init__(
        self, folder: Path, *, device: torch.device, dtype: torch.dtype, ignored: Sequence[str] = ()
    ) -> None:
        self.device = device
        self._folder, self._dtype = folder, dtype
        self._ignored = tuple(ignored)
        self._stack = ExitStack()
        self._files: dict[str, Any] = {}  # tensor name -> open file
        self._untaken: set[str] = set()
        self._problems: list[str] = []
        self._zeros = 0  # numbers

    def __enter__(self) -> Weights:
        try:
            for path in weight_files(self._folder):
                self._open(path)
        except BaseException:
            self._stack.close()
            raise
        self._untaken = {name for name in self._files if not name.startswith(self._ignored)}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def take(self, name: str, *shape: int, keep_dtype: bool = False) -> Tensor:
        """Return a tensor in the wanted precision on the wanted device.

        `keep_dtype`: in the stored precision. A problem is recorded and zeros are returned, so that
        one run finds all problems.
        """
        self._untaken.discard(name)
        file = self._files.get(name)
        if file is None:
            return self._instead(f"{name}: missing, expected {list(shape)}", shape)
        view = file.get_slice(name)
        found, stored = list(view.get_shape()), view.get_dtype()
        if found != list(shape):
            return self._instead(f"{name}: expected shape {list(shape)}, found {found}", shape)
        if stored not in FLOAT_TYPES:
            expected = ", ".join(FLOAT_TYPES)
            return self._instead(f"{name}: expected dtype {expected}, found {stored}", shape)
        tensor: Tensor = file.get_tensor(name)
        dtype = FLOAT_TYPES[stored] if keep_dtype else self._dtype
        # A copy, because the file is mapped: the first use must not wait for the disk.
        return tensor.to(device=self.device, dtype=dtype, copy=True)

    def affine(self, name: str, *shape: int) -> tuple[Tensor, Tensor]:
        """Return the weight, of this shape, and the bias [shape[0]] of a layer."""
        return self.take(f"{name}.weight", *shape), self.take(f"{name}.bias", shape[0])

    def finish(self) -> None:
        """Raise CheckpointError if any tensor was missing, misshaped or never asked for."""
        self._problems += [f"{name}: unexpected" for name in sorted(self._untaken)]
        if self._problems:
            raise self._error()

    def _instead(self, problem: str, shape: Sequence[int]) -> Tensor:
        """Record a problem and return zeros of a shape; raise CheckpointError if no machine should
        have to make them: dimensions and counts may be far too large, or quotients became 0."""
        self._problems.append(problem)
        self._zeros += prod(shape)
        if 0 in shape or self._zeros > _MOST_ZEROS or len(self._problems) >= _MOST_PROBLEMS:
            raise self._error()
        return torch.zeros(shape, dtype=self._dtype, device=self.device)

    def _error(self) -> CheckpointError:
        problems = self._problems
        shown = "\n  ".join(problems[:_SHOWN])
        more = f"\n  and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        return CheckpointError(
            f"{self._folder}: {len(problems)} tensors do not fit its config.json:\n  {shown}{more}"
        )

    def _open(self, path: Path) -> None:
        file = self._stack.enter_context(_opened(path))
        self._files.update(dict.fromkeys(file.keys(), file))


def stored_dtype(folder: Path) -> torch.dtype:
    """Return the precision that most of a folder's numbers are stored in. Raises CheckpointError.

    Only the headers of its files are read.
    """
    counts = dict.fromkeys(FLOAT_TYPES, 0)
    for path in weight_files(folder):
        with _opened(path) as file:
            for name in file.keys():
                view = file.get_slice(name)
                if (stored := view.get_dtype()) in counts:
                    counts[stored] += prod(view.get_shape())
    return FLOAT_TYPES[max(counts, key=lambda dtype: counts[dtype])]


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (OSError, SafetensorError) as error:
        if _is_pointer(path):
            raise CheckpointError(
                f"{path} is a git-lfs pointer, which stands for the weights and has none: run "
                f"`git lfs pull` in {path.parent}, or download the checkpoint again"
            ) from None
        raise CheckpointError(f"{path} is not a readable safetensors file: {error}") from error


def _is_pointer(path: Path) -> bool:
    """Return whether the file is a git-lfs pointer. Raises no OSError."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER
    return False


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of a folder: one, or the shards its index names.

    Raises CheckpointError; pickled weights are refused because loading them runs code.
    """
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.exists():
        return [single]
    if index.exists():
        return _shards(index)
    if pickled := ", ".join(sorted(p.name for p in folder.glob("*") if p.suffix in _PICKLED)):
        raise CheckpointError(
            f"{folder} has weights only as {pickled}; this server reads only safetensors. "
            "Convert them first."
        )
    raise CheckpointError(f"{folder} has neither model.safetensors nor {index.name}")


def _shards(index: Path) -> list[Path]:
    try:
        weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        named = {str(name) for name in weight_map.values()}
    except (OSError, ValueError, RecursionError, KeyError, AttributeError, TypeError) as error:
        raise CheckpointError(f"{index} is not an index of safetensors: {error!r}") from error
    paths = [index.parent / name for name in sorted(named)]
    for path in paths:
        if path.suffix != ".safetensors" or path.parent != index.parent:
            raise CheckpointError(f"{index}: {path.name!r} is not a safetensors file beside it")
        if not path.exists():
            raise CheckpointError(f"{index} names {path.name}, which is missing")
    return paths
