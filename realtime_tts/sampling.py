"""How the codes of speech are drawn: one definition for the protocol, the engine and the model."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from realtime_tts.errors import RequestError

Temperature = Annotated[float, Meta(ge=0, le=2)]
TopK = Annotated[int, Meta(ge=0, le=1_000_000)]
TopP = Annotated[float, Meta(gt=0, le=1)]
RepetitionPenalty = Annotated[float, Meta(ge=0.5, le=2)]


class PredictorSampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the code predictor draws codes 2 to 16 of a frame.

    A temperature of 0 is greedy; a `top_k` of 0 and a `top_p` of 1 mean no limit.
    """

    temperature: Temperature = 0.9
    top_k: TopK = 50
    top_p: TopP = 1.0


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the talker draws the first code of a frame, and in `predictor` how the others are drawn.

    The ranges of the fields are checked when one is decoded; `checked` does it for one made here.
    """

    temperature: Temperature = 0.9
    top_k: TopK = 50
    top_p: TopP = 1.0
    repetition_penalty: RepetitionPenalty = 1.05
    predictor: PredictorSampling = PredictorSampling()


def checked(sampling: Sampling) -> Sampling:
    """Return the settings. Raises RequestError, which names the field, if one is out of range."""
    try:
        return msgspec.convert(msgspec.to_builtins(sampling), Sampling)
    except msgspec.ValidationError as error:
        raise RequestError(f"this sampling cannot work: {error}") from None
