"""Stage times compared with the roofline: figures, a table, JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch

from realtime_tts.engine.torch_setup import name_of
from realtime_tts.model import SpeechModel
from realtime_tts.model.codec import CodecDecoder
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.layers import DecoderLayer
from realtime_tts.model.linear import Linear
from realtime_tts.profiler.machine import Limits
from realtime_tts.profiler.roofline import Work, codec_work, predictor_work, talker_work
from realtime_tts.profiler.stages import CODEC, HOST, PREDICTOR, TALKER, StageTimes

FRAME_MS = 80.0


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage at one number of rows, and its roofline: the least time that it could take.

    `times_roofline`: the measured time divided by the roofline; None for the host, which has none.
    """

    name: str
    ms: float
    roofline_ms: float | None
    times_roofline: float | None
    megabytes: float
    gigaflops: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """The stages of a step with this number of rows.

    `real_time`: seconds of speech per second, all rows together, if steps followed one another
    without a pause.
    """

    rows: int
    context: int
    step_ms: float
    roofline_ms: float
    real_time: float
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything that was measured, with the machine and the model."""

    model: str
    random_weights: bool
    dtype: str
    codec_dtype: str
    command: str
    machine: dict[str, str | int]
    limits: Limits
    buckets: tuple[Bucket, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the profile in plain types, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Widths:
    """Bytes per weight, as read from memory: on the CPU weights may be packed (linear.py)."""

    talker: int
    predictor: int
    codec: int

    @classmethod
    def of(cls, model: SpeechModel) -> Widths:
        """Return the widths of a model's weights as they are in memory now.

        The codec of a GPU has its weights in its own precision, and never packs them.
        """
        item, codec = model.talker.dtype.itemsize, model.slot_codec
        return cls(
            talker=_narrowest(_of_layers(model.talker.layers), item),
            predictor=_narrowest(_of_layers(model.predictor.layers), item),
            codec=_narrowest(
                codec.products if isinstance(codec, CodecDecoder) else (),
                model.slot_codec_dtype.itemsize,
            ),
        )


def _narrowest(products: Iterable[Linear], otherwise: int) -> int:
    return min((each.itemsize for each in products), default=otherwise)


def _of_layers(layers: Iterable[DecoderLayer]) -> Iterator[Linear]:
    return (product for layer in layers for product in layer.products)


def bucket(
    config: ModelConfig,
    times: StageTimes,
    dtypes: tuple[torch.dtype, torch.dtype],
    limits: Limits,
    widths: Widths,
) -> Bucket:
    """Return the figures of one number of rows. `dtypes`: of talker and predictor, of the codec."""
    dtype, codec_dtype = dtypes
    precision, codec_precision = map(name_of, dtypes)
    rows, context = times.rows, times.context
    talker = talker_work(config, rows, context, widths.talker, dtype.itemsize)
    predictor = predictor_work(config, rows, widths.predictor, limits.cache_bytes)
    codec = codec_work(config.codec, rows, codec_dtype.itemsize, widths.codec)
    works = (
        (TALKER, talker, precision),
        (PREDICTOR, predictor, precision),
        (CODEC, codec, codec_precision),
    )
    stages = [_stage(name, times.stages[name], work, at, limits) for name, work, at in works]
    stages.append(Stage(HOST, _ms(times.host), None, None, 0.0, 0.0))
    least = sum(stage.roofline_ms or 0.0 for stage in stages)
    speech = rows * FRAME_MS / (times.step * 1000)
    return Bucket(rows, context, _ms(times.step), round(least, 4), round(speech, 2), tuple(stages))


def lines(profile: Profile) -> list[str]:
    """Return the profile as lines of Markdown, with a table."""
    limits = profile.limits
    rates = ", ".join(f"{name} {rate / 1e12:.3g}" for name, rate in limits.flops_per_second.items())
    noise = "RANDOM WEIGHTS: " if profile.random_weights else ""
    names = [stage.name for stage in profile.buckets[0].stages]
    head = ["rows", *(f"{name} ms" for name in names), "step ms", "roofline ms", "x real time"]
    machine = profile.machine
    return [
        f"{noise}{profile.model}, {profile.dtype}, codec {profile.codec_dtype}, "
        f"on {limits.device}: {machine['gpu'] or machine['cpu']}; torch {machine['torch']}",
        f"memory {limits.bytes_per_second / 1e9:.4g} GB/s; matrix products, TFLOP/s: "
        f"{rates}; cache {limits.cache_bytes / 1e6:.0f} MB",
        f"{profile.buckets[0].context} positions in every row; in brackets: times the roofline",
        "",
        "| " + " | ".join(head) + " |",
        "|" + " ---: |" * len(head),
        *(_row(each) for each in profile.buckets),
    ]


def _row(each: Bucket) -> str:
    cells = [str(each.rows), *(_cell(stage) for stage in each.stages), f"{each.step_ms:.2f}"]
    cells += [f"{each.roofline_ms:.3g}", f"{each.real_time:.1f}"]
    return "| " + " | ".join(cells) + " |"


def _cell(stage: Stage) -> str:
    if stage.times_roofline is None:
        return f"{stage.ms:.2f}"
    return f"{stage.ms:.2f} ({stage.times_roofline:.1f}x)"


def _stage(name: str, seconds: float, work: Work, precision: str, limits: Limits) -> Stage:
    least = work.seconds(limits.bytes_per_second, limits.flops_per_second[precision])
    return Stage(
        name=name,
        ms=_ms(seconds),
        roofline_ms=round(least * 1000, 4),
        times_roofline=round(seconds / least, 2),
        megabytes=round((work.weight_bytes + work.state_bytes) / 1e6, 3),
        gigaflops=round(work.flops / 1e9, 3),
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 4)
