"""The stored outputs of the official package, and the checkpoints that they came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from realtime_tts.sampling import PredictorSampling, Sampling

PARITY = Path(__file__).parent / "data" / "parity"
GREEDY = Sampling(temperature=0.0, predictor=PredictorSampling(temperature=0.0))
"""How the stored rows were drawn."""


def rows_of(meta: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and arguments of every row of every stored case."""
    for name, given in meta["cases"].items():
        if isinstance(given["text"], str):
            yield name, given
            continue
        for row in range(len(given["text"])):
            one = {key: v[row] if isinstance(v, list) else v for key, v in given.items()}
            yield f"{name}.{row}", one
