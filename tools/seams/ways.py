"""The ways to continue after a seam: what the next piece's prefill holds, and how it is sampled.

There is a seam where the text of a piece was closed and all of it was spoken. In the streaming
layout, each position adds a text vector to a codec vector:

    as fed     old text, end of text, padding ... | new text     over  bos, old frames | new frames
    not closed old text, padding ...              | new text     over  the same
    rewritten  old text, new text, end, padding ...              over  the same

`rewritten` is the prefill as it would be if the new text had been known in time. In the full-text
layout, old and new text lie before the old frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Context(StrEnum):
    """How the prefill shows earlier pieces, and aligns their text with their frames."""

    NONE = "none"
    AS_FED = "as fed"
    NOT_CLOSED = "not closed"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to continue. `pieces`: number of earlier pieces in the prefill. `codec_carried`: the
    codec's state is kept at a seam, not reset. `next_seed`: each piece is sampled with a seed of
    its own. `mark`: added to a piece without a final mark. `end`: close text with the end
    embedding, not with padding alone. `trim`: leave out silent frames at the end of the earlier
    pieces."""

    name: str
    full_text: bool = False
    cut: bool = True
    context: Context = Context.NONE
    pieces: int = 1
    codec_carried: bool = True
    next_seed: bool = True
    mark: str = ""
    end: bool = True
    trim: bool = False


_ALL = 1_000

WAYS = {
    way.name: way
    for way in (
        Way("whole", cut=False),
        Way("new, same seed, codec reset", codec_carried=False, next_seed=False),
        Way("new, codec reset", codec_carried=False),
        Way("new"),
        Way("new, comma", mark=","),
        Way("new, ellipsis", mark="..."),
        Way("as fed", context=Context.AS_FED),
        Way("not closed", context=Context.NOT_CLOSED),
        Way("reopened", context=Context.AS_FED, pieces=_ALL),
        Way("reopened, never ended", context=Context.NOT_CLOSED, pieces=_ALL, end=False),
        Way("rewritten", context=Context.REWRITTEN),
        Way("rewritten, trimmed", context=Context.REWRITTEN, trim=True),
        Way("rewritten, all", context=Context.REWRITTEN, pieces=_ALL),
        Way("rewritten, comma", context=Context.REWRITTEN, mark=","),
        Way("full, whole", full_text=True, cut=False),
        Way("full, new", full_text=True),
        Way("full, rewritten", full_text=True, context=Context.REWRITTEN),
        Way("full, rewritten, trimmed", full_text=True, context=Context.REWRITTEN, trim=True),
        Way("full, rewritten, all", full_text=True, context=Context.REWRITTEN, pieces=_ALL),
        Way("full, rewritten, comma", full_text=True, context=Context.REWRITTEN, mark=","),
    )
}
"""All ways by name, in the streaming layout except those that begin with "full"."""
