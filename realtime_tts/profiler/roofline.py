"""The roofline: how few bytes and operations one frame can need, by stage. No torch, no clock.

It counts what every implementation must do with the weights, the carried state and the matrix
products; activations, norms, sampling and launches are free. A multiply-add is two operations.
"""

from __future__ import annotations

from dataclasses import dataclass

from realtime_tts.model.config import CodecConfig, ModelConfig, TransformerConfig


@dataclass(frozen=True, slots=True)
class Work:
    """The least that one stage of a frame has to move and to compute.

    `weight_bytes` are read once for all rows; `state_bytes` and `flops` are totals of all rows.
    """

    weight_bytes: float
    state_bytes: float
    flops: float

    def seconds(self, bytes_per_second: float, flops_per_second: float) -> float:
        """Return the least time it can take: the longer of moving the bytes and computing."""
        moved = (self.weight_bytes + self.state_bytes) / bytes_per_second
        return max(moved, self.flops / flops_per_second)


def talker_work(
    config: ModelConfig, rows: int, context: int, item: int, state_item: int | None = None
) -> Work:
    """Return the work of one decode step of the talker, head included; every row attends to
    `context` positions.

    `item`: bytes per weight; `state_item`: bytes per key or value, if that differs.
    """
    talker, shape = config.talker, config.talker.transformer
    weights = shape.layers * layer_weights(shape) + talker.vocab * shape.hidden
    position = 2 * shape.layers * shape.kv_heads * shape.head_dim  # keys and values
    attention = 4 * shape.layers * shape.heads * shape.head_dim * context
    return Work(
        weight_bytes=weights * item,
        # Read them all, write one.
        state_bytes=rows * position * (context + 1) * (state_item or item),
        flops=rows * (2.0 * weights + attention),
    )


def predictor_work(config: ModelConfig, rows: int, item: int, cache_bytes: int = 0) -> Work:
    """Return the work of all passes of the code predictor for one frame.

    The layers are read anew in every pass, unless they fit into a cache of `cache_bytes`; only the
    first pass needs the input projection (see code_predictor.py).
    """
    shape, width = config.predictor.transformer, config.talker.transformer.hidden
    groups = config.talker.code_groups
    passes = groups - 1
    layers = shape.layers * layer_weights(shape)
    heads = passes * config.predictor.vocab * shape.hidden
    projection = shape.hidden * width if shape.hidden != width else 0
    reads = 1 if layers * item <= cache_bytes else passes
    return Work(
        weight_bytes=(reads * layers + heads + projection) * item,
        state_bytes=0.0,  # sixteen positions, new in each frame: they never leave the cache
        flops=rows * 2.0 * (groups * layers + heads + 2 * projection),
    )


def codec_work(
    config: CodecConfig, rows: int, item: int = 4, weight_item: int | None = None
) -> Work:
    """Return the work of a new frame of every row, with carried state. `item`: bytes per number;
    `weight_item`: bytes per weight, if that differs."""
    parts, shape = codec_parts(config), config.transformer
    attention = 4 * shape.layers * shape.heads * shape.head_dim * config.window
    entries = config.codebooks * config.codebook_dim
    return Work(
        weight_bytes=sum(part.weights for part in parts) * (weight_item or item),
        # Keys and values are read, and a step of them written; taps go both ways.
        state_bytes=rows * (codec_keys(config) + 2 * codec_taps(config) + entries) * item,
        flops=rows * (sum(part.flops for part in parts) + attention),
    )


def layer_weights(shape: TransformerConfig) -> int:
    """Return the number of weights in the matrix products of one decoder layer."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    attention = shape.hidden * (2 * queries + 2 * keys)
    return attention + 3 * shape.hidden * shape.intermediate


@dataclass(frozen=True, slots=True)
class Part:
    """A product of the codec: its weights, and how often a frame uses each. `taps`: past steps it
    remembers, times channels."""

    weights: int
    uses: int
    taps: int = 0

    @property
    def flops(self) -> float:
        return 2.0 * self.weights * self.uses


def codec_parts(config: CodecConfig) -> list[Part]:
    """Return every product of the codec's decoder, in order, without look-ups in codebooks."""
    latent, width = config.latent_dim, config.decoder_dim
    shape = config.transformer
    parts = [
        Part(3 * config.codebook_dim * latent, 1, 2 * config.codebook_dim),
        Part(2 * latent * shape.hidden + shape.layers * layer_weights(shape), 1),
    ]
    steps = 1
    for ratio in config.upsampling_ratios:
        parts.append(Part(latent * latent * ratio, steps))
        steps *= ratio
        parts.append(Part((7 + 8 * latent) * latent, steps, 6 * latent))  # ConvNeXt
    parts.append(Part(7 * latent * width, steps, 6 * latent))
    for rate in config.upsample_rates:
        parts.append(Part(2 * rate * width * (width // 2), steps, width))
        width, steps = width // 2, steps * rate
        parts += [Part(8 * width * width, steps, 6 * 3**unit * width) for unit in range(3)]
    return [*parts, Part(7 * width, steps, 6 * width)]


def codec_taps(config: CodecConfig) -> int:
    """Return the number of elements of convolution state of one stream."""
    return sum(part.taps for part in codec_parts(config))


def codec_keys(config: CodecConfig) -> int:
    """Return the number of elements of keys and values of one stream."""
    shape = config.transformer
    return 2 * shape.layers * shape.heads * shape.head_dim * (config.window - 1)
