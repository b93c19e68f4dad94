"""Weights for the codec encoder that the official format wants and this voice does not have.

The codec is trained with an encoder of its own, which is not shipped. Without any `encoder.*`
weights the official package loads the folder all the same, but warns of a hundred missing tensors
and makes them up; these small random ones keep it quiet. They encode nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

CONFIG: dict[str, Any] = {
    "hidden_size": 32,
    "num_filters": 2,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 64,
    "codebook_dim": 16,
    "vector_quantization_hidden_dimension": 16,
    "num_quantizers": 16,
    "num_semantic_quantizers": 1,
    "upsample_groups": 32,
    "sampling_rate": 24000,
    "upsampling_ratios": [8, 6, 5, 4],
    "frame_rate": 12.5,
    "_frame_rate": 12.5,
    "use_causal_conv": True,
    "sliding_window": 250,
}
"""`encoder_config` of speech_tokenizer/config.json, without its `codebook_size`."""


def encoder_tensors(config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Every `encoder.*` tensor of a `config` like CONFIG with a `codebook_size`, in float32."""
    random = torch.Generator().manual_seed(0)
    tensors = {}
    for name, shape in _shapes(config):
        if name.endswith(("initialized", "cluster_usage", "layernorm.weight")):
            tensor = torch.ones(shape)
        else:
            tensor = torch.randn(shape, generator=random) * 0.05
        tensors[f"encoder.{name}"] = tensor
    return tensors


def _shapes(config: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    width = config["hidden_size"]
    yield from _convolutions(config)
    for layer in range(config["num_hidden_layers"]):
        yield from _transformer_layer(config, f"encoder_transformer.layers.{layer}")
    yield "downsample.conv.weight", (width, width, 4)
    semantic = config["num_semantic_quantizers"]
    acoustic = config["num_quantizers"] - semantic
    yield from _quantizer(config, "semantic", semantic)
    yield from _quantizer(config, "acoustic", acoustic)


def _convolutions(config: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    filters = config["num_filters"]
    yield from _convolution("encoder.layers.0", filters, 1, 7)
    layer = 1
    for ratio in reversed(config["upsampling_ratios"]):
        yield from _convolution(f"encoder.layers.{layer}.block.1", filters // 2, filters, 3)
        yield from _convolution(f"encoder.layers.{layer}.block.3", filters, filters // 2, 1)
        yield from _convolution(f"encoder.layers.{layer + 2}", filters * 2, filters, ratio * 2)
        filters, layer = filters * 2, layer + 3
    yield from _convolution(f"encoder.layers.{layer + 1}", config["hidden_size"], filters, 3)


def _convolution(
    name: str, outputs: int, inputs: int, kernel: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.conv.weight", (outputs, inputs, kernel)
    yield f"{name}.conv.bias", (outputs,)


def _transformer_layer(
    config: Mapping[str, Any], name: str
) -> Iterator[tuple[str, tuple[int, ...]]]:
    width, inner = config["hidden_size"], config["intermediate_size"]
    queries = config["num_attention_heads"] * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    yield f"{name}.self_attn.q_proj.weight", (queries, width)
    yield f"{name}.self_attn.k_proj.weight", (keys, width)
    yield f"{name}.self_attn.v_proj.weight", (keys, width)
    yield f"{name}.self_attn.o_proj.weight", (width, queries)
    yield f"{name}.mlp.fc1.weight", (inner, width)
    yield f"{name}.mlp.fc2.weight", (width, inner)
    for norm in ("input_layernorm", "post_attention_layernorm"):
        yield f"{name}.{norm}.weight", (width,)
        yield f"{name}.{norm}.bias", (width,)
    for scale in ("self_attn_layer_scale", "mlp_layer_scale"):
        yield f"{name}.{scale}.scale", (width,)


def _quantizer(
    config: Mapping[str, Any], kind: str, layers: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    name = f"quantizer.{kind}_residual_vector_quantizer"
    size, dim, width = config["codebook_size"], config["codebook_dim"], config["hidden_size"]
    for layer in range(layers):
        codebook = f"{name}.layers.{layer}.codebook"
        yield f"{codebook}.initialized", (1,)
        yield f"{codebook}.cluster_usage", (size,)
        yield f"{codebook}.embed_sum", (size, dim)
    inner = config["vector_quantization_hidden_dimension"]
    yield f"{name}.input_proj.weight", (inner, width, 1)
    yield f"{name}.output_proj.weight", (width, inner, 1)
